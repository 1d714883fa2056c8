"""A graph network learns to which group each node belongs: messages along edges, added up where they arrive."""

import argparse
import time

import torch
from torch import Tensor, nn

NODES = 20_000
NEIGHBOURS = 10
GROUPS = 8
FEATURES = 64
WIDTH = 96


class GraphLayer(nn.Module):
    """What each node makes of itself and of the mean of its neighbours (GraphSAGE)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.others = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, degrees: Tensor) -> Tensor:
        arrived = torch.zeros_like(x).index_add(0, targets, x[sources])
        return self.own(x) + self.others(arrived / degrees)


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(FEATURES, WIDTH), GraphLayer(WIDTH, WIDTH), GraphLayer(WIDTH, GROUPS)])

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, degrees: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = nn.functional.dropout(layer(x, sources, targets, degrees).relu(), 0.3, self.training)
        return self.layers[-1](x, sources, targets, degrees)


def graph() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features, sources and targets of edges, and groups. Most edges are within a group; features say little of it."""
    generator = torch.Generator().manual_seed(2)
    groups = torch.arange(NODES) % GROUPS
    sources, targets = [], []
    for _ in range(NEIGHBOURS):
        other = torch.randint(NODES, (NODES,), generator=generator)
        within = torch.rand(NODES, generator=generator) < 0.7
        sources.append(torch.where(within, (other - other % GROUPS + groups) % NODES, other))
        targets.append(torch.arange(NODES))
    middles = torch.randn(GROUPS, FEATURES, generator=generator)
    features = 0.2 * middles[groups] + torch.randn(NODES, FEATURES, generator=generator)
    return features, torch.cat(sources), torch.cat(targets), groups


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80, metavar="N", help="how many passes (default: 80)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    features, sources, targets, groups = graph()
    degrees = torch.bincount(targets, minlength=NODES).clamp(min=1).unsqueeze(1)
    known = torch.rand(NODES) < 0.1  # the others' groups are what it is trained for
    model = GraphNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        logits = model(features, sources, targets, degrees)
        loss = nn.functional.cross_entropy(logits[known], groups[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
