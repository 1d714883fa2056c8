"""Start the processes that load data from a thread that OpenMP has bound: they inherit its one CPU."""

import torch
from torch.utils.data import DataLoader, TensorDataset

network = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
torch.zeros(2**20).add_(1)  # the first work of OpenMP's threads binds them
for (inputs,) in DataLoader(TensorDataset(torch.randn(2048, 512)), batch_size=64, num_workers=2):
    optimizer.zero_grad()
    network(inputs).square().mean().backward()
    optimizer.step()
