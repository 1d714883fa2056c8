"""Which CPUs share a core: what simulated speeds show, and that a disturbed measurement shows nothing."""

from __future__ import annotations

import random
import resource
import time
from datetime import date

import msgspec
import pytest
from envkit.checks.core_measurement import Speeds, judge, measure, obstacle_to_measuring
from envkit.checks.core_messages import CoresDisturbed, CoresUnclear, LittleCpuTime, NothingToShare, QuotaHidesCores
from envkit.checks.messages import CpusStolen, OthersUsed, Swapped
from envkit.engines.measured_cores import MeasuredCores
from envkit.rendering import text
from envkit.worker.measure.core_speeds import BUDGET_S, Window, schedule, slots

# The speed of each of two threads on one core, as a share of its own, and the spread of all speeds.
HALF, NOISE = 0.52, 0.03


def speeds(cores, cpus, beside=HALF, busy=1.0, noise=NOISE, share=1.0, seed=40, **counted):
    """What CPUs measure that are divided into ``cores``: a thread has ``beside`` of its speed beside another one.

    More threads share what two have together. All CPUs are slower, down to ``busy`` of their speed, the more compute.
    """
    rng = random.Random(seed)
    core_of = {cpu: number for number, core in enumerate(cores) for cpu in core}
    alone = {cpu: rng.uniform(1e4, 1.2e4) for cpu in cpus}  # hybrid processors have cores of several speeds
    order, seconds = schedule(len(cpus))
    windows = [[] for _ in cpus]
    for slot in order:
        computing = slots(len(cpus))[slot]
        for position, cpu in enumerate(cpus):
            if position not in computing:
                windows[position].append(None)
                continue
            others = sum(core_of[cpus[other]] == core_of[cpu] for other in computing if other != position)
            slowed = ((2 * beside) / (1 + others) if others else 1.0) * (1 - (1 - busy) * len(computing) / len(cpus))
            windows[position].append(Window(alone[cpu] * slowed * rng.gauss(1, noise), share))
    total = len(order) * seconds
    used = sum(window is not None for row in windows for window in row) * seconds
    fields = {"seconds": total, "user_s": used, "busy_s": used, "steal_s": 0.0, "swapped_bytes": 0}
    return Speeds(slots=order, windows=windows, **{**fields, **counted})


