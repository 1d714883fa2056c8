"""Records as runs leave them, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from envkit.bench import record_schema
from envkit.bench import seal as seals
from envkit.bench.record import FILE_NAME

from tests.simulated_worker import inspection, sample
from tests.simulation import STEADY, times

BEGUN = 1_793_000_000.0  # seconds since 1970
SAMPLE_S = 2.0


def arm(name: str, profile: str | None = None, engine: str = "local") -> dict[str, str]:
    return {"name": name, "profile": profile or name, "engine": engine}


def run_event(arms: list[dict[str, str]], time: float = BEGUN, **plan: Any) -> dict[str, Any]:
    """The first event of a run of the first version: later ones may add to it, and must do without what they add."""
    engines = {
        one["engine"]: {
            "engine": {"name": one["engine"], "version": "6.1", "image": "/sim/bin/python"},
            "inspection": inspection([], {}),
        }
        for one in arms
    }
    environment = {"title": "A test", "variables": {}, "preload": {}, "prefix": [], "numerics": "same"}
    return {
        "event": "run", "time": time, "schema": 1, "runner_version": "0.1.0", "command": ["envkit", "bench"],
        "plan": {
            "arms": arms, "engine_options": {}, "workload": "cnn", "warmup_steps": 1, "steps": 3, "epochs": 0,
            "data": "/data", "budget_s": 240.0, "precision": 0.04, "timeout_s": 60.0, "seed": 1, **plan,
        },
        "engines": engines,
        "data_source": "folder /data",
        "environments": {
            one["name"]: {**environment, "profile": one["profile"], "expect": {"openmp.runtime": "gnu"}} for one in arms
        },
        "commands": {one["name"]: f"env -i {one['name']}" for one in arms},
        "findings": [], "removed_variables": {}, "kept_variables": {},
    }  # fmt: skip


def run_events(
    *arms: dict[str, str],
    blocks: int = 7,
    factor: float = 0.5,
    time: float = BEGUN,
    ended: str | None = "precise enough",
    behaviour: dict[str, Any] | None = None,
    **plan: Any,
) -> list[dict[str, Any]]:
    """The events of a run in which every arm but the first takes ``factor`` times as long as the first."""
    arms = arms or (arm("baseline"), arm("mine"))
    events = [run_event(list(arms), time, **plan)]
    for block in range(blocks):
        for number, one in enumerate(arms):
            behaves = {"seconds": times(factor) if number else STEADY, **((behaviour or {}) if number else {})}
            time += SAMPLE_S
            events.append({
                "event": "sample", "time": time, "block": block, "arm": one["name"], "worker_seconds": SAMPLE_S,
                **sample(["train", "--steps", "3"], behaves, block, {}), "stderr": "",
            })  # fmt: skip
    return [*events, *([{"event": "end", "time": time + 1, "reason": ended}] if ended else [])]


def read_events(*arms: dict[str, str], **options: Any) -> list[dict[str, Any]]:
    """The same as ``run_events``, as they are read from a record."""
    return [record_schema.event(event) for event in run_events(*arms, **options)]


def write(folder: Path, events: list[dict[str, Any]]) -> Path:
    """Make the folder of a run with this record; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def seal(folder: Path) -> None:
    """Give the record in ``folder``, as it was written or edited here, the seal of the test's own user."""
    path = folder / FILE_NAME
    first, *rest = path.read_text().splitlines(keepends=True)
    event = {key: value for key, value in json.loads(first).items() if key != seals.KEY}
    path.write_text("".join([json.dumps(seals.sealed(event)) + "\n", *rest]))


def spent(events: Iterable[dict[str, Any]]) -> float:
    """The seconds of all workers, which count towards the budget."""
    return float(sum(event.get("worker_seconds", 0) for event in events))
