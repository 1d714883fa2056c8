"""The measuring loop, run by the command line with simulated workers: really started ones, or instant ones."""

from __future__ import annotations

import json
import signal
import time

import pytest
from envkit.bench import record
from envkit.bench.messages import WorkerEnded
from envkit.bench.parse_sample import parse_sample
from envkit.bench.problem_messages import NoDocument, OtherDigest, OtherDocument, OtherTorch
from envkit.common import progress
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus, Killed
from envkit.rendering import text
from envkit.worker.modes import Options
from envkit.worker.request import Train

from tests.processes import gone
from tests.records import problem_of
from tests.records import samples as recorded_samples
from tests.simulated_worker import answer
from tests.simulation import STEADY, times
from tests.worker_runs import document_of


@pytest.mark.parametrize(
    ("factor", "margin", "verdict"),
    [
        (0.5, "2%", "faster"),
        (1.25, "2%", "slower"),
        (1.0, "0.5%", "no difference found"),
        (1.0, "2.5%", "no difference larger than 2.5%"),
    ],
)
def test_verdict_on_a_profile_of_known_speed(bench, simulation, instant, factor, margin, verdict):
    simulation.worker("mine", seconds=times(factor))
    result = bench("mine", "--json", "--margin", margin)
    document = json.loads(result.stdout)
    (found,) = document["comparisons"]
    assert (result.returncode, result.stderr) == (0, "")
    assert (found["arm"], found["verdict"]) == ("mine", verdict)
    assert found["speedup"]["low"] <= 1 / factor <= found["speedup"]["high"]
    # every worker that was started to be measured is a sample in the record
    assert [one["samples"] for one in document["measured"]] == [found["speedup"]["blocks"]] * 2 == [6, 6]
    assert len(simulation.starts()) == 12


def test_what_happens_is_recorded_in_order(bench, simulation, instant, events, samples):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine").returncode == 0
    block = ["reference-kernel", "sample", "sample"]
    kinds = ["run", "warm-up", "warm-up", "lengths", *block * 2, "design", *block * 4, "end"]
    assert [event["event"] for event in events()] == kinds
    assert [start["name"] for start in simulation.starts()] == [arm for _, arm in samples()]
    baseline = [event["seconds"] for event in events("sample") if event["arm"] == "baseline"]
    assert baseline == list(STEADY[:6])
    # each block is complete before the next one begins
    assert [block for block, _ in samples()] == [block for block in range(6) for _ in range(2)]
    assert len(set(samples())) == 12


def test_order_within_blocks_and_padding_are_random_and_repeat_with_the_seed(bench, instant, tmp_path):
    orders, paddings = [], []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        assert bench("mine", "--seed", seed, "--output", tmp_path / name).returncode == 0
        found = recorded_samples(record.read(tmp_path / name))
        orders.append([one["arm"] for one in found])
        paddings.append({(one["block"], one["arm"]): one["padding_bytes"] for one in found})
    assert orders[0] == orders[1] != orders[2]
    assert paddings[0] == paddings[1] != paddings[2]
    blocks = set(zip(orders[0][::2], orders[0][1::2], strict=True))
    assert blocks == {("baseline", "mine"), ("mine", "baseline")}


def test_workers_get_the_plans_arguments_and_the_profiles_variables(bench, simulation):
    bench("mine", "--warmup-steps", 4, "--blocks", 1, text="prefix: [env, PREFIXED=1]\n")
    starts = {start["name"]: start for start in simulation.starts(all=True)}
    for name in ("baseline", "mine"):
        assert starts[name]["work"] == document_of(Train("cnn", "synthetic", warmup_steps=4, steps=3))
    prefixed = {name for name, start in starts.items() if "PREFIXED" in start["environment"]}
    assert prefixed == {"mine", "mine warming"}


# --- the same conditions for all: warming up, the reference kernel, padding ---


def test_each_arm_is_started_once_unmeasured_before_the_first_block(bench, simulation, instant, events):
    assert bench("mine", "--blocks", 2).returncode == 0
    starts = simulation.starts(all=True)
    assert [one["name"] for one in starts[:4]] == ["inspect", "baseline warming", "mine warming", "reference-kernel"]
    paced = Train("cnn", "synthetic", steps=12, least_s=2.0, profiles_ranks=False)
    assert starts[1]["work"] == document_of(paced)
    assert starts[2]["environment"]["SIMULATED"] == "mine"
    assert len([one for one in starts if one["name"].endswith("warming")]) == 2
    assert [(one["arm"], one["worker_seconds"]) for one in events("warm-up")] == [("baseline", 1.0), ("mine", 1.0)]


