"""What a report says to do next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from envkit.analysis import ranking
from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.problem_messages import WarmingUp
from envkit.bench.study import UserCommand
from envkit.checks.effect import Check
from envkit.engines.messages import ExitStatus, Killed
from envkit.report import advice
from envkit.report.messages import advice as messages
from envkit.stats.verdict import Verdict
from envkit.worker.messages import MemoryRanOut
from envkit.worker.messages.user_command import CommandEnded, NoOutput

from tests.plans import with_arms
from tests.records import conclude
from tests.report.kinds import KINDS
from tests.report.planted import NOT_IN_EFFECT, OTHER_LOSSES, disturbed, failed
from tests.reports import events_of, printed
from tests.simulation import STEADY, times

RAN_OUT = MemoryRanOut("python", 1, "/job", 2**30, 2**30)

ADVISE = messages.RunFor(messages.TRY_ADVISE, "envkit advise -- python train.py")
MEASURE = messages.RunFor(messages.MEASURE, messages.BENCH)


def advised(events):
    """What is advised, without where it was measured."""
    return [row.text for row in advice.rows(conclude(events), "some/folder")]


@pytest.mark.parametrize(
    ("engine", "options", "named"),
    [
        ("local", {"python": "/opt/my torch/python"}, "mine.yaml --python '/opt/my torch/python'"),
        ("local", {"image": "another"}, "mine.yaml"),
        ("docker", {"image": "envkit-cuda", "cpuset_cpus": "0-3"},
         "mine.yaml --engine docker --image envkit-cuda --cpuset-cpus 0-3"),
        ("apptainer", {"sif": "x.sif", "python": "/other"}, "mine.yaml --engine apptainer --sif x.sif"),
        ("podman", {}, "mine.yaml --engine podman"),
    ],
)  # fmt: skip
def test_advice_names_where_it_was_measured(engine, options, named):
    arms = [{"name": name, "profile": name, "engine": engine} for name in ("baseline", "mine")]
    events = events_of(study={"engine_options": options})
    events[0]["study"] = with_arms(events[0]["study"], arms)
    events[0]["engines"] = {engine: events[0]["engines"]["local"]}
    assert advised(events) == [messages.Use("mine", f"envkit exec {named} -- python train.py")]


SPECIFIED = {
    "command": ["envkit", "submit", "--resume=/x"],
    "files": {"mine": "/a/mine.yaml"},
    "study": {"allow_unknown": True},
}


@pytest.mark.parametrize(
    ("profile", "run", "named"),
    [
        ("mine", {"command": ["envkit", "bench", "my profiles/mine.yml", "--blocks", "7"]}, "'my profiles/mine.yml'"),
        ("mine", {"command": ["envkit", "bench", "mine.yaml"], "cwd": "/my profiles"}, "'/my profiles/mine.yaml'"),
        ("mine", {"command": ["envkit", "bench", "mine.yaml"], "cwd": str(Path.cwd())}, "mine.yaml"),
        ("mine", SPECIFIED, "/a/mine.yaml --allow-unknown"),
        # a file that is called like a shipped profile is meant where one was given
        ("jemalloc-retain", {}, "jemalloc-retain"),
        ("jemalloc-retain", {"command": ["envkit", "bench", "/a/jemalloc-retain.yaml"]}, "/a/jemalloc-retain.yaml"),
    ],
)
def test_advice_names_the_file_that_was_given(profile, run, named):
    (use,) = advised(events_of(profile=profile, **run))
    assert use == messages.Use(profile, f"envkit exec {named} -- python train.py")


def test_a_command_to_paste_is_one_line_however_long_it_is():
    events = events_of(command=["envkit", "bench", f"/a/{'long ' * 30}folder/mine.yaml"])
    (line,) = [line for line in printed(events).splitlines() if line.startswith("Use ")]
    assert line.endswith("folder/mine.yaml' -- python train.py")


def test_advice_after_ranks_on_several_nodes_starts_as_many_on_each():
    result = conclude(events_of())
    study = replace(result.study, ranks=4, nodes=2)
    (row,) = advice.rows(replace(result, study=study))
    use = "envkit exec mine-4.yaml -- torchrun --nnodes 2 --nproc-per-node 4 train.py"
    assert row.text == messages.UseCopy("mine", "mine-4", 4, use)
    own = tuple(replace(arm, ranks=2) if arm.name == "mine" else arm for arm in study.arms)
    (row,) = advice.rows(replace(result, study=replace(study, arms=own, ranks=1, nodes=1)))
    assert row.text == messages.Use("mine", "envkit exec mine.yaml -- torchrun --nproc-per-node 2 train.py")


def test_of_many_the_best_that_is_known_to_be_faster_is_advised():
    """Not the one with the largest estimate, which may be the noisiest."""
    noise = [0.2, 0.2, 1.3, 1.3]
    others = {"noisy": {"seconds": noise}, "quick": {"seconds": times(0.7)}, "slow": {"seconds": times(1.6)}}
    result = conclude(events_of(12, mine={"seconds": times(0.9)}, others=others))
    first = ranking.ranked(result.comparisons, result.study.view)[0]
    assert (first.arm, first.verdict) == ("noisy", Verdict.NOT_FOUND)
    (row,) = advice.rows(result)
    assert (type(row.text), row.text.profile) == (messages.Use, "quick")


@pytest.mark.parametrize("others", [{}, {"second": {"seconds": times(0.7)}, "slow": {"seconds": times(1.6)}}])
def test_one_whose_losses_match_is_advised_before_a_faster_one_whose_losses_differ(others):
    others = {"quick": {"seconds": times(0.4), **OTHER_LOSSES}, **others}
    assert advised(events_of(12, others=others, numerics="may-differ")) == [
        messages.UseAfterCheck("mine", "envkit exec mine.yaml -- python train.py")
    ]


def test_a_slower_one_is_not_advised_before_a_faster_one_whose_losses_may_differ():
    events = events_of(12, mine=OTHER_LOSSES, others={"slow": {"seconds": times(1.5)}}, numerics="may-differ")
    assert [(type(one), one.profile) for one in advised(events)] == [(messages.UseAfterCheck, "mine")]


def test_beside_a_load_that_leaves_too_few_blocks_nothing_is_advised():
    """It disturbs 10 of 14 blocks, which are fewer than nearly all."""
    events = events_of(14)
    for event in events:
        if event["event"] == "sample" and event["block"] < 10:
            event["usage"]["worker_cpus_busy_s"] = 4 * event["seconds"]
    assert conclude(events).comparisons[0].without_interference is None
    assert advised(events) == [messages.QuieterMachine(10, 14, ())]


def test_where_the_margin_was_not_found_in_enough_blocks_a_smaller_one_is_looked_for():
    unlike = {"seconds": [0.933, 1.049, 0.989, 0.943, 1.043, 0.993]}
    found = advised(events_of(60, mine=unlike))[0]
    assert (type(found), found.percent, found.blocks > 60) == (messages.MeasureLonger, 1.0, True)
    assert found.option == f"--budget {found.minutes}m --margin 1%"
    assert advised(events_of(60, mine=unlike, study={"blocks": 60}))[0].option.startswith("--blocks ")


def test_a_gain_that_does_not_matter_hides_nothing():
    noise = [0.776, 1.2125, 0.873, 1.1155, 0.873, 1.0185]
    others = {"tiny": {"seconds": [0.995 * one for one in STEADY]}, "noisy": {"seconds": noise}, "slow": {}}
    result = conclude(events_of(60, mine={"seconds": times(1.6)}, others=others))
    verdicts = {one.arm: one.verdict for one in result.comparisons}
    assert (verdicts["tiny"], verdicts["noisy"]) == (Verdict.FASTER, Verdict.NOT_FOUND)
    assert any(isinstance(row.text, messages.MeasureLonger) for row in advice.rows(result))


def test_what_it_takes_to_find_the_margin():
    """Per block 4.5 s; with another margin it takes fewer blocks."""
    noise = {"seconds": [1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05]}

    def needed(margin):
        found = advised(events_of(mine=noise, study={"margin": margin}))[0]
        assert found.percent == 100 * margin
        return found.blocks, found.minutes

    blocks, minutes = needed(0.02)
    assert blocks > 100
    assert blocks * 4.5 / 60 <= minutes <= blocks * 4.5 / 60 + 2
    assert needed(0.05)[0] < blocks / 4


OWN = UserCommand(("python", "my train.py"), "/there", None, "s", 0, None)


def of_wrong(*wrong, own=OWN):
    """What is advised of a user's training, or of a workload, in which these expectations are not met."""
    result = conclude(events_of(mine=NOT_IN_EFFECT))
    mine = [replace(one, checks=[Check(key, 2, 1) for key in wrong]) for one in result.measured if one.arm == "mine"]
    result = replace(result, study=replace(result.study, user_command=own), measured=mine)
    return [row.text for row in advice.rows(result, "some/folder")]


