"""Finding the calibration that holds for a run, among all records of a folder."""

from __future__ import annotations

import json
import math

import pytest
from envkit.bench import calibration
from envkit.bench.record import FILE_NAME, SCHEMA
from envkit.bench.study import Study
from envkit.stats.power import interval_scale

from tests import records

BASELINE = records.arm("baseline")
TWICE = (BASELINE, records.arm("baseline-again", "baseline"))


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def calibrated(folder, change=None, blocks=10, time=records.BEGUN, **study):
    """Write a calibration; ``change`` is given its first event."""
    events = records.run_events(*TWICE, factor=1, blocks=blocks, time=time, **study)
    if change:
        change(events[0])
    return records.write(folder, events)


def find(results, engines=None, **study):
    first = records.run_events(blocks=0, **study)[0]
    study, kept = Study.from_json(first["study"]), first["allowed_variables"]
    return calibration.find(results, study, engines or first["engines"], kept)


def test_the_noise_of_a_block_where_baseline_ran_against_itself(results):
    folder = calibrated(results / "one")
    found = find(results)
    events = records.run_events(*TWICE, factor=1, blocks=10)
    times = {name: [e["seconds"] for e in events if e.get("arm") == name] for name in ("baseline", "baseline-again")}
    ratios = [math.log(one / other) for one, other in zip(*times.values(), strict=True)]
    assert found == {
        "scale": pytest.approx(interval_scale(ratios)), "blocks": 10, "folder": str(folder), "time": records.BEGUN
    }  # fmt: skip


def test_the_latest_counts(results):
    for name, time in (("a", 3), ("b", 9), ("c", 6)):
        calibrated(results / name, time=records.BEGUN + time)
    assert find(results)["folder"] == str(results / "b")


def test_none_where_there_is_none(results, tmp_path):
    assert find(results) is None
    assert find(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("arms", "blocks"),
    [
        ((BASELINE, records.arm("mine")), 10),
        ((BASELINE,), 10),
        ((records.arm("local", "baseline"), records.arm("docker", "baseline", "docker")), 10),
        ([{**arm, "engine": "docker"} for arm in TWICE], 10),
        ((BASELINE, {**TWICE[1], "workload": "cnn-nobias"}), 10),
        (TWICE, 5),
    ],
    ids=["another profile", "alone", "two engines", "another engine", "another workload", "too short"],
)
def test_other_runs_are_no_calibrations(results, arms, blocks):
    records.write(results / "one", records.run_events(*arms, factor=1, blocks=blocks))
    assert find(results) is None


def set_in(*keys, value):
    def change(first):
        inner = first
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


INSIDE = ("engines", "local", "inspection")


@pytest.mark.parametrize(
    "change",
    [
        set_in(*INSIDE, "fingerprint", "cpu_model", value="Another CPU"),
        set_in(*INSIDE, "fingerprint", "kernel", value="6.2.0"),
        set_in(*INSIDE, "fingerprint", "cpu_numbers", value="model 2"),
        set_in(*INSIDE, "facts", "cpu_quota", value=1.5),
        set_in(*INSIDE, "packages", "torch", value="2.14.0"),
        set_in("engines", "local", "engine", "image", value="/other/python"),
        set_in("study", "engine_options", value={"cpus": "1"}),
        set_in("study", "workloads", "cnn", "steps", value=100),
        set_in("study", "workloads", "cnn", "warmup_steps", value=100),
        set_in("study", "workload", value="another"),
    ],
)
def test_what_it_must_have_in_common_with_the_run(results, change):
    calibrated(results / "other", change)
    assert find(results) is None
    calibrated(results / "same")
    assert find(results)["folder"] == str(results / "same")


def test_seed_budget_and_margin_may_differ(results):
    calibrated(results / "one", seed=5, budget_s=9.0, margin=0.1)
    assert find(results, seed=6) is not None


@pytest.mark.parametrize(
    "content",
    ["nonsense\n", *(json.dumps({"event": "run", "schema": SCHEMA, **study}) + "\n" for study in
                      ({}, {"study": []}, {"study": {"arms": 3}}))],
)  # fmt: skip
def test_records_that_cant_be_read_are_passed_over(results, content):
    (results / "broken").mkdir()
    (results / "broken" / FILE_NAME).write_text(content)
    calibrated(results / "one")
    assert find(results)["folder"] == str(results / "one")


def test_a_calibration_whose_samples_are_nonsense_is_passed_over(results):
    events = records.run_events(*TWICE, factor=1, blocks=10)
    for event in events[1:-1]:
        event["step_s"] = [0.0, 0.0, 0.0]
    records.write(results / "broken", events)
    assert find(results) is None
