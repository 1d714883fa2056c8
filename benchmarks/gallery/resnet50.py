"""ResNet-50 learns to tell how wide the stripes in a picture are: classification of images."""

import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import ResNetConfig, ResNetForImageClassification

SIZE = 128
CLASSES = 10
BATCH = 16


class Stripes(Dataset):
    """Noisy images. The class is how many stripes each has; all of it follows from the index."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        label = index % CLASSES
        shift = 2 * math.pi * torch.rand(3, 1, 1, generator=generator)
        stripes = torch.sin(torch.linspace(0, 2 * math.pi * (label + 2), SIZE) + shift)
        return stripes + 0.5 * torch.randn(3, SIZE, SIZE, generator=generator), label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, metavar="N", help="how many batches (default: 40)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    model = ResNetForImageClassification(ResNetConfig(num_labels=CLASSES))  # the other defaults are those of ResNet-50
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-4)
    loader = DataLoader(Stripes(steps * BATCH), batch_size=BATCH)

    begin = time.perf_counter()
    for step, (images, labels) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(model(images).logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
