"""``--max-memory``: profiles whose peak memory is above the baseline's by more than a share are out."""

from __future__ import annotations

import json
import random

import pytest
from envkit.analysis.result import conclude as concluded
from envkit.bench import decide, race
from envkit.bench.events import Dropped
from envkit.bench.memory_limit import GPU, PROCESS, is_clearly_over, is_over
from envkit.bench.run import Run
from envkit.common.codec import Misfit
from envkit.report import advice, model
from envkit.report.lines import memory
from envkit.report.messages.advice import StayWithin, Use
from envkit.report.messages.lines import LimitUnchecked, OverLimit, WithinLimit

from tests import records
from tests.records import conclude
from tests.reports import events_of, printed, said
from tests.simulation import times

MIB = 2**20
BASELINE = 500 * MIB
LIMIT = {"max_memory": 0.1}


def needing(mebibytes, factor=0.5):
    return {"seconds": times(factor), "peak_memory_bytes": mebibytes * MIB}


def test_a_limit_of_any_size_is_compared():
    assert not is_over(10 * BASELINE, BASELINE, 1e305)
    assert (is_over(2 * BASELINE, BASELINE, 1.0), is_over(2 * BASELINE + 1, BASELINE, 1.0)) == (False, True)


def run_of(mine, others=None, baseline=500, limit=0.1, blocks=12, **more):
    """Return the record of a run with a limit, by the memory of each arm in MiB."""
    return events_of(
        blocks,
        mine=needing(mine),
        others={name: needing(*each) for name, each in (others or {}).items()},
        baseline={"peak_memory_bytes": baseline * MIB},
        study={"max_memory": limit},
        **more,
    )


def advised(result):
    return [row.text for row in advice.rows(result)]


@pytest.mark.parametrize(("mine", "is_out"), [(549, False), (550, False), (551, True), (400, False)])
def test_a_profile_exactly_at_the_limit_is_in(mine, is_out):
    result = conclude(run_of(mine))
    assert [one.arm for one in result.over_memory] == ["mine"] * is_out
    assert any(isinstance(message, Use) for message in advised(result)) != is_out
    assert [
        type(message) for message in memory(result.comparisons, result.memory_unknown, result.study.stopping.max_memory)
    ] == [OverLimit if is_out else WithinLimit]


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.07, 0.1, 0.29, 1.1])
def test_a_byte_more_than_the_limit_is_out(limit):
    at = BASELINE + round(limit * BASELINE)
    for peak, is_out in ((at, False), (at + 1, True)):
        events = events_of(
            8,
            mine={"peak_memory_bytes": peak},
            baseline={"peak_memory_bytes": BASELINE},
            study={"max_memory": limit},
        )
        assert bool(conclude(events).over_memory) == is_out


def test_without_a_limit_nothing_is_out():
    events = run_of(2000, limit=None)
    result = conclude(events)
    assert (
        result.over_memory,
        memory(result.comparisons, result.memory_unknown, result.study.stopping.max_memory),
    ) == ([], [])
    assert any(isinstance(message, Use) for message in advised(result))
    assert "Memory " not in printed(events)


def test_the_report_keeps_the_speed_and_says_what_it_costs():
    events = run_of(750)
    shown = said(events)
    assert shown.startswith("FASTER, BUT OVER THE MEMORY LIMIT mine: 2.0")
    document = model.to_json(conclude(events), "DIR")
    assert document["headline"]["code"] == document["verdicts"]["mine"]["code"] == "report.faster-over-memory"
    assert "Memory more than 10% above the reference, so out: mine 750 MiB against 500 MiB (+50%)" in shown
    assert "keep baseline: mine needs 50% more memory, and --max-memory allows 10%" in shown
    assert "envkit exec" not in shown
    (message,) = [message for message in advised(conclude(events)) if isinstance(message, StayWithin)]
    assert (message.arm, message.share, message.limit, message.enough) == ("mine", 0.5, 0.1, pytest.approx(0.55))


def test_of_several_the_fastest_within_the_limit_is_recommended():
    events = run_of(750, others={"small": (510, 0.7), "near": (520, 0.71), "same": (500, 1.0)})
    result = conclude(events)
    assert {*result.may_be_best} <= {"small", "near"}
    assert result.may_be_best
    first, shown = printed(events).splitlines()[0], said(events)
    assert "best mine" not in shown
    assert first.startswith("FASTER  2 of 4 profiles")
    assert "so out: mine 750 MiB against 500 MiB (+50%)" in shown
    assert "faster, over memory" in shown
    used = [message for message in advised(result) if isinstance(message, Use)]
    assert [message.profile for message in used] == ["small"]


def test_one_above_the_limit_by_its_median_alone_drops_none_within_it():
    """Some of its processes are below, so that it is not clearly above, and stays."""
    events = run_of(750, others={"small": (510, 0.7), "same": (500, 1.0)}, looks=(12, 16), ended=None)
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", "mine") and event["block"] < 3:
            event["peak_memory_bytes"] = 500 * 2**20
    run = Run.parse(events)
    assert not is_clearly_over(run, run.study.arm("mine"))
    assert decide.slower_arms(run, run.design) == {"same": "small"}


