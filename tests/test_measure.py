"""The measuring loop, run by the command line with simulated workers."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass, field

import pytest

from runner import measure, record
from runner.engines.base import Outcome
from runner.environment import Environment
from runner.measure import Job
from runner.plan import Arm, Plan
from runner.progress import Progress
from tests.processes import gone
from tests.simulated_worker import sample
from tests.simulation import STEADY, times


@pytest.fixture
def samples(run_folder):
    """The (block, arm) of each recorded sample, in order."""
    return lambda folder=run_folder: [(one["block"], one["arm"]) for one in measure.samples(record.read(folder))]


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, "faster"), (1.25, "slower"), (1.0, "no difference found")])
def test_verdict_on_a_profile_of_known_speed(bench, simulation, factor, verdict):
    simulation.worker("mine", seconds=times(factor))
    result = bench("mine", "--json")
    document = json.loads(result.stdout)
    (found,) = document["comparisons"]
    assert (result.returncode, result.stderr) == (0, "")
    assert (found["arm"], found["verdict"]) == ("mine", verdict)
    assert found["speedup"]["low"] <= 1 / factor <= found["speedup"]["high"]
    assert document["ended"] == "precise enough"
    # every worker that was started is a sample in the record
    assert [one["samples"] for one in document["measured"]] == [found["speedup"]["blocks"]] * 2
    assert len(simulation.starts()) == 2 * found["speedup"]["blocks"]


def test_every_sample_is_recorded_with_what_was_measured(bench, simulation, run_folder, samples):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine").returncode == 0
    events = record.read(run_folder)
    assert [event["event"] for event in events[:2]] == ["run", "sample"]
    assert events[-1]["event"] == "end"
    assert [start["name"] for start in simulation.starts()] == [arm for _, arm in samples()]
    baseline = [event["seconds"] for event in measure.samples(events) if event["arm"] == "baseline"]
    assert baseline == list(STEADY[: len(baseline)])
    # each block is complete before the next one begins
    assert [block for block, _ in samples()] == [block for block in range(len(baseline)) for _ in range(2)]
    assert len(set(samples())) == len(samples())


def test_order_within_blocks_is_random_and_repeats_with_the_seed(bench, simulation, samples, tmp_path):
    simulation.worker("mine", seconds=times(0.5))
    orders = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        assert bench("mine", "--seed", seed, "--output", tmp_path / name).returncode == 0
        orders.append([arm for _, arm in samples(tmp_path / name)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    blocks = set(zip(orders[0][::2], orders[0][1::2], strict=True))
    assert blocks == {("baseline", "mine"), ("mine", "baseline")}


def test_workers_get_the_plans_arguments_and_the_profiles_variables(bench, simulation):
    simulation.worker("mine", evidence={"openmp": {"runtime": "intel"}})
    bench("mine", "--warmup-steps", 4, text="expect: {openmp.runtime: gnu}\nprefix: [env, PREFIXED=1]\n")
    starts = {start["name"]: start for start in simulation.starts()}
    expected = ["train", "--workload", "cnn", "--data", "synthetic", "--warmup-steps", "4", "--steps", "3"]
    assert all(start["arguments"][: len(expected)] == expected for start in starts.values())
    assert starts["mine"]["environment"]["PREFIXED"] == "1"
    assert "PREFIXED" not in starts.get("baseline", {"environment": {}})["environment"]


def test_not_in_effect_ends_the_run_without_a_speedup(bench, simulation, samples):
    simulation.worker("mine", seconds=times(0.5), evidence={"openmp": {"runtime": "gnu"}})
    result = bench("mine", text="expect: {openmp.runtime: intel}\n")
    assert result.returncode == 1
    assert "mine is NOT IN EFFECT: no speedup is worked out." in result.stdout
    assert "openmp.runtime: expected intel, seen gnu" in result.stdout
    assert "less time" not in result.stdout
    assert "interval" not in result.stdout
    # it is found at the first sample of the profile, which is kept
    assert [arm for _, arm in samples()].count("mine") == 1
    assert len(samples()) <= 2


def test_not_in_effect_later_on_takes_back_the_speedup(bench, simulation, cli, run_folder):
    """A profile that is in effect in all samples but one is not in effect."""
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine", text="expect: {openmp.runtime: gnu}\n").returncode == 0
    path = run_folder / record.FILE_NAME
    lines = path.read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if '"arm": "mine"' in line)
    lines[last] = lines[last].replace('"runtime": "gnu"', '"runtime": "intel"')
    path.write_text("\n".join(lines) + "\n")
    (found,) = json.loads(cli("report", run_folder, "--json").stdout)["comparisons"]
    assert (found["verdict"], found["speedup"]) == ("NOT IN EFFECT", None)


def test_a_variable_that_the_worker_was_not_given_is_not_in_effect(bench, simulation):
    simulation.worker("mine", evidence={"variables": {"sensitive": {"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "0"}}})
    result = bench("mine")
    assert result.returncode == 1
    assert "variable KMP_BLOCKTIME: expected not set, seen 0" in result.stdout


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ({"does": "signal", "signal": signal.SIGKILL}, "was killed by signal SIGKILL"),
        ({"does": "signal", "signal": signal.SIGSEGV}, "was killed by signal SIGSEGV"),
        ({"does": "exit", "status": 3}, "ended with exit status 3"),
        ({"does": "print", "text": "Segmentation fault"}, "printed no JSON document"),
        ({"does": "print", "text": '{"seconds": 1.0, "step_s"'}, "printed no JSON document"),
        ({"does": "print", "text": ""}, "printed no JSON document"),
        ({"does": "print", "text": "[1, 2]"}, "printed no"),
        ({"does": "print", "text": "{}"}, "printed no"),
    ],
)
def test_a_worker_that_fails_is_recorded_and_reported(bench, simulation, run_folder, behaviour, problem):
    """The second of the profile's workers fails: the run ends there, with status 1 and no speedup."""
    simulation.worker("mine", **{"from": 1, "stderr": "first line\nthe last words", **behaviour})
    result = bench("mine")
    assert result.returncode == 1
    (failure,) = [event for event in record.read(run_folder) if event["event"] == "failure"]
    assert (failure["block"], failure["arm"]) == (1, "mine")
    assert problem in failure["problem"]
    assert f"FAILED   block 2, mine: the worker {problem}" in result.stdout
    assert "         | the last words" in result.stdout
    assert "speedup  not worked out: failed" in result.stdout
    assert "ended    a worker failed" in result.stdout
    assert len(simulation.starts()) == len(record.read(run_folder)) - 2  # without the events run and end


