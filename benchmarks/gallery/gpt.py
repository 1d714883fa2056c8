"""A small GPT learns to write sums: language modelling by characters, with gradients of two batches added up."""

import argparse
import time

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

CHARACTERS = "0123456789+=;"
LENGTH = 160
BATCH = 8
BATCHES_PER_STEP = 2


def text(generator: torch.Generator) -> str:
    """Sums, such as 17+25=42, of at least LENGTH characters in all."""
    sums = ""
    while len(sums) < LENGTH + 1:
        one, other = torch.randint(0, 100, (2,), generator=generator).tolist()
        sums += f"{one}+{other}={one + other};"
    return sums[: LENGTH + 1]


def batch(generator: torch.Generator) -> Tensor:
    return torch.tensor([[CHARACTERS.index(one) for one in text(generator)] for _ in range(BATCH)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="how many updates (default: 50)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=len(CHARACTERS), n_positions=LENGTH, n_embd=256, n_layer=6, n_head=8, use_cache=False,
                   bos_token_id=0, eos_token_id=0)
    )  # fmt: skip
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, steps))

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad()
        mean_loss = 0.0
        for _ in range(BATCHES_PER_STEP):
            characters = batch(generator)
            logits = model(characters[:, :-1]).logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), characters[:, 1:].flatten()) / BATCHES_PER_STEP
            loss.backward()
            mean_loss += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {mean_loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
