"""Which Python a command starts, told without running it."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines.base import EngineOptions
from envkit.engines.interpreter import CHOOSERS, interpreter_of
from envkit.engines.local import LocalEngine


@pytest.fixture
def machine(tmp_path):
    """A folder to stand in: a virtual environment with torchrun and others in ``venv/bin``, and a PATH of ``bin``."""
    for folder in ("venv/bin", "bin", "other dir/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("venv/bin/python", "venv/bin/python3", "bin/python3.11", "other dir/bin/python"):
        (tmp_path / name).symlink_to(os.path.realpath(sys.executable))
    scripts = {
        "venv/bin/torchrun": f"#!{tmp_path}/venv/bin/python\n",
        "venv/bin/accelerate": f"#!/bin/sh\n'''exec' \"{tmp_path}/other dir/bin/python\" \"$0\" \"$@\"\n' '''\n",
        "train.py": "#!/usr/bin/env python3.11\n",
        "split.py": "#!/usr/bin/env -S MODE=fast python3.11 -u\n",
        "train.sh": "#!/bin/sh\npython train.py\n",
        "bin/python": f'#!/bin/sh\nexec {tmp_path}/venv/bin/python "$@"\n',
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "bin/uv").symlink_to("/bin/true")
    return tmp_path


def told(machine: Path, line: str, path: str = "bin:/usr/bin:/bin") -> Path | None:
    return interpreter_of(shlex.split(line.format(here=machine)), {"PATH": path}, machine)


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ("{here}/venv/bin/python train.py", "venv/bin/python"),
        ("venv/bin/python3 -u train.py", "venv/bin/python3"),
        ("python3.11 train.py", "bin/python3.11"),
        ("venv/bin/python -m torch.distributed.run train.py", "venv/bin/python"),
        ("env CUDA_VISIBLE_DEVICES=0 MODE=a venv/bin/python train.py", "venv/bin/python"),
        ("env PATH={here}/venv/bin python train.py", "venv/bin/python"),
        ("nice -n 5 taskset -c 0 venv/bin/python train.py", "venv/bin/python"),
        ("timeout 60 env -u HOME venv/bin/torchrun --nproc-per-node 2 train.py", "venv/bin/python"),
        ("venv/bin/torchrun --nproc-per-node 2 train.py", "venv/bin/python"),
        ("venv/bin/accelerate launch train.py", "other dir/bin/python"),
        ("./train.py --epochs 2", "bin/python3.11"),
        ("./split.py", "bin/python3.11"),
    ],
)
def test_a_python_is_told(machine, line, python):
    assert told(machine, line) == machine / python  # not the file that a virtual environment's link leads to


@pytest.mark.parametrize(
    "line",
    ["./train.sh", "sh -c 'python3.11 train.py'", "uv run venv/bin/python train.py", "true", "no-such-command",
     "env", "timeout 60", "./missing/python", "train.py", "env srun --container-image=x venv/bin/python train.py"],
)  # fmt: skip
def test_what_does_not_tell_gives_none(machine, line):
    (machine / "bin/srun").symlink_to("/bin/true")
    assert told(machine, line) is None


@pytest.mark.parametrize("name", sorted(CHOOSERS))
@pytest.mark.parametrize("before", ["", "timeout 60 env MODE=a "])
def test_a_launcher_of_another_environment_gives_none(machine, name, before):
    """Most of these are scripts whose first line names the Python that they are installed in."""
    (machine / f"venv/bin/{name}").write_text(f"#!{machine}/venv/bin/python\n")
    (machine / f"venv/bin/{name}").chmod(0o755)
    assert told(machine, f"{before}venv/bin/{name} run python3.11 train.py") is None


def test_the_launchers_that_people_use_are_known():
    assert {"conda", "mamba", "micromamba", "poetry", "pipenv", "pdm", "hatch", "dvc", "rye", "pixi", "tox"} <= CHOOSERS


def test_an_empty_command_gives_none():
    assert interpreter_of([]) is None


def test_a_script_that_is_called_python_is_asked(machine):
    """As pyenv's are, which choose a Python by the folder where one stands."""
    found = told(machine, "python train.py")
    assert found is not None
    assert found.samefile(machine / "venv/bin/python")
    (machine / "bin/python").write_text("#!/bin/sh\necho 'python: command not found' >&2\nexit 127\n")
    assert told(machine, "python train.py") is None


def test_the_path_and_the_folder_are_the_callers(machine, monkeypatch):
    monkeypatch.chdir(machine)
    monkeypatch.setenv("PATH", f"{machine}/venv/bin")
    assert interpreter_of(["python", "train.py"]) == machine / "venv/bin/python"


def test_nothing_is_run_where_a_file_tells(machine):
    """A Python that would leave a trace when it is started."""
    for name in ("venv/bin/torchrun", "train.py"):
        with (machine / name).open("a") as file:
            file.write("open('trace', 'w')\n")
    for line in ("venv/bin/torchrun train.py", "./train.py"):
        assert told(machine, line) is not None
    assert not (machine / "trace").exists()


def test_a_process_that_runs_already_tells_too(machine):
    argv = [f"{machine}/venv/bin/python", "-c", "import time; print('up', flush=True); time.sleep(600)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            engine = LocalEngine(EngineOptions()).for_process(process.pid)
            assert engine.describe()["image"] == f"{machine}/venv/bin/python"
        finally:
            process.kill()
    assert LocalEngine(EngineOptions()).for_process(2**22 + 1).describe()["image"] == sys.executable


def test_the_python_of_another_users_process_is_never_run(machine, monkeypatch):
    argv = [f"{machine}/venv/bin/python", "-c", "import time; print('up', flush=True); time.sleep(600)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
            assert LocalEngine(EngineOptions()).for_process(process.pid).describe()["image"] == sys.executable
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_that_hides_its_owner_is_another_users_all_the_same(machine):
    """On Linux its folder in /proc is root's after PR_SET_DUMPABLE (4)."""
    hide = "libc = ctypes.CDLL(None); os.setuid(65534); libc.prctl(4, 0)"
    code = f"import ctypes, os, time; {hide}; print('up', flush=True); time.sleep(600)"
    argv = [f"{machine}/venv/bin/python", "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            engine = LocalEngine(EngineOptions())
            assert engine.for_process(process.pid) is engine
        finally:
            process.kill()


def test_a_python_that_is_named_counts_more_than_the_commands(machine):
    engine = LocalEngine(EngineOptions(python=sys.executable))
    assert engine.for_command(["venv/bin/python"], machine) is engine


def test_a_file_that_is_not_executable_is_no_command(machine):
    (machine / "venv/bin/torchrun").chmod(stat.S_IRUSR)
    assert told(machine, "venv/bin/torchrun train.py") is None
