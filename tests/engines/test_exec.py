"""``envkit exec`` with a real torch: scripts that the kit does not know, under a profile, with evidence."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.worker.host import cpu_facts
from envkit.worker.libraries import locate, search_folders

from tests import second_user
from tests.conftest import PROJECT, command_line
from tests.processes import PATIENCE_S, until

SCRIPTS = PROJECT / "tests" / "scripts"
IN_EFFECT = "was in effect in 1 process (checked: preload."


@pytest.fixture
def folder(open_folder, tmp_path_factory):
    """Where the command runs: with the scripts, and open to whoever a container runs as."""
    made = open_folder / tmp_path_factory.mktemp("exec").name
    shutil.copytree(SCRIPTS, made, ignore=shutil.ignore_patterns("__pycache__"))
    made.chmod(0o1777)  # as /tmp: nobody replaces the files of others there
    yield made
    shutil.rmtree(made)


@pytest.fixture
def execute(surroundings, folder):
    """``execute(options, "intel-omp", "python", "x.py")``: the result, from ``folder``."""

    def run(options, profile, *command, stdin="", **variables):
        result = subprocess.run(
            command_line("exec", *options, profile, "--", *command), cwd=folder, input=stdin,
            env={**os.environ, **surroundings, **variables}, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


LOADERS = """
import os, runpy, torch
from torch.utils.data import DataLoader
if __name__ == "__main__":
    print(open(f"/proc/{os.getppid()}/environ").read())
    runpy.run_path("loader.py", run_name="__main__")
    for batch in DataLoader(torch.zeros(64, 4), num_workers=1, multiprocessing_context="spawn"):
        pass
"""


def test_a_profile_with_a_preload_is_in_effect(execute, folder):
    """A DataLoader's workers leave no evidence, forked or spawned, and one that was spawned has one thread and says
    nothing. The runner itself is given nothing of the profile."""
    (folder / "loaders.py").write_text(LOADERS)
    command = (sys.executable, "loaders.py", "--hidden", "16")
    result = execute(("--evidence", "seen.json"), "intel-omp", *command)
    assert (result.returncode, IN_EFFECT in result.stderr) == (0, True), result.stderr
    assert "libiomp5" not in result.stdout
    document = json.loads((folder / "seen.json").read_text())
    (process,) = document["processes"]
    assert process["evidence"]["openmp"]["runtime"] == "intel"


def test_ranks_and_what_starts_them_are_checked(execute):
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "plain_loop.py", "--steps", "2")
    result = execute((), "intel-omp", *torchrun)
    assert result.returncode == 0, result.stderr
    assert "intel-omp was in effect in 3 processes" in result.stderr


@pytest.mark.skipif(cpu_facts()["physical_cores"] < 2, reason="there is only one core")
def test_ranks_that_libgomp_bound_to_one_core_are_found(execute):
    """It binds what starts them, as soon as that imports torch, and they inherit its one core."""
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", "plain_loop.py", "--steps", "2")
    result = execute((), "gnu-omp", *torchrun)
    assert result.returncode == 1
    assert "gnu-omp was NOT in effect in 1 of 2 processes" in result.stderr
    assert "openmp.places: expected " in result.stderr


# Moves the variables that it was started with and writes over where they were, as setproctitle does; and has other
# defaults for its tensors.
TITLED = """\
import ctypes, os, torch
for name, value in os.environ.items():
    os.putenv(name, value)
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(fields[47]), int(fields[48])
ctypes.memset(start, 0, end - start)
assert b"=" not in open("/proc/self/environ", "rb").read()
torch.set_default_dtype(torch.bfloat16)
torch.set_default_device("meta")
"""


# What torch-thp and mkl-native set and expect, beside intel-omp: whoever made this machine's processor.
TOGETHER = """
extends: intel-omp
preload: [intel-openmp, mkl-dispatch]
env: {THP_MEM_ALLOC_ENABLE: 1}
expect: {torch.huge_page_tensors: true, mkl.dispatch: native}
numerics: may-differ
"""


def test_a_program_with_a_title_and_defaults_of_its_own(execute, write_profile):
    result = execute((), write_profile("mine", TOGETHER), sys.executable, "-c", TITLED)
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stderr.splitlines() if "mine was in effect in 1 process (checked: " in line)
    for checked in ("openmp.runtime", "torch.huge_page_tensors", "mkl.dispatch"):
        assert checked in line


# Takes out of its environment what it was started with; with an argument it then starts a process, which lacks that.
TIDIES = """\
import os, subprocess, sys
for name in [name for name in os.environ if name.startswith(("LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES", "MIMALLOC_"))]:
    del os.environ[name]
