"""``envkit exec``: a command of one's own under a profile, and what is said of it when it has ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.worker.libraries import locate, search_folders

from tests.cli.commands.exec.conftest import PYTHON_PATH, in_a_terminal, read_until
from tests.conftest import PROJECT, command_line
from tests.control_group import MemoryGroup
from tests.processes import PATIENCE_S, gone, until

LEFT_OUT = "envkit: left out "


@pytest.fixture
def start(shared):
    """Start a shell script under a profile and return when it has printed its first line, which it is to do."""
    started = []

    def run(script, *options, **how):
        process = subprocess.Popen(
            command_line("exec", *options, shared / "mine.yaml", "--", "sh", "-c", script), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how,
        )  # fmt: skip
        started.append(process)
        return process, process.stdout.readline().strip()

    yield run
    for process in started:
        process.kill()
        process.communicate()


def python(code):
    return sys.executable, "-c", code


# --- the command is as it would be without the runner ---


def test_input_output_folder_and_arguments_are_the_commands_own(execute, tmp_path):
    result = execute(
        "mine", "sh", "-c", 'cat; pwd; printf "%s|" "$@"; echo oops >&2', "sh", "a b", "--", "-x", stdin="in\n"
    )
    assert (result.returncode, result.stdout) == (0, f"in\n{tmp_path}\na b|--|-x|")
    assert "oops\n" in result.stderr


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_exit_status_is_the_commands(execute, script, status):
    assert execute("mine", "sh", "-c", script).returncode == status


LOOK = ("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")


def _signals(command):
    """What ``LOOK`` shows, as sets of numbers; the C library keeps 32 and 33 to itself."""
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    masks = dict(zip(shown[::2], (int(mask, 16) for mask in shown[1::2]), strict=True))
    return {name.rstrip(":"): {n for n in range(1, 32) if mask >> (n - 1) & 1} for name, mask in masks.items()}


def test_signals_that_are_ignored_or_blocked_are_those_of_the_caller():
    for ignored in ("", 'trap "" HUP;'):  # as nohup does
        caller = ("sh", "-c", f'{ignored} exec "$@"', "sh")
        runner = command_line("exec", "baseline", "--")
        bare, under = (_signals([*caller, *inner, *LOOK]) for inner in ((), runner))
        assert under == bare
        assert (signal.SIGHUP in bare["SigIgn"]) == bool(ignored)


def test_a_shell_is_told_of_ctrl_c(execute, shared):
    """It ends a loop or a script where a command died of SIGINT, and goes on after any other exit status."""
    assert execute("mine", "sh", "-c", "kill -INT $$").returncode == -signal.SIGINT
    assert execute("mine", "sh", "-c", "exit 130").returncode == 130
    arguments = command_line("exec", shared / "mine.yaml", "--", "sh", "-c", "kill -INT $$")
    shell = subprocess.run(["sh", "-c", '"$@"; echo $?', "sh", *arguments], capture_output=True, text=True, check=False)
    assert shell.stdout == "130\n"


def test_a_script_without_an_interpreters_name_runs_as_in_a_shell(execute, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo run by the shell: $1\n")
    script.chmod(0o755)
    assert execute("mine", "./script", "x").stdout == "run by the shell: x\n"


def test_the_prefix_comes_first(execute):
    assert execute("prefixed", "sh", "-c", "echo $FROM_PREFIX").stdout == "yes\n"
    missing = execute("prefixed", "no-such-command")
    assert (missing.returncode, missing.stderr) == (127, "envkit: no-such-command: no such command on the PATH\n")


# --- variables ---


def test_the_profiles_variables_are_set_and_the_callers_own_stay(execute):
    result = execute("mine", "sh", "-c", "echo $GREETING $MKL_NUM_THREADS $MY_KEY", MY_KEY="secret", GREETING="no")
    assert result.stdout == "hello 1 secret\n"
    assert LEFT_OUT not in result.stderr


def test_a_stray_variable_is_left_out_unless_it_is_kept(execute):
    show = ("sh", "-c", "echo ${OMP_NUM_THREADS-none} ${KMP_BLOCKTIME-none} ${CUDA_VISIBLE_DEVICES-none}")
    stray = {"OMP_NUM_THREADS": "7", "KMP_BLOCKTIME": "8", "CUDA_VISIBLE_DEVICES": "1", "MKL_NUM_THREADS": "9"}
    result = execute("mine", *show, **stray)
    # what says where to run stays, and what the profile sets itself is not stray
    assert result.stdout == "none none 1\n"
    said = "KMP_BLOCKTIME, OMP_NUM_THREADS, which could change the outcome (--keep-env NAME passes one on)"
    assert f"{LEFT_OUT}{said}\n" in result.stderr
    result = execute("mine", *show, options=("--keep-env", "OMP_NUM_THREADS"), **stray)
    assert result.stdout == "7 none 1\n"
    assert f"{LEFT_OUT}KMP_BLOCKTIME, " in result.stderr


def test_a_preload_of_the_caller_s(execute):
    """Where the profile has its own, the caller's goes, or is kept behind it."""
    show = ("sh", "-c", "echo $LD_PRELOAD; sleep 0.2")  # so long that it is looked at from outside
    own = execute("intel-omp", *show).stdout.strip()
    assert own.endswith("/libiomp5.so")
    replaced = execute("intel-omp", *show, LD_PRELOAD="libm.so.6")
    assert replaced.stdout.strip() == own
    assert f"{LEFT_OUT}LD_PRELOAD, which could change the outcome" in replaced.stderr
    again = execute("intel-omp", *show, LD_PRELOAD=own)
    assert (again.stdout.strip(), LEFT_OUT in again.stderr) == (own, False)
    kept = execute("intel-omp", *show, options=("--keep-env", "LD_PRELOAD"), LD_PRELOAD="libm.so.6")
    assert (kept.stdout.strip(), LEFT_OUT in kept.stderr) == (f"{own}:libm.so.6", False)
    assert (kept.returncode, "was NOT in effect" in kept.stderr) == (0, False)


