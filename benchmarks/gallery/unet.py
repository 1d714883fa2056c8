"""A U-Net marks the cells in a noisy picture: segmentation, as of medical images."""

import argparse
import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

SIZE = 160
WIDTHS = (16, 32, 64, 128)
BATCH = 8


class Cells(Dataset):
    """Images with up to ten discs, and the mask of these."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        line = torch.linspace(0, 1, SIZE)
        mask = torch.zeros(SIZE, SIZE)
        for _ in range(int(torch.randint(3, 11, (), generator=generator))):
            x, y, size = torch.rand(3, generator=generator)
            mask[(line - x) ** 2 + (line[:, None] - y) ** 2 < (0.03 + 0.08 * size) ** 2] = 1
        return (mask + 0.7 * torch.randn(SIZE, SIZE, generator=generator))[None], mask[None]


def convolutions(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(map(convolutions, (1, *WIDTHS[:-2]), WIDTHS[:-1]))
        self.bottom = convolutions(WIDTHS[-2], WIDTHS[-1])
        pairs = [(WIDTHS[at], WIDTHS[at - 1]) for at in range(len(WIDTHS) - 1, 0, -1)]
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for wide, narrow in pairs)
        self.join = nn.ModuleList(convolutions(2 * narrow, narrow) for _, narrow in pairs)
        self.last = nn.Conv2d(WIDTHS[0], 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for down in self.down:
            kept.append(down(x))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.last(x)


def dice(logits: Tensor, mask: Tensor) -> Tensor:
    """How little the marked area and the mask overlap."""
    marked = logits.sigmoid()
    return 1 - (2 * (marked * mask).sum() + 1) / (marked.sum() + mask.sum() + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for step, (images, masks) in enumerate(DataLoader(Cells(steps * BATCH), batch_size=BATCH), start=1):
        logits = model(images)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, masks) + dice(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
