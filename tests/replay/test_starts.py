"""Each kind of study starts the same workers as before, in the same order, and takes the same decisions.

ENVKIT_REPLAY=starts writes the lists anew: one line for each start, and then one for each event of the record that
decides what is measured.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from envkit.bench import record
from envkit.engines.base import Task

from tests.conftest import PROJECT
from tests.replay.studies import STUDIES, Bench

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


def start_facts(task: Task) -> dict[str, Any]:
    """Return the facts of a start, whatever form the worker's request has: this alone knows the form.

    ``trains`` lists what the worker does: a launcher of ranks or instances, and behind it the training.
    """
    trains: list[dict[str, Any]] = []
    words = list(task.arguments)
    while words:
        does: dict[str, Any] = {"does": words.pop(0)}
        trains.append(does)
        while words and words[0] != "--":
            name, equals, value = words.pop(0).removeprefix("--").partition("=")
            if not equals:
                value = words.pop(0) if words and not words[0].startswith("--") else "yes"
            does[name] = value
        words = words[1:]
        if does["does"] == "command":
            does["argv"], words = words, []
    facts = {
        "trains": trains,
        "variables": {name: value for name, value in sorted(task.variables.items()) if name != PADDING},
        "padding": len(task.variables.get(PADDING, "")),
        "prefix": list(task.prefix),
        "nodes": task.nodes if task.nodes > 1 else None,
        "gpus": task.gpus,
        "timeout_s": task.timeout_s,
    }
    return {name: fact for name, fact in facts.items() if fact}


def decisions(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of a record that say what is measured, with the fields that do."""
    return [
        {"event": event["event"], **{name: event[name] for name in DECIDING[event["event"]] if name in event}}
        for event in record.read(folder, kind)
        if event["event"] in DECIDING
    ]


def lines_of(bench: Bench, name: str) -> list[str]:
    facts: list[dict[str, Any]] = [start_facts(task) for task in bench.run(STUDIES[name])]
    if name == "tune":
        facts += decisions(bench.output, "tune") + decisions(bench.output / "confirmation", "run")
    else:
        facts += decisions(bench.output, "run")
    text = "".join(json.dumps(one) + "\n" for one in facts)
    return text.replace(str(bench.folder), "TMP").replace(str(PROJECT), "KIT").splitlines()


@pytest.fixture
def study_bench(cli, tmp_path, monkeypatch, write_profile):
    return Bench(cli, tmp_path, monkeypatch, write_profile)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_starts_the_same_workers_in_the_same_order(study_bench, name):
    path, lines = STARTS / f"{name}.jsonl", lines_of(study_bench, name)
    if os.environ.get("ENVKIT_REPLAY") == "starts":
        path.write_text("".join(f"{line}\n" for line in lines))
    assert lines == path.read_text().splitlines()


def test_each_list_is_of_a_study():
    assert {path.stem for path in STARTS.iterdir()} == set(STUDIES)
