"""What counts as used by a training's own helpers: processes that multiprocessing started, and no others."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from envkit.worker.measure import helpers

from tests.processes import until
from tests.worker.made_up import write


@pytest.fixture
def children(monkeypatch):
    def are(*pids):
        monkeypatch.setattr(multiprocessing, "active_children", lambda: [SimpleNamespace(pid=pid) for pid in pids])

    return are


@pytest.fixture
def process(tmp_path):
    """Make up a process with these counters."""

    def make(pid, user, system, minor=7, major=1, voluntary=5, involuntary=2, parent=1, of_ended=(0, 0, 0, 0)):
        faults, majors, users, systems = of_ended
        counted = f"{minor} {faults} {major} {majors} {user} {system} {users} {systems}"
        fields = f"S {parent} 1 1 0 -1 4194304 {counted} 20 0 1 0 100"
        switches = f"voluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n"
        files = {"stat": f"{pid} (a (strange) name) {fields}\n", "status": f"Name:\ta\n{switches}"}
        write(tmp_path / f"proc/{pid}", files)
        return pid

    return make


def test_nothing_without_helpers(children, tmp_path):
    children()
    assert helpers.used(tmp_path) == dict.fromkeys(helpers.COUNTED, 0)


def test_the_sum_of_all_helpers(children, process, tmp_path):
    children(process(10, user=300, system=100), process(11, user=200, system=50))
    ticks = helpers.TICKS_PER_S
    assert helpers.used(tmp_path) == {
        "user_s": pytest.approx(500 / ticks), "system_s": pytest.approx(150 / ticks), "minor_faults": 14,
        "major_faults": 2, "voluntary_switches": 10, "involuntary_switches": 4,
    }  # fmt: skip


def test_one_that_has_just_ended_is_left_out(children, process, tmp_path):
    children(process(10, user=300, system=100), 99)
    assert helpers.used(tmp_path)["minor_faults"] == 7


def test_what_a_server_forks_and_has_ended_since_counts_too(children, process, tmp_path):
    """7 is the parent of 10: the start method forkserver."""
    children(process(10, user=300, system=100, parent=7))
    process(7, user=20, system=10, of_ended=(60, 2, 500, 50))
    ticks = helpers.TICKS_PER_S
    assert helpers.used(tmp_path) == {
        "user_s": pytest.approx(820 / ticks), "system_s": pytest.approx(160 / ticks), "minor_faults": 74,
        "major_faults": 4, "voluntary_switches": 10, "involuntary_switches": 4,
    }  # fmt: skip


def test_a_real_helper_is_seen():
    code = (
        "import multiprocessing, time\n"
        "from envkit.worker.measure import helpers\n"
        "def burn():\n"
        "    while time.process_time() < 0.2: pass\n"
        "    time.sleep(600)\n"
        "child = multiprocessing.get_context('fork').Process(target=burn, daemon=True)\n"
        "child.start()\n"
        "end = time.monotonic() + 240\n"
        "def taken(): return helpers.used()['user_s'] + helpers.used()['system_s']\n"
        "while taken() < 0.15 and time.monotonic() < end: time.sleep(0.05)\n"
        "print(taken() >= 0.15)\n"
    )
    begin = time.monotonic()
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "True\n"), result.stderr
    assert time.monotonic() - begin < 300


def test_helpers_wait_meanwhile_and_go_on(children):
    """And one that has just ended is passed over."""
    started = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2)]
    started[1].kill()
    started[1].wait()
    children(*(process.pid for process in started))

    def state():
        return helpers.Path(f"/proc/{started[0].pid}/stat").read_text().rpartition(")")[2].split()[0]

    try:
        with helpers.paused():
            until(lambda: state() == "T")
        until(lambda: state() != "T")
    finally:
        started[0].kill()
        started[0].wait()
