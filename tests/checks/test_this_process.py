"""``envkit.check``: what it makes of what was seen, and of a Python that lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from envkit.checks.effect_messages import Value
from envkit.checks.finding_messages import Unmet
from envkit.checks.process_messages import (
    InEffectAsFarAsVerified,
    InEffectHere,
    NotInEffectHere,
    NotVerified,
    SetAfterStart,
    SetAfterTorch,
    SetBesides,
    SetHere,
)
from envkit.checks.this_process import _at_torch, _started_on, check, judge
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import BEFORE_TORCH
from envkit.rendering import text

from tests.conftest import PROJECT

THREADS = {"OMP_NUM_THREADS": "3"}


def judged(variables, started=None, now=None, expect=None, sensitive=None, **openmp):
    """By default all variables were set in the process, of which its evidence says nothing."""
    started = started or {}
    evidence = {
        "openmp": {"runtime": "gnu", "max_threads": 2, "settings": {}, **openmp},
        "malloc": {"allocator": "glibc", "settings": {}},
        "variables": {"sensitive": started if sensitive is None else sensitive, "preloaded": {}},
    }
    environment = Environment("mine", "A test", variables, {}, (), expect or {}, "same")
    return judge(environment, evidence, started, {**started, **variables, **(now or {})})


def test_what_the_process_was_started_with():
    holds, lines = judged(THREADS, started=THREADS, expect={"openmp.runtime": "gnu"}, max_threads=3)
    assert holds
    assert lines == [InEffectHere("mine", ("openmp.runtime",), 1)]
    assert text(lines[0]) == "mine is in effect in this process (checked: openmp.runtime, 1 variable)"


def test_what_was_set_in_time_as_the_library_says():
    holds, (line,) = judged(THREADS, max_threads=3)
    assert (holds, line) == (True, InEffectHere("mine", (), 1))


def test_what_was_set_too_late_as_the_library_says():
    """Also where the profile expects in words what shows it."""
    assert judged(THREADS) == (False, [NotInEffectHere("mine"), SetAfterTorch(("OMP_NUM_THREADS",))])
    holds, lines = judged({"OMP_PROC_BIND": "close"}, expect={"openmp.proc_bind": "close"}, proc_bind="false")
    assert (holds, lines[1:]) == (
        False, [Unmet("openmp.proc_bind", Value("close"), Value("false")), SetAfterTorch(("OMP_PROC_BIND",))],
    )  # fmt: skip


def test_what_was_noted_was_set_before_torch():
    """What the library has is compared all the same: it may have been loaded before torch."""
    noted = {BEFORE_TORCH: "OMP_NUM_THREADS OMP_PLACES"}
    holds, (line,) = judged({"OMP_PLACES": "cores"}, now=noted)
    assert (holds, line) == (True, InEffectHere("mine", (), 1))
    holds, lines = judged(THREADS, now=noted)
    assert (holds, lines[1:]) == (False, [Unmet("openmp.max_threads", Value("3"), Value("2"))])


def test_what_nothing_tells():
    holds, lines = judged({"OMP_PLACES": "cores", **THREADS}, max_threads=3)
    assert holds
    assert lines == [InEffectAsFarAsVerified("mine", (), 1), SetHere(("OMP_PLACES",))]


@pytest.mark.parametrize("name", ["GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_CONF", "PYTHONMALLOC"])
def test_what_is_read_when_a_process_starts(name):
    holds, lines = judged({name: "x"}, now={BEFORE_TORCH: name})
    assert (holds, lines[1:]) == (False, [SetAfterStart((name,), "mine")])


def test_a_runtime_that_does_not_tell_what_it_read():
    why = "the program changed OMP_WAIT_POLICY, and the OpenMP runtime does not tell which value it read"
    untold = {"wait_policy": None, "not_verified": {"settings": why, "wait_policy": why}}
    holds, lines = judged({"OMP_WAIT_POLICY": "passive"}, expect={"openmp.wait_policy": "passive"}, **untold)
    assert (holds, len(lines)) == (True, 3)
    assert lines[1] == NotVerified("openmp.wait_policy", Value(why))


@pytest.mark.parametrize(
    ("now", "at_torch"),
    [
        ({"OMP_A": "1"}, None),
        ({"OMP_A": "1", BEFORE_TORCH: "OMP_B"}, None),
        ({"OMP_A": "1", BEFORE_TORCH: "OMP_A"}, {"X": "y", "OMP_A": "1"}),
        ({"OMP_A": "1", "LATER": "1", BEFORE_TORCH: "OMP_A"}, {"X": "y", "OMP_A": "1"}),
    ],
)
def test_what_is_known_of_the_moment_when_torch_was_imported(now, at_torch):
    assert _at_torch({"X": "y"}, {"X": "y", **now}) == at_torch


def test_a_process_began_with_the_cpus_of_all_its_threads_though_a_runtime_has_bound_one():
    every, done = os.sched_getaffinity(0), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        os.sched_setaffinity(0, {min(every)})
        assert _started_on() == every
    finally:
        os.sched_setaffinity(0, every)
        done.set()
        thread.join()


def test_a_variable_that_is_not_set_and_one_that_is_another():
    holds, lines = judged(THREADS, now={"OMP_NUM_THREADS": "4"})
    assert (holds, lines[1:]) == (False, [Unmet("variable OMP_NUM_THREADS", Value("3"), Value("not set"))])
    holds, lines = judged(THREADS, started={"OMP_NUM_THREADS": "1"}, now={"OMP_NUM_THREADS": "1"}, max_threads=1)
    assert Unmet("variable OMP_NUM_THREADS", Value("3"), Value("1")) in lines


def test_one_that_no_library_reads_is_compared_as_it_is_now():
    assert judged({"TEXT": "a"})[0]
    holds, lines = judged({"TEXT": "a"}, now={"TEXT": "b"})
    assert (holds, lines[1:]) == (False, [Unmet("variable TEXT", Value("a"), Value("b"))])


def test_what_is_set_besides_is_named():
    """But for what only says where things are."""
    holds, lines = judged({}, sensitive={"MKL_CBWR": "AVX2", "CUDA_VISIBLE_DEVICES": "0"})
    assert (holds, lines[1:]) == (True, [SetBesides(("MKL_CBWR=AVX2",))])


@pytest.fixture
def bare(tmp_path):
    """What ``check`` prints in a Python that has the project's folder, and of packages those named."""

    def run(*packages):
        for name in packages:
            (tmp_path / f"{name}.py").touch()
        code = f"import sys; sys.path[:0] = [{str(PROJECT / 'runner')!r}, {str(tmp_path)!r}]\n"
        code += "from envkit import check\nprint(check('intel-omp'))"
        result = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout.splitlines()

    return run


def test_a_python_that_lacks_a_package(bare):
    said = f"envkit: {sys.executable} has no package '{{}}'; install it there, or use a kernel that has it"
    assert bare() == [said.format("torch"), "False"]
    assert bare("torch") == [said.format("msgspec"), "False"]


def test_a_profile_that_is_not_there(capsys):
    assert check("intel-opm") is False
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("envkit: no profile 'intel-opm' in ")


def test_importing_the_package_imports_nothing_more():
    code = f"import sys; sys.path.insert(0, {str(PROJECT / 'runner')!r}); before = {{*sys.modules}}; import envkit"
    code += "; print(*sorted({*sys.modules} - before))"
    result = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=True)
    assert result.stdout == "envkit\n"
