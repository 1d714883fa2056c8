"""Lines that a launcher marks with the rank that printed them."""

from __future__ import annotations

import contextlib
import math

import pytest
from envkit.worker.messages.readings import OutputHeldBack, TeeHoldsBack
from envkit.worker.user_command import by_rank
from envkit.worker.user_command.by_rank import Sources
from envkit.worker.user_command.losses import parse_losses
from envkit.worker.user_command.metric import NotMeasured, parse

TIME, STEP = r"^step \d+ loss \S+ time ([0-9.]+) ms", r"^step \d+"
TORCHRUN, ROLE, OPEN_MPI = "[default{}]:", "[trainer{}]:", "[1,{}]<stdout>:"
OPEN_MPI_5, HYDRA, SLURM = "[prterun-node-7@1,{}]<stdout>: ", "[{}] ", "{}: "
RAY = "(RayTrainWorker pid=70{}, ip=10.0.0.1) "


def lines_of(mark, ranks=(0, 1), steps=6):
    """Each rank's steps, one line after the other; of rank N they take 10 + N ms."""
    return [
        f"{mark.format(rank)}step {step} loss {step + rank / 10} time {10 + rank}.0 ms"
        for step in range(1, steps + 1)
        for rank in ranks
    ]


def sources(lines, metric=TIME, *, unit="ms", losses=None, every_s=0.5):
    found = Sources(parse(metric, unit), 1, parse_losses(losses) if losses else None)
    for number, line in enumerate(lines):
        found.take(line, 10 + number * every_s)
    return found


@pytest.mark.parametrize("mark", [TORCHRUN, "[rank{}]: ", ROLE, OPEN_MPI, OPEN_MPI_5, HYDRA, SLURM, RAY])
def test_the_lowest_rank_is_read_without_the_mark(mark):
    lines = ["a launcher's own words", *lines_of(mark, (1, 0)), "0 ranks left"]
    source, ranks = sources(lines, losses=r"loss (\S+)", every_s=0.005).chosen(processes=2)
    assert (ranks, source.mark) == (2, mark.format(0).strip())
    assert source.split(1) == ([0.01], [0.01] * 5)
    assert source.losses.beside(source.readings, 1, 5) == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert by_rank.remarks(source, ranks, 10, 2) == {"rank_lines": [mark.format(0).strip(), 2]}


def test_a_rank_that_prints_no_step_is_not_read():
    lines = ["[default0]:loading", *lines_of(TORCHRUN, (1, 2)), "[default0]:done"]
    source, ranks = sources(lines).chosen(processes=1)
    assert (source.mark, ranks, source.split(1)) == ("[default1]:", 2, ([0.011], [0.011] * 5))


def test_lines_are_timed_by_one_rank():
    source, _ = sources(lines_of(TORCHRUN), STEP).chosen(processes=1)
    assert source.split(1) == ([1.0], [1.0] * 4)  # a line of another rank stands between two


def test_a_metric_that_names_the_mark_reads_the_rank_that_it_names():
    source, ranks = sources(lines_of(TORCHRUN), r"^\[default1\]:step .* time ([0-9.]+) ms").chosen(processes=2)
    assert (source.mark, ranks, source.split(1)) == ("", 0, ([0.011], [0.011] * 5))


@pytest.mark.parametrize(
    "lines",
    [
        [f"[epoch{epoch}]: step {step} time 10.0 ms" for epoch in (0, 1) for step in range(3)],
        [f"{batch}: loss 2 time 10.0 ms" for epoch in range(3) for batch in range(4)],  # more batches than processes
        [f"[{batch}] time 10.0 ms" for epoch in range(3) for batch in range(4)],
        [f"[gpu{number}]: time 10.0 ms" for step in range(3) for number in range(4)],
    ],
)
def test_what_a_program_numbers_itself_is_no_rank(lines):
    source, ranks = sources(lines, r"time ([0-9.]+) ms").chosen(processes=2)
    assert (source.mark, ranks, source.split(0)) == ("", 0, ([], [0.01] * len(lines)))


def test_a_number_in_the_mark_is_no_reading():
    """Read with its mark, the first line would have the number 0, which is no time."""
    source, _ = sources(["[default0]:7.5 ms", "[default0]:8.5 ms", "[default0]:9.5 ms"], r"([0-9.]+)").chosen(1)
    assert source.split(1) == ([0.0075], [0.0085, 0.0095])


@pytest.mark.parametrize("lines", [["step time nan ms"], ["[default0]:step time nan ms"]])
def test_what_is_no_number_is_refused(lines):
    with pytest.raises(NotMeasured):
        sources(lines * 2, r"time (\S+) ms").chosen(1)


@pytest.mark.parametrize(
    ("mark", "problem"), [(TORCHRUN, TeeHoldsBack(STEP, "[default0]:")), (RAY, OutputHeldBack(STEP))]
)
def test_lines_that_torchrun_holds_back_are_its_doing(mark, problem):
    source, _ = sources(lines_of(mark, (0,)), STEP, every_s=0).chosen(processes=1)
    with pytest.raises(NotMeasured) as error:
        source.split(1)
    assert error.value.message == problem


@pytest.mark.parametrize(("step_s", "is_refused"), [(0.08, True), (0.125, False)])
def test_steps_must_be_longer_than_torchrun_takes_to_look_again(step_s, is_refused):
    found = Sources(parse(STEP), 1)
    for number, line in enumerate(lines_of(TORCHRUN, (0,), 40)):
        found.take(line, math.ceil(number * step_s / 0.1) * 0.1)
    source, _ = found.chosen(processes=1)
    with pytest.raises(NotMeasured) if is_refused else contextlib.nullcontext():
        source.split(1)


@pytest.mark.parametrize(
    ("lines", "processes", "said"),
    [
        (lines_of("", (0, 1)), 3, {"rank_lines": ["", 2]}),
        (lines_of("", (0, 1)), 1, {}),  # one process can't be two ranks
        (lines_of("", (0,)), 3, {}),
        ([f"step {step % 3} of {step}" for step in range(30)], 3, {}),  # ten epochs of three steps
    ],
)
def test_several_lines_for_each_step_are_told(lines, processes, said):
    source, ranks = sources(lines, STEP).chosen(processes)
    assert by_rank.remarks(source, ranks, 10, processes) == said
