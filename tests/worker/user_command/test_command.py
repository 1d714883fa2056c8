"""The worker that runs somebody's own command: small shell programs in the place of training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from envkit.bench.parse_sample import SAMPLE_KEYS
from envkit.checks.effect import check
from envkit.checks.effect_messages import IgnoredByUnknown
from envkit.messages import from_json
from envkit.profiles.environment import Environment
from envkit.worker.messages.evidence import LeavesNoEvidence, SeenFromOutside, SomeUnobserved
from envkit.worker.messages.left import SomeUnread
from envkit.worker.messages.metrics import LossesUnlikeSteps, NoMatch, NotANumber
from envkit.worker.messages.user_command import (
    CommandEnded,
    CommandKilled,
    LastLine,
    NoExecFormat,
    NoFolder,
    NoInterpreter,
    NoOutput,
    NoProgram,
    NotExecutable,
    NotInPath,
)
from envkit.worker.user_command import command

from tests import worker_runs
from tests.conftest import PROJECT
from tests.processes import gone, until
from tests.worker.user_command.conftest import started

# What a short shell script may say of its steps: more would be longer than it takes.
MICROSECONDS = {"metric": r"t=(\d)", "unit": "us"}
IMPATIENT = "from envkit.worker import child, command_line; child.GRACE_S = 0.1; command_line.main()"


def pids_in(path):
    """The processes that the command has written down, once they are there."""
    return [int(pid) for pid in until(lambda: path.exists() and path.read_text()).split()]


def test_the_whole_command_is_one_step(run):
    result = run("sleep 0.1")
    assert result.status == 0
    assert result.document.keys() >= SAMPLE_KEYS
    assert result.document["step_s"] == [pytest.approx(result.document["seconds"])]
    assert result.document["seconds"] >= 0.1
    assert (result.document["losses"], result.document["images_per_step"]) == ([], None)


@pytest.mark.slow
def test_lines_end_steps(answered):
    wait = 'timeout 240 sh -c "until [ -e seen-$step ]; do sleep 0.02; done" || exit 1; sleep 0.05'
    script = f"for step in 1 2 3 4; do echo step $step; {wait}; done"
    document = answered(metric="^step", warmup=1, argv=["sh", "-c", script])
    assert [len(document[name]) for name in ("warmup_step_s", "step_s")] == [1, 2]
    assert all(0.05 <= step < document["seconds"] for step in document["step_s"])


def test_a_progress_bar_on_stderr(run):
    script = r"for rate in 4 5 8 10; do printf '\r%s%%|##  | %s.0it/s' $rate $rate >&2; sleep 0.01; done; echo >&2"
    document = run(script, metric=r"([\d.]+)it/s", unit="per-second").document
    assert document["step_s"] == [0.25, 0.2, 0.125, 0.1]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([(b"one\ntwo\r\n", 1.0)], [(b"one", 1.0), (b"two", 1.0)]),
        ([(b"one", 1.0), (b"\n", 2.0)], [(b"one", 1.0)]),
        ([(b"on", 1.0), (b"e\nt", 2.0), (b"wo", 3.0)], [(b"one", 2.0), (b"two", 3.0)]),
        # the carriage return that ends a bar's line comes with the next
        ([(b"\rone", 1.0), (b"\rtwo", 2.0)], [(b"one", 1.0), (b"two", 2.0)]),
    ],
)
def test_a_line_came_when_its_text_came(pieces, lines, capfd, monkeypatch):
    found = []
    watched = command._Watched(None, 0.0)
    monkeypatch.setattr(watched, "line", lambda text, at_s: found.append((text, at_s)))
    read, write = os.pipe()
    stream = command._Stream()
    for text, at_s in pieces:
        os.write(write, text)
        assert command._take(read, stream, watched, at_s)
    os.close(write)
    assert not command._take(read, stream, watched, 9.0)
    os.close(read)
    assert [(text, at_s) for text, at_s in found if text] == lines
    assert capfd.readouterr().err == b"".join(text for text, _ in pieces).decode()


def test_lines_are_taken_from_both_streams_and_passed_on(run):
    result = run("echo t=1; echo t=2 >&2; printf t=3", **MICROSECONDS)
    assert sorted(result.document["step_s"]) == [1e-6, 2e-6, 3e-6]
    assert {"t=1", "t=2"} <= set(result.stderr.replace("t=3", "").splitlines())


def test_of_much_output_the_beginning_and_the_end_are_passed_on(run):
    result = run("echo begin; yes 'a line like many others' | head -n 15000; echo end", metric="^(?:begin|end)")
    assert (result.stderr.startswith("begin"), result.stderr.rstrip().endswith("end")) == (True, True)
    assert len(result.stderr) <= 3 * command.PASSED_ON


@pytest.mark.slow
def test_the_last_words_of_a_command_that_hangs_are_said_before_it_is_killed(tmp_path):
    script = "head -c 200000 /dev/zero | tr '\\0' '\\n'; echo last words; sleep 240; touch woken"
    process = started(folder=tmp_path, argv=["sh", "-c", script])
    try:
        for line in process.stderr:
            if "last words" in line:
                assert not (tmp_path / "woken").exists()
                break
        else:
            raise AssertionError("it ended without a word")
    finally:
        process.kill()
        process.communicate()


def test_what_the_command_prints_is_not_taken_for_the_document(run):
    assert run("echo '{\"seconds\": 1}'; head -c 300000 /dev/urandom").document.keys() >= SAMPLE_KEYS


def test_output_without_line_ends_is_read_on(run):
    document = run("head -c 300000 /dev/zero | tr '\\0' x; echo; echo t=1; echo t=2", **MICROSECONDS).document
    assert document["step_s"] == [1e-6, 2e-6]


@pytest.mark.slow
def test_output_of_what_it_left_behind_is_not_waited_for(tmp_path):
    """Which may never end."""
    process = started(**MICROSECONDS, folder=tmp_path, argv=["sh", "-c", "echo t=1; echo t=2; yes & sleep 0.1"])
    try:
        stdout, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert json.loads(stdout)["step_s"] == [1e-6, 2e-6]


PRINTS = """
import os, time
end = time.monotonic() + 240
for step in range(4):
    print("step", step)
    while not os.path.exists(f"seen-{step}"):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.1)