def test_why_settings_of_a_users_training_are_not_in_effect_is_found_with_that_training():
    """Doctor would look at a training of the kit, which may be in order."""
    command = f"cd /there && envkit exec {Path.cwd()}/mine.yaml -- python 'my train.py'"
    assert of_wrong("openmp.runtime") == [messages.FindOutWhy(command)]
    both = of_wrong("openmp.max_threads", "openmp.runtime")
    assert both == [messages.FindOutWhy(command)]


def test_a_users_training_that_changes_its_threads_is_to_stop_that():
    assert of_wrong("openmp.max_threads") == [messages.KeepThreads()]
    # nobody can change a workload of the kit
    assert of_wrong("openmp.max_threads", own=None) == [messages.FindOutWhy("envkit doctor mine.yaml")]


ON = "envkit bench --resume some/folder"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (events_of(mine={"seconds": times(1.25)}),
         [messages.KeepReference("baseline"), ADVISE]),
        (events_of(mine={"seconds": times(1)}),
             [messages.ChooseFreely("baseline", "mine"), ADVISE]),
        (events_of(mine=NOT_IN_EFFECT), [messages.FindOutWhy("envkit doctor mine.yaml")]),
        (KINDS["not-in-effect-kmp"](), [messages.Preload("intel-openmp", "intel-omp", ("KMP_BLOCKTIME",))]),
        (events_of(mine=OTHER_LOSSES), [messages.ExplainLosses("mine")]),
        (events_of(5), [messages.RaiseLimit("--budget 5m")]),
        (events_of(5, study={"blocks": 5}), [messages.RaiseLimit("--blocks 6")]),
        (events_of(1, study={"epochs": 10}), [messages.RaiseLimit("--blocks 8", messages.INTERVAL)]),
        (failed(events_of()), [messages.FindMemory(ON)]),  # by SIGKILL
        (failed(events_of(), problem=WarmingUp(WorkerEnded(Killed("SIGKILL")))), [messages.FindMemory(ON)]),
        (failed(events_of(), problem=WorkerEnded(ExitStatus(3))), [messages.MendWorker(ON)]),
        (failed(events_of(), problem=WorkerEnded(Killed("SIGKILL", memory=RAN_OUT))),
         [messages.FreeMemory(ON, "/job")]),
        (failed(events_of(), problem=WarmingUp(WorkerReported(CommandEnded(1, NoOutput(), RAN_OUT)))),
         [messages.FreeMemory(ON, "/job")]),
        (failed(events_of(), problem=WorkerEnded(ExitStatus(1, RAN_OUT.replace(retaining="MALLOC_CONF")))),
         [messages.FreeMemory(ON, "/job", "mine")]),
        (failed(events_of(others={"other": {}}), "other"), [messages.MendWorker(ON, "other")]),
        (events_of(12, ended="interrupted"), [messages.Resume(ON)]),
        (events_of(16, mine={"seconds": times(1)}, profile="baseline"), [MEASURE]),
        (events_of(16, mine={"seconds": times(0.9)}, profile="baseline"), [messages.CalibrateAgain(0.05)]),
    ],
)  # fmt: skip
def test_each_outcome_has_its_advice(events, expected):
    assert advised(events) == expected


