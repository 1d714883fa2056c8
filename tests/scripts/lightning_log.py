"""Training that draws one progress bar over and over, as PyTorch Lightning does: on stderr, with a rate."""

import argparse
import sys
import time

import torch
from torch import nn

STEPS = 40
WIDTH = 20


def bar(epoch: int, step: int, rate: float, loss: float) -> str:
    done = "█" * (WIDTH * step // STEPS)
    shown = f"{step}/{STEPS} [00:00<00:00, {rate:.2f}it/s, v_num=0, train_loss={loss:.3f}]"
    return f"\rEpoch {epoch}: {100 * step // STEPS:3d}%|{done:<{WIDTH}}| {shown}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=512)
    hidden = parser.parse_args().hidden
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(256, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    optimizer = torch.optim.Adam(model.parameters())
    points, labels = torch.randn(128, 256), torch.randint(10, (128,))
    print("GPU available: False, used: False")
    for epoch in range(2):
        print(f"\rEpoch {epoch}:   0%|{'':<{WIDTH}}| 0/{STEPS} [00:00<?, ?it/s]", end="", file=sys.stderr)
        begin = time.perf_counter()
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            rate = step / (time.perf_counter() - begin)
            print(bar(epoch, step, rate, loss.item()), end="", file=sys.stderr)
        print(file=sys.stderr)
    print("`Trainer.fit` stopped: `max_epochs=2` reached.")


if __name__ == "__main__":
    main()
