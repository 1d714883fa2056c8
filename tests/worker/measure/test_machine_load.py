from __future__ import annotations

import pytest
from envkit.worker.measure import machine_load
from envkit.worker.measure.machine_load import PAGE_BYTES, TICKS_PER_S, Counters, CpuTime, between, read

from tests.worker.made_up import write

STAT = """\
cpu  400 20 100 9000 7 30 50 60 300 0
cpu0 100 20 80 4000 7 30 50 40 300 0
cpu2 300 0 20 5000 0 0 0 20 0 0
intr 123 4 5
ctxt 678
"""
PRESSURE = "some avg10=0.14 avg60=0.26 avg300=0.49 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


@pytest.fixture
def machine(tmp_path):
    """Counters of a machine with these files; None for one that can't be read."""

    def counters(stat=STAT, vmstat="pgpgin 7\npswpin 3\npswpout 5\n", pressure=PRESSURE):
        return read(write(tmp_path, {"proc/stat": stat, "proc/vmstat": vmstat, "proc/pressure/cpu": pressure}))

    return counters


def seconds(ticks):
    return pytest.approx(ticks / TICKS_PER_S)


def test_the_counters_of_a_machine(machine):
    found = machine()
    assert found.busy_s == seconds(400 + 20 + 100 + 30 + 50)
    assert found.steal_s == seconds(60)
    assert found.swapped_bytes == 8 * PAGE_BYTES
    assert found.pressure_s == 1.5


def test_a_cpus_counters_leave_interrupts_out(machine):
    cpus = machine().cpus
    assert cpus.keys() == {0, 2}  # CPU 1 is offline
    assert (cpus[0].programs_s, cpus[0].steal_s) == (seconds(200), seconds(40))
    assert (cpus[2].programs_s, cpus[2].steal_s) == (seconds(320), seconds(20))


@pytest.mark.parametrize(
    ("stat", "busy", "steal", "cpus"),
    [
        (None, None, None, 0),
        ("intr 1 2\n", None, None, 0),
        ("cpu\ncpu0\n", None, None, 0),
        ("cpu  a b c\n", None, None, 0),
        ("cpu  -1 0 0 0\ncpu0 10 0 0 90\n", None, None, 1),
        ("cpu  10 0 5 900\ncpu0 10 0 5 900\n", 15, 0, 1),  # before Linux 2.6 there was no more
        ("cpu  10 0 5 900 1 2 3\ncpu0 10 0 5 900 1 2 3\n", 20, 0, 1),
        ("cpu  0 0 0 0 0 0 0 0 0 0\n", 0, 0, 0),  # a sandbox that counts nothing
        ("cpu  1 1 1 1 1 1 1 1 1 1 1 1\ncpufreq 1\n", 5, 1, 0),
    ],
)
def test_an_odd_proc_stat(machine, stat, busy, steal, cpus):
    found = machine(stat=stat)
    assert found.busy_s == (None if busy is None else seconds(busy))
    assert found.steal_s == (None if steal is None else seconds(steal))
    assert len(found.cpus) == cpus
    assert found.swapped_bytes == 8 * PAGE_BYTES


@pytest.mark.parametrize("missing", [None, "", "nr_free_pages 1\n"])
def test_a_kernel_that_counts_neither_swapping_nor_pressure(machine, missing):
    found = machine(vmstat=missing, pressure=missing)
    assert (found.swapped_bytes, found.pressure_s) == (None, None)
    assert found.busy_s is not None


def counters(at, busy, steal=0.0, swapped=0):
    return Counters(at, busy, steal, swapped, 0.0, {0: CpuTime(0.0, 0.0)})


def test_the_load_between_two_readings():
    load = between(counters(10.0, 100.0, 1.0, 2000), counters(12.0, 103.0, 1.5, 6000))
    assert (load.seconds, load.busy_cpus, load.steal_cpus, load.swapped_bytes_per_s) == (2.0, 1.5, 0.25, 2000.0)


def test_a_machine_that_tells_nothing_has_no_load():
    load = between(counters(1.0, None, None, None), counters(2.0, None, None, None))
    assert (load.busy_cpus, load.steal_cpus, load.swapped_bytes_per_s) == (0, 0, 0)


def test_watching_this_machine():
    load = machine_load.watch(0.05)
    assert load.seconds >= 0.05
    assert load.busy_cpus >= 0
