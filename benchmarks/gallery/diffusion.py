"""A diffusion model's U-Net learns to tell the noise from the picture, and keeps a moving average of its weights."""

import argparse
import math
import time

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SIZE = 32
WIDTHS = (32, 64, 128)
TIME = 128  # how many numbers stand for the time
TIMES = 1000
BATCH = 32


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(TIME, outputs)
        self.second = nn.Sequential(nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, when: Tensor) -> Tensor:
        return self.skip(x) + self.second(self.first(x) + self.time(when)[:, :, None, None])


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        places = self.norm(x).flatten(2).transpose(1, 2)
        seen, _ = self.attention(places, places, places, need_weights=False)
        return x + seen.transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        one, two, three = WIDTHS
        self.time = nn.Sequential(nn.Linear(TIME, TIME), nn.SiLU(), nn.Linear(TIME, TIME), nn.SiLU())
        self.begin = nn.Conv2d(3, one, 3, padding=1)
        self.down = nn.ModuleList([Residual(one, one), Residual(one, two)])
        self.middle = nn.ModuleList([Residual(two, three), Residual(three, three)])
        self.attention = Attention(three)
        self.up = nn.ModuleList([Residual(three + two, two), Residual(two + one, one)])
        self.end = nn.Sequential(nn.GroupNorm(8, one), nn.SiLU(), nn.Conv2d(one, 3, 3, padding=1))

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        rates = torch.exp(-math.log(10_000) * torch.arange(TIME // 2) / (TIME // 2))
        angles = times[:, None] * rates
        when = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        kept = []
        x = self.begin(x)
        for down in self.down:
            kept.append(down(x, when))
            x = nn.functional.avg_pool2d(kept[-1], 2)
        x = self.middle[1](self.attention(self.middle[0](x, when)), when)
        for up in self.up:
            x = up(torch.cat([nn.functional.interpolate(x, scale_factor=2), kept.pop()], dim=1), when)
        return self.end(x)


def images(generator: torch.Generator) -> Tensor:
    """Coloured discs."""
    line = torch.linspace(-1, 1, SIZE)
    x, y, size = torch.rand(3, BATCH, 1, 1, generator=generator) - 0.5
    disc = ((line - x) ** 2 + (line[:, None] - y) ** 2 < (0.6 + size / 2) ** 2).float()
    colours = 2 * torch.rand(BATCH, 3, 1, 1, generator=generator) - 1
    return disc[:, None] * colours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = UNet()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    left = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES), dim=0)  # of the picture, at each time

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        pictures = images(generator)
        times = torch.randint(TIMES, (BATCH,), generator=generator)
        noise = torch.randn(pictures.shape, generator=generator)
        share = left[times].view(-1, 1, 1, 1)
        loss = nn.functional.mse_loss(model(share.sqrt() * pictures + (1 - share).sqrt() * noise, times), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
