"""Make the requests that workers get, from the plan of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envkit.bench.arms import Arm
from envkit.bench.plan import LEARNT_BLOCK, LEARNT_STEPS, Plan
from envkit.bench.user_command import FIRST_STEP_S, PACE_S, PACE_STEPS
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.request import HostFolder, Instances, Ranks, RunCommand, Train, UserCommand
from envkit.worker.workloads import GENERATED

if TYPE_CHECKING:
    from envkit.worker.request import Work

# Data that is in no folder: workers make it.
NO_FOLDER = (SYNTHETIC, GENERATED)


def of_sample(plan: Plan, arm: Arm, block: int | None = None) -> Work:
    """Return the request for a sample of ``arm``.

    In one block, workers of the references also test their model. One test is enough, as losses match in all blocks.
    """
    spec = plan.workload_spec(arm)
    if plan.user_command is not None:
        if spec.steps:
            return of_command(plan.user_command, spec.warmup_steps, spec.steps)
        # before the steps are fixed the pace is shown; a command that is not paced has its own number of steps
        return of_command(plan.user_command, max(1, spec.warmup_steps), PACE_STEPS, PACE_S)
    training = replace(_training(plan, arm), warmup_steps=spec.warmup_steps)
    if plan.epochs:
        return _launched(plan, arm, replace(training, epochs=plan.epochs, until=plan.until))
    tests = block == LEARNT_BLOCK and arm in plan.references and spec.steps >= LEARNT_STEPS
    return _launched(plan, arm, replace(training, steps=spec.steps, tests=tests))


def of_first(plan: Plan, arm: Arm, steps: int = 1, seconds: float = 0.0) -> Work:
    """Return the request for the first start of ``arm``, which shows its pace. A user's command runs to its end.

    The worker takes ``steps`` steps, and more until ``seconds`` have passed. It does not profile communication.
    Ranks ignore ``seconds``: their clocks differ, so they could take different numbers of steps.
    """
    if plan.user_command is not None:
        return of_command(plan.user_command, max(1, plan.user_command.warmup_lines), steps, seconds)
    least_s = seconds if plan.ranks_of(arm) == 1 else 0.0
    return _launched(plan, arm, replace(_training(plan, arm), steps=steps, least_s=least_s, profiles_ranks=False))


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


def _training(plan: Plan, arm: Arm) -> Train:
    return Train(plan.workload_of(arm), data(plan.data_of(arm)), options=plan.options_of(arm))


def _launched(plan: Plan, arm: Arm, training: Train) -> Work:
    """Return the training on the ranks or the share of CPUs of ``arm``, or in several instances."""
    if arm.instances:
        return Instances(arm.instances, training)
    shares = arm.cpu_shares or 1
    if plan.ranks_of(arm) == 1 and shares == 1:
        return training
    return Ranks(arm.ranks or plan.ranks, training, shares, plan.nodes if arm.ranks is None else 1)
