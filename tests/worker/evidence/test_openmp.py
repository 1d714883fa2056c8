"""What a real libgomp says of itself, in a process whose threads it has bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from runner.worker.evidence.openmp import milliseconds, wait_policy
from tests.conftest import PROJECT

PROBE = """
import ctypes, json, sys
from runner.worker.evidence import openmp
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)  # as in a worker, where torch is loaded after the probes
print(json.dumps(openmp.probe()))
"""


@pytest.fixture
def probed():
    libraries = sorted((Path(find_spec("torch").origin).parent / "lib").glob("libgomp*.so*"))
    if not libraries:
        pytest.skip("this PyTorch brings no libgomp")

    def run(**variables):
        result = subprocess.run(
            [sys.executable, "-S", "-c", PROBE, libraries[0]], env={"PYTHONPATH": str(PROJECT), **variables},
            capture_output=True, text=True, check=True, cwd="/",
        )  # fmt: skip
        return json.loads(result.stdout)

    return run


def test_the_runtime_that_runs(probed):
    found = probed(OMP_NUM_THREADS="3", GOMP_SPINCOUNT="7")
    assert (found["runtime"], found["max_threads"], found["proc_bind"]) == ("gnu", 3, "false")
    assert found["settings"]["GOMP_SPINCOUNT"] == "7"
    assert found["blocktime_ms"] is None


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, "neither"),
        ({"OMP_WAIT_POLICY": "passive"}, "passive"),
        ({"OMP_WAIT_POLICY": "active"}, "active"),
        ({"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}, "neither"),
        ({"GOMP_SPINCOUNT": "infinite"}, "active"),
        ({"OMP_WAIT_POLICY": "pasive"}, "neither"),
    ],
)
def test_how_threads_wait(probed, given, policy):
    """By what they do: libgomp prints OMP_WAIT_POLICY = 'PASSIVE' in all but two of these."""
    assert probed(**given)["wait_policy"] == policy


@pytest.mark.parametrize(
    ("blocktime_ms", "policy"),
    [(0, "passive"), (200, "neither"), (2147483, "active"), (2147483647, "active"), (None, None)],
)
def test_how_threads_of_intels_and_llvms_runtimes_wait(blocktime_ms, policy):
    """The active ones as Intel's of 2026 and LLVM 14 have them for OMP_WAIT_POLICY=active."""
    assert wait_policy(None, blocktime_ms) == policy


@pytest.mark.parametrize(
    ("answer", "displayed", "expected"),
    [(200, None, 200), (200, "200", 200), (200, "200ms", 200), (200, "200us", 0.2), (3000000, "3000000us", 3000)],
)
def test_a_blocktime_that_is_answered_in_microseconds(answer, displayed, expected):
    """3 s are no end of looking, and 0.2 ms are not none."""
    assert milliseconds(answer, displayed) == expected
    assert wait_policy(None, milliseconds(answer, displayed)) == "neither"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU to bind to")
def test_settings_are_those_of_the_whole_process_where_the_main_thread_is_bound(probed):
    """They come from a child, which inherits the mask of the thread that starts it."""
    cpus = sorted(os.sched_getaffinity(0))
    places = ",".join(f"{{{cpu}}}" for cpu in cpus)
    found = probed(OMP_PROC_BIND="close", OMP_PLACES=places)
    assert found["places"] == len(cpus)
    assert found["settings"]["OMP_NUM_THREADS"] == str(len(cpus))
