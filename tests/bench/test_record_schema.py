"""What earlier versions called things is read under today's names, in records and in baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runner.bench import record, record_schema
from runner.bench.record import FILE_NAME, SCHEMA
from runner.bench.record_schema import BASELINE, EVENTS, KINDS, VALUES
from tests import records
from tests.conftest import PROJECT
from tests.simulation import times

COMPATIBILITY = PROJECT / "tests/compatibility"
# All that is renamed in one mapping: no old name may be another one's new name, or it would be renamed twice.
TABLES = [
    KINDS,
    *(names for paths in (*EVENTS.values(), BASELINE) for names in paths.values()),
    *(names for keys in VALUES.values() for names in keys.values()),
]


def keys(value: Any) -> Iterator[str]:
    """Those of all mappings in ``value``."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(inner)


def reads(old: dict[str, Any], today: dict[str, Any]) -> None:
    """An old event is read as today's, and today's as it is."""
    assert record_schema.event(old) == today
    assert record_schema.event(today) == today


@pytest.mark.parametrize("names", TABLES)
def test_what_was_renamed_is_not_renamed_again(names):
    assert not names.keys() & {*names.values()}


@pytest.mark.parametrize(("old", "today"), KINDS.items())
def test_kinds_of_events(old, today):
    reads({"event": old, "time": 1.0, "block": 3}, {"event": today, "time": 1.0, "block": 3})


def test_the_first_event_of_a_run():
    accelerator = {"problem": "no driver", "mend": "install it"}
    old = {
        "event": "run", "schema": 2, "begun_in": "/home/user", "kept_variables": {"A": "1"},
        "command": ["envkit"], "calibration": None, "findings": [{"code": "x", "mend": "stop it"}, {"code": "y"}],
        "engines": {"local": {"inspection": {"accelerator": accelerator}}, "docker": {"inspection": {}}},
    }  # fmt: skip
    reads(old, {
        "event": "run", "schema": 2, "cwd": "/home/user", "allowed_variables": {"A": "1"}, "specification": None,
        "command": ["envkit"], "calibration": None, "findings": [{"code": "x", "fix": "stop it"}, {"code": "y"}],
        "engines": {
            "local": {"inspection": {"accelerator": {"problem": "no driver", "fix": "install it"}}},
            "docker": {"inspection": {}},
        },
    })  # fmt: skip


@pytest.mark.parametrize(
    ("old", "today"),
    [
        (
            {"event": "tune", "kept_variables": {}, "settings": {"look_steps": 9, "seed": 1}},
            {"event": "tune", "allowed_variables": {}, "settings": {"trial_steps": 9, "seed": 1}},
        ),
        ({"event": "round", "stage": "looks", "order": [0]}, {"event": "round", "stage": "trials", "order": [0]}),
        (
            {"event": "look", "candidate": 1, "evidence": {"unseen": "why"}},
            {"event": "trial", "candidate": 1, "evidence": {"not_observed": "why"}},
        ),
        ({"event": "end", "there": None}, {"event": "end", "previous_sha256": None}),
    ],
)
def test_events_of_a_search(old, today):
    reads(old, today)


@pytest.mark.parametrize(
    ("accuracy", "quality"), [(0.84, {"accuracy": 0.84}), (None, None)], ids=["tested", "not tested"]
)
def test_the_first_samples_have_an_accuracy_alone(accuracy, quality):
    old = {"event": "sample", "accuracy": accuracy, "evidence": {"unseen": "why"}}
    reads(old, {"event": "sample", "quality": quality, "evidence": {"not_observed": "why"}})


def test_todays_events_and_others_stay_as_they_are():
    for event in ({"event": "sample", "kept_variables": 1, "quality": None}, {"event": "later", "begun_in": "x"}):
        assert record_schema.event(event) is event


@pytest.mark.parametrize("damaged", [None, 3, "text", [], {}, [{"mend": 1}], {"x": 3}])
def test_what_is_no_mapping_is_left_to_those_that_read_it(damaged):
    run = {"event": "run", "schema": SCHEMA, "findings": damaged, "engines": damaged, "plan": damaged}
    assert record_schema.event(run)["engines"] == damaged
    assert record_schema.baseline({"engines": damaged, "plan": damaged}) == {"engines": damaged, "plan": damaged}


def test_a_whole_record_and_a_whole_baseline_have_no_old_name():
    old = {name for names in TABLES for name in names} - {"own", "looks"}  # which are names of other things, too
    read = record.read(COMPATIBILITY / "2026-11")
    raw = [json.loads(line) for line in (COMPATIBILITY / "2026-11" / FILE_NAME).read_text().splitlines()]
    assert len(read) == len(raw)
    assert old & {*keys(raw)}
    assert not old & {*keys(read), *(event["event"] for event in read)}
    baseline = record_schema.baseline(json.loads((COMPATIBILITY / "2026-11-baseline.json").read_text()))
    assert not old & {*keys(baseline)}
    assert record_schema.baseline(baseline) == baseline


def test_the_beginning_alone_is_read_alike():
    assert record.first(COMPATIBILITY / "2026-11") == record.read(COMPATIBILITY / "2026-11")[0]


def renamed_back(event: dict[str, Any]) -> dict[str, Any]:
    """An event as schema 2 had it, but for its plan."""
    kinds = {today: old for old, today in KINDS.items()}
    names = {today: old for old, today in EVENTS.get(event["event"], {}).get((), {}).items()}
    found = {names.get(key, key): value for key, value in event.items()}
    schema = {"schema": record.RESUMABLE} if "schema" in event else {}
    return {**found, **schema, "event": kinds.get(event["event"], event["event"])}


def test_a_run_that_the_version_before_began_is_gone_on_with(bench, simulation, instant, cli, run_folder, events):
    """Its file then has old names and today's, which are read as one."""
    simulation.worker("mine", does="interrupt", seconds=times(0.5), **{"from": 3})
    assert bench("mine").returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    records.write(run_folder, [renamed_back(event) for event in events()])
    before = events()
    assert cli("bench", "--resume", run_folder).returncode == 0
    raw = [json.loads(line)["event"] for line in (run_folder / FILE_NAME).read_text().splitlines()]
    assert {"yardstick", "warmed", "reference-kernel", "warm-up"} <= {*raw}
    assert events()[: len(before)] == before
    assert events()[-1]["event"] == "end"
    assert {"warm-up", "reference-kernel"} <= {event["event"] for event in events()}
    assert cli("report", run_folder).returncode == 0