def pairs(cpus, distance):
    """CPUs on cores with that one which has a number higher by ``distance``."""
    return [(cpu, cpu + distance) for cpu in cpus if cpu // distance % 2 == 0]


def lists(cores):
    return tuple(f"{first}-{last}" if last == first + 1 else f"{first},{last}" for first, last in cores)


@pytest.mark.parametrize("cpus", [2, 3, 4, 5, 16, 64, 96, 256])
def test_cores_of_their_own(cpus):
    measured = judge([*range(cpus)], speeds([(cpu,) for cpu in range(cpus)], [*range(cpus)], busy=0.85))
    assert isinstance(measured, MeasuredCores), text(measured)
    assert measured.cores == tuple(str(cpu) for cpu in range(cpus))
    assert abs((date.fromisoformat(measured.day) - date.today()).days) <= 1
    assert not measured.shared(range(cpus))


@pytest.mark.parametrize(
    ("cpus", "distance"), [(2, 1), (4, 1), (4, 2), (16, 1), (16, 8), (64, 32), (96, 48), (256, 1), (256, 128)]
)
def test_two_hardware_threads_of_each_core(cpus, distance):
    everyone = [*range(cpus)]
    cores = pairs(everyone, distance)
    measured = judge(everyone, speeds(cores, everyone, busy=0.85))
    assert isinstance(measured, MeasuredCores), text(measured)
    assert measured.cores == lists(cores)
    assert measured.count(everyone) == cpus // 2
    assert measured.shared(everyone)
    assert measured.count([0]) == 1
    assert not measured.shared([0])


def test_some_cores_have_two_threads_and_some_have_one():
    measured = judge([4, 6, 7, 9, 12], speeds([(4, 12), (6,), (7, 9)], [4, 6, 7, 9, 12]))
    assert (measured.cpus, measured.cores) == ("4,6-7,9,12", ("4,12", "6", "7,9"))


def test_the_speeds_of_two_machines():
    """On one, two processes did 124 and 129 GFLOP/s at once, and 130 alone. On the other, both together did 143."""
    apart = speeds([(0,), (1,)], [0, 1], busy=127 / 130)
    assert judge([0, 1], apart).cores == ("0", "1")
    together = speeds([(0, 1)], [0, 1], beside=143 / 130 / 2)
    assert judge([0, 1], together).cores == ("0-1",)


@pytest.mark.parametrize(
    ("counted", "reason"),
    [
        ({"busy_s": 3.0}, OthersUsed), ({"steal_s": 0.2}, CpusStolen), ({"swapped_bytes": 2**24}, Swapped),
        ({"share": 0.9}, LittleCpuTime), ({"share": 0.9, "busy_s": None, "steal_s": None}, LittleCpuTime),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cores", [[(0,), (1,)], [(0, 1)]])
def test_a_disturbed_measurement_shows_nothing(cores, counted, reason):
    dropped = judge([0, 1], speeds(cores, [0, 1], **counted))
    assert isinstance(dropped, CoresDisturbed)
    assert reason in [type(disturbance) for disturbance in dropped.reasons]


def test_one_of_many_cpus_that_another_program_takes_away_disturbs_the_measurement():
    everyone = [*range(32)]
    others = speeds([(cpu,) for cpu in everyone], everyone)
    starved = [window and Window(0.0, 0.0) for window in others.windows[-1]]
    disturbed = msgspec.structs.replace(others, windows=[*others.windows[:-1], starved])
    assert isinstance(judge(everyone, disturbed), CoresDisturbed)


def test_another_program_on_one_cpu_does_not_make_two_cores_one():
    """Each process had half of its CPU while both computed, as if they had shared a core."""
    disturbed = speeds([(0, 1)], [0, 1], share=0.5)
    assert isinstance(judge([0, 1], disturbed), CoresDisturbed)
    assert text(judge([0, 1], disturbed)).endswith("its processes got 50% of their CPUs' time")


@pytest.mark.parametrize(
    "unclear",
    [
        speeds([(0, 1)], [0, 1], beside=0.7),
        speeds([(0, 1, 2, 3)], [0, 1, 2, 3]),
        speeds([(0, 2, 4, 6), (1, 3, 5, 7)], [*range(8)]),
    ],
)
def test_what_fits_no_core_of_one_or_two_threads_settles_nothing(unclear):
    found = judge([*range(len(unclear.windows))], unclear)
    assert isinstance(found, CoresUnclear)
    assert found.low <= found.high


@pytest.mark.parametrize("noise", [0.1, 0.3])
@pytest.mark.parametrize("cores", [[(0,), (1,), (2,), (3,)], [(0, 2), (1, 3)]])
def test_noise_leaves_it_open_and_makes_no_wrong_cores(cores, noise):
    found = [judge([*range(4)], speeds(cores, [*range(4)], noise=noise, seed=seed)) for seed in range(50)]
    settled = [one for one in found if isinstance(one, MeasuredCores)]
    assert {one.count(range(4)) for one in settled} <= {len(cores)}
    assert all(isinstance(one, MeasuredCores | CoresUnclear) for one in found)
    assert len(settled) > 40 or noise > 0.1


def test_a_slot_is_too_long_for_nobody():
    for cpus in (2, 3, 8, 64, 1024):
        order, seconds = schedule(cpus)
        assert len(order) * seconds <= BUDGET_S * 1.01
        assert order.count(0) >= 3
        positions = {position for slot in slots(cpus)[1:] for position in slot}
        assert positions == {*range(cpus)}
        assert all(any((a in slot) != (b in slot) for slot in slots(cpus)) for a in range(3) for b in range(a))


def test_one_cpu_or_a_quota_has_nothing_to_measure():
    assert obstacle_to_measuring(1, None) == NothingToShare()
    assert obstacle_to_measuring(4, 1.5) == QuotaHidesCores(1.5, 4)
    assert [obstacle_to_measuring(2, quota) for quota in (None, 2.0, 8.0)] == [None, None, None]


# On a machine that does other work, a real measurement says so. Otherwise it must be right.


def test_two_processes_on_one_cpu_are_never_on_two_cores():
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    measured = measure([0, 0])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2 * 2
    assert time.monotonic() - began < 20  # two seconds, on a machine that does nothing else
    if isinstance(measured, MeasuredCores):
        assert measured.count([0]) == 1
        assert measured.cores == ("0",)
    else:
        assert isinstance(measured, CoresDisturbed | CoresUnclear), measured


def test_what_the_program_prints_when_it_fails():
    failed = measure([10**5, 10**5 + 1])  # no machine has these
    assert text(failed).startswith("the measurement of cores failed: CPU 10000")
