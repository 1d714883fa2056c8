"""A recommender like DLRM learns who clicks: large embedding tables, of which each step touches few rows."""

import argparse
import itertools
import time

import torch
from torch import Tensor, nn

TABLES = 8
ROWS = 200_000
WIDTH = 32
BAG = 20  # things that a person has looked at, in each table
NUMBERS = 13
BATCH = 4096


def perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="mean", sparse=True) for _ in range(TABLES))
        self.numbers = perceptron(NUMBERS, 128, 64, WIDTH)
        self.upper, self.right = torch.triu_indices(TABLES + 1, TABLES + 1, offset=1)
        self.click = perceptron(WIDTH + len(self.upper), 256, 128, 1)

    def forward(self, numbers: Tensor, things: Tensor) -> Tensor:
        dense = self.numbers(numbers)
        vectors = torch.stack([dense, *(table(one) for table, one in zip(self.tables, things, strict=True))], dim=1)
        products = (vectors @ vectors.transpose(1, 2))[:, self.upper, self.right]
        return self.click(torch.cat([dense, products], dim=1)).squeeze(1)


def batch(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers, the things that were looked at (a few are popular), and whether each person clicks."""
    numbers = torch.randn(BATCH, NUMBERS, generator=generator)
    chance = torch.rand(TABLES, BATCH, BAG, generator=generator) ** 4
    things = (chance * ROWS).long()
    likely = numbers[:, 0] + (4 * chance[0]).mean(dim=1) - numbers[:, 1] * numbers[:, 2]
    clicks = (likely + torch.randn(BATCH, generator=generator) > 1).float()
    return numbers, things, clicks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="how many batches (default: 100)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = Recommender()
    dense = [*model.numbers.parameters(), *model.click.parameters()]
    optimizers = [
        torch.optim.SparseAdam(list(model.tables.parameters()), lr=1e-3),
        torch.optim.Adam(dense, lr=1e-3),
    ]

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        numbers, things, clicks = batch(generator)
        loss = nn.functional.binary_cross_entropy_with_logits(model(numbers, things), clicks)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
