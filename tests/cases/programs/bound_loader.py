"""Start the processes that load data from a thread that OpenMP has bound: they inherit its one CPU."""

import torch
from torch.utils.data import DataLoader

network = torch.nn.Linear(512, 512)
torch.zeros(2**20).add_(1)  # the first work of OpenMP's threads binds them
inputs = torch.randn(64, 512)
for _ in DataLoader(range(2048), batch_size=64, num_workers=2, collate_fn=list):  # it passes no tensors on
    network.zero_grad()
    network(inputs).square().mean().backward()