@pytest.mark.parametrize("name", ["code", "data", "initial_weights"])
def test_workers_must_run_the_same_code_data_and_weights(bench, simulation, run_folder, name):
    simulation.worker("mine", digests={name: "f" * 64})
    result = bench("mine")
    assert result.returncode == 1
    (failure,) = [event for event in record.read(run_folder) if event["event"] == "failure"]
    assert failure["problem"].startswith(f"its {name.replace('_', ' ')} differs from that of earlier samples (")
    assert failure["block"] == 0
    assert "speedup  not worked out: failed" in result.stdout


def test_a_worker_that_hangs_is_stopped_and_recorded(bench, simulation, run_folder):
    simulation.worker("mine", does="hang")
    begin = time.monotonic()
    result = bench("mine", "--timeout", "0.5s")
    assert time.monotonic() - begin < 30
    assert result.returncode == 1
    assert "the worker did not end within 0.5 s (--timeout) and was stopped" in " ".join(result.stdout.split())
    (failure,) = [event for event in record.read(run_folder) if event["event"] == "failure"]
    assert failure["worker_seconds"] >= 0.5
    assert "simulated trouble" in failure["stderr"]
    assert gone(simulation.starts()[-1]["pid"])


def test_a_long_timeout_is_not_an_error(bench, simulation):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine", "--timeout", "1000h").returncode == 0


