"""Losses that are no numbers end a run: whoever is fast at training nothing has won nothing."""

from __future__ import annotations

import json
import math

import pytest
from envkit.bench import record
from envkit.bench.parse_sample import diverged, parse_sample
from envkit.bench.problem_messages import CommandDiverged, Diverged, LossAmong, WarmingUp
from envkit.engines.base import Outcome
from envkit.worker.modes import Options
from envkit.worker.request import Train

from tests.cli.commands.conftest import words
from tests.records import conclude, problem_of
from tests.simulated_worker import answer
from tests.simulation import times
from tests.worker_runs import document_of

BF16 = ("--precision", "bf16-autocast")


def parsed(losses, earlier=(), options=None, **document):
    own = {
        **answer("baseline", document_of(Train("cnn", "synthetic", steps=3)), {"workers": {}}, 0, {}),
        "losses": losses,
        **document,
    }
    return parse_sample(Outcome(json.dumps(own), "", 1.0, None), earlier, options or Options())


@pytest.mark.parametrize(
    ("options", "mode", "step"),
    [((), "", 5), (BF16, " or the mode (bf16-autocast)", 5), (("--full",), "", 3)],
)  # fmt: skip
def test_it_ends_with_a_line_and_without_a_speedup(bench, simulation, instant, events, options, mode, step):
    simulation.worker("mine", seconds=times(0.5), losses=[2.3, 2.2, math.nan])
    result = bench("mine", *options, *([] if "--full" in options else ["--warmup-steps", 2])).ended(1)
    text = words(result.stdout)
    why = f"the profile{mode} changes the numerics; measure without it"
    said = f"the worker diverged: the loss of step {step} is nan, so its speed is meaningless; {why}"
    assert f"Failed block 1, mine: {said}" in text
    assert "FASTER" not in text
    assert {event["arm"] for event in events("sample")} <= {"baseline"}
    assert events("end")[-1]["reason"] == "a worker failed"


def test_the_first_look_is_enough(bench, simulation, instant, events):
    simulation.worker("mine warming", losses=[math.inf, *[2.2] * 11])
    result = bench("mine")
    assert (result.returncode, events("sample")) == (1, [])
    (failure,) = events("failure")
    assert problem_of(failure) == WarmingUp(Diverged(1, "inf"))


def test_a_run_that_is_resumed_without_it_goes_on(bench, cli, simulation, instant, run_folder):
    simulation.worker("mine", seconds=times(0.5), losses=[math.nan] * 3)
    assert bench("mine").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    result = cli("bench", "--resume", run_folder)
    assert (result.returncode, "FASTER" in result.stdout) == (0, True)


@pytest.mark.parametrize("losses", [[2.3, 2.2, 2.1], [None] * 3, [0.0, -1.0, 1e300]])
def test_what_learns_or_has_nothing_to_learn(losses):
    document, problem = parsed(losses)
    assert (problem, document["losses"]) == (None, losses)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_each_of_those_that_are_none(loss):
    document, problem = parsed([2.3, loss, loss], warmup_step_s=[0.1] * 5)
    assert document is None
    assert problem == Diverged(7, str(loss))


def test_a_users_command_is_told_something_else():
    own = {"digests": {"command": "a"}, "step_s": [1.0], "losses": [2.3, math.nan]}
    assert diverged(own, Options()) == CommandDiverged(LossAmong(2, 2), "nan")


def test_a_record_that_has_them_from_an_earlier_version_is_read(bench, cli, simulation, instant, run_folder):
    simulation.worker("mine", seconds=times(0.5))
    assert bench("mine").returncode == 0
    path = run_folder / record.FILE_NAME
    path.write_text(path.read_text().replace('"losses": [2.3, ', '"losses": [NaN, '))
    assert len(conclude(record.read(run_folder)).samples) == 12
    for command in (("report", run_folder), ("history", run_folder)):
        assert cli(*command).returncode == 0
    assert "LOSSES DIFFER" in cli("report", run_folder).stdout