"""


@pytest.mark.slow
def test_python_prints_without_delay(answered):
    document = answered(metric="^step", argv=[sys.executable, "-c", PRINTS])
    assert min(document["step_s"]) >= 0.1  # held back, all would come at one moment, and none be answered


def test_children_count_to_what_it_used(run):
    """A subshell's work, and that of a program which it starts."""
    document = run("(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); true").document
    assert document["usage"]["user_s"] + document["usage"]["system_s"] > 0.05
    assert document["usage"]["worker_cpus"] == len(os.sched_getaffinity(0))


def test_the_command_runs_in_its_folder_with_the_variables_given(run, tmp_path):
    result = run('echo "$PWD $OMP_NUM_THREADS $MINE"', OMP_NUM_THREADS="3", MINE="yes")
    assert result.stderr.splitlines() == [f"{tmp_path} 3 yes"]
    assert result.document["evidence"]["variables"]["sensitive"] == {"OMP_NUM_THREADS": "3"}


def test_the_callers_own_python_path_still_counts(run, tmp_path):
    (tmp_path / "mine.py").write_text("print('found', customised)")
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customised = 'and customised'")
    result = run("", argv=[sys.executable, "-c", "import mine"], PYTHONPATH=str(tmp_path))
    assert result.stderr.splitlines() == ["found and customised"]


# --- what did not go well ---


def test_a_command_that_is_not_there(refused, tmp_path):
    assert refused("", argv=["train-it"]) == NotInPath("train-it")
    assert refused("", argv=["./train-it"]) == NoProgram("./train-it", str(tmp_path))
    (tmp_path / "train-it").write_text("")
    assert refused("", argv=["./train-it"]) == NotExecutable("./train-it", "Permission denied")
    (tmp_path / "train-it").chmod(0o755)
    assert refused("", argv=["./train-it"]) == NoExecFormat("./train-it", "Exec format error")
    (tmp_path / "train-it").write_text("#!/bin/bash\r\necho\r\n")
    assert refused("", argv=["./train-it"]) == NoInterpreter("./train-it")
    assert refused("true", folder=tmp_path / "gone") == NoFolder(f"{tmp_path}/gone")


def test_a_command_that_fails(refused):
    assert refused("exit 3") == CommandEnded(3, NoOutput())
    problem = refused("echo step 1; echo 'Error: no data' >&2; exit 1", metric="epoch")
    assert problem == CommandEnded(1, LastLine("Error: no data"))
    assert refused("kill -s 37 $$") == CommandKilled("37", NoOutput())
    assert refused("kill -SEGV $$") == CommandKilled("SIGSEGV", NoOutput())


def test_a_metric_that_never_matches(refused):
    problem = refused("echo 1; echo 2", metric="epoch")
    assert problem == NoMatch("step", "metric", "epoch", 2, "2")


def test_a_bar_that_begins_with_a_rate_of_0(run, refused):
    script, metric = "for rate in 0.00 4 5; do echo $rate it/s; done", {"metric": "(.*) it/s", "unit": "per-second"}
    document = run(script, **metric, warmup=1).document
    assert document["step_s"] == [0.25, 0.2]
    assert document["warmup_step_s"] == [1e-9]
    problem = refused(script, **metric)
    assert isinstance(problem, NotANumber)
    assert problem.value == "'0.00'"


# --- its losses ---