def test_if_all_that_are_faster_are_out_none_is_recommended():
    events = run_of(750, others={"large": (700, 0.6), "same": (500, 1.0)})
    result = conclude(events)
    assert result.may_be_best == []
    assert not any(isinstance(message, Use) for message in advised(result))
    assert said(events).startswith(
        "FASTER, BUT OVER THE MEMORY LIMIT 2 of 3 profiles, best mine: 2.00x baseline speed (95% CI "
    )
    assert ", 50% more memory " in printed(events).split("\n\n")[0].replace("\n", " ") + " "
    (stay,) = [message for message in advised(result) if isinstance(message, StayWithin)]
    assert (stay.arm, stay.enough) == ("mine", pytest.approx(0.55))
    keep = "keep baseline: mine needs 50% more memory, and --max-memory allows 10%; to allow that: --max-memory 55%"
    assert keep in said(events)
    assert conclude(run_of(750, limit=0.55)).over_memory == []
    assert said(events).count("keep baseline") == 1


def test_one_over_the_limit_with_other_losses_is_not_offered():
    others = {"large": (700, 0.6), "same": (500, 1.0)}
    events = run_of(750, others=others)
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", "mine"):
            event["losses"] = [9.0 for _ in event["losses"]]
    assert "1 of 3 profiles, best large: 1.67x" in said(events)


def test_where_one_left_before_its_speed_was_known_none_within_the_limit_is_faster(three, simulation):
    simulation.worker("small", seconds=times(1.0), peak_memory_bytes=510 * MIB)
    shown = " ".join(three("--max-memory", "10%").stdout.split())
    assert shown.startswith("NONE FASTER WITHIN THE MEMORY LIMIT 3 profiles against baseline: ")
    assert "1 over the memory limit" in shown.split(" profile ")[0]
    keep = "keep baseline: large needs 60% more memory, and --max-memory allows 10%; to allow that: --max-memory 65%"
    assert keep in shown


def test_json_has_what_is_out_and_by_how_much():
    document = conclude(run_of(750, others={"same": (500, 1.0)})).to_json()
    assert document["over_memory"] == [
        {
            "arm": "mine", "reference": "baseline", "peak_bytes": 750 * MIB, "reference_bytes": 500 * MIB,
            "memory": PROCESS, "share": 0.5,
        }
    ]  # fmt: skip
    assert document["memory_unknown"] == []
    assert document["study"]["stopping"]["max_memory"] == 0.1


def test_an_unmeasured_peak_is_named_and_drops_nothing():
    for arm in ("mine", "baseline"):
        events = run_of(750)
        for event in events:
            if event["event"] == "sample" and event["arm"] == arm:
                event["peak_memory_bytes"] = 0
        result = conclude(events)
        assert (result.over_memory, result.memory_unknown) == ([], ["mine"])
        assert memory(result.comparisons, result.memory_unknown, result.study.stopping.max_memory) == [
            LimitUnchecked(0.1, ("mine",))
        ]
        assert any(isinstance(message, Use) for message in advised(result))


def test_medians_over_processes_are_compared():
    """One process of the profile needs far more, and one of the baseline far less."""
    events = run_of(500, limit=0.0)
    for event in events:
        if event["event"] == "sample" and event["block"] == 3:
            event["peak_memory_bytes"] = 5000 * MIB if event["arm"] == "mine" else 5 * MIB
    assert conclude(events).over_memory == []


def test_equal_memory_that_differs_by_noise_is_above_a_limit_of_0_in_about_half_of_runs():
    """So a limit is to be larger than what processes of one profile differ by."""
    out, runs = 0, 40
    for seed in range(runs):
        chance = random.Random(seed)
        events = run_of(500, limit=0.0)
        for event in events:
            if event["event"] == "sample":
                event["peak_memory_bytes"] = round(BASELINE * chance.gauss(1, 0.002))
        out += bool(conclude(events).over_memory)
        at_1_percent = [{**events[0], "study": with_limit(events[0]["study"], 0.01)}, *events[1:]]
        assert conclude(at_1_percent).over_memory == []
    assert 0.2 <= out / runs <= 0.8


def with_limit(study, limit):
    return {**study, "stopping": {**study["stopping"], "max_memory": limit}}


def test_memory_of_tensors_on_a_gpu_counts_by_itself():
    def with_gpu(mebibytes):
        return {"gpu": {"allocated_bytes": mebibytes * MIB}, "peak_memory_bytes": BASELINE}

    study = {"max_memory": 0.1}
    (over,) = conclude(events_of(8, mine=with_gpu(1200), baseline=with_gpu(1000), study=study)).over_memory
    assert (over.memory, over.peak_bytes, over.reference_bytes) == (GPU, 1200 * MIB, 1000 * MIB)
    assert conclude(events_of(8, mine=with_gpu(1100), baseline=with_gpu(1000), study=study)).over_memory == []


