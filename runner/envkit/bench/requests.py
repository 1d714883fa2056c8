"""Make the requests that workers get, from the study of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envkit.bench.arms import Arm
from envkit.bench.pace import PACE_S, PACE_STEPS
from envkit.bench.study import LEARNT_BLOCK, LEARNT_STEPS, Study
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.request import HostFolder, Instances, Ranks, RunCommand, Train, UserCommand
from envkit.worker.workloads import GENERATED

if TYPE_CHECKING:
    from envkit.worker.request import Work

# The first step must come within so many seconds, or the command is taken for one whose steps can't be timed.
FIRST_STEP_S = 60.0
# Data that is in no folder: workers make it.
NO_FOLDER = (SYNTHETIC, GENERATED)


def of_sample(study: Study, arm: Arm, block: int | None = None) -> Work:
    """Return the request for a sample of ``arm``.

    In one block, workers of the references also test their model. One test is enough, as losses match in all blocks.
    """
    spec = study.workload_spec(arm)
    if study.user_command is not None:
        if spec.steps:
            return of_command(study.user_command, spec.warmup_steps, spec.steps)
        # before the steps are fixed the pace is shown; a command that is not paced has its own number of steps
        return of_command(study.user_command, max(1, spec.warmup_steps), PACE_STEPS, PACE_S)
    location, options = data(study.data_of(arm)), study.options_of(arm)
    training = Train(study.workload_of(arm), location, warmup_steps=spec.warmup_steps, options=options)
    if study.full is not None:
        training = replace(training, full=study.full)
    else:
        tests = block == LEARNT_BLOCK and arm in study.references and spec.steps >= LEARNT_STEPS
        training = replace(training, steps=spec.steps, tests=tests)
    return _launched(arm, training, study.ranks, study.nodes)


def of_first(study: Study, arm: Arm, steps: int = 1, seconds: float = 0.0) -> Work:
    """Return the request for the first start of ``arm``, which shows its pace. A user's command runs to its end.

    The worker takes ``steps`` steps, and more until ``seconds`` have passed. It does not profile communication.
    Ranks ignore ``seconds``: their clocks differ, so they could take different numbers of steps.
    """
    if study.user_command is not None:
        return of_command(study.user_command, max(1, study.user_command.warmup_lines), steps, seconds)
    location, options = data(study.data_of(arm)), study.options_of(arm)
    training = Train(study.workload_of(arm), location, steps=steps, options=options, profiles_ranks=False)
    least_s = seconds if study.ranks_of(arm) == 1 else 0.0
    return _launched(arm, replace(training, least_s=least_s), study.ranks, study.nodes)


def of_command(command: UserCommand, warmup: int, steps: int, least_s: float = 0.0) -> RunCommand:
    """Return the request for a user's command.

    For a paced command, the worker times ``steps`` steps after ``warmup``, and more until ``least_s`` (seconds) have
    passed. Others have a warm-up and a number of steps of their own.
    """
    if command.is_paced:
        return RunCommand(command, warmup, steps, least_s, FIRST_STEP_S)
    return RunCommand(command, command.warmup_lines, command.optimizer_steps or 0)


def data(location: str) -> HostFolder | str:
    """Return a worker's data: a folder of the host, or the name of data that the worker makes."""
    return location if location in NO_FOLDER else HostFolder(location)


def _launched(arm: Arm, training: Train, ranks: int, nodes: int) -> Work:
    """Return the training on the ranks or the share of CPUs of ``arm``, or in several instances.

    So many ``ranks`` train together on each of ``nodes``, unless the arm has ranks of its own.
    """
    if arm.instances:
        return Instances(arm.instances, training)
    if arm.ranks:
        ranks, nodes = arm.ranks, 1
    shares = arm.cpu_shares or 1
    return training if ranks * nodes == shares == 1 else Ranks(ranks, training, cpu_shares=shares, nodes=nodes)