STEPS = "for step in 1 2 3 4; do echo step $step loss 0.$step t=$step; done"


@pytest.mark.parametrize(
    ("how", "losses"),
    [
        ({}, [0.1, 0.2, 0.3, 0.4]),
        (MICROSECONDS, [0.1, 0.2, 0.3, 0.4]),
        ({**MICROSECONDS, "warmup": 3}, [0.4]),
    ],
)
def test_losses_are_read_beside_the_steps(run, how, losses):
    result = run(STEPS, **how, loss_metric=r"loss (\S+)")
    assert (result.status, result.document["losses"]) == (0, losses)


def test_losses_that_are_no_numbers_are_in_the_sample(run):
    losses = run("echo loss=1.5; echo loss=nan; echo loss=-inf >&2", loss_metric=r"loss=(\S+)").document["losses"]
    assert sorted(map(str, losses)) == ["-inf", "1.5", "nan"]


def test_losses_of_a_log_in_json_and_lines_of_the_clock(run):
    script = "for step in 3 2 1; do echo '{\"loss\": '$step'}'; sleep 0.2; done"
    document = run(script, metric="loss", loss_metric="$.loss").document
    assert (len(document["step_s"]), document["losses"]) == (2, [2.0, 1.0])


def test_losses_that_can_not_be_read(refused):
    assert refused(f"{STEPS}; echo loss 1", **MICROSECONDS, loss_metric=r"loss (\S+)") == LossesUnlikeSteps(5, 4)
    unmatched = refused(STEPS, loss_metric="cost (.+)")
    assert isinstance(unmatched, NoMatch)
    assert (unmatched.kind, unmatched.metric, unmatched.lines) == ("loss", "cost (.+)", 4)
    assert refused("echo loss none; sleep 60", loss_metric=r"loss (\S+)") == NotANumber(
        "a loss", "'none'", "loss none", "loss metric"
    )


# --- what it leaves behind ---


def test_nothing_that_the_command_starts_outlives_it(run, tmp_path):
    """Neither a program in the background nor one that has left the session."""
    run("sleep 300 & echo $! > pids; setsid sleep 300 & echo $! >> pids; sleep 0.1")
    assert [gone(pid) for pid in pids_in(tmp_path / "pids")] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_with_the_worker(tmp_path, number):
    process = started(folder=tmp_path, argv=["sh", "-c", "echo $$ > pid.new; mv pid.new pid; exec sleep 300"])
    (pid,) = pids_in(tmp_path / "pid")
    process.send_signal(number)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (-number, "", "")
    until(lambda: gone(pid))


@pytest.mark.slow
def test_a_command_that_will_not_end_is_killed_with_what_it_started(tmp_path):
    script = "trap '' TERM; sleep 300 & echo $$ $! > pids.new; mv pids.new pids; wait; sleep 300"
    process = started(folder=tmp_path, argv=["sh", "-c", script], worker=("-c", IMPATIENT))
    pids = pids_in(tmp_path / "pids")
    process.terminate()
    process.communicate()
    assert [gone(pid) for pid in pids] == [True, True]


def test_the_command_ends_when_the_runner_is_killed(tmp_path):
    """Its grandchild too, although the kernel tells only the worker."""
    script = "sleep 300 & echo $! > pid.new; mv pid.new pid; wait"
    work = worker_runs.command(tmp_path, ["sh", "-c", script])
    runner = f"""
import os, subprocess, sys
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest
line = WorkerRequest({work!r}, parent=os.getpid()).line()
subprocess.run([sys.executable, "-m", "envkit.worker", "-"], input=line, text=True)
"""
    process = subprocess.Popen([sys.executable, "-c", runner], cwd=PROJECT, stdin=subprocess.DEVNULL)
    (pid,) = pids_in(tmp_path / "pid")
    process.kill()
    process.wait()
    until(lambda: gone(pid))


def test_no_evidence_folder_is_left(run, own_surroundings):
    run("true")
    run("exit 1")
    assert list((own_surroundings / "tmp").iterdir()) == []


# --- what it was made of ---


def test_digests(run, tmp_path):
    (tmp_path / "train.sh").write_text("echo t=1; echo t=2; echo again >> log")
    (tmp_path / "log").write_text("")
    argv = ["sh", "train.sh", "--log", "log"]
    first, second = (run("", **MICROSECONDS, argv=argv).document["digests"] for _ in range(2))
    assert first == second
    assert first.keys() == {"command", "file train.sh"}
    (tmp_path / "train.sh").write_text("echo t=1; echo t=2")
    changed = run("", **MICROSECONDS, argv=argv).document["digests"]
    assert changed["file train.sh"] != first["file train.sh"]
    assert changed["command"] == first["command"]
    assert run("", **MICROSECONDS, loss_metric=r"t=(\d)", argv=argv).document["digests"] == changed
    assert run("", metric=r"t=(\d)", unit="ms", argv=argv).document["digests"]["command"] != first["command"]