import torch
kept = torch.ones(1 << 26)
if sys.argv[1:]:
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
"""


@pytest.mark.parametrize("library", ["jemalloc", "mimalloc"])
def test_a_program_that_tidies_its_own_environment(execute, library):
    if library not in locate(search_folders()):
        pytest.skip(f"{library} is not installed")
    profile = f"{library}-retain"
    result = execute((), profile, sys.executable, "-c", TIDIES)
    assert result.returncode == 0, result.stderr
    assert f"envkit: {profile} was in effect in 1 process (checked: " in result.stderr
    assert "from its environment: it keeps the profile's, but processes that it starts lack it\n" in result.stderr


def test_a_process_that_such_a_program_starts_is_judged_by_its_own_start(execute):
    result = execute((), "glibc-retain", sys.executable, "-c", TIDIES, "and start")
    assert result.returncode == 1
    assert "envkit: glibc-retain was NOT in effect in 1 of 2 processes\n" in result.stderr
    assert result.stderr.count("envkit:   variable GLIBC_TUNABLES: expected ") == 1
    assert "seen not set (process " in result.stderr
    assert result.stderr.count(" removed GLIBC_TUNABLES from its environment: ") == 1


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one thread is all that there is")
def test_what_a_program_sets_in_time_is_in_force_and_named(execute):
    program = "import os; os.environ['OMP_NUM_THREADS'] = '1'; import torch"
    result = execute((), "intel-omp", sys.executable, "-c", program)
    assert result.returncode == 1
    assert "  openmp.max_threads: expected " in result.stderr
    assert ", seen 1, as the program itself set OMP_NUM_THREADS=1 (process " in result.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one thread is all that there is")
def test_what_a_program_sets_after_its_first_threads_is_named(execute):
    late = "import os, torch; torch.zeros(100000).add_(1); os.environ['OMP_NUM_THREADS'] = '1'"
    result = execute((), "gnu-omp", sys.executable, "-c", late)
    assert result.returncode == 0, result.stderr
    assert "envkit: gnu-omp was in effect in 1 process" in result.stderr
    assert ") set OMP_NUM_THREADS=1: processes that it starts lack the profile's\n" in result.stderr


@pytest.mark.parametrize(
    ("engine", "script", "option"),
    [
        ("docker", "plain_loop.py", "--steps=2"),
        ("podman", "lightning_log.py", "--hidden=16"),
        ("apptainer", "loader.py", "--hidden=16"),
    ],
)
def test_a_script_that_was_never_seen_runs_in_a_container(execute, engine_options, folder, engine, script, option):
    program = (
        "import os, runpy; open('written', 'w').write(os.environ['MY_KEY']);"
        f"print(input()); runpy.run_path('{script}', run_name='__main__')"
    )
    secret = 'it\'s "a" $HOME `id` \\n, secret'
    options = (*engine_options(engine), "--keep-env", "MY_KEY", "--evidence", "seen.json")
    command = ("python", "-c", program, option)
    result = execute(options, "jemalloc", *command, stdin="hello\n", MY_KEY=secret, OTHER="no")
    assert result.returncode == 0, result.stderr
    assert "jemalloc was in effect in 1 process (checked: preload.jemalloc, malloc.allocator" in result.stderr
    assert result.stdout.startswith("hello\n")
    assert len(result.stdout.splitlines()) > 1  # the script's own
    written = folder / "written"
    assert written.read_text() == secret
    seen = (folder / "seen.json").read_text()
    assert (json.loads(seen)["passed_on"], "secret" in seen) == (["MY_KEY"], False)
    if engine != "apptainer":  # which may work as another user here
        assert written.stat().st_uid == os.getuid()


@pytest.mark.parametrize("engine", ["docker", "podman", "apptainer"])
def test_the_exit_status_and_variables_inside(execute, engine_options, folder, engine):
    script = "echo $PWD $LD_PRELOAD ${OTHER-none}; ls -d /kit/envkit; exit 5"
    result = execute(engine_options(engine), "jemalloc", "sh", "-c", script, OTHER="not inside")
    assert result.returncode == 5, result.stderr
    where, preload, other, code = result.stdout.split()
    assert (where, Path(preload).name, other, code) == (str(folder), "libjemalloc.so.2", "none", "/kit/envkit")


@pytest.mark.parametrize("engine", ["docker", "podman", "apptainer"])
def test_a_signal_ends_what_runs_inside_and_no_command_line_has_what_it_was_given(
    engine_options, surroundings, folder, engine
):
    seconds, given = f"1000.{random.randrange(10**9)}", f"given-{random.randrange(10**9)}"
    script = f"echo $MY_KEY; exec sleep {seconds}"
    process = subprocess.Popen(
        command_line("exec", *engine_options(engine), "--keep-env", "MY_KEY", "baseline", "--", "sh", "-c", script),
        cwd=folder, env={**os.environ, **surroundings, "MY_KEY": given, "HF_TOKEN": f"{given}-too"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == f"{given}\n", process.communicate()
        until(lambda: runs("sleep", seconds))
        lines = command_lines()
        assert any(seconds.encode() in line and engine.encode() in line.lower() for line in lines), "the engine's own"
        assert [line for line in lines if given.encode() in line] == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM, process.communicate()
        until(lambda: not runs("sleep", seconds))
    finally:
        process.terminate()  # or what runs inside would hold the pipes, and a failure would hang
        process.communicate()


def runs(*words):
    """Whether there is a process with this command line; those inside of containers are among the machine's."""
    return b"".join(word.encode() + b"\0" for word in words) in command_lines()


