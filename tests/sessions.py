"""Records of two sessions whose difference is known, for baselines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests import records

BLOCKS = 10
YARDSTICK_S = 0.11
YARDSTICK = "f" * 64


def session(
    folder: Path,
    slower: dict[str, float] | None = None,
    machine: float = 1.0,
    yardstick: str | None = YARDSTICK,
    blocks: int = BLOCKS,
    seed: int = 1,
    noise: float = 0.01,
    **options: Any,
) -> Path:
    """Write the record of a run of ``baseline`` and ``mine``; returns its folder.

    ``slower`` is by how much longer an arm takes than usual; ``machine`` by how much longer all takes, the yardstick
    too. Each time has its own noise. Without ``yardstick`` it is a record of the first version, which had none.
    """
    generator = random.Random(seed)
    events: list[dict[str, Any]] = []
    arms = options.pop("arms", (records.arm("baseline"), records.arm("mine")))
    for event in records.run_events(*arms, blocks=blocks, **options):
        if event["event"] == "sample":
            if yardstick and event["arm"] == arms[0]["name"]:
                seconds = YARDSTICK_S * machine * generator.lognormvariate(0, noise)
                events.append({"event": "yardstick", "time": event["time"], "block": event["block"],
                               "seconds": seconds, "digest": yardstick, "worker_seconds": 1.2})  # fmt: skip
            usual = 1.0 if event["arm"] == arms[0]["name"] else 0.5
            step_s = usual * machine * (slower or {}).get(event["arm"], 1.0) * generator.lognormvariate(0, noise)
            event |= {"seconds": 3 * step_s, "step_s": [step_s] * 3}
        events.append(event)
    return records.write(folder, events)