def test_a_variable_that_the_profile_sets_itself_can_t_be_kept(execute):
    show, options = ("sh", "-c", "echo $OMP_NUM_THREADS"), ("--keep-env", "OMP_NUM_THREADS")
    own = execute("intel-omp", *show).stdout.strip()
    result = execute("intel-omp", *show, options=options, OMP_NUM_THREADS="77")
    assert result.stdout.strip() == own
    assert f"--keep-env OMP_NUM_THREADS keeps nothing: the profile itself sets OMP_NUM_THREADS={own}\n" in result.stderr
    assert "keeps nothing" not in execute("intel-omp", *show, options=options, OMP_NUM_THREADS=own).stderr


def test_the_witness_comes_before_the_users_own_python_path(execute, shared):
    show = ("sh", "-c", "echo $PYTHONPATH; ls -d $ENVKIT_EVIDENCE")
    result = execute("mine", *show)
    path, evidence = result.stdout.split()
    assert path == f"{PROJECT}/runner/envkit/worker/evidence_hook:{PYTHON_PATH.format(shared)}"
    assert not Path(evidence).exists()  # any more
    result = execute("mine", *show, options=("--no-check",))
    assert (result.stdout.splitlines()[0], result.stderr.count("envkit:")) == (PYTHON_PATH.format(shared), 0)


def test_an_empty_entry_of_the_python_path_stays(execute, shared):
    """It stands for the current folder."""
    path = f"{PYTHON_PATH.format(shared)}:"
    result = execute("mine", "sh", "-c", "echo $PYTHONPATH", PYTHONPATH=path)
    assert result.stdout == f"{PROJECT}/runner/envkit/worker/evidence_hook:{path}\n"


