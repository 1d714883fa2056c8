"""Processes that use torch without the evidence hook: the worker says why, and gives up where it can't time steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from envkit.messages import from_json
from envkit.worker.messages.evidence import SeenFromOutside, SomeUnobserved
from envkit.worker.messages.hook import (
    BundledPython,
    CauseUnknown,
    EnvironmentEmptied,
    OtherSitecustomize,
    PathReplaced,
    PythonOption,
    PythonTwo,
    VariableRemoved,
    WithoutHook,
)
from envkit.worker.messages.user_command import StepsHidden
from envkit.worker.user_command import lookout as module
from envkit.worker.user_command import lost_hook
from envkit.worker.user_command.command import HOOK
from envkit.worker.user_command.lookout import Lookout
from envkit.worker.user_command.metric import NotMeasured
from envkit.worker.user_command.optimizer_steps import StepRequest

from tests import worker_runs
from tests.worker import unhooked

STEPS = StepRequest(3, steps=12)
# Each is a shell's way to start train.py, and why the hook is missing then.
PYTHON = sys.executable
STARTER = "sh run.sh"
CASES = {
    "replaced": (f"PYTHONPATH=. {PYTHON}", PathReplaced(".", STARTER)),
    "removed": (f"env -u PYTHONPATH {PYTHON}", VariableRemoved("PYTHONPATH", STARTER)),
    "emptied": (f"env -i {PYTHON}", EnvironmentEmptied(STARTER)),
    "no folder": (f"env -u ENVKIT_EVIDENCE {PYTHON}", VariableRemoved("ENVKIT_EVIDENCE", STARTER)),
    "isolated": (f"{PYTHON} -sI", PythonOption("I")),
    "no variables": (f"{PYTHON} -W ignore -E", PythonOption("E")),
    "no site": (f"{PYTHON} -X dev -S", PythonOption("S")),
    "shadowed": (
        f"PYTHONPATH=mine:$PYTHONPATH {PYTHON}",
        OtherSitecustomize("mine/sitecustomize.py", "mine", STARTER),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_why_a_command_left_no_evidence(tmp_path, name):
    start, reason = CASES[name]
    unhooked.write(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sitecustomize.py").touch()
    (tmp_path / "run.sh").write_text(f"{start} train.py 2\ntrue\n")
    process = worker_runs.of_command(tmp_path, argv=["sh", "run.sh"])
    assert process.returncode == 0, process.stderr
    said = from_json(json.loads(process.stdout)["evidence"]["not_observed"])
    assert isinstance(said, SeenFromOutside)
    assert said.reason.command.endswith(" train.py 2")
    assert said.reason.reason == reason


def test_a_process_without_the_hook_is_named_beside_what_others_left(tmp_path):
    """As of a launcher, which imports torch and trains nothing."""
    unhooked.write(tmp_path)
    document = json.dumps({"pid": 70001, "argv": ["x"], "evidence": {"seconds": 0.0}})
    script = f"echo '{document}' > $ENVKIT_EVIDENCE/70001.json; PYTHONPATH=. {PYTHON} train.py 2; true"
    evidence = json.loads(worker_runs.of_command(tmp_path, argv=["sh", "-c", script]).stdout)["evidence"]
    said = from_json(evidence["not_observed"])
    assert isinstance(said, SomeUnobserved)
    assert isinstance(said.reason.reason, PathReplaced)


def test_a_training_that_no_hook_can_time_ends_at_once(tmp_path):
    unhooked.write(tmp_path)
    begin = time.monotonic()
    argv = ["sh", "-c", f"PYTHONPATH=. exec {PYTHON} train.py 3000 3000"]
    process = worker_runs.of_command(tmp_path, steps=12, warmup=3, argv=argv)
    assert process.returncode == 1
    problem = from_json(json.loads(process.stdout)["problem"])
    assert isinstance(problem, StepsHidden)
    assert isinstance(problem.reason.reason, PathReplaced)
    assert problem.reason.reason.starter.startswith("sh -c ")
    assert time.monotonic() - begin < 60, "it is not left to run until a timeout"


def test_one_that_ends_before_says_it_too(tmp_path):
    unhooked.write(tmp_path)
    argv = ["sh", "-c", f"PYTHONPATH=. {PYTHON} train.py 2; true"]
    process = worker_runs.of_command(tmp_path, watch_s=10, watch_limit_s=45, warmup=3, argv=argv)
    assert isinstance(from_json(json.loads(process.stdout)["problem"]).reason.reason, PathReplaced)


def test_every_process_with_the_hook_says_so(tmp_path):
    script = "import os\nif not os.fork(): os._exit(0)\nos.wait()"
    variables = {"PYTHONPATH": str(HOOK), "ENVKIT_EVIDENCE": str(tmp_path)}
    subprocess.run([PYTHON, "-c", script], env=os.environ | variables, check=True)
    assert [path.suffix for path in tmp_path.iterdir()] == [".started", ".started"]


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["/opt/app/train", "x"], BundledPython("train")),
        (["/usr/bin/python2.7", "x.py"], PythonTwo()),
        (["python3", "-m", "train", "-I"], CauseUnknown(STARTER)),  # an option of the script
        (["python3", "train.py", "-E"], CauseUnknown(STARTER)),
        (["python3", "-Ic", "import train"], PythonOption("I")),
        (["python3", "-X", "-I", "-B", "train.py"], CauseUnknown(STARTER)),  # the value of -X
    ],
)
def test_what_the_interpreter_and_its_options_say(argv, reason):
    given = {"PYTHONPATH": f"/kit/envkit{lost_hook.HOOK_FOLDER}", "ENVKIT_EVIDENCE": "/x"}
    assert lost_hook.why(2**30, argv, given, STARTER) == WithoutHook(2**30, " ".join(argv), reason)


# --- what is no alarm ---


@pytest.fixture
def started(tmp_path):
    """Start the program without the hook; its process, when it has mapped torch."""
    running = []

    def start(*words):
        script = unhooked.write(tmp_path)
        process = subprocess.Popen([PYTHON, "-I", script, *map(str, words)], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout.readline() == "mapped\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def quick(monkeypatch):
    """Have a training show in tenths of a second; one that is idle never does."""
    for name, seconds in (("LOOK_S", 0.05), ("LOST_S", 0.1), ("LOST_CPU_S", 0.1), ("LONG_S", 1e9)):
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
def evidence(tmp_path):
    folder = tmp_path / "evidence"
    folder.mkdir()
    return folder


def wait(lookout, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lookout.wait()
        time.sleep(0.02)


def test_one_that_computes_is_an_alarm(started, evidence, quick):
    started(300, 300)
    with pytest.raises(NotMeasured) as error:
        wait(Lookout(evidence, ["sh", "run.sh"], STEPS), 60)
    assert isinstance(error.value.message, StepsHidden)
    assert error.value.message.reason.reason == PythonOption("I")


@pytest.mark.parametrize("mark", ["started", "stepped"])
def test_one_with_the_hook_is_none_nor_is_any_beside_one_that_steps(started, evidence, quick, mark):
    number = started(300, 300).pid if mark == "started" else 1
    Path(evidence, f"{number}.{mark}").touch()
    wait(Lookout(evidence, ["sh", "run.sh"], STEPS), 1)


def test_a_helper_that_is_idle_is_none_until_it_was_there_for_long(started, evidence, quick, monkeypatch):
    started(300)
    lookout = Lookout(evidence, ["sh", "run.sh"], STEPS)
    wait(lookout, 1)
    monkeypatch.setattr(module, "LONG_S", 0.5)
    with pytest.raises(NotMeasured):
        wait(lookout, 60)


def test_a_helper_is_none_beside_one_with_the_hook_that_works_more(started, evidence, quick, monkeypatch):
    """As long as that one has not stepped."""
    hooked = started(300, 300)
    for mark in ("started", "torch"):
        Path(evidence, f"{hooked.pid}.{mark}").touch()
    started(300)
    monkeypatch.setattr(module, "LONG_S", 0.5)
    wait(Lookout(evidence, ["sh", "run.sh"], STEPS), 2)


def test_a_launcher_with_the_hook_does_not_hide_its_ranks(started, evidence, quick):
    launcher = started(300)
    for mark in ("started", "torch"):
        Path(evidence, f"{launcher.pid}.{mark}").touch()
    started(300, 300)
    with pytest.raises(NotMeasured):
        wait(Lookout(evidence, ["sh", "run.sh"], STEPS), 60)


def test_where_no_steps_are_timed_nothing_ends(started, evidence, quick):
    started(300, 300)
    lookout = Lookout(evidence, ["sh", "run.sh"], None)
    wait(lookout, 0.5)
    lookout.look()
    assert lookout.reason is not None
