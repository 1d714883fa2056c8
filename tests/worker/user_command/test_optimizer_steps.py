"""What the worker makes of the steps that a command's processes have left."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from envkit.rendering import text
from envkit.worker.messages.user_command import (
    FewerStepsThanAsked,
    FewStepsBeforeEnd,
    FewStepsWatched,
    NoSteps,
    NoStepsBeforeEnd,
    NoTorch,
    NoTorchYet,
    OtherMeans,
    SlowStart,
    TooShort,
    TorchTooOld,
)
from envkit.worker.user_command import process_tree
from envkit.worker.user_command.metric import NotMeasured
from envkit.worker.user_command.optimizer_steps import (
    GRACE_S,
    POLL_S,
    StepRequest,
    Watch,
    chosen,
    require_first_step,
)
from envkit.worker.user_command.process_tree import Increase, Look, Usage

STEPS = StepRequest(3, steps=12)
TOO_OLD = TorchTooOld().to_json()
WATCHED = StepRequest(3, seconds=10.0, limit_s=45.0)


def leave(folder, pid, rank=0, steps=12, complete=True, **more):
    document = {"pid": pid, "rank": rank, "complete": complete, "step_s": [0.5] * steps, **more}
    (folder / f"{pid}.steps").write_text(json.dumps(document))


@pytest.fixture
def clock(monkeypatch):
    """What the time is, in seconds, by ``clock.update(now=...)``."""
    told = {"now": 0.0}
    monkeypatch.setattr("envkit.worker.user_command.optimizer_steps.time.perf_counter", lambda: told["now"])
    return told


# --- whose steps count ---


@pytest.mark.parametrize(
    ("left", "main", "pid"),
    [
        ([(8, 0), (9, 1)], 9, 9),
        # torchrun itself has taken none
        ([(8, 1), (9, 0)], 7, 9),
        ([(8, 1), (9, 0)], None, 9),
        # what ran before the training ended too early, though it was the command itself
        ([(7, 0, 2, False), (9, 0)], 7, 9),
    ],
)
def test_of_several_processes_the_main_one_counts_or_the_lowest_rank(tmp_path, left, main, pid):
    for one in left:
        leave(tmp_path, *one)
    told = {} if main is None else {"pid": main}
    assert chosen(STEPS, tmp_path, told, None, 9.0)["pid"] == pid


@pytest.mark.parametrize(
    ("asked", "left", "said"),
    [
        (STEPS, {"steps": 11, "complete": False}, FewerStepsThanAsked(needed=15, warmup=3)),
        (WATCHED, {"steps": 3, "complete": False}, TooShort(2.1, 3)),
        (WATCHED, {"steps": 1, "complete": False}, TooShort(2.1, 1)),
        (WATCHED, {"problem": TOO_OLD}, TorchTooOld()),
        (STEPS, {"problem": TOO_OLD}, OtherMeans(TorchTooOld())),
    ],
)
def test_too_few_steps(tmp_path, asked, left, said):
    leave(tmp_path, 7, **left)
    with pytest.raises(NotMeasured) as caught:
        chosen(asked, tmp_path, {}, None, 2.1)
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("names", "ended", "over"),
    [
        ((), NoTorch(), NoTorch()),
        (("7.torch",), NoStepsBeforeEnd(), NoSteps(45.0)),
        # of a program whose hook was lost
        (("7.json",), NoStepsBeforeEnd(), NoSteps(45.0)),
        (("7.torch", "7.stepped"), None, FewStepsWatched(45.0, needed=4)),
    ],
)
def test_no_steps(tmp_path, clock, names, ended, over):
    for name in names:
        (tmp_path / name).touch()
    watch = Watch(WATCHED, tmp_path)
    if ended is not None:
        for asked, given, said in ((STEPS, None, OtherMeans(ended)), (WATCHED, watch, ended)):
            with pytest.raises(NotMeasured) as caught:
                chosen(asked, tmp_path, {}, given, 9.0)
            assert caught.value.message == said
    clock.update(now=45.0)
    assert watch.look()
    with pytest.raises(NotMeasured) as caught:
        chosen(WATCHED, tmp_path, {}, watch, 45.0)
    assert caught.value.message == over


# --- as many steps as the pace allows ---

PACED = StepRequest(1, steps=12, least_s=5.0, first_s=60.0)


def test_a_command_that_ends_by_itself_shows_its_pace_by_the_steps_it_took(tmp_path):
    leave(tmp_path, 7, steps=5, complete=False)
    assert len(chosen(PACED, tmp_path, {}, None, 9.0)["step_s"]) == 5
    leave(tmp_path, 7, steps=4, complete=False)
    with pytest.raises(NotMeasured) as caught:
        chosen(PACED, tmp_path, {}, None, 9.0)
    assert caught.value.message == FewStepsBeforeEnd(found=5, needed=6)


def test_the_hook_is_told_what_to_wait_for():
    assert (STEPS.variable, WATCHED.variable, PACED.variable) == ("steps:3:12", "seconds:3:10.0", "steps:1:12:5")


@pytest.mark.parametrize(
    ("names", "said"),
    [((), NoTorchYet()), (("7.torch",), NoSteps())],
)
def test_the_first_step_must_come_within_a_minute(tmp_path, names, said):
    for name in names:
        (tmp_path / name).touch()
    require_first_step(PACED, tmp_path, 59.0)
    require_first_step(STEPS, tmp_path, 3000.0)  # the user says how many, and may know that it starts slowly
    with pytest.raises(NotMeasured) as caught:
        require_first_step(PACED, tmp_path, 60.0)
    assert caught.value.message == SlowStart(said, 60.0)
    for option in ("--optimizer-steps N", "--metric REGEX", "--whole-command"):
        assert option in text(caught.value.message)


def test_a_torch_that_can_not_say_when_an_optimizer_steps_is_told_at_once(tmp_path):
    leave(tmp_path, 7, problem=TOO_OLD)
    require_first_step(WATCHED, tmp_path, 1.0)
    for asked in (STEPS, PACED):
        with pytest.raises(NotMeasured) as caught:
            require_first_step(asked, tmp_path, 1.0)
        assert caught.value.message == OtherMeans(TorchTooOld())


# --- when a command was watched for long enough ---


def test_a_command_is_ended_when_its_steps_are_complete(tmp_path, clock):
    watch = Watch(WATCHED, tmp_path)
    assert not watch.look()
    for complete in (False, True):
        leave(tmp_path, 7, complete=complete)
        clock.update(now=clock["now"] + POLL_S)
        assert watch.look() == complete


def test_the_first_rank_is_waited_for_and_not_for_long(tmp_path, clock):
    watch = Watch(WATCHED, tmp_path)
    clock.update(now=20.0)
    leave(tmp_path, 7, rank=2)
    assert not watch.look()
    clock.update(now=20.0 + GRACE_S)
    assert watch.look()
    leave(tmp_path, 8, rank=0)
    first = Watch(WATCHED, tmp_path)
    assert first.look()


# --- what other processes used meanwhile ---


def test_what_this_process_has_started_is_found():
    with subprocess.Popen(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        sleeper = int(shell.stdout.readline())
        try:
            found = process_tree.look(os.getpid()).processes
        finally:
            shell.kill()
            os.kill(sleeper, 9)
    assert {os.getpid(), shell.pid, sleeper} <= found.keys()
    assert os.getppid() not in found
    assert found[os.getpid()].user_s > 0
    assert found[os.getpid()].minor_faults > 0


def test_helpers_are_all_but_the_program_itself():
    before = Look(1.0, {1: Usage(1.0, 1.0, 10), 2: Usage(5.0, 1.0, 100), 3: Usage(2.0, 2.0, 20), 4: Usage(9.0, 9.0, 9)})
    after = Look(11.5, {1: Usage(9.0, 9.0, 90), 2: Usage(9.0, 9.0, 900), 3: Usage(4.0, 2.5, 25), 5: Usage(1.0, 0.5, 3)})
    assert process_tree.increase(before, after, without=(1, 2)) == Increase(10.5, 2, Usage(3.0, 1.0, 8))
