"""``envkit advise`` on real trainings."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from envkit.cli.commands import advise
from envkit.worker.host import cpu_facts

from tests.processes import gone, until
from tests.simulation import PROJECT

# Started in folders of their own, which each start copies.
SCRIPTS = PROJECT / "tests/scripts"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Watch a second of steps, which tells as much here as ten do, however long a busy machine takes to that."""
    monkeypatch.setattr(advise, "WATCH_S", 1.0)
    monkeypatch.setattr(advise, "WATCH_LIMIT_S", 240.0)


def test_a_training_is_watched_and_stopped(cli, tmp_path):
    training = (sys.executable, SCRIPTS / "plain_loop.py", "--steps", 10**8)
    result = cli("advise", "--watch-only", "--json", "--", *training, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    seen = found["symptoms"]
    assert seen["steps"] >= 4
    assert seen["step_s"] > 0
    assert seen["cpus"] > 0
    assert sum(seen["operators"].values()) == pytest.approx(1.0, abs=0.2)
    assert seen["operators"]["convolution"] > 0
    assert seen["generic_matrix_code"] in (True, False)
    expected, by_itself = {one["profile"] for one in found["expected"]}, cpu_facts()["cpu_vendor"] == "GenuineIntel"
    assert "glibc-retain" in expected
    assert ("glibc-retain-mkl" in expected, "glibc-retain-mkl" in found["left_out"]) == (not by_itself, by_itself)


def test_small_operators_of_a_recurrent_network_are_counted(cli, tmp_path):
    """Beside other programs they take longer, and fewer of them are small."""
    training = (sys.executable, SCRIPTS / "small_lstm.py", "--steps", 10**8)
    result = cli("advise", "--watch-only", "--json", "--", *training, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)["symptoms"]
    assert 0 < seen["small_share"] < 1
    assert seen["small_per_s"] > 0


def test_one_that_ends_at_once_is_told_in_one_line(cli, tmp_path):
    training = (sys.executable, SCRIPTS / "plain_loop.py", "--steps", 5)
    result = cli("advise", "--", *training, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = (one for one in result.stderr.splitlines() if one.startswith("envkit: "))
    assert "too short to be watched" in line


def test_an_interrupt_leaves_nothing_running(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "began"
    script = tmp_path / "endless.py"
    script.write_text(f"import os, time, torch\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    process = start("advise", "--", sys.executable, script)
    pid = int(until(lambda: mark.exists() and mark.read_text()))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "envkit: interrupted"
    assert until(lambda: gone(pid))
