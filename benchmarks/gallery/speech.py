"""One-dimensional convolutions learn to write down what is heard: speech recognition from sound waves, by CTC."""

import argparse
import math
import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

RATE = 8000  # numbers in a second
SECONDS = 2
LETTERS = 12  # 0 is CTC's blank
SPOKEN = 8  # letters in each recording
WIDTH = 128
STRIDES = (5, 4, 2, 2)
BATCH = 16


class Recordings(Dataset):
    """Each letter is a pitch of its own, with overtones, for as long as the speaker likes; there is noise."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        letters = torch.randint(1, LETTERS, (SPOKEN,), generator=generator)
        shares = 0.5 + torch.rand(SPOKEN, generator=generator)
        ends = (RATE * SECONDS * shares.cumsum(0) / shares.sum()).long()
        now = torch.bucketize(torch.arange(RATE * SECONDS), ends, right=True).clamp(max=SPOKEN - 1)
        phase = torch.cumsum(2 * math.pi * (200 + 60 * letters[now]) / RATE, dim=0)
        wave = phase.sin() + 0.5 * (2 * phase).sin()
        return wave + 0.3 * torch.randn(wave.shape, generator=generator), letters


class Dilated(nn.Module):
    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(1, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + nn.functional.glu(self.convolution(x), dim=1))


def recognizer() -> nn.Module:
    layers: list[nn.Module] = []
    inputs = 1
    for stride in STRIDES:
        layers += [nn.Conv1d(inputs, WIDTH, 2 * stride + 1, stride, padding=stride), nn.GroupNorm(8, WIDTH), nn.GELU()]
        inputs = WIDTH
    dilated = [Dilated(2**power) for _ in range(2) for power in range(4)]
    return nn.Sequential(*layers, *dilated, nn.Conv1d(WIDTH, LETTERS, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    model = recognizer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for step, (waves, letters) in enumerate(DataLoader(Recordings(steps * BATCH), batch_size=BATCH), start=1):
        heard = model(waves[:, None]).permute(2, 0, 1).log_softmax(dim=2)  # frames, recordings, letters
        frames, spoken = torch.full((BATCH,), len(heard)), torch.full((BATCH,), SPOKEN)
        loss = nn.functional.ctc_loss(heard, letters, frames, spoken)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
