"""Training from a DataLoader with two workers, which logs one JSON object per step."""

import argparse
import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self) -> int:
        return 64 * 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        return torch.randn(256, generator=generator), index % 10


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=512)
    hidden = parser.parse_args().hidden
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(256, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    print("starting", json.dumps({"workers": 2}))
    begin = time.perf_counter()
    for step, (points, labels) in enumerate(DataLoader(Points(), batch_size=64, num_workers=2)):
        loss = nn.functional.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        print(json.dumps({"step": step, "train": {"loss": round(loss.item(), 4), "step_time": now - begin}}))
        begin = now
    print(json.dumps({"done": True}))


if __name__ == "__main__":
    main()
