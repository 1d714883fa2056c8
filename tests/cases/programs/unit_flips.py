"""Print step times whose unit changes at one second, or rates whose unit changes at 1,000 a second."""

import sys

import torch

torch.ones(1000).add_(1)
for number, seconds in enumerate([0.90, 1.10, 0.95, 1.05, 0.98, 1.30] * 5, 1):
    if sys.argv[1] == "time":
        speed = f"{seconds:.2f} sec/it" if seconds > 1 else f"{1000 * seconds:.1f} ms/it"
    else:
        speed = f"{1 / seconds:.2f}kit/s" if seconds < 1 else f"{1000 / seconds:.2f}it/s"
    print(f"Train | {number}/30 | {speed} | Loss 0.5", flush=True)
