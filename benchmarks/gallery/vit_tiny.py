"""ViT-tiny, a vision transformer, learns which of several textures a picture has."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import ViTConfig, ViTForImageClassification

SIZE = 160
PATCH = 16
CLASSES = 10
BATCH = 16


class Textures(Dataset):
    """Each class has a tile of its own, which is laid side by side all over the noise of its images."""

    def __init__(self, length: int) -> None:
        self.length = length
        generator = torch.Generator().manual_seed(7)
        self.tiles = [torch.randn(3, PATCH, PATCH, generator=generator) for _ in range(CLASSES)]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        label = index % CLASSES
        return noise + 0.3 * self.tiles[label].repeat(1, SIZE // PATCH, SIZE // PATCH), label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="how many batches (default: 60)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    config = ViTConfig(
        image_size=SIZE, patch_size=PATCH, hidden_size=192, num_hidden_layers=12, num_attention_heads=3,
        intermediate_size=768, num_labels=CLASSES,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    loader = DataLoader(Textures(steps * BATCH), batch_size=BATCH)

    begin = time.perf_counter()
    for step, (images, labels) in enumerate(loader, start=1):
        logits = model(images).logits
        loss = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        now = time.perf_counter()
        print(f"step {step}: {now - begin:.4f} s, loss {loss.item():.4f}", flush=True)
        begin = now


if __name__ == "__main__":
    main()
