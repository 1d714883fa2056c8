"""A small recurrent network over long sequences, with many operators on small blocks; prints each step."""

import argparse
import time

import torch
from torch import nn

STEPS_OF_TIME, BATCH, INPUTS, HIDDEN = 256, 16, 8, 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    torch.manual_seed(1)
    cell, head = nn.LSTMCell(INPUTS, HIDDEN), nn.Linear(HIDDEN, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    sequences, targets = torch.randn(STEPS_OF_TIME, BATCH, INPUTS), torch.randn(BATCH, 1)
    for step in range(1, steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad()
        hidden, state = torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, HIDDEN)
        for values in sequences:
            hidden, state = cell(values, (hidden, state))
        loss = nn.functional.mse_loss(head(hidden), targets)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.3f} time {(time.perf_counter() - begin) * 1000:.3f} ms")


if __name__ == "__main__":
    main()
