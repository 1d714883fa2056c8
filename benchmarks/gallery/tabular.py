"""A perceptron learns from the rows of a table, with columns of numbers and of categories."""

import argparse
import time

import torch
from torch import Tensor, nn

NUMBERS = 40
CATEGORIES = (7, 12, 24, 31, 50, 100, 1000, 5000)  # how many values each of these columns has
WIDTH = 512
LAYERS = 4
BATCH = 4096


class TableNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [min(50, (values + 1) // 2) for values in CATEGORIES]
        self.embeddings = nn.ModuleList(nn.Embedding(*sizes) for sizes in zip(CATEGORIES, widths, strict=True))
        self.norm = nn.BatchNorm1d(NUMBERS)
        layers: list[nn.Module] = []
        inputs = NUMBERS + sum(widths)
        for _ in range(LAYERS):
            layers += [nn.Linear(inputs, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.2)]
            inputs = WIDTH
        self.layers = nn.Sequential(*layers, nn.Linear(WIDTH, 1))

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        embedded = [one(categories[:, column]) for column, one in enumerate(self.embeddings)]
        return self.layers(torch.cat([self.norm(numbers), *embedded], dim=1)).squeeze(1)


def rows(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of the table, and what is to be foretold of each row."""
    numbers = torch.randn(BATCH, NUMBERS, generator=generator)
    columns = [torch.randint(values, (BATCH,), generator=generator) for values in CATEGORIES]
    answers = numbers[:, 0] * numbers[:, 1] + numbers[:, 2].abs() + (columns[0] == 3) - 0.1 * (columns[3] % 5)
    return numbers, torch.stack(columns, dim=1), answers + 0.1 * torch.randn(BATCH, generator=generator)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150, metavar="N", help="how many batches (default: 150)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = TableNetwork()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        numbers, categories, answers = rows(generator)
        loss = nn.functional.mse_loss(model(numbers, categories), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
