"""What earlier versions called things is read under today's names, in records and in baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from envkit.bench import record, record_schema
from envkit.bench.plan import Arm, Plan, StoppingRule, WorkloadSpec
from envkit.bench.record import FILE_NAME, SCHEMA
from envkit.bench.record_schema import BASELINE, EVENTS, KINDS, VALUES
from envkit.bench.user_command import UserCommand

from tests.conftest import PROJECT

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
    assert record.first(COMPATIBILITY / "2026-11") == read[0]
    assert old & {*keys(raw)}
    assert not old & {*keys(read), *(event["event"] for event in read)}
    baseline = record_schema.baseline(json.loads((COMPATIBILITY / "2026-11-baseline.json").read_text()))
    assert not old & {*keys(baseline)}
    assert record_schema.baseline(baseline) == baseline


def renamed_back(event: dict[str, Any]) -> dict[str, Any]:
    """An event as schema 2 had it, but for its plan."""
    kinds = {today: old for old, today in KINDS.items()}
    names = {today: old for old, today in EVENTS.get(event["event"], {}).get((), {}).items()}
    found = {names.get(key, key): value for key, value in event.items()}
    schema = {"schema": record.RESUMABLE} if "schema" in event else {}
    return {**found, **schema, "event": kinds.get(event["event"], event["event"])}


# --- plans ---

# As the first version had it; later ones added to it, and had "" and 0 for what an arm has no value of.
FIRST_PLAN = {
    "arms": [{"name": "baseline", "profile": "baseline", "engine": "local"}], "engine_options": {}, "workload": "cnn",
    "warmup_steps": 20, "steps": 200, "epochs": 0, "data": "/data", "budget_s": 240.0, "precision": 0.04,
    "timeout_s": 60.0, "seed": 7,
}  # fmt: skip


def test_a_plan_of_the_first_version():
    read = Plan.from_json(record_schema.plan(FIRST_PLAN))
    assert read == Plan(
        arms=(Arm("baseline", "baseline", "local"),),
        workload="cnn",
        workloads={"cnn": WorkloadSpec(20, 200, "/data")},
        stopping=StoppingRule(budget_s=240.0, blocks=0, precision=0.04, margin=0.02, timeout_s=60.0),
        seed=7,
    )


def test_a_plan_of_schema_2():
    nothing = {"workload": "", "ranks": 0, "of": 0, "image": ""}
    arm = {"profile": "baseline", "engine": "local", **nothing}
    arms = [{**arm, "name": "a"}, {**arm, "name": "b", "workload": "loader", "ranks": 2, "image": "x"},
            {**arm, "name": "1 process", "ranks": 1, "of": 1}]  # fmt: skip
    each = {"cnn": {"warmup_steps": 1, "steps": 2, "data": "/data"},
            "loader": {"warmup_steps": 3, "steps": 4, "data": "generated"}}  # fmt: skip
    own = {"argv": ["python", "x.py"], "folder": "/x", "metric": None, "unit": "s", "warmup_lines": 0}
    later = {"margin": 0.1, "blocks": 9, "open_ended": True, "each": each, "own": own, "ranks": 4, "nodes": 2}
    read = Plan.from_json(record_schema.plan({**FIRST_PLAN, **later, "arms": arms}))
    assert read.arms == (
        Arm("a", "baseline", "local"), Arm("b", "baseline", "local", "loader", 2, "x"),
        Arm("1 process", "baseline", "local", ranks=1, cpu_shares=1),
    )  # fmt: skip
    assert read.workloads == {"cnn": WorkloadSpec(1, 2, "/data"), "loader": WorkloadSpec(3, 4, "generated")}
    assert read.stopping == StoppingRule(240.0, 9, 0.04, 0.1, 60.0, open_ended=True)
    assert (read.user_command, read.ranks, read.nodes) == (UserCommand(("python", "x.py"), "/x"), 4, 2)


@pytest.mark.parametrize("damaged", [{}, {"arms": 5}, {"arms": [5]}, {"arms": [{}], "workload": "cnn"}])
def test_a_plan_that_is_none_is_left_to_those_that_read_it(damaged):
    assert record_schema.plan(damaged) == damaged