# --- signals ---


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGSEGV, "SIGSEGV (Segmentation fault)"), (signal.SIGKILL, "SIGKILL (Killed)"),
     (signal.SIGRTMIN + 1, f"{signal.SIGRTMIN + 1} ("), (signal.SIGPIPE, None)],
)  # fmt: skip
def test_the_signal_that_ended_a_command_is_named(execute, number, said):
    result = execute("mine", "sh", "-c", f"kill -{int(number)} $$")
    assert result.returncode == 128 + number
    named = [line for line in result.stderr.splitlines() if "was ended by" in line]
    assert [line.startswith(f"envkit: sh: was ended by signal {said}") for line in named] == [True] * (said is not None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_reaches_the_command_which_decides(start, number):
    name = number.name.removeprefix("SIG")
    # a shell that is about to read could miss the signal, and read on for ever
    waits = "for tenth in $(seq 6000); do sleep 0.1; done"
    process, _ = start(f"trap 'echo cleaned up; exit 7' {name}; echo ready; {waits}")
    process.send_signal(number)
    assert process.stdout.readline() == "cleaned up\n"
    assert process.wait(PATIENCE_S) == 7


def test_no_process_is_left_behind(start):
    process, pid = start("echo $$; exec cat")
    process.terminate()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    until(lambda: gone(int(pid)))


def test_ctrl_c_in_a_terminal_reaches_the_command_once(shared):
    # a shell that is about to read could miss the signal until it has read; one that waits for a process does not
    script = (
        "sleep 600 </dev/null >/dev/null 2>&1 & sleeper=$!; trap 'echo got it; kill $sleeper' INT; echo ready; "
        "wait; read line; echo end"
    )
    pid, terminal = in_a_terminal(shared, script)
    read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    seen = read_until(terminal, b"got it")
    os.write(terminal, b"\n")
    seen += read_until(terminal, b"end")
    assert seen.count(b"got it") == 1
    with contextlib.suppress(OSError):  # until the terminal is closed
        while True:
            os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_command_ends_with_its_terminal(shared, tmp_path):
    """The kernel tells only the leader of the session of that, which is the runner here."""
    runner, terminal = in_a_terminal(shared, "echo $$ > pid; echo ready; exec sleep 1000")
    read_until(terminal, b"ready")
    pid = int((tmp_path / "pid").read_text())
    os.close(terminal)
    try:
        until(lambda: gone(pid))
        assert os.waitstatus_to_exitcode(os.waitpid(runner, 0)[1]) == 128 + signal.SIGHUP
    finally:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


# --- profiles that are for several ranks ---


def test_one_process_of_a_profile_for_several_is_told_of(execute, write_profile):
    path = write_profile("several", "ranks: 2\n")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two ranks take two CPUs")
    said = (
        f"envkit: {path} has the settings of each of 2 ranks, and this starts one process; to start 2: "
        f"envkit exec {path} -- torchrun --nproc-per-node 2 train.py\n"
    )
    assert execute(path, "true").stderr.startswith(said)
    # what starts several itself, and one of them
    assert said not in execute(path, "true", WORLD_SIZE="2").stderr
    assert said not in execute(path, "sh", "-c", "true", "/bin/torchrun").stderr
    assert said in execute(path, "true", WORLD_SIZE="1").stderr


# --- evidence ---


def test_a_program_with_torch_testifies(execute, tmp_path):
    code = "import os, torch; os.environ['MKL_NUM_THREADS'] = '5'"
    result = execute("mine", *python(code), options=("--evidence", "seen.json")).ended(0)
    said, unverified, changed = result.stderr.splitlines()
    assert said == "envkit: mine was in effect, as far as it could be verified, in 1 process (checked: 2 variables)"
    why = "the program itself changed it to 5, and nothing tells which value was read"
    assert unverified == f"envkit:   variable MKL_NUM_THREADS was not verified: {why}"
    assert changed.startswith("envkit: process ")
    assert changed.endswith(") set MKL_NUM_THREADS=5: processes that it starts lack the profile's")
    document = json.loads((tmp_path / "seen.json").read_text())
    assert (document["in_effect"], document["status"], document["environment"]["profile"]) == (True, 0, "mine")
    (process,) = document["processes"]
    assert process["argv"] == [*python(code)]
    assert process["evidence"]["variables"]["sensitive"] == {"MKL_NUM_THREADS": "1"}
    assert process["changed_by_the_program"] == {"MKL_NUM_THREADS": "5"}


def test_what_the_program_sets_before_it_imports_torch_takes_effect(execute):
    """And what it sets back by then does not count; nor does it import torch when it asks whether that is there."""
    sets = "import os, importlib.util; os.environ['LRU_CACHE_CAPACITY'] = '5'"
    looks = "importlib.util.find_spec('torch')"
    for code in (f"{sets}; import torch", f"import importlib.util; {looks}; {sets}; import torch"):
        result = execute("torchs", *python(code)).ended(1)
        seen = "expected 1, seen 5, as the program itself set it before it imported torch (process "
        assert f"envkit:   variable LRU_CACHE_CAPACITY: {seen}" in result.stderr
    result = execute("torchs", *python(f"{sets}; {looks}; os.environ['LRU_CACHE_CAPACITY'] = '1'; import torch"))
    assert (result.returncode, result.stderr) == (
        0,
        "envkit: torchs was in effect in 1 process (checked: 1 variable)\n",
    )


def test_a_profile_that_was_not_in_effect_fails_a_command_that_did_not(execute):
    code = "import sys, torch; sys.exit(int(sys.argv[1]))"
    result = execute("wrong", *python(code), "0").ended(1)
    first, second = result.stderr.splitlines()
    assert first == "envkit: wrong was NOT in effect"
    assert second.startswith("envkit:   malloc.allocator: expected jemalloc, seen ")
    assert f"{sys.executable} -c import sys"[:40] in second
    assert execute("wrong", *python(code), "3").returncode == 3


def test_each_process_is_checked(execute, tmp_path):
    """Like torchrun: a parent that starts others with variables of its own, of which one spoils the profile."""
    (tmp_path / "parent.py").write_text(
        "import os, subprocess, sys, torch\n"
        "for number in sys.argv[1:]:\n"
        "    variables = {**os.environ, 'OMP_NUM_THREADS': '1', 'MKL_NUM_THREADS': number}\n"
        "    subprocess.run([sys.executable, '-c', 'import torch'], env=variables, check=True)\n"
    )
    result = execute("mine", sys.executable, "parent.py", "1", "1").ended(0)
    assert "mine was in effect in 3 processes" in result.stderr
    assert "the command itself set, for processes of its own: OMP_NUM_THREADS=1\n" in result.stderr
    result = execute("mine", sys.executable, "parent.py", "1", "4").ended(1)
    assert "mine was NOT in effect in 1 of 3 processes\n" in result.stderr
    assert "variable MKL_NUM_THREADS: expected 1, seen 4 (process " in result.stderr


def test_what_does_not_change_the_outcome_is_checked_too(execute):
    result = execute("mine", "env", "-u", "GREETING", *python("import torch")).ended(1)
    assert "envkit:   variable GREETING: expected hello, seen not set (process " in result.stderr


@pytest.mark.skipif(
    shutil.which("stdbuf") is None or "mkl-dispatch" not in locate(search_folders()),
    reason="stdbuf is not installed, or the kit has no library of its own to preload on this architecture",
)
def test_what_adds_to_a_profile_s_preload_leaves_it_in_effect(execute):
    """stdbuf does, and a profile that preloads is what one would start it under."""
    result = execute("preloads", "stdbuf", "-oL", *python("import torch")).ended(0)
    assert "preloads was in effect in 1 process" in result.stderr
    assert "the command itself set, for processes of its own: LD_PRELOAD=" in result.stderr
    seen = execute("preloads", "stdbuf", "-oL", "sleep", "4")  # as long as it takes to be looked at
    assert "seen from outside, 1 of 1 process had its variables" in seen.stderr


@pytest.mark.skipif("mkl-dispatch" not in locate(search_folders()), reason="the kit has none for this architecture")
@pytest.mark.parametrize("preload", ["", "libm.so.6:$LD_PRELOAD"])
def test_what_takes_a_preload_away_or_comes_before_it(execute, preload):
    script = f'LD_PRELOAD={preload} exec {sys.executable} -c "import torch"'
    result = execute("preloads", "sh", "-c", script).ended(1)
    assert "preloads was NOT in effect" in result.stderr


def test_a_command_may_take_away_what_says_where_things_are(execute):
    """As `module purge` does; what can change the outcome it may not, where it was to be kept."""
    caller = {"CUDA_HOME": "/usr/local/cuda", "OMP_NUM_THREADS": "7"}
    options = ("--keep-env", "OMP_NUM_THREADS")
    result = execute("mine", "env", "-u", "CUDA_HOME", *python("import torch"), options=options, **caller).ended(0)
    result = execute("mine", "env", "-u", "OMP_NUM_THREADS", *python("import torch"), options=options, **caller)
    assert result.returncode == 1
    assert "variable OMP_NUM_THREADS: expected 7, seen not set" in result.stderr


def test_variables_that_were_passed_on_are_named_only(execute, tmp_path):
    kept = {"OMP_NUM_THREADS": "7", "CUDA_VISIBLE_DEVICES": ""}
    options = ("--keep-env", "OMP_NUM_THREADS", "--evidence", "seen.json")
    assert execute("mine", *python("import torch"), options=options, **kept).returncode == 0
    assert json.loads((tmp_path / "seen.json").read_text())["passed_on"] == sorted(kept)


def test_what_outlives_the_command_is_quiet(shared, tmp_path):
    path = PYTHON_PATH.format(f"{PROJECT}/runner/envkit/worker/evidence_hook:{shared}")
    variables = {**os.environ, "PYTHONPATH": path, "ENVKIT_EVIDENCE": str(tmp_path / "gone")}
    result = subprocess.run(python("import torch"), env=variables, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_command_that_can_only_be_seen_from_outside(execute, tmp_path):
    seconds = "4"  # as long as it takes to be looked at, also where a machine is slow to begin
    evidence = ("--evidence", "seen.json")
    result = execute("mine", "sleep", seconds, options=evidence).ended(0)
    said = "seen from outside, 1 of 1 process had its variables (nothing more can be seen)"
    assert said in result.stderr
    assert json.loads((tmp_path / "seen.json").read_text())["in_effect"] is True
    result = execute("wrong", "sleep", seconds, options=evidence)  # which expects what can't be seen so
    assert (result.returncode, said in result.stderr) == (0, True)
    assert json.loads((tmp_path / "seen.json").read_text())["in_effect"] is None
    result = execute("mine", "env", "-u", "GREETING", "sleep", seconds).ended(1)
    assert "envkit: mine was NOT in effect (seen from outside)\n" in result.stderr
    assert "envkit:   GREETING is not set, not hello (process " in result.stderr


def test_a_command_of_which_only_some_processes_had_the_environment(execute, tmp_path):
    """The shell had it, and what it started did not."""
    result = execute("mine", "sh", "-c", "env -u GREETING sleep 4; true", options=("--evidence", "seen.json")).ended(0)
    first, second = result.stderr.splitlines()
    assert first.startswith("envkit: mine: not known whether it was in effect: no Python process with torch ended")
    assert first.endswith("seen from outside, 1 of 2 processes did not have all of it")
    assert second.startswith("envkit:   GREETING is not set, not hello (process ")
    assert second.endswith(": sleep 4)")
    assert json.loads((tmp_path / "seen.json").read_text())["in_effect"] is None


def test_a_command_that_is_too_short_to_be_seen(execute):
    result = execute("mine", "true").ended(0)
    assert "envkit: mine: can't be checked: no Python process with torch ended in it" in result.stderr


def test_what_the_runner_says_may_have_no_reader(shared, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with which nothing is left to be written at the end
    arguments = command_line("exec", shared / "wrong.yaml", "--", "sh", "-c", "exit 5")
    for to in ("&-", "/dev/full"):
        assert subprocess.run(["sh", "-c", f'"$@" 2>{to}', "sh", *arguments], check=False).returncode == 5


def test_a_profile_that_won_on_another_kind_of_machine(execute, tmp_path):
    """It is said once, also where what the profile comes to was kept; and nothing where it won on this kind."""
    head = "title: A test\nwhy: {reason: A test., source: here}\nenv: {GREETING: hello}\n"
    (tmp_path / "won.yaml").write_text(f"name: won\n{head}")
    (tmp_path / "won.evidence.json").write_text('{"machine_kind": {"cpu": "Z80 (1/1)", "usable_cpus": 1}}')
    for _ in range(2):
        result = execute(str(tmp_path / "won.yaml"), "true").ended(0)
        assert result.stderr.count("profile 'won' won on Z80 (1/1) with 1 usable CPU, and this is ") == 1
    (tmp_path / "won.evidence.json").unlink()
    assert "won on" not in execute(str(tmp_path / "won.yaml"), "true").stderr


# --- memory that ran out ---

FILL = "held = []\nwhile True: held.append(bytearray(b'x' * 2**22))"
IN_CHILD = f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-c', {FILL!r}]).returncode != 0)"


@pytest.fixture
def memory_group():
    group = MemoryGroup(f"envkit-test-exec-{os.getpid()}", 160 * 2**20)
    yield group
    until(lambda: not (group.folder / "cgroup.procs").read_text())
    group.folder.rmdir()


@pytest.mark.parametrize(
    ("code", "status", "killed"), [(FILL, 137, "python"), (IN_CHILD, 1, "1 child process of python")]
)
def test_memory_that_ran_out_is_named_with_its_limit(shared, memory_group, code, status, killed):
    program = Path(sys.executable).with_name("python")
    result = subprocess.run(
        command_line("exec", "glibc-retain", "--", program, "-c", code), preexec_fn=memory_group.enter,
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == status
    assert (
        f"envkit: the kernel killed {killed} because memory ran out; control group /{memory_group.folder.name} "
        "reached its limit of 160 MiB (peak 160 MiB, with page cache and children); GLIBC_TUNABLES keeps freed memory, "
        "which makes that likelier\n"
    ) in result.stderr


def test_a_kill_without_want_of_memory_is_not_explained_by_it(execute):
    result = execute("glibc-retain", "sh", "-c", "kill -KILL $$").ended(137)
    assert "memory" not in result.stderr
