"""Records as runs leave them, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envkit import __version__
from envkit.analysis import result
from envkit.bench import seal as seals
from envkit.bench.arms import Arm
from envkit.bench.dataset_messages import FOLDER, FromPlace
from envkit.bench.problems import restored
from envkit.bench.record import FILE_NAME, SCHEMA
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.checks.sample_effect import check_sample
from envkit.engines.measurement import Measurement, Usage
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.worker.request import Train

from tests.plans import study_of
from tests.simulated_worker import inspection, sample
from tests.simulation import STEADY, times
from tests.worker_runs import document_of

BEGUN = 1_793_000_000.0  # seconds since 1970
SAMPLE_S = 2.0
USAGE = {"user_s": 1.0, "system_s": 0.0, "minor_faults": 0}


def arm(name: str, profile: str | None = None, engine: str = "local") -> dict[str, str]:
    return {"name": name, "profile": profile or name, "engine": engine}


def run_event(study: Study, time: float = BEGUN, numerics: str = "same", **changed: Any) -> dict[str, Any]:
    """Return the first event of a run of this study; ``changed`` are fields that it has instead."""
    engines = {
        arm.engine: {
            "engine": {"name": arm.engine, "version": "6.1", "image": "/sim/bin/python"},
            "inspection": inspection([], {}),
        }
        for arm in study.arms
    }
    environments = {
        arm.name: Environment(arm.profile, "A test", {}, {}, (), {"openmp.runtime": "gnu"}, numerics)
        for arm in study.arms
    }
    document = {
        "event": "run", "time": time, "schema": SCHEMA, "kit_version": __version__, "command": ["envkit", "bench"],
        "cwd": str(Path.cwd()),
        "study": study.to_json(),
        "engines": engines,
        "data_source": FromPlace(FOLDER, "/data").to_json(),
        "environments": {name: environment.to_json() for name, environment in environments.items()},
        "commands": {arm.name: f"env -i {arm.name}" for arm in study.arms},
        "findings": [], "calibration": None, "removed_variables": {}, "allowed_variables": {}, **changed,
    }  # fmt: skip
    return dict(json.loads(json.dumps(document)))  # as it is read again


def lengths(**given: Any) -> dict[str, Any]:
    """Return the event that fixes the lengths of samples, of a command of the user's."""
    usual = {"warm_up": {}, "unsteady": [], "together": 1, "skipped_steps": 0, "commands": {}}
    return {"event": "lengths", "time": BEGUN, **usual, **given}


def run_events(
    *arms: dict[str, str],
    blocks: int = 7,
    factor: float = 0.5,
    time: float = BEGUN,
    ended: str | None = "precise enough",
    behaviour: dict[str, Any] | None = None,
    **study: Any,
) -> list[dict[str, Any]]:
    """The events of a run in which every arm but the first takes ``factor`` times as long as the first."""
    arms = arms or (arm("baseline"), arm("mine"))
    events = [run_event(study_of([Arm(**one) for one in arms], **study), time)]
    training = document_of(Train("cnn", "synthetic", steps=3))
    for block in range(blocks):
        for number, one in enumerate(arms):
            behaves = {"seconds": times(factor) if number else STEADY, **((behaviour or {}) if number else {})}
            time += SAMPLE_S
            events.append({
                "event": "sample", "time": time, "block": block, "arm": one["name"], "worker_seconds": SAMPLE_S,
                "padding_bytes": 0,
                **sample(training, behaves, block, {}), "stderr": "",
            })  # fmt: skip
    judge(events)
    return [*events, *([{"event": "end", "time": time + 1, "reason": ended}] if ended else [])]


def judge(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each sample the checks that follow from its evidence, as a run does; returns the events."""
    run = events[0]
    environments = {name: Environment.from_json(document) for name, document in run["environments"].items()}
    for event in events:
        if event["event"] == "sample":
            found = check_sample(environments[event["arm"]], event, run["allowed_variables"])
            event["checks"] = [asdict(check) for check in found]
    return events


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


def samples(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples in the order in which they were measured."""
    return [event for event in events if event["event"] == "sample"]


def conclude(events: list[dict[str, Any]]) -> result.Result:
    """Return the summary of a record's events."""
    return result.conclude(Run.parse(events))


def measured(evidence: dict[str, Any], **more: Any) -> Measurement:
    """Return a worker's measurement with this evidence."""
    return Measurement(step_s=[1.0], usage=Usage(**USAGE), evidence=evidence, **more)


def problem_of(event: dict[str, Any]) -> Message:
    """Return the problem of a failure."""
    return restored(event["problem"])


def spent(events: Iterable[dict[str, Any]]) -> float:
    """The seconds of all workers, which count towards the budget."""
    return float(sum(event.get("worker_seconds", 0) for event in events))
