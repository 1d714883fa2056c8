"""Records of two sessions whose difference is known, for baselines."""

from __future__ import annotations

import random
from collections.abc import Container
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
    yardstick_s: float = YARDSTICK_S,
    no_yardstick_in: Container[int] = (),
    skipped_steps: int = 0,
    **options: Any,
) -> Path:
    """Write the record of a run of ``baseline`` and ``mine``; returns its folder.

    ``slower`` is by how much longer an arm takes than usual; ``machine`` by how much longer all takes, the yardstick
    too, which otherwise takes ``yardstick_s``. Each time has its own noise. Without ``yardstick`` it is a record of the
    first version, which had none; in the blocks of ``no_yardstick_in`` it could not run.
    """
    generator = random.Random(seed)
    events: list[dict[str, Any]] = []
    arms = options.pop("arms", (records.arm("baseline"), records.arm("mine")))
    for event in records.run_events(*arms, blocks=blocks, **options):
        if event["event"] == "sample":
            if yardstick and event["arm"] == arms[0]["name"]:
                seconds = yardstick_s * machine * generator.lognormvariate(0, noise)
                where = {"time": event["time"], "block": event["block"], "worker_seconds": 1.2}
                if event["block"] in no_yardstick_in:
                    events.append({"event": "yardstick-failure", **where, "problem": "exit status 1", "stderr": ""})
                else:
                    events.append({"event": "yardstick", **where, "seconds": seconds, "digest": yardstick})
            usual = 1.0 if event["arm"] == arms[0]["name"] else 0.5
            step_s = usual * machine * (slower or {}).get(event["arm"], 1.0) * generator.lognormvariate(0, noise)
            event |= {"seconds": 3 * step_s, "step_s": [step_s] * 3}
        events.append(event)
    if skipped_steps:
        looks = {"planned_blocks": blocks, "looks": [blocks]}
        events.insert(-1, {"event": "design", "time": events[-2]["time"], **looks, "skipped_steps": skipped_steps})
    return records.write(folder, events)
