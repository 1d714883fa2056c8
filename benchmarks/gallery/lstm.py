"""An LSTM learns which word comes next, by truncated backpropagation through time."""

import argparse
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

WORDS = 5000
FOLLOWERS = 4  # so many words can follow each one
LENGTH = 35
BATCH = 32


class LanguageModel(nn.Module):
    def __init__(self, width: int = 400, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.dropout = nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.2)
        self.words = nn.Linear(width, WORDS)
        self.words.weight = self.embedding.weight  # tied

    def forward(self, words: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outputs, state = self.lstm(self.dropout(self.embedding(words)), state)
        return self.words(self.dropout(outputs)), state


def text() -> Iterator[Tensor]:
    """BATCH texts without an end, LENGTH + 1 words of each at a time, of which the first is the last one of before."""
    generator = torch.Generator().manual_seed(2)
    followers = torch.randint(WORDS, (WORDS, FOLLOWERS), generator=generator)
    word = torch.randint(WORDS, (BATCH,), generator=generator)
    while True:
        part = [word]
        for _ in range(LENGTH):
            choice = torch.randint(FOLLOWERS, (BATCH,), generator=generator)
            part.append(followers[part[-1], choice])
        word = part[-1]
        yield torch.stack(part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80, metavar="N", help="how many batches (default: 80)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    model = LanguageModel()
    nn.init.uniform_(model.embedding.weight, -0.1, 0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    state = None

    begin = time.perf_counter()
    for step, words in zip(range(1, steps + 1), text(), strict=False):
        if state is not None:
            state = (state[0].detach(), state[1].detach())
        logits, state = model(words[:-1], state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
