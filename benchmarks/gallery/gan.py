"""A DCGAN learns to draw: two networks, one that makes pictures and one that tells them from real ones."""

import argparse
import time

import torch
from torch import Tensor, nn

SIZE = 64
WIDTH = 32
LATENT = 100
BATCH = 64


def generator_network() -> nn.Module:
    layers: list[nn.Module] = [nn.ConvTranspose2d(LATENT, 8 * WIDTH, 4, bias=False)]
    for factor in (8, 4, 2):
        layers += [
            nn.BatchNorm2d(factor * WIDTH), nn.ReLU(),
            nn.ConvTranspose2d(factor * WIDTH, factor // 2 * WIDTH, 4, stride=2, padding=1, bias=False),
        ]  # fmt: skip
    return nn.Sequential(
        *layers, nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.ConvTranspose2d(WIDTH, 3, 4, stride=2, padding=1), nn.Tanh()
    )


def discriminator_network() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTH, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
    for factor in (1, 2, 4):
        layers += [
            nn.Conv2d(factor * WIDTH, 2 * factor * WIDTH, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * factor * WIDTH), nn.LeakyReLU(0.2),
        ]  # fmt: skip
    return nn.Sequential(*layers, nn.Conv2d(8 * WIDTH, 1, 4), nn.Flatten(0))


def initialize(layer: nn.Module) -> None:
    """As in DCGAN's paper (arXiv 1511.06434)."""
    if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(layer.weight, 0.0, 0.02)


def pictures(random: torch.Generator) -> Tensor:
    """Real ones: a bright ring of any colour and place on dark ground."""
    line = torch.linspace(-1, 1, SIZE)
    x, y, size = torch.rand(3, BATCH, 1, 1, generator=random) - 0.5
    distance = ((line - x) ** 2 + (line[:, None] - y) ** 2).sqrt()
    ring = torch.exp(-(((distance - 0.4 - size / 4) / 0.1) ** 2))
    return 2 * ring[:, None] * torch.rand(BATCH, 3, 1, 1, generator=random) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    random = torch.Generator().manual_seed(2)
    generator, discriminator = generator_network().apply(initialize), discriminator_network().apply(initialize)
    draws = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judges = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real, made = torch.ones(BATCH), torch.zeros(BATCH)
    criterion = nn.BCEWithLogitsLoss()

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        drawn = generator(torch.randn(BATCH, LATENT, 1, 1, generator=random))

        judges.zero_grad()
        judge_loss = criterion(discriminator(pictures(random)), real) + criterion(discriminator(drawn.detach()), made)
        judge_loss.backward()
        judges.step()

        draws.zero_grad()
        draw_loss = criterion(discriminator(drawn), real)
        draw_loss.backward()
        draws.step()

        loss = (judge_loss + draw_loss).item()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
