"""Folders of fleets whose slow nodes are known."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import records
from tests.records import BEGUN

# Records that were made before, by what they are made of: hundreds of tests want the same twenty nodes.
MADE: dict[str, str] = {}
STEP_S = 0.025
REFERENCE_KERNEL_S = 0.1


def node_events(
    name: str,
    slower: float = 0.0,
    samples: int = 10,
    noise: float = 0.01,
    began: float = BEGUN,
    digest: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
    profiles: Sequence[str] = ("mine",),
    ended: str | None = "complete",
    **study: Any,
) -> list[dict[str, Any]]:
    """The events of a node that takes ``slower`` more time (a share) than others; each sample has its own noise."""
    generator = random.Random(name)
    events = records.run_events(*map(records.arm, profiles), blocks=samples, time=began, ended=ended, **study)
    seen = events[0]["engines"]["local"]
    seen["engine"] |= {} if digest is None else {"digest": digest}
    seen["inspection"]["fingerprint"] |= fingerprint or {}
    seen["inspection"]["facts"] |= facts or {}
    found = []
    for event in events:
        if event["event"] == "sample":
            step_s = STEP_S * (1 + slower) * generator.lognormvariate(0, noise)
            event |= {"seconds": 3 * step_s, "step_s": [step_s] * 3}
            quiet = {"user_s": 2 * step_s, "system_s": step_s, "worker_cpus_busy_s": 3 * step_s}
            event["usage"] |= {**quiet, **(usage or {})}
            found.append(
                {
                    "event": "reference-kernel", "time": event["time"], "block": event["block"], "worker_seconds": 1.2,
                    "seconds": REFERENCE_KERNEL_S * (1 + slower), "digest": "f" * 64,
                }
            )  # fmt: skip
        found.append(event)
    return found


def node(place: Path, name: str, slower: float = 0.0, **options: Any) -> Path:
    """Write a node's record; returns its folder."""
    made_of = repr((name, slower, options, Path.cwd()))
    folder = place / name
    if made_of not in MADE:
        records.write(folder, node_events(name, slower, **options))
        MADE[made_of] = (folder / records.FILE_NAME).read_text()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / records.FILE_NAME).write_text(MADE[made_of])
    return folder


def fleet(place: Path, count: int = 12, slower: Mapping[str, float] | None = None, **options: Any) -> Path:
    """Write the records of nodes n00, n01, …; returns the folder that they are in."""
    for number in range(count):
        name = f"n{number:02}"
        node(place, name, (slower or {}).get(name, 0.0), **options)
    return place
