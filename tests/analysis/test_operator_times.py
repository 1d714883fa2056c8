"""What the profiled processes of two profiles say, on made-up documents."""

from __future__ import annotations

import pytest
from envkit.analysis.operator_times import OTHERS, OUTSIDE, Figure, lines, profiled, reasons, short_name
from envkit.rendering import text

STEPS = 4
NOISE = (0.99, 1.0, 1.0, 1.01)


def document(ms=10.0, user=16.0, system=4.0, faults=1000.0, operators=None, overhead=1.1, steps=STEPS):
    """One process; times in milliseconds per step, ``operators`` those of the profiled steps."""
    found = {"aten::mm": 6.0, "aten::add_": 3.0} if operators is None else operators
    return {
        "step_s": [ms / 1000] * steps,
        "profiled_step_s": [overhead * ms / 1000] * steps,
        "usage": {"user_s": user * steps / 1000, "system_s": system * steps / 1000, "minor_faults": faults * steps},
        "operators": [
            {"name": name, "calls": 2 * steps, "self_s": of * steps / 1000, "allocated_bytes": 8 * steps}
            for name, of in found.items()
        ],
    }


def side(arm="mine", noise=NOISE, operators=None, **numbers):
    """A profile's processes, which differ by ``noise`` in all times; the default takes 10 ms."""
    numbers = {"ms": 10.0, "user": 16.0, "system": 4.0, **numbers}
    found = {"aten::mm": 6.0, "aten::add_": 3.0} if operators is None else operators
    processes = []
    for factor in noise:
        scaled = {name: value if name in ("faults", "steps", "overhead") else value * factor
                  for name, value in numbers.items()}  # fmt: skip
        processes.append(document(operators={name: ms * factor for name, ms in found.items()}, **scaled))
    return profiled(arm, processes)


def test_numbers_are_medians_over_processes_per_step():
    found = profiled("mine", [document(ms=10), document(ms=30, steps=8), document(ms=12, faults=3000)])
    assert found.step_ms.median == pytest.approx(12)
    assert found.faults.median == pytest.approx(1000)
    assert (found.user_ms.median, found.system_ms.median) == (pytest.approx(16), pytest.approx(4))
    assert found.overhead == pytest.approx(0.1)
    mm = found.operators["aten::mm"]
    assert (mm.ms.median, mm.calls, mm.allocated_bytes) == (pytest.approx(6), 2, 8)


def test_operators_and_what_is_outside_of_them_add_up_to_the_step():
    found = side(noise=(1.0,))
    assert found.operators[OUTSIDE].ms.median == pytest.approx(11 - 9)
    assert sum(one.ms.median for one in found.operators.values()) == pytest.approx(found.profiled_ms.median)


def test_an_operator_that_only_some_processes_use_takes_nothing_in_the_others():
    found = profiled("mine", [document(operators={"a": 1.0}), document(operators={"b": 1.0})])
    assert found.operators["a"].ms.values == pytest.approx((1.0, 0.0))


def test_lines_are_the_longest_of_either_side_and_the_rest_together():
    reference = side("baseline", operators={"a": 5.0, "b": 1.0, "c": 0.5, "d": 0.25}, overhead=1.0)
    other = side(operators={"a": 2.0, "c": 4.0, "d": 0.25, "new": 0.1}, overhead=1.0)
    first, second, third, rest = lines(reference, other, top=3)
    assert [first.name, second.name, third.name, rest.name] == ["a", "c", OUTSIDE, OTHERS]
    assert (first.ratio, first.difference_ms) == (pytest.approx(2.5), pytest.approx(-3.0))
    assert (second.ratio, second.difference_ms) == (pytest.approx(0.125), pytest.approx(3.5))
    assert rest.reference.ms.median == pytest.approx(1.25)
    assert rest.other.ms.median == pytest.approx(0.35)


def test_an_operator_of_one_side_alone_has_no_ratio():
    found = {line.name: line for line in lines(side("baseline", operators={"a": 5.0}), side(operators={"b": 2.0}), 9)}
    assert (found["a"].ratio, found["a"].other, found["a"].difference_ms) == (None, None, pytest.approx(-5.0))
    assert (found["b"].ratio, found["b"].reference, found["b"].difference_ms) == (None, None, pytest.approx(2.0))


