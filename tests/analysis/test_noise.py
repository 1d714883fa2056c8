from __future__ import annotations

import pytest
from envkit.analysis.noise import interference_by_block, reference_kernel_range
from envkit.bench.events import ReferenceKernel
from envkit.bench.run import Run
from envkit.checks.interference import interference_in
from envkit.checks.messages import CpusStolen, OthersUsed, Swapped, TooHot
from envkit.common import codec
from envkit.common.messages import About
from envkit.engines.measurement import Usage
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.records import run_events, samples

SECONDS = 5.0
# On 4 CPUs, which others may use 0.1 of; 2 ticks of each CPU, 0.016 of a CPU here, are the error of the count.
QUIET = {
    "worker_cpus": 4, "worker_cpus_busy_s": 15.0, "worker_cpus_steal_s": 0.0, "machine_swapped_bytes": 0,
    "throttle_events": 0, "user_s": 14.0, "system_s": 1.0, "frequency_mhz": 3000.0, "cpu_pressure_s": 0.0,
    "minor_faults": 0, "major_faults": 0, "voluntary_switches": 0, "involuntary_switches": 0, "throttled_s": 0.0,
}  # fmt: skip


def sample(seconds=SECONDS, **usage):
    """Return the usage of a sample of so many seconds, and these."""
    return codec.parse({**QUIET, **usage}, Usage), seconds


def others(cpus):
    return {"worker_cpus_busy_s": 15.0 + cpus * SECONDS}


def stolen(cpus):
    return {"worker_cpus_steal_s": cpus * SECONDS}


ALONE = {"worker_cpus": 1, "user_s": 4.0, "system_s": 1.0}
MANY = {"worker_cpus": 64, "user_s": 300.0, "system_s": 0.0}
# In 30 ms two ticks of each of 4 CPUs look like 2.7 CPUs.
SHORT = {"seconds": 0.03, "user_s": 0.1, "system_s": 0.0}


def near(cpus):
    """As printed, with two digits."""
    return pytest.approx(cpus, abs=0.005)


@pytest.mark.parametrize(
    ("usage", "reasons"),
    [
        ({}, []),
        (others(0.43), [OthersUsed(near(0.43))]),
        (others(0.11), []),
        (stolen(0.12), [CpusStolen(near(0.12))]),
        (stolen(0.05), []),
        ({"machine_swapped_bytes": 3 * 2**20}, [Swapped(3 * 2**20)]),
        ({"machine_swapped_bytes": 2**20}, []),
        ({"throttle_events": 2}, [TooHot(2)]),
        ({**others(1), **stolen(1), "machine_swapped_bytes": 2**30, "throttle_events": 1},
         [OthersUsed(near(1.00)), CpusStolen(near(1.00)), Swapped(2**30), TooHot(1)]),
        # what an engine runs for the worker is no other program
        ({**others(0.43), "engine_s": 0.33 * SECONDS}, []),
        ({**others(0.43), "engine_s": 0.2 * SECONDS}, [OthersUsed(near(0.23))]),
        ({**others(0.43), "engine_s": None}, [OthersUsed(near(0.43))]),
        # of few CPUs a twentieth of one counts, of many the share
        ({**ALONE, "worker_cpus_busy_s": 5.0 + 0.06 * SECONDS}, [OthersUsed(near(0.06))]),
        ({**ALONE, "worker_cpus_busy_s": 5.0 + 0.05 * SECONDS}, []),
        ({**MANY, "worker_cpus_busy_s": 300.0 + 2.0 * SECONDS}, [OthersUsed(near(2.00))]),
        ({**MANY, "worker_cpus_busy_s": 300.0 + 1.5 * SECONDS}, []),
        # the ticks of the clock disturb no short sample, and more own time than the CPUs were busy is their error too
        ({**SHORT, "worker_cpus_busy_s": 0.1 + 0.08, "worker_cpus_steal_s": 0.08}, []),
        ({**SHORT, "worker_cpus_busy_s": 0.1 + 8.0, "seconds": 3.0}, [OthersUsed(near(2.67))]),
        ({"worker_cpus_busy_s": 14.9}, []),
    ],
)  # fmt: skip
def test_what_is_interference(usage, reasons):
    assert interference_in(*sample(**usage)) == reasons