def command_lines():
    """Those of all processes, which everybody on the machine can read."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(entry.read_bytes())
    return found


# Looks for the folder of evidence on command lines, which everybody can read, and leaves there what it can.
FORGE = """
print("looking", flush=True)
while True:
    time.sleep(0.05)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\\0")
        except OSError:
            continue
        for word in words:
            if word.endswith(":/evidence:rw"):
                folder = word.partition(":")[0]
                for number, make in ((99998, os.mkfifo), (99999, lambda name: Path(name).write_text("{}"))):
                    try:
                        make(f"{folder}/{number}.json")
                        Path(sys.argv[1], "forged").write_text(folder)
                    except OSError as error:
                        Path(sys.argv[1], "refused").write_text(errno.errorcode[error.errno])
"""


@second_user.needs_root
def test_another_user_who_reads_the_engines_command_line_forges_no_evidence(execute, engine_options, folder):
    with second_user.beside(FORGE, folder):
        result = execute(engine_options("docker"), "jemalloc", "python", "-c", "import torch, time; time.sleep(1)")
    assert (folder / "refused").read_text() == "EACCES"
    assert not (folder / "forged").exists()
    assert "jemalloc was in effect in 1 process" in result.stderr


def test_an_image_that_has_a_python_path(execute, engine_options):
    """Of Docker; Podman's containers are started with the same variables (envkit.engines.container)."""
    engine = "docker"
    built = f"envkit-test-path-{engine}"
    script = (
        f"FROM {engine_options(engine)[-1]}\nUSER root\nRUN mkdir /app && echo 'import torch; print(1)' >/app/mine.py\n"
        "USER kit\nENV PYTHONPATH=/app\n"
    )
    build = [engine, "build", "--quiet", "--tag", built, "-"]
    subprocess.run(build, input=script, text=True, check=True, capture_output=True)
    try:
        result = execute(("--engine", engine, "--image", built), "jemalloc", "python", "-m", "mine")
    finally:
        subprocess.run([engine, "rmi", "--force", built], capture_output=True, check=True)
    assert (result.returncode, result.stdout) == (0, "1\n"), result.stderr
    assert "jemalloc was in effect in 1 process" in result.stderr