# --- evidence ---


@pytest.mark.slow
def test_without_a_witness_preloads_and_variables_are_seen_from_outside(run, tmp_path):
    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line)
    missing = str(tmp_path / "libmissing.so")
    given = {"LD_PRELOAD": f"{library}:{missing}", "KMP_BLOCKTIME": "2"}
    evidence = run("sleep 3", **given).document["evidence"]
    assert from_json(evidence["not_observed"]) == SeenFromOutside(LeavesNoEvidence())
    preload, expected = {"there": library, "missing": missing}, {"openmp.runtime": "intel"}
    profile = Environment("mine", "A test", given, preload, (), expected, "same")
    # one preload is there; whether a library reads the variable can't be known
    assert {one.key: one.seen for one in check(profile, evidence, {}) if not one.holds} == {
        "preload.missing": "not mapped",
        "openmp.runtime": "not seen",
        "variable KMP_BLOCKTIME": IgnoredByUnknown().to_json(),
    }


def test_the_main_evidence_is_that_of_the_command_itself_and_all_others_are_kept(run):
    """Of several processes the command's own is the main one, else the first."""
    document = '{"pid": %s, "argv": ["x"], "evidence": {"mark": "%s", "variables": {}, "seconds": 0}, "seconds": 0}'
    leave = f"leave() {{ printf '{document}' $1 $2 > $ENVKIT_EVIDENCE/$1.json; }}"
    script = f"{leave}; leave 70002 later; leave 70001 first"
    found = run(script).document
    assert found["evidence"]["mark"] == "first"
    evidence = {"mark": "later", "variables": {}, "seconds": 0}
    assert found["other_processes"] == [{"pid": 70002, "argv": ["x"], "evidence": evidence}]
    found = run(f"{script}; leave $$ main").document
    assert found["evidence"]["mark"] == "main"
    assert [one["pid"] for one in found["other_processes"]] == [70001, 70002]
    assert run("true").document["other_processes"] == []


@pytest.mark.parametrize(
    "spoil", ["echo junk >", "printf '[%.0s' $(seq 5000) >", "mkfifo", "mkdir", "ln -s /dev/zero", "echo [] >"]
)
def test_evidence_that_can_not_be_used_takes_nothing_with_it(run, spoil):
    """The sample counts, and says what is missing."""
    script = f"{spoil} $ENVKIT_EVIDENCE/7.json"
    alone = from_json(run(script).document["evidence"]["not_observed"])
    assert isinstance(alone, SeenFromOutside)
    assert isinstance(alone.reason, SomeUnread)
    assert (alone.reason.count, alone.reason.name) == (1, "7.json")
    good = '{"pid": 9, "argv": ["x"], "evidence": {"variables": {}, "seconds": 0}}'
    beside = run(f"{script}; echo '{good}' > $ENVKIT_EVIDENCE/9.json").document["evidence"]
    assert from_json(beside["not_observed"]) == SomeUnobserved(alone.reason)


def test_the_time_that_evidence_takes_is_no_training(run):
    evidence = '{"pid": 1, "argv": [], "evidence": {"variables": {}, "seconds": 0.9}}'
    begin = time.monotonic()
    (step_s,) = run(f"sleep 1; echo '{evidence}' > $ENVKIT_EVIDENCE/1.json").document["step_s"]
    assert 0.1 <= step_s < time.monotonic() - begin - 0.9
    # all of it, where the witness says so
    whole = evidence.replace("}}", '}, "seconds": 1000}')
    (step_s,) = run(f"sleep 0.2; echo '{whole}' > $ENVKIT_EVIDENCE/1.json").document["step_s"]
    assert step_s < 0.001


@pytest.mark.parametrize(("given", "seen"), [({}, "False True"), ({"PYTHONUNBUFFERED": ""}, "False False")])
def test_a_line_is_written_at_once_and_in_one_piece(run, monkeypatch, given, seen):
    """Else several ranks write between each other's parts of a line. Who asks for buffers has them."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    script = "import sys; print(sys.stdout.write_through, sys.stdout.line_buffering)"
    assert f"{seen}\n" in run("", argv=[sys.executable, "-c", script], **given).stderr


def test_last_words_on_stderr_are_not_held_back(run):
    script = "import os, sys; sys.stderr.write('fatal: no more'); os._exit(0)"
    assert "fatal: no more" in run("", argv=[sys.executable, "-c", script]).stderr


def test_complaints_of_libraries_stay_in_sight(run):
    complaint = "OMP: Warning #96: Cannot form a team with 8 threads, using 2 instead."
    result = run(f"echo '{complaint}'; head -c 5000 /dev/zero | tr '\\0' x; echo")
    assert complaint in result.stderr[-500:]
