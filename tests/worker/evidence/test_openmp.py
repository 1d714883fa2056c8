"""What a real libgomp says of itself, in a process whose threads it has bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from envkit.worker import initial_environment
from envkit.worker.evidence.openmp import milliseconds, variables_read, wait_policy
from envkit.worker.messages.evidence import VariablesChanged
from envkit.worker.readings import Unread

from tests.conftest import CODE_PATH

PROBE = """
import ctypes, json, os, sys
from envkit.worker import initial_environment
from envkit.worker.evidence import openmp
os.environ.update(json.loads(sys.argv[2]))
if sys.argv[4] == "seen":  # as the evidence hook does when torch is looked for
    initial_environment.AT_TORCH = dict(os.environ)
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)  # as in a worker, where torch is loaded after the probes
os.environ.update(json.loads(sys.argv[3]))
print(json.dumps(openmp.probe()))
"""


@pytest.fixture
def probed():
    libraries = sorted((Path(find_spec("torch").origin).parent / "lib").glob("libgomp*.so*"))
    if not libraries:
        pytest.skip("this PyTorch brings no libgomp")

    def run(before=None, after=None, watched="seen", **variables):
        """``before`` and ``after`` it loads the runtime, a program that has ``variables`` sets these."""
        changes = (json.dumps(before or {}), json.dumps(after or {}))
        result = subprocess.run(
            [sys.executable, "-S", "-c", PROBE, libraries[0], *changes, watched],
            env={"PYTHONPATH": CODE_PATH, **variables}, capture_output=True, text=True, check=True, cwd="/",
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


def test_what_the_program_sets_before_the_runtime_is_loaded_counts(probed):
    """Its own functions tell some of it, and a child that has what was set then the rest."""
    found = probed(
        {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "active"}, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="3"
    )
    assert (found["max_threads"], found["wait_policy"], found["settings"]["OMP_NUM_THREADS"]) == (2, "active", "2")


def test_what_the_program_sets_later_does_not(probed):
    later = {"OMP_WAIT_POLICY": "active", "OMP_NUM_THREADS": "2"}
    found = probed(None, later, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="3")
    assert (found["max_threads"], found["wait_policy"], found["settings"]["OMP_NUM_THREADS"]) == (3, "passive", "3")


def test_where_nobody_saw_when_the_program_set_it_nothing_is_told(probed):
    found = probed(None, {"OMP_WAIT_POLICY": "active"}, "unseen", OMP_WAIT_POLICY="passive")
    assert (found["wait_policy"], found["settings"]) == (None, {})
    why = VariablesChanged(("OMP_WAIT_POLICY",)).to_json()
    assert found["not_verified"] == {"settings": why, "wait_policy": why}
    assert probed(None, {"HARMLESS": "1"}, "unseen", OMP_WAIT_POLICY="passive")["wait_policy"] == "passive"


GNU, INTEL = "/lib/libgomp.so.1", "/lib/libiomp5.so"
STARTED = {"A": "1", "OMP_X": "1"}


@pytest.mark.parametrize(
    ("library", "started", "at_torch", "now", "mapped", "read"),
    [
        (GNU, {}, {"OMP_X": "2"}, {"OMP_X": "3"}, "", "2"),
        (GNU, {}, {}, {"OMP_X": "3"}, "", None),
        # preloaded, it has read them when the process started
        (GNU, {"LD_PRELOAD": GNU}, {"OMP_X": "2"}, {"OMP_X": "2"}, f"7f00-7f01 r-xp 0 0:0 1 {GNU}\n", "1"),
        # something else has loaded it before torch
        (GNU, {}, {"OMP_X": "1"}, {"OMP_X": "3"}, f"7f00-7f01 r-xp 0 0:0 1 {GNU}\n", "1"),
        (GNU, {}, {"OMP_X": "2"}, {"OMP_X": "2"}, f"7f00-7f01 r-xp 0 0:0 1 {GNU}\n", Unread),
        # it reads them when it is first needed, which is later
        (INTEL, {"LD_PRELOAD": INTEL}, {"OMP_X": "2"}, {"OMP_X": "2"}, "", "2"),
        (INTEL, {"LD_PRELOAD": INTEL}, {"OMP_X": "1"}, {"OMP_X": "2"}, "", Unread),
    ],
)
def test_which_variables_a_runtime_read(monkeypatch, library, started, at_torch, now, mapped, read):
    block = "".join(f"{name}={value}\0" for name, value in {**STARTED, **started}.items())
    monkeypatch.setattr(initial_environment, "AT_START", block.encode())
    monkeypatch.setattr(initial_environment, "AT_TORCH", {"A": "1", **started, **at_torch})
    monkeypatch.setattr(initial_environment, "MAPPED_BEFORE_TORCH", mapped)
    monkeypatch.setattr(os, "environ", {"A": "1", **started, **now})
    if read is Unread:
        with pytest.raises(Unread) as caught:
            variables_read(library)
        assert caught.value.message == VariablesChanged(("OMP_X",))
    else:
        assert variables_read(library) == {
            name: value for name, value in {**STARTED, **started, "OMP_X": read}.items() if value is not None
        }


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU to bind to")
def test_settings_are_those_of_the_whole_process_where_the_main_thread_is_bound(probed):
    """They come from a child, which inherits the mask of the thread that starts it."""
    cpus = sorted(os.sched_getaffinity(0))
    places = ",".join(f"{{{cpu}}}" for cpu in cpus)
    found = probed(OMP_PROC_BIND="close", OMP_PLACES=places)
    assert found["places"] == len(cpus)
    assert found["settings"]["OMP_NUM_THREADS"] == str(len(cpus))
