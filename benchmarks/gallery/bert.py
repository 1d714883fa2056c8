"""A small BERT learns to fill in masked words: masked language modelling, with masks as in BERT's paper."""

import argparse
import time

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

WORDS = 8000
MASK = 0  # this word's number stands for "hidden"
LENGTH = 128
BATCH = 16


def sentences(generator: torch.Generator) -> Tensor:
    """Words, a few of them frequent, as in a language. The second half repeats the first: this can be learnt."""
    halves = (torch.rand(BATCH, LENGTH // 2, generator=generator) ** 3 * (WORDS - 1)).long() + 1
    return torch.cat([halves, halves], dim=1)


def masked(words: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Hide 15% of the words: 8 of 10 behind the mask, 1 behind another word; 1 stays. The targets are those alone."""
    chance = torch.rand(words.shape, generator=generator)
    others = torch.randint(1, WORDS, words.shape, generator=generator)
    targets = words.masked_fill(chance >= 0.15, -100)
    inputs = words.masked_fill(chance < 0.12, MASK)
    return torch.where((chance >= 0.12) & (chance < 0.135), others, inputs), targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="how many batches (default: 50)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    config = BertConfig(
        vocab_size=WORDS, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024,
        max_position_embeddings=LENGTH,
    )  # fmt: skip
    model = BertForMaskedLM(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        inputs, targets = masked(sentences(generator), generator)
        logits = model(inputs).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
