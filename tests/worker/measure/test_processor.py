from __future__ import annotations

import pytest

from runner.worker.measure.processor import frequency_mhz, throttle_events

READ = {
    "cpufreq/scaling_cur_freq": frequency_mhz,
    "thermal_throttle/core_throttle_count": throttle_events,
}


@pytest.fixture
def machine(tmp_path):
    """A machine whose CPUs have this in a file; None for a CPU that has no such file."""

    def make(name, *texts):
        for cpu, text in enumerate(texts):
            path = tmp_path / f"sys/devices/system/cpu/cpu{cpu}" / name
            path.parent.mkdir(parents=True)
            if text is not None:
                path.write_text(f"{text}\n")
        return tmp_path

    return make


def test_the_mean_frequency_of_the_cpus_that_are_asked_for(machine):
    root = machine("cpufreq/scaling_cur_freq", 3_000_000, 2_000_100, 800_000)
    assert frequency_mhz({0, 1}, root) == 2500.1
    assert frequency_mhz({2}, root) == 800.0


def test_throttling_is_counted_over_the_cpus_that_are_asked_for(machine):
    root = machine("thermal_throttle/core_throttle_count", 3, 4, 50)
    assert throttle_events([0, 1], root) == 7
    assert throttle_events([0], root) == 3


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("unreadable", [None, "", "<unknown>"])
def test_cpus_that_do_not_tell(machine, name, unreadable):
    root = machine(name, unreadable, 5000)
    assert READ[name]({0}, root) is None
    assert READ[name]({7}, root) is None
    assert READ[name]({0, 1}, root) == (5.0 if name.startswith("cpufreq") else 5000)
