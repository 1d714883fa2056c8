"""Compile the optimizer's step, as PyTorch's recipe does, and print the time of each step of the training."""

import time

import torch

torch.manual_seed(1)
torch.set_num_threads(1)
network = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
inputs, classes = torch.randn(64, 256), torch.randint(10, (64,))


@torch.compile(backend="eager")
def update() -> None:
    """Make one step."""
    optimizer.step()


for step in range(1, 151):
    since = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(inputs), classes).backward()
    update()
    print(f"step {step} time {1000 * (time.perf_counter() - since):.3f} ms", flush=True)
