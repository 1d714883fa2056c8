"""Which rows and columns a run becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from envkit.report.exports.rows import columns, results, samples

from tests.records import BEGUN, SAMPLE_S, arm, judge, run_events
from tests.simulated_worker import of_ranks

FOLDER = Path("results/one")


def test_a_row_for_each_sample_in_the_order_of_the_record():
    rows = samples(FOLDER, run_events(blocks=2))
    assert [(row["block"], row["arm"]) for row in rows] == [(0, "baseline"), (0, "mine"), (1, "baseline"), (1, "mine")]


def test_what_a_row_says_of_its_sample():
    row = samples(FOLDER, run_events(arm("baseline"), arm("b", "mine", "docker")))[1]
    assert row == {
        "run": "results/one", "time": BEGUN + 2 * SAMPLE_S, "cpu_model": "Simulated CPU", "engine": "docker",
        "arm": "b", "profile": "mine", "workload": "cnn", "modes": "", "ranks": 1, "scaling": "", "instances": 1,
        "block": 0,
        "seconds": pytest.approx(0.4975), "mean_step_s": pytest.approx(0.4975 / 3),
        "median_step_s": pytest.approx(0.4975 / 3),
        "in_effect": True, "interference": "",
        "peak_memory_bytes": 2**29, "padding_bytes": row["padding_bytes"], "reference_kernel_s": None,
        "communication_s": None, "communication_share": None,
        **{name: value for name, value in row.items() if name.startswith("usage_")},
    }  # fmt: skip
    assert row["usage_user_s"] == pytest.approx(0.4975)
    assert row["usage_minor_faults"] == 300


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"step_s": [1.0, 2.0, 6.0]}, {"mean_step_s": 3.0, "median_step_s": 2.0}),
        ({"padding_bytes": 77}, {"padding_bytes": 77}),
        # counters that this version does not know
        ({"usage": {**run_events(blocks=1)[1]["usage"], "quanta": 3, "disk": {"read": {"bytes": 5}}, "mhz": [1, 2]}},
         {"usage_quanta": 3, "usage_disk_read_bytes": 5, "usage_mhz": "[1, 2]"}),
    ],
)  # fmt: skip
def test_what_was_seen_becomes_columns(seen, expected):
    events = run_events(blocks=1)
    events[1] |= seen
    row = samples(FOLDER, events)[0]
    assert {name: row[name] for name in expected} == expected


def test_a_sample_that_was_not_in_effect_says_so():
    events = run_events(blocks=2)
    events[4]["evidence"]["openmp"]["runtime"] = "intel"
    judge(events)
    assert [row["in_effect"] for row in samples(FOLDER, events)] == [True, True, True, False]


def test_what_disturbed_a_sample_is_in_its_row_and_no_other():
    events = run_events(blocks=2)
    events[3]["usage"] |= {"machine_swapped_bytes": 2**30, "throttle_events": 3}
    assert [row["interference"] for row in samples(FOLDER, events)] == [
        "", "", "1.0 GiB swapped; cores too hot 3 times", ""
    ]  # fmt: skip


def test_the_reference_kernel_of_the_same_block():
    events = run_events(blocks=2)
    events.insert(1, {"event": "reference-kernel", "time": BEGUN, "block": 1, "seconds": 0.5, "digest": "f"})
    assert [row["reference_kernel_s"] for row in samples(FOLDER, events)] == [None, None, 0.5, 0.5]


def test_events_of_a_kind_that_is_not_known_are_passed_over():
    events = run_events(blocks=1)
    events.insert(2, {"event": "eclipse", "time": BEGUN})
    assert len(samples(FOLDER, events)) == 2


def test_columns_of_all_rows_in_the_order_of_coming_up():
    assert columns([{"a": 1, "b": 2}, {"a": 1, "c": 3, "b": 2}]) == ["a", "b", "c"]


def test_a_result_for_each_arm():
    events = run_events()
    reference, mine = results(FOLDER, events)
    assert reference == {
        "run": "results/one", "time": events[-1]["time"], "cpu_model": "Simulated CPU", "engine": "local",
        "arm": "baseline", "profile": "baseline", "reference": "baseline", "workload": "cnn", "modes": "", "ranks": 1,
        "scaling": "", "instances": 1,
        "samples": 7, "step_s": pytest.approx(1 / 3), "in_effect": True, "ratio": None, "low": None, "high": None,
        "load": None, "load_cpus": None,
        "communication_s": None, "communication_share": None,
    }  # fmt: skip
    assert mine["low"] <= mine["ratio"] <= mine["high"]
    assert mine["ratio"] == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize(("study", "scaling"), [({}, "strong scaling"), ({"weak": True}, "weak scaling")])
def test_ranks_and_their_communication(study, scaling):
    one = {**arm("1 process", "baseline"), "ranks": 1, "cpu_shares": 1}
    events = run_events(arm("baseline"), one, ranks=2, **study)
    for event in events:
        if event["event"] == "sample" and event["arm"] == "baseline":
            probes = {name: found for name, found in event["evidence"].items() if name != "seconds"}
            event.update(of_ranks(2, {}, probes))
    for rows in (samples(FOLDER, events), results(FOLDER, events)):
        assert {(row["arm"], row["ranks"], row["communication_s"], row["communication_share"]) for row in rows} == {
            ("baseline", 2, 0.002, 0.1), ("1 process", 1, None, None),
        }  # fmt: skip
        assert {row["scaling"] for row in rows} == {scaling}


def test_without_a_sample_there_is_no_result():
    assert results(FOLDER, run_events(blocks=0)) == []
    assert samples(FOLDER, run_events(blocks=0)) == []
