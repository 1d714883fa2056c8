"""A process that is watched from outside, as ``envkit doctor -- COMMAND`` does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.checks import steady_process
from envkit.checks.doctor import running_process
from envkit.worker import ancestry
from envkit.worker.evidence import cpu_use

from tests.checks.test_steady_process import has_worked
from tests.processes import until


def test_one_that_ended_is_not_watched_on():
    """Also where nobody has waited for it yet: what it did is counted over the time in which it ran."""
    with subprocess.Popen(["true"]) as process:
        seen = running_process.watch(process.pid, 600.0)
    assert seen["usage"]["seconds"] < 240


def test_what_it_used_while_it_worked_in_parallel():
    """Two processes that get and give back memory."""
    loop = "while True:\n  m = mmap.mmap(-1, 2**22)\n  m.write(bytes(2**22))\n  m.close()\n"
    code = f"import mmap, os\nos.fork()\nprint(flush=True)\n{loop}"
    process = subprocess.Popen([sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert [process.stdout.readline() for _ in range(2)] == [b"\n", b"\n"]
        # one that had no CPU meanwhile is watched again
        seen = until(lambda: (one := running_process.watch(process.pid, 0.5).get("steady")) and has_worked(one) and one)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert 0 < seen["seconds"] <= 60


def test_a_short_watch_tells_how_it_computes(monkeypatch):
    """It has fewer looks than lie between two of those that take longer."""
    monkeypatch.setattr(cpu_use, "TORCH", "")
    with subprocess.Popen(["sleep", "600"]) as process:
        seen = running_process.watch(process.pid, 0.3)
        process.kill()
    assert seen["cpu_use"]["pid"] == process.pid


def test_processes_that_end_while_they_are_looked_at(monkeypatch):
    """Their folders are gone by the time they are opened."""
    glob = Path.glob

    def of_ended(folder, pattern):
        if "task" in f"{folder}/{pattern}":
            raise ProcessLookupError(3, "No such process")
        return glob(folder, pattern)

    monkeypatch.setattr(Path, "glob", of_ended)
    with subprocess.Popen(["sleep", "600"]) as process:
        seen = running_process.watch(process.pid, 0.3)
        assert steady_process.look(process.pid).waited_s == {process.pid: 0.0}
        assert not ancestry.process(process.pid).cpus
        process.kill()
    assert seen["threads"] == {"runnable": 0, "masks": {}}


LIBRARIES = """\
import ctypes, sys, time
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
print(flush=True)
time.sleep(600)
"""
GNU, INTEL = "libgomp.so.1", "libiomp5.so"


@pytest.mark.parametrize(
    ("preload", "seen"),
    [([], [GNU, INTEL]), ([INTEL], [INTEL]), ([GNU], [GNU, INTEL])],
)  # fmt: skip
def test_a_runtime_that_is_preloaded_replaces_the_others(tmp_path, preload, seen):
    """Any library will do under a runtime's name."""
    real = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line)
    paths = {name: str(tmp_path / name) for name in (GNU, INTEL)}
    for path in paths.values():
        shutil.copy(real, path)
    environment = {**os.environ, "LD_PRELOAD": ":".join(paths[name] for name in preload)}
    with subprocess.Popen(
        [sys.executable, "-c", LIBRARIES, *paths.values()], env=environment, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        try:
            found = running_process.watch(process.pid, 0.05)["openmp"]["mapped"]
        finally:
            process.kill()
    assert sorted(Path(path).name for path in found) == seen