def test_each_block_begins_with_the_reference_kernel_outside_of_any_profile(bench, simulation, instant, events):
    simulation.worker("reference-kernel", seconds=[0.2, 0.3, 0.4])
    assert bench("mine", "--blocks", 3).returncode == 0
    readings = events("reference-kernel")
    assert [(one["block"], one["seconds"], one["digest"]) for one in readings] == [
        (0, 0.2, "f" * 64), (1, 0.3, "f" * 64), (2, 0.4, "f" * 64)
    ]  # fmt: skip
    assert all(one["worker_seconds"] > 0 for one in readings)
    starts = simulation.starts(all=True)[3:]
    assert [start["name"] == "reference-kernel" for start in starts] == [True, False, False] * 3
    for start in starts[::3]:
        assert start["work"] == {"kind": "reference-kernel"}
        assert start["environment"].keys().isdisjoint({"SIMULATED", "ENVKIT_PADDING"})


def test_each_samples_environment_is_padded_by_what_is_recorded(bench, simulation, instant, events):
    assert bench("mine", "--blocks", 3).returncode == 0
    recorded = [event["padding_bytes"] for event in events("sample")]
    assert recorded == [len(start["environment"].get("ENVKIT_PADDING", "")) for start in simulation.starts()]
    assert len(set(recorded)) == 6
    warming = [start for start in simulation.starts(all=True) if start not in simulation.starts()]
    assert not any("ENVKIT_PADDING" in start["environment"] for start in warming)


def test_a_warming_start_that_fails_is_reported(bench, simulation, instant, events):
    simulation.worker("mine warming", does="exit", status=3)
    result = bench("mine").ended(1)
    assert "Failed    block 1, mine: the worker ended with exit status 3 (warming up)" in result.stdout
    assert [event["block"] for event in events("failure")] == [0]
    assert simulation.starts() == []


@pytest.mark.parametrize(
    "fault", [{"does": "exit", "status": 3}, *({"does": "print", "text": text} for text in ("nothing", "{}"))]
)
def test_a_speedup_does_without_a_reference_kernel_that_fails(bench, simulation, instant, events, fault):
    """It is tried no second time, as it may have taken a minute."""
    simulation.worker("reference-kernel", **fault, **{"from": 1})
    result = bench("mine").ended(0)
    assert "mine: 1.00x baseline speed" in result.stdout
    assert [one["block"] for one in events("reference-kernel")] == [0]
    assert [one["block"] for one in events("reference-kernel-failure")] == [1]


# --- what workers do wrong ---


def test_not_in_effect_ends_the_run_without_a_speedup(bench, simulation, instant, samples):
    simulation.worker("mine", seconds=times(0.5), evidence={"openmp": {"runtime": "gnu"}})
    result = bench("mine", text="expect: {openmp.runtime: intel}\n").ended(1)
    assert "openmp.runtime  intel     gnu" in result.stdout
    assert "CI" not in result.stdout
    # it is found at the first sample of the profile, which is kept
    assert [arm for _, arm in samples()].count("mine") == 1
    assert len(samples()) <= 2


def test_what_ends_with_another_profile_is_not_to_be_gone_on_with(
    cli, bench_arguments, write_profile, simulation, instant
):
    other = write_profile("other", "env:\n  SIMULATED: other\nexpect:\n  openmp.runtime: intel\n")
    simulation.worker("mine", seconds=times(0.5))
    simulation.worker("other", evidence={"openmp": {"runtime": "gnu"}})
    arguments = bench_arguments("mine")
    said = " ".join(cli(*arguments[:2], other, *arguments[2:]).stdout.split())
    assert said.startswith("NOT IN EFFECT other: no speedup is reported")
    assert "measure without other" in said
    assert "--resume" not in said


def test_not_in_effect_later_on_takes_back_the_speedup(bench, simulation, instant, cli, run_folder):
    """A profile that is in effect in all samples but one is not in effect."""
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine", text="expect: {openmp.runtime: gnu}\n").returncode == 0
    path = run_folder / record.FILE_NAME
    lines = path.read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if '"arm": "mine"' in line)
    lines[last] = lines[last].replace('"expected": "gnu", "seen": "gnu"', '"expected": "gnu", "seen": "intel"')
    path.write_text("\n".join(lines) + "\n")
    (found,) = json.loads(cli("report", run_folder, "--json").stdout)["comparisons"]
    assert (found["verdict"], found["speedup"]) == ("NOT IN EFFECT", None)


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ({"does": "signal", "signal": signal.SIGKILL}, WorkerEnded(Killed("SIGKILL"))),
        ({"does": "signal", "signal": signal.SIGSEGV}, WorkerEnded(Killed("SIGSEGV"))),
        ({"does": "exit", "status": 3}, WorkerEnded(ExitStatus(3))),
        ({"does": "print", "text": '{"seconds": 1.0, "step_s"'}, NoDocument()),
        ({"does": "print", "text": ""}, NoDocument()),
        ({"does": "print", "text": "[1, 2]"}, OtherDocument()),
        ({"does": "print", "text": "{}"}, OtherDocument()),
    ],
)
def test_a_worker_that_fails_is_recorded_and_reported(bench, simulation, events, request, behaviour, problem):
    """The second of the profile's workers fails: the run ends there, with status 1 and no speedup."""
    if behaviour["does"] != "signal":
        request.getfixturevalue("instant")
    simulation.worker("mine", **{"from": 1, "stderr": "first line\nthe last words", **behaviour})
    result = bench("mine").ended(1)
    (failure,) = events("failure")
    assert (failure["block"], failure["arm"]) == (1, "mine")
    assert problem_of(failure) == problem
    assert failure["worker_seconds"] > 0
    assert "the last words" in failure["stderr"]
    assert f"Failed    block 2, mine: the worker {text(problem)}" in result.stdout
    assert len(simulation.starts()) == len(events("sample", "failure"))
    assert events()[-1]["reason"] == "a worker failed"


