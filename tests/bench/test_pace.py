"""How long samples are, by what each arm's first worker showed."""

from __future__ import annotations

import pytest
from envkit.bench import pace
from envkit.bench.arms import Arm
from envkit.bench.events import WarmUp
from envkit.bench.study import WorkloadSpec
from envkit.worker.modes import Options
from envkit.worker.request import UserCommand

from tests.plans import study_of

ARMS = tuple(Arm(name, name, "local") for name in ("baseline", "mine"))
MEMORY = 700e6


def study(arms=ARMS, **fields):
    return study_of(arms, **{"warmup_steps": 0, "steps": 0, "data": "synthetic", **fields})


def first(step_s=0.05, other_s=3.0, leading=(0.2,), steps=40, memory=MEMORY):
    """The event of an arm's first worker, whose ``leading`` steps take longer."""
    curve = [*leading, *[step_s] * (steps - len(leading))]
    return WarmUp(arm="", step_s=curve, worker_seconds=other_s + sum(curve), peak_memory_bytes=memory)


def lengths(*events, of=None, cpus=2, free=64e9):
    of = of or study()
    seen = {arm.name: pace.pace_of(event) for arm, event in zip(of.arms, events, strict=True)}
    return pace.lengths(of, seen, cpus, free)


def test_what_a_first_worker_shows():
    found = pace.pace_of(first(step_s=0.05, other_s=3.0, leading=(0.4, 0.2)))
    assert (found.step_s, found.warm_up, found.reached, found.steps) == (0.05, 2, True, 40)
    assert found.other_s == pytest.approx(3.0)


def test_a_sample_takes_a_quarter_of_what_else_its_worker_takes():
    found = lengths(first(), first())
    assert found.warmup_steps == {"cnn": 5}
    assert found.steps == {"cnn": round((3.0 + 5 * 0.05) / 4 / 0.05)}  # 16 steps of 50 ms


@pytest.mark.parametrize("slower", [1, 10, 100])
def test_on_a_slower_machine_a_sample_is_no_longer_than_its_least_steps(slower):
    """Where steps alone are slow; where all is, a sample has as many as on a fast one."""
    found = lengths(*[first(step_s=0.05 * slower, leading=())] * 2)
    assert found.steps["cnn"] == max(10, round((3.0 + 5 * 0.05 * slower) / 4 / (0.05 * slower)))
    alike = lengths(*[first(0.05 * slower, 3.0 * slower, leading=())] * 2)
    assert alike.steps == lengths(first(leading=()), first(leading=())).steps


def test_files_that_were_read_for_the_first_time_do_not_count():
    assert lengths(first(other_s=30.0), first(other_s=3.0)).steps == lengths(first(), first()).steps


def test_the_slowest_to_warm_up_decides_for_all():
    found = lengths(first(leading=(0.2,) * 8), first())
    assert found.warmup_steps == {"cnn": 8}
    assert found.warm_up == {"baseline": 8, "mine": 2}  # it is cut in batches of two


def test_one_that_is_not_steady_in_time_is_named():
    found = lengths(first(leading=(0.2,) * 25), first())
    assert found.unsteady == ["baseline"]


def test_one_arm_ten_times_as_fast_does_not_make_samples_of_the_other_longer():
    alone = lengths(first(step_s=0.5), first(step_s=0.5)).steps["cnn"]
    assert alone <= lengths(first(step_s=0.5), first(step_s=0.05)).steps["cnn"] <= 2 * alone


def test_lengths_that_were_given_stay():
    found = lengths(first(), first(), of=study(steps=7, warmup_steps=3))
    assert (found.steps, found.warmup_steps) == ({"cnn": 7}, {"cnn": 3})
    assert study().sized(found.steps, found.warmup_steps) == study(steps=7, warmup_steps=3)


def test_each_workload_has_its_own_lengths():
    arms = (Arm("a", "baseline", "local", "cnn"), Arm("b", "baseline", "local", "loader"))
    each = {"cnn": WorkloadSpec(0, 0), "loader": WorkloadSpec(0, 0)}
    found = lengths(first(), first(step_s=0.5), of=study(arms, workload="all", workloads=each))
    assert found.warmup_steps == {"cnn": 5, "loader": 10}
    assert found.steps["cnn"] > found.steps["loader"] >= 10