def test_one_profile_alone():
    found = lines(side(), None, top=1)
    assert [line.name for line in found] == ["aten::mm", OTHERS]
    assert found[0].other is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::mm", "mm"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0 (autograd)"),
        ("Optimizer.step#Adam.step", "Optimizer.step#Adam.step"),
    ],
)
def test_names_lose_what_nearly_all_have(name, shown):
    assert short_name(name) == shown


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [((1, 2, 3, 3), (4, 5, 6, 6), True), ((4, 5, 6, 6), (1, 2, 3, 3), True), ((1, 2, 2, 4), (3, 5, 6, 6), False),
     ((1, 2, 3), (4, 5, 6, 7), False)],
)  # fmt: skip
def test_apart_is_what_all_processes_show(one, other, apart):
    assert Figure(one).apart_from(Figure(other)) is apart


def test_less_system_time_and_fewer_faults_are_memory_from_the_kernel():
    faster = side(ms=7.0, user=15.0, system=0.2, faults=3, operators={"aten::mm": 3.0, "aten::add_": 3.0})
    said = [text(one) for one in reasons(side("baseline"), faster)]
    assert said == [
        "mine takes 3.0 ms less per step than baseline (10.0 and 7.0 ms)",
        "it saves 4.8 ms of CPU time per step in all threads; 3.8 ms of that are the kernel's, which gives memory: "
        "page faults fall from 1,000 to 3 per step",
        "under the profiler, mm (-3.0 ms), outside of operators (-0.3 ms) differ most: 100% of the difference there",
    ]


@pytest.mark.parametrize(
    ("reference", "other", "said", "unsaid"),
    [
        # what the program saves beside the kernel is not laid on memory
        (side("baseline"), side(ms=7.0, user=14.0, system=0.2, faults=3),
         ["it saves 5.8 ms of CPU time per step", "3.8 ms of that are the kernel's, which gives memory: ",
          "; the other 2.0 ms are the program's"], []),
        # the same the other way round
        (side("baseline", ms=7.0, user=15.0, system=0.2, faults=3), side(),
         ["mine takes 3.0 ms more per step than baseline", "it costs 4.8 ms of CPU time per step",
          "page faults rise from 3 to 1,000 per step"], []),
        # less system time with as many faults is not laid on faults
        (side("baseline"), side(ms=7.0, system=0.2),
         ["cause unknown: page faults do not change with it (1,000 to 1,000 per step)"], ["gives memory"]),
        # less user time is the program
        (side("baseline"), side(ms=7.0, user=10.0, faults=3),
         ["6.0 ms of that are the program's, where threads compute, or wait for each other"], []),
        # the same CPU time is shared out otherwise
        (side("baseline"), side(ms=7.0, user=16.5, faults=3),
         ["its threads use about the same CPU time (20.0 and 20.5 ms per step, all together)"], ["gives memory"]),
        # CPU time that overlaps gives no reason
        (side("baseline"),
         profiled("mine", [document(ms=7.0, system=system, user=16) for system in (0.2, 0.3, 0.3, 4.1)]),
         ["CPU time differs, but not in all processes"], []),
        # operators that go the other way are not counted
        (side("baseline"), side(ms=9.0, operators={"aten::mm": 2.0, "aten::add_": 5.9}, overhead=1.1),
         ["mm (-4.0 ms) differ", ", as other operators go the other way"], []),
        # operators that overlap are not named, nor one that mine does not call
        (side("baseline"),
         profiled("mine", [document(ms=7.0, operators={"aten::mm": ms}) for ms in (1.0, 6.5, 2.0, 2.0)]),
         ["no operator's time differs in all processes"], ["mm (", "add_"]),
    ],
)  # fmt: skip
def test_reasons(reference, other, said, unsaid):
    whole = " ".join(map(text, reasons(reference, other)))
    assert [words for words in said if words not in whole] == []
    assert [words for words in unsaid if words in whole] == []


def test_times_that_overlap_have_no_difference_to_explain():
    (said,) = reasons(side("baseline"), side(ms=10.05, system=0.1, faults=3))
    assert text(said) == (
        "no difference to explain: the processes' times overlap (9.9 to 10.1 ms and 9.9 to 10.2 ms per step)"
    )


@pytest.mark.parametrize(("noise", "words"), [((1.0,), "1 process each"), ((1.0, 1.01, 1.0), "3 processes each")])
def test_few_processes_prove_nothing(noise, words):
    (said,) = reasons(side("baseline", noise=noise), side(noise=noise, ms=1.0))
    assert text(said) == f"nothing can be concluded from {words}: use 4 (--processes)"


def test_operators_of_the_forward_pass_add_up_to_that():
    found = profiled("mine", [{**document(), "forward_s": 0.0095 * STEPS}])
    assert found.forward_ms.median == pytest.approx(9.5)
    assert (found.profiled_ms.median, found.overhead) == (pytest.approx(11), pytest.approx(0.1))
    assert found.operators[OUTSIDE].ms.median == pytest.approx(9.5 - 9)