def test_a_record_with_a_limit_below_0_is_refused():
    events = run_of(500)
    with pytest.raises(Misfit):
        Run.parse([{**events[0], "study": with_limit(events[0]["study"], -0.1)}, *events[1:]])


def test_the_confirmation_of_a_race_has_the_limit():
    base = Run.parse(run_of(500)).study
    plan = race.plan(2, 1.0, 60.0)
    racing = race.race_of(base, ["a", "b"], plan)
    assert racing.stopping.max_memory == 0.1
    assert race.confirmation(racing, "a", 30.0).stopping.max_memory == 0.1


# --- arms that leave early ---

PEAKS = {"large": 800, "small": 510, "slow": 500}
FACTORS = {"large": 0.4, "small": 0.6, "slow": 1.0}


@pytest.fixture
def three(measure_several):
    """Measure three profiles, of which the fastest needs much memory, to a precision that no run reaches."""
    peaks = {"baseline": 500, **PEAKS}
    run = measure_several(FACTORS, {name: {"peak_memory_bytes": peak * MIB} for name, peak in peaks.items()})
    return lambda *options, **length: run(*options, *(() if length else ("--half-width", "0.1%")), **length)


def test_a_profile_that_is_clearly_above_leaves_once_the_run_is_planned(three, events, samples):
    result = three("--max-memory", "10%").ended(0)
    dropped = events("dropped")[0]
    assert (dropped["arms"], dropped["over_memory"]) == ({"large": "baseline"}, True)
    assert sum(arm == "large" for _, arm in samples()) == dropped["block"] == 4
    assert dropped["planned_blocks"] > events("design")[0]["planned_blocks"]
    shown = " ".join(result.stdout.split())
    assert "out: large 800 MiB against 500 MiB (+60%)" in shown
    assert "as slower than baseline: large" not in shown
    assert "small: 1.6" in shown
    assert "envkit: dropped after 4 blocks, as they need more memory than --max-memory allows: large" in result.stderr


@pytest.mark.parametrize("options", [("--keep-arms",), ()])
def test_else_it_is_measured_to_the_end_and_out_all_the_same(three, events, samples, options):
    length = () if options else ("--blocks", 12)
    result = three("--max-memory", "0.1", "--json", *options, **({} if options else {"length": length}))
    document = json.loads(result.stdout)
    assert events("dropped") == []
    assert [one["arm"] for one in document["over_memory"]] == ["large"]
    assert "large" not in document["may_be_best"]


def test_json_says_that_it_left_for_its_memory(three):
    document = json.loads(three("--max-memory", "10%", "--json").stdout)
    assert document["dropped"]["large"] == {"blocks": 4, "slower_than": None}


def test_the_decision_follows_from_the_record_and_a_run_that_goes_on_keeps_it(three, cli, events, samples, run_folder):
    three("--max-memory", "10%")
    every = events()
    at = next(number for number, event in enumerate(every) if event["event"] == "dropped")
    decision = decide.after_blocks(Run.parse(every[:at]), 4)
    assert isinstance(decision, Dropped)
    assert (decision.arms, decision.over_memory) == ({"large": "baseline"}, True)
    for end in (at, at + 1, at + 3):
        records.write(run_folder, every[:end])
        assert cli("bench", "--resume", run_folder).returncode == 0
        assert events("dropped")[0] == {**every[at], "time": events("dropped")[0]["time"]}
        assert sum(arm == "large" for _, arm in samples()) == 4
        assert concluded(Run.parse(events())).over_memory[0].arm == "large"


def test_if_all_are_above_the_fastest_stays(three, simulation, events):
    simulation.worker("baseline", peak_memory_bytes=400 * MIB)
    assert three("--max-memory", "0%", "--json").returncode == 0
    over = [event for event in events("dropped") if event.get("over_memory")]
    assert {name for event in over for name in event["arms"]} == {"small", "slow"}


def test_of_several_above_the_limit_one_with_matching_losses_stays(three, simulation, events):
    simulation.worker("baseline", peak_memory_bytes=400 * MIB)
    simulation.worker("large", seconds=times(0.4), peak_memory_bytes=800 * MIB, losses=[2.3, 1.3, 0.3])
    assert three("--max-memory", "0%", "--json").returncode == 0
    over = [event for event in events("dropped") if event.get("over_memory")]
    assert {name for event in over for name in event["arms"]} == {"large", "slow"}


def test_at_the_limit_an_arm_stays(three, events):
    result = three("--max-memory", "0%", "--json")
    over = [event for event in events("dropped") if event.get("over_memory")]
    assert {name for event in over for name in event["arms"]} == {"large", "small"}, "slow needs as much as baseline"
    assert result.returncode == 0
