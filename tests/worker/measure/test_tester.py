"""A process that tests between epochs: what it does while it has nothing to test, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.worker.errors import WorkerError
from envkit.worker.measure import tester
from envkit.worker.messages import LostTester

from tests.conftest import PROJECT
from tests.processes import gone, until

# Prints the tester's pid when that is ready, and waits.
TRAINS = """
from types import SimpleNamespace
from envkit.worker.measure.tester import Tester
weights = {"weight": SimpleNamespace(numel=lambda: 1, element_size=lambda: 4)}
network = SimpleNamespace(model=SimpleNamespace(state_dict=lambda: weights))
tester = Tester(lambda: SimpleNamespace(network=network))
tester.wait()
print(tester._pid, flush=True)
input()
"""


def test_it_is_stopped_while_there_is_nothing_to_test_and_dies_with_the_training():
    training = subprocess.Popen(
        [sys.executable, "-c", TRAINS], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        pid = int(training.stdout.readline())
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    finally:
        training.send_signal(signal.SIGKILL)
        training.communicate()
    until(lambda: gone(pid))


def test_one_that_could_not_be_prepared_ends_the_training():
    one = tester.Tester(lambda: os._exit(1))
    with pytest.raises(WorkerError) as caught:
        one.wait()
    assert caught.value.message == LostTester()
    one.end()
