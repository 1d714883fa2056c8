"""Train a small network for TRAIN_S seconds, or for STEPS steps: ``step 3 loss 2.3026 time 1.234 ms``.

CLOCK names the function of ``time`` that tells these seconds: process_time counts those of CPU time.
With OPTIMIZER=none it updates weights itself. An optimizer of PyTorch imports the compiler, which takes 1.5 s of a CPU.
"""

import os
import time

import torch

torch.manual_seed(1)
network = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = None if os.environ.get("OPTIMIZER") == "none" else torch.optim.SGD(network.parameters(), lr=0.01)
inputs, classes = torch.randn(512, 512), torch.randint(10, (512,))
clock, step = getattr(time, os.environ.get("CLOCK", "perf_counter")), 0
begin = clock()
while clock() - begin < float(os.environ["TRAIN_S"]) if "TRAIN_S" in os.environ else step < int(os.environ["STEPS"]):
    since, step = time.perf_counter(), step + 1
    network.zero_grad()
    loss = torch.nn.functional.cross_entropy(network(inputs), classes)
    loss.backward()
    if optimizer is not None:
        optimizer.step()
    else:
        with torch.no_grad():
            for weights in network.parameters():
                weights.sub_(0.01 * weights.grad)
    print(f"step {step} loss {loss.item():.4f} time {1000 * (time.perf_counter() - since):.3f} ms", flush=True)