def test_workers_must_run_the_same_torch(bench, simulation, instant, events):
    simulation.worker("mine", evidence={"torch": {"version": "2.14.0"}})
    assert bench("mine").returncode == 1
    (failure,) = events("failure")
    assert problem_of(failure) in (OtherTorch("2.13.0", "2.14.0"), OtherTorch("2.14.0", "2.13.0"))


@pytest.mark.parametrize("name", ["code", "data", "initial weights"])
def test_workers_must_run_the_same_code_data_and_weights(bench, simulation, instant, events, name):
    simulation.worker("mine", digests={name.replace(" ", "_"): "f" * 64})
    assert bench("mine").returncode == 1
    (failure,) = events("failure")
    problem = problem_of(failure)
    assert isinstance(problem, OtherDigest)
    assert problem.name == name
    assert failure["block"] == 0


def test_a_worker_that_hangs_is_stopped_and_recorded(bench, simulation, events):
    simulation.worker("mine", does="hang")
    begin = time.monotonic()
    result = bench("mine", "--timeout", "4s")
    assert time.monotonic() - begin < 240
    assert result.returncode == 1
    assert "the worker did not end within 4 s (--timeout) and was stopped" in " ".join(result.stdout.split())
    (failure,) = events("failure")
    assert failure["worker_seconds"] >= 4
    assert "simulated trouble" in failure["stderr"]
    assert gone(simulation.starts()[-1]["pid"])


def test_a_long_timeout_is_not_an_error(bench):
    assert bench("mine", "--timeout", "1000h", "--blocks", 1).returncode == 0


def test_full_training_once_each(bench, simulation, instant, samples, events):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--full").ended(0)
    assert sorted(samples()) == [(0, "baseline"), (0, "mine")]
    assert "ONE RUN EACH  mine: 2.01x baseline speed" in result.stdout
    assert "84.00%" in result.stdout
    assert "the book's baseline" in result.stdout
    assert simulation.starts()[0]["training"]["full"]["epochs"] == 10
    # it begins as one's own training would
    assert events("warm-up", "reference-kernel", "design") == []
    assert len(simulation.starts(all=True)) == 3


def test_each_full_training_is_told_when_it_ends(bench, instant, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    assert " ms per step" in bench("mine", "--full", "--epochs", 2).stderr
    assert " ms per step" not in bench("mine").stderr


def test_a_full_training_of_few_epochs_is_not_held_against_the_book(bench, simulation, instant):
    result = bench("mine", "--full", "--epochs", 2).ended(0)
    assert simulation.starts()[0]["training"]["full"]["epochs"] == 2
    assert "the book's" not in result.stdout


def test_full_trainings_in_several_blocks_have_an_interval(bench, simulation, instant, samples, events):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--full", "--blocks", 6, "--json").ended(0)
    assert len(samples()) == 12
    assert events("warm-up", "reference-kernel") == []
    (fixed,) = events("design")
    assert (fixed["planned_blocks"], fixed["looks"]) == (6, [6])
    (comparison,) = json.loads(result.stdout)["comparisons"]
    assert (comparison["verdict"], comparison["single_ratio"]) == ("faster", None)
    assert comparison["speedup"]["low"] > 1.9


def test_how_things_stand_goes_to_stderr_and_the_report_to_stdout(bench, simulation, instant, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--blocks", 14)
    lines = result.stderr.splitlines()
    assert lines[0] == "block 1 of 14 (one sample of each); about 0:39 left"  # no ratio before the first interval
    # a block's ratio is that of STEADY to itself reversed: 1.98 to 2.02; the look at 13 blocks has a rate of 2.9%
    assert lines[13] == "block 14 of 14: mine 2.00x (interim 1.99 to 2.01); about 0:00 left"
    assert len(lines) == 14
    assert "Details   " in result.stdout


@pytest.mark.parametrize(("cpu_s", "found"), [(5.5, 2.25), (3.0, 0.0), (None, None)])
def test_what_the_engine_ran_beside_a_worker_is_known(cpu_s, found):
    """In every sample, those of a search too: it is not the use of others."""
    own = {**answer("baseline", document_of(Train("cnn", "synthetic", steps=3)), {"workers": {}}, 0, {}), "cpu_s": 3.25}
    document, problem = parse_sample(Outcome(json.dumps(own), "", 1.0, None, cpu_s), (), Options())
    assert (problem, document["usage"].get("engine_s")) == (None, found)