def test_a_run_that_was_cut_short_says_how_much_a_verdict_takes():
    (found,) = advised(events_of(3, ended="interrupted"))
    assert (type(found), found.fewest, found.blocks, found.command) == (messages.GoOn, 6, 3, ON)


@pytest.mark.parametrize("factor", [0.5, 1, 1.25])
def test_where_most_blocks_were_disturbed_nothing_is_advised_from_the_result(factor):
    mine = {"seconds": times(factor)}
    assert advised(disturbed(events_of(10, mine=mine), *range(8))) == [messages.QuieterMachine(8, 10)]
    # with as many left as it takes for a result without them
    fewer = (disturbed(events_of(10, mine=mine), *range(5)), disturbed(events_of(40, mine=mine), *range(28)))
    assert not any(isinstance(one, messages.QuieterMachine) for events in fewer for one in advised(events))


def test_the_best_without_cautions_stands_before_a_faster_one_with_them():
    use, faster = advised(KINDS["eight"]())
    assert use == messages.Use("mine", "envkit exec mine.yaml -- python train.py")
    assert faster == messages.UseFaster(pytest.approx(2.5, rel=1e-3), "envkit exec quick.yaml -- python train.py")
    plain = advised(events_of(12, others={"quick": {"seconds": times(0.4)}}))
    assert [type(one) for one in plain] == [messages.Use]
