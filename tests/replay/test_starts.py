"""Each kind of study starts the same workers as before, takes the same decisions, and gives the same results.

ENVKIT_REPLAY=starts writes the lists anew: one line for each start, and then one for each event of the record that
decides what is measured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from envkit.bench import record
from envkit.engines.base import Launch
from envkit.worker.request import HostFolder, Instances, Ranks, RunCommand, Train

from tests.conftest import PROJECT
from tests.replay import results
from tests.replay.cases import STUDIES, Bench

STARTS = Path(__file__).parent / "starts"
PADDING = "ENVKIT_PADDING"
# The fields of events that say what is measured. All that is measured itself is in the numbers.
DECIDING = {
    "warm-up": ("arm",),
    "lengths": ("warm_up", "unsteady", "together", "skipped_steps", "steps", "warmup_steps"),
    "design": ("planned_blocks", "looks"),
    "sample": ("block", "arm", "padding_bytes"),
    "failure": ("block", "arm"),
    "order": ("expected", "shipped"),
    "candidate": ("number", "title"),
    "round": ("round", "order", "stage"),
    "trial": ("round", "candidate"),
    "promoted": ("rungs",),
    "finalists": ("candidates",),
    "end": ("reason",),
}


def start_facts(launch: Launch) -> dict[str, Any]:
    """Return the facts of a start, whatever form the worker's request has: this alone knows the form.

    ``trains`` lists the worker's tasks: a launcher of ranks or instances, then the training. Defaults are
    left out.
    """
    facts = {
        "trains": list(_trains(launch.work)),
        "variables": {name: value for name, value in sorted(launch.variables.items()) if name != PADDING},
        "padding": len(launch.variables.get(PADDING, "")),
        "prefix": list(launch.prefix),
        "nodes": launch.nodes if launch.nodes > 1 else None,
        "gpus": launch.gpus,
        "timeout_s": launch.timeout_s,
    }
    return {name: fact for name, fact in facts.items() if fact}


def _trains(work: Any) -> Iterator[dict[str, Any]]:
    """Yield what a request of the worker asks for, from the outermost."""
    if isinstance(work, Ranks):
        of = work.cpu_shares if work.cpu_shares > 1 else None
        nodes = work.nodes if work.nodes > 1 else None
        yield _said(work, ("number", "training", "cpu_shares", "nodes"), nproc=work.number, of=of, nodes=nodes)
        yield _training(work.training, ranked=work.number * work.nodes > 1)
    elif isinstance(work, Instances):
        yield _said(work, ("number", "training"), number=work.number)
        yield from _trains(work.training)
    elif isinstance(work, Train):
        yield _training(work)
    elif isinstance(work, RunCommand):
        yield _command(work)
    else:
        yield _said(work)


def _training(work: Train, ranked: bool = False) -> dict[str, Any]:
    """Return what is trained. A first start, which shows the pace, has no warm-up of its own."""
    first = not work.profiles_ranks
    named = ("workload", "data", "warmup_steps", "steps", "options", "full", "least_s", "tests")
    return _said(
        work,
        (*named, "profiles_ranks"),
        workload=work.workload,
        data=work.data.path if isinstance(work.data, HostFolder) else work.data,
        scale=work.options.scale if work.options.scale > 1 else None,
        quality="yes" if work.tests else None,
        seconds=f"{work.least_s:g}" if work.least_s else None,
        unprofiled="yes" if first and ranked else None,
        epochs=work.full.epochs if work.full else None,
        until=work.full.until if work.full else None,
        steps=work.steps if work.steps or not work.full else None,
        **{"warmup-steps": None if first and not work.warmup_steps else work.warmup_steps},
        **_changed(work.options, ("scale",)),
    )


def _command(work: RunCommand) -> dict[str, Any]:
    """Return how a user's command is run. The numbers of steps in its description are those of the request."""
    command = work.command
    timed = {"optimizer-steps": work.steps or None, "warmup-lines": work.warmup or None}
    unit = command.unit if command.metric else None
    other = _changed(command, ("argv", "folder", "metric", "unit", "warmup_lines", "optimizer_steps"))
    facts = {"folder": command.folder, "metric": command.metric, "unit": unit, **timed, **other}
    return _said(work, ("command", "warmup", "steps"), **facts) | {"argv": [*command.argv]}


def _said(work: Any, named: Sequence[str] = (), **facts: object) -> dict[str, Any]:
    """Return ``facts``, and each other field that differs from its default. They hold those that are ``named``."""
    texts = {name: str(fact) for name, fact in {**facts, **_changed(work, named)}.items() if fact is not None}
    return {"does": work.kind, **texts}


def _changed(part: Any, named: Sequence[str] = ()) -> dict[str, object]:
    """Return the fields that are not their default, but for those that are ``named``."""
    values = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    changed = {name: value for name, (value, usual) in values.items() if name not in named and value != usual}
    return {name: "yes" if value is True else value for name, value in changed.items()}


def decisions(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of a record that say what is measured, with the fields that do."""
    return [
        {"event": event["event"], **{name: event[name] for name in DECIDING[event["event"]] if name in event}}
        for event in record.read(folder, kind)
        if event["event"] in DECIDING
    ]


def lines_of(bench: Bench, name: str) -> list[str]:
    facts: list[dict[str, Any]] = [start_facts(launch) for launch in bench.run(STUDIES[name])]
    if name == "tune":
        facts += decisions(bench.output, "tune") + decisions(bench.output / "confirmation", "run")
    else:
        facts += decisions(bench.output, "run")
    text = "".join(json.dumps(one) + "\n" for one in facts)
    return text.replace(str(bench.folder), "TMP").replace(str(PROJECT), "KIT").splitlines()


@pytest.fixture
def study_bench(cli, tmp_path, monkeypatch, write_profile, undrawn):
    return Bench(cli, tmp_path, monkeypatch, write_profile)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_starts_the_same_workers_in_the_same_order_and_gives_the_same_numbers(study_bench, name):
    path, lines = STARTS / f"{name}.jsonl", lines_of(study_bench, name)
    if os.environ.get("ENVKIT_REPLAY") == "starts":
        path.write_text("".join(f"{line}\n" for line in lines))
    assert [json.loads(line) for line in lines] == [json.loads(line) for line in path.read_text().splitlines()]
    results.compare(study_bench, name)


@pytest.mark.parametrize("folder", [STARTS, results.NUMBERS])
def test_each_file_is_of_a_study(folder):
    assert {path.stem for path in folder.iterdir()} == set(STUDIES)
