from __future__ import annotations

import pytest
from envkit.worker.measure.machine_load import frequency_mhz, throttle_events

from tests.worker.made_up import write

FREQUENCY, THROTTLING = "cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count"


@pytest.fixture
def machine(tmp_path):
    """A machine whose CPUs have this in a file; None for a CPU that has no such file."""

    def make(name, *texts):
        lines = [None if text is None else f"{text}\n" for text in texts]
        return write(tmp_path, {f"sys/devices/system/cpu/cpu{cpu}/{name}": line for cpu, line in enumerate(lines)})

    return make


def test_the_mean_frequency_of_the_cpus_that_are_asked_for(machine):
    root = machine(FREQUENCY, 3_000_000, 2_000_100, 800_000)
    assert frequency_mhz({0, 1}, root) == 2500.1
    assert frequency_mhz({2}, root) == 800.0


def test_throttling_is_counted_over_the_cpus_that_are_asked_for(machine):
    root = machine(THROTTLING, 3, 4, 50)
    assert throttle_events([0, 1], root) == 7
    assert throttle_events([0], root) == 3


@pytest.mark.parametrize(
    ("name", "read", "known"), [(FREQUENCY, frequency_mhz, 5.0), (THROTTLING, throttle_events, 5000)]
)
@pytest.mark.parametrize("unreadable", [None, "", "<unknown>"])
def test_cpus_that_do_not_tell(machine, name, read, known, unreadable):
    root = machine(name, unreadable, 5000)
    assert (read({0}, root), read({7}, root), read({0, 1}, root)) == (None, None, known)
