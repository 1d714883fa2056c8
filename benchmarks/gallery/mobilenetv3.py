"""MobileNetV3-Small, from the tables of its paper (arXiv 1905.02244), learns where in a picture a bright square is."""

import argparse
import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

SIZE = 160
GRID = 3  # the square is in one of GRID x GRID places
BATCH = 32
# Of each block: kernel, channels inside, channels out, squeeze-and-excitation or not, activation, stride.
BLOCKS = [
    (3, 16, 16, True, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 2),
    (3, 88, 24, False, nn.ReLU, 1),
    (5, 96, 40, True, nn.Hardswish, 2),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 120, 48, True, nn.Hardswish, 1),
    (5, 144, 48, True, nn.Hardswish, 1),
    (5, 288, 96, True, nn.Hardswish, 2),
    (5, 576, 96, True, nn.Hardswish, 1),
    (5, 576, 96, True, nn.Hardswish, 1),
]


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(outputs)]


class SqueezeAndExcitation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        few = max(8, channels // 4)
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, few, 1), nn.ReLU(), nn.Conv2d(few, channels, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale(x)


class Block(nn.Module):
    """An inverted residual: more channels, a convolution of each by itself, fewer channels."""

    def __init__(self, inputs: int, kernel: int, inside: int, outputs: int, excite: bool, act: type, stride: int):
        super().__init__()
        self.skip = inputs == outputs and stride == 1
        self.layers = nn.Sequential(
            *convolution(inputs, inside, 1), act(),
            *convolution(inside, inside, kernel, stride, groups=inside), act(),
            SqueezeAndExcitation(inside) if excite else nn.Identity(),
            *convolution(inside, outputs, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.skip else self.layers(x)


def mobilenet(classes: int) -> nn.Module:
    inputs = [16, *(outputs for _, _, outputs, *_ in BLOCKS)]
    blocks = [Block(channels, *block) for channels, block in zip(inputs, BLOCKS, strict=False)]
    return nn.Sequential(
        *convolution(3, 16, 3, stride=2), nn.Hardswish(), *blocks, *convolution(96, 576, 1), nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2),
        nn.Linear(1024, classes),
    )  # fmt: skip


class Squares(Dataset):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        label = index % GRID**2
        row, column = (SIZE // GRID * place for place in divmod(label, GRID))
        image[:, row : row + SIZE // GRID, column : column + SIZE // GRID] += 1
        return image, label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    model = mobilenet(GRID**2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for step, (images, labels) in enumerate(DataLoader(Squares(steps * BATCH), batch_size=BATCH), start=1):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