# Half a second of 2 busy CPUs in a training of 3 s, of which 4 ticks of the shorter are error.
BRIEF = {
    "worker_cpus": 2, "user_s": 1.0, "system_s": 0.0, "worker_cpus_busy_s": 1.0, "training_s": 3.0,
    "training_busy_s": 5.0, "training_used_s": 5.0, "training_steal_s": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "reasons"),
    [
        ({}, []),
        # a tenth of a CPU is within the error of the timed steps, and not of the training
        ({"worker_cpus_busy_s": 1.05}, []),
        ({"worker_cpus_busy_s": 1.05, "training_busy_s": 5.3}, [OthersUsed(near(0.10))]),
        ({"training_busy_s": 5.18}, []),
        ({"training_steal_s": 0.12}, [CpusStolen(near(0.04))]),
        ({"training_steal_s": 0.09}, []),
        # the timed steps come first where they show it, and an engine's own processes count in neither
        ({"worker_cpus_busy_s": 1.5, "training_busy_s": 5.5}, [OthersUsed(near(1.00))]),
        ({"training_busy_s": 5.3, "engine_s": 0.2}, []),
        *(({"training_busy_s": 5.3, name: None}, []) for name in ("training_s", "training_used_s", "worker_cpus")),
    ],
)  # fmt: skip
def test_the_whole_training_shows_what_its_timed_steps_are_too_short_for(usage, reasons):
    assert interference_in(*sample(0.5, **{**BRIEF, **usage})) == reasons


@pytest.mark.parametrize(
    "own",
    [{"involuntary_switches": 10**6}, {"voluntary_switches": 10**6}, {"minor_faults": 10**7}, {"major_faults": 10**4},
     {"throttled_s": 4.0}, {"cpu_pressure_s": 5.0}, {"frequency_mhz": 800.0},
     {"user_s": 20.0, "worker_cpus_busy_s": 21.0}],
)  # fmt: skip
def test_what_a_profile_can_cause_itself_is_no_interference(own):
    assert interference_in(*sample(**own)) == []


@pytest.mark.parametrize("name", sorted(QUIET.keys() - {"user_s", "system_s", "minor_faults", "throttled_s"}))
def test_what_is_not_known_is_no_noise(name):
    assert interference_in(*sample(**{name: None})) == []
    missing = {key: value for key, value in QUIET.items() if key != name}
    assert interference_in(codec.parse(missing, Usage), SECONDS) == []


def test_counters_of_the_machine_alone_tell_no_interference():
    usage = {"user_s": 3.0, "system_s": 1.0, "minor_faults": 0, "machine_busy_s": 40.0, "machine_steal_s": 9.0}
    assert interference_in(codec.parse(usage, Usage), 2.0) == []


COUNTER = st.floats(0, 1e6)


@given(
    busy=COUNTER, steal=COUNTER, swapped=st.integers(0, 2**40), hot=st.integers(0, 1000), own=st.floats(0, 1000),
    seconds=st.floats(1e-3, 1e5), cpus=st.integers(1, 1024), more=st.floats(0, 1e6),
)  # fmt: skip
def test_more_interference_never_has_fewer_reasons(busy, steal, swapped, hot, own, seconds, cpus, more):
    def of(plus):
        usage = {
            "worker_cpus_busy_s": busy + plus, "worker_cpus_steal_s": steal + plus,
            "machine_swapped_bytes": swapped + int(plus), "throttle_events": hot + int(plus),
        }  # fmt: skip
        return interference_in(*sample(seconds, worker_cpus=cpus, user_s=own, system_s=0.0, **usage))

    assert len(of(more)) >= len(of(0.0))


def kernels(*times):
    return [ReferenceKernel(block=block, seconds=seconds, digest="aa") for block, seconds in enumerate(times)]


def test_a_pace_that_nothing_else_shows():
    assert reference_kernel_range(kernels(0.16, 0.15, 0.2, 0.17), {}) == (0.15, 0.2)
    assert reference_kernel_range(kernels(0.16, 0.15, 0.18, 0.17), {}) is None
    assert reference_kernel_range(kernels(0.16, 0.15, 0.2), {}) is None
    disturbed = {2: [About("baseline", CpusStolen(0.2))]}
    assert reference_kernel_range(kernels(0.16, 0.15, 0.2, 0.17, 0.16), disturbed) is None
    assert reference_kernel_range([], {}) is None
    assert reference_kernel_range(kernels(*[0.16] * 8, 0.15, 0.2), {}) is None
    assert reference_kernel_range(kernels(*[0.16] * 7, 0.15, 0.2, 0.21), {}) == (0.16, 0.2)


def test_the_pace_of_another_reference_kernel_can_not_be_compared():
    times = kernels(0.16, 0.15, 0.2, 0.17)
    times[2] = structs.replace(times[2], digest="bb")
    assert reference_kernel_range(times, {}) is None


def test_blocks_with_interference_say_which_arm_it_hit():
    hit = {
        (1, "baseline"): {**others(0.4), **stolen(0.2)},
        (1, "mine"): others(0.5),
        (2, "baseline"): {"throttle_events": 1},
    }
    events = run_events(blocks=3)
    for event in samples(events):
        event |= {"seconds": SECONDS, "usage": {**QUIET, **hit.get((event["block"], event["arm"]), {})}}
    assert interference_by_block(Run.parse(events).samples()) == {
        1: [
            About("baseline", OthersUsed(near(0.40))),
            About("baseline", CpusStolen(near(0.20))),
            About("mine", OthersUsed(near(0.50))),
        ],
        2: [About("baseline", TooHot(1))],
    }
