"""Make the requests that workers get, from the plan of a run."""

from __future__ import annotations

from envkit.bench.arms import Arm
from envkit.bench.plan import LEARNT_BLOCK, LEARNT_STEPS, Plan, WorkloadSpec
from envkit.bench.user_command import PACE_S, PACE_STEPS


def of_sample(plan: Plan, arm: Arm, block: int | None = None) -> tuple[str, ...]:
    """Return what follows ``python -m envkit.worker`` in a sample of ``arm``.

    In one block of the references what was learnt is tested too, if it is something: it is the same in all others,
    where losses are.
    """
    if plan.user_command is not None:
        return _of_command(plan, plan.workload_spec(arm))
    trained = plan.workload_spec(arm)
    length = _whole_training(plan) if plan.epochs else ("--steps", str(trained.steps))
    tested = block == LEARNT_BLOCK and arm in plan.references and trained.steps >= LEARNT_STEPS
    test = ("--quality",) if tested and not plan.epochs else ()
    warmup = ("--warmup-steps", str(trained.warmup_steps))
    return _launched(plan, arm, (*_training(plan, arm), *warmup, *length, *test))


def of_first(plan: Plan, arm: Arm, steps: int = 1, seconds: float = 0.0) -> tuple[str, ...]:
    """The same training, to see its pace: ``steps`` steps and more until ``seconds`` have passed, without a look at
    what ranks say to each other; all of it for a command of the user's.

    Several ranks take just so many steps: by clocks of their own they could take different numbers.
    """
    if plan.user_command is not None:
        return plan.user_command.worker_arguments(max(1, plan.user_command.warmup_lines), steps, seconds)
    ranked = plan.ranks_of(arm) > 1
    longer = ("--unprofiled",) if ranked else ("--seconds", f"{seconds:g}") if seconds else ()
    return _launched(plan, arm, (*_training(plan, arm), "--steps", str(steps), *longer))


def _of_command(plan: Plan, trained: WorkloadSpec) -> tuple[str, ...]:
    """Return the arguments of a sample of the user's command; before its steps are fixed those that show its pace.

    A command that is not paced has its own number of steps.
    """
    assert plan.user_command is not None, "there is one"
    if trained.steps:
        return plan.user_command.worker_arguments(trained.warmup_steps, trained.steps)
    return plan.user_command.worker_arguments(max(1, trained.warmup_steps), PACE_STEPS, PACE_S)


def _whole_training(plan: Plan) -> tuple[str, ...]:
    until = ("--until", plan.until) if plan.until is not None else ()
    return ("--epochs", str(plan.epochs), *until)


def _training(plan: Plan, arm: Arm) -> tuple[str, ...]:
    data = plan.data_of(arm)
    return ("train", "--workload", plan.workload_of(arm), "--data", data, *plan.options_of(arm).arguments())


def _launched(plan: Plan, arm: Arm, training: tuple[str, ...]) -> tuple[str, ...]:
    """The same on the ranks, or the part of the CPUs, that ``arm`` has; or several times at once."""
    if arm.instances:
        return ("instances", "--number", str(arm.instances), "--", *training)
    shares = arm.cpu_shares or 1
    if plan.ranks_of(arm) == 1 and shares == 1:
        return training
    part = ("--of", str(shares)) if shares > 1 else ()
    nodes = ("--nodes", str(plan.nodes)) if plan.nodes > 1 and arm.ranks is None else ()
    return ("ranks", "--nproc", str(arm.ranks or plan.ranks), *part, *nodes, "--", *training)