def test_the_budget_ends_a_run_that_is_not_precise(bench, simulation, run_folder):
    simulation.worker("baseline", seconds=[1.0, 3.0])
    simulation.worker("mine", seconds=[1.0, 1.0, 3.0])
    result = bench("mine", "--budget", "2s")
    assert result.returncode == 0
    assert "ended    budget used up" in result.stdout
    assert sum(one["worker_seconds"] for one in measure.samples(record.read(run_folder))) <= 2


def test_too_small_a_budget_measures_one_block_and_says_what_is_missing(bench, simulation, samples):
    simulation.worker("mine", delay=0.1)
    result = bench("mine", "--budget", "0.01s")
    assert result.returncode == 0
    assert "speedup  not worked out: an interval needs 6 complete blocks (raise --budget)" in result.stdout
    assert len(samples()) == 2


def test_the_reference_alone(bench, simulation, samples):
    result = bench("baseline", "--budget", "1s", "--json")
    assert result.returncode == 0
    document = json.loads(result.stdout)
    assert document["comparisons"] == []
    assert [one["arm"] for one in document["measured"]] == ["baseline"]
    assert {arm for _, arm in samples()} == {"baseline"}


def test_full_training_once_each(bench, simulation, samples):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--full")
    assert result.returncode == 0
    assert sorted(samples()) == [(0, "baseline"), (0, "mine")]
    assert "from one run each: no interval, no verdict" in result.stdout
    assert "84.00%" in result.stdout
    assert "the book's baseline" in result.stdout
    assert simulation.starts()[0]["arguments"][-3:-1] == ["--epochs", "10"]


def test_progress_goes_to_stderr_and_the_report_to_stdout(bench, simulation):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine")
    lines = result.stderr.splitlines()
    assert len(lines) == len(simulation.starts())
    assert "block 1, " in lines[0]
    assert "ms per step" in lines[0]
    assert max(len(line) for line in result.stdout.split("\nby hand")[0].splitlines()) <= 120
    assert "record   " in result.stdout


@dataclass
class FakeEngine:
    """Answers at once, until it is interrupted at the start of the third worker."""

    starts: list = field(default_factory=list)

    def run(self, task):
        self.starts.append(task)
        if len(self.starts) > 2:
            raise KeyboardInterrupt
        return Outcome(
            json.dumps(sample(list(task.arguments), {"seconds": STEADY}, len(self.starts), {})), "", 10.0, None
        )


def test_a_resumed_run_uses_the_budget_that_is_left(tmp_path):
    """Ten blocks of 20 s are recorded: of 240 s there is room for another."""
    arms = (Arm("baseline", "baseline", "fake"), Arm("mine", "mine", "fake"))
    plan = Plan(arms, {}, "cnn", 1, 3, 0, "synthetic", 240.0, 1e-9, 60.0, 1)
    environments = {arm.name: Environment(arm.name, "", {}, {}, (), {}, "same") for arm in arms}
    engine = FakeEngine()
    job = Job(plan, environments, {"fake": engine}, {}, {})
    seconds = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2, 1.05, 0.95, 1.15, 0.85]
    arguments = list(plan.worker_arguments())
    events = [
        {"event": "sample", "block": block, "arm": arm.name, "worker_seconds": 10.0, "stderr": "",
         **sample(arguments, {"seconds": seconds}, block * (1 + number), {})}
        for block in range(10) for number, arm in enumerate(arms)
    ]  # fmt: skip
    with (
        record.Record.create(tmp_path) as opened,
        Progress(240.0, quiet=True) as progress,
        pytest.raises(KeyboardInterrupt),
    ):
        measure.measure(job, opened, events, progress)
    assert [(event["block"], event["arm"]) for event in events[20:]] == [(10, arm.name) for arm in plan.order(10)]