def test_a_cell_of_the_loaders_grid_has_equally_many_images_everywhere():
    arms = (Arm("a", "baseline", "local", "loader-w0-b16"),)
    each = {"loader-w0-b16": WorkloadSpec(0, 0)}
    assert lengths(first(), of=study(arms, workload="loader", workloads=each)).steps == {"loader-w0-b16": 96}


# --- workers that start at the same time ---


@pytest.mark.parametrize(
    ("cpus", "free", "together"), [(1, 64e9, 1), (2, 64e9, 2), (16, 64e9, 2), (16, 2.9e9, 2), (16, 2.0e9, 1), (2, 0, 1)]
)
def test_one_for_each_cpu_and_arm_if_half_of_the_memory_has_room(cpus, free, together):
    assert lengths(first(), first(), cpus=cpus, free=free).together == together


def test_as_many_as_do_not_wait_for_minutes():
    arms = tuple(Arm(str(number), "baseline", "local") for number in range(8))
    long = [first(step_s=1.0)] * 8  # a sample of 15 steps or more: 18 s
    assert lengths(*long, of=study(arms), cpus=16).together == 4
    assert lengths(*[first()] * 8, of=study(arms), cpus=16).together == 8


@pytest.mark.parametrize(
    "of",
    [
        study(options=Options(device="cuda")),
        study(ranks=2),
        study(nodes=2, ranks=2),
        study(arms=(*ARMS[:1], Arm("mine", "mine", "local", ranks=2))),
        study(user_command=UserCommand(("true",), "/")),
    ],
)
def test_what_takes_gpus_several_processes_or_is_ones_own_starts_alone(of):
    assert lengths(first(), first(), of=of).together == 1


# --- a command of the user's own ---


@pytest.mark.parametrize(("steps", "skipped"), [((120, 120), 20), ((120, 119), 0), ((39, 39), 0)])
def test_of_a_command_readings_are_left_out_where_all_runs_have_equally_many_of_40_or_more(steps, skipped):
    own = study(user_command=UserCommand(("true",), "/", "t=(.*)"))
    found = lengths(*(first(leading=(0.2,) * 20, steps=count) for count in steps), of=own)
    assert found.skipped_steps == skipped
    assert found.steps is None


PACED = UserCommand(("true",), "/", optimizer_steps=0)


def of_command(*events, budget_s=180.0, blocks=0, warmup_steps=0):
    made = study(user_command=PACED, budget_s=budget_s, blocks=blocks, warmup_steps=warmup_steps)
    return lengths(*events, of=made)


def test_a_sample_of_a_training_is_some_seconds_of_steps():
    found = of_command(*[first(step_s=0.05, steps=90, leading=(0.4, 0.2))] * 2)
    (steps,), (before,) = found.steps.values(), found.warmup_steps.values()
    assert steps * 0.05 == pytest.approx(3.0)
    assert before == 3  # the first has no beginning that is known, and is not among those that were seen
    assert (found.skipped_steps, found.together) == (0, 1)


def test_a_training_that_starts_slowly_has_longer_samples():
    (steps,) = of_command(*[first(step_s=0.05, other_s=24.0, steps=300)] * 2, blocks=6).steps.values()
    assert steps * 0.05 == pytest.approx((24.0 + 2 * 0.05) / 4, rel=0.02)


@pytest.mark.parametrize(("budget_s", "least", "most"), [(3600.0, 10, 10), (270.0, 6, 9), (60.0, 5, 5)])
def test_the_budget_has_room_for_a_verdict(budget_s, least, most):
    """As many blocks as that takes come before long samples."""
    seen = first(step_s=1.0, other_s=10.0, leading=(), steps=12)
    (steps,) = of_command(seen, seen, budget_s=budget_s).steps.values()
    assert least <= steps <= most


def test_no_sample_takes_more_steps_than_every_training_has():
    found = of_command(first(step_s=0.05, steps=100), first(step_s=0.05, steps=8, leading=()))
    (steps,), (before,) = found.steps.values(), found.warmup_steps.values()
    assert steps + before == 8 + 1


def test_warm_up_that_the_user_gave_stays():
    (before,) = of_command(*[first(steps=100)] * 2, warmup_steps=7).warmup_steps.values()
    assert before == 7
