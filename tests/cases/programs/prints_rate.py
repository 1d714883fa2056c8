"""Print a rate, as trainers of reinforcement learning do: ``SPS: 1067``. It imports torch and trains nothing.

Steps take 60 ms: a quarter of the lines then takes longer than a busy machine lets whoever reads them wait.
"""

import time

import torch

torch.ones(1000).add_(1)
begin = time.perf_counter()
for update in range(1, 41):
    since = time.perf_counter()
    time.sleep(0.060)
    now = time.perf_counter()
    print(f"global_step={64 * update} SPS: {64 / (now - since):.0f} elapsed {now - begin:.2f}s", flush=True)
