"""Commands as sessions of their own: limits, ends, and what a killed runner leaves behind."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from envkit.engines import owner, process
from envkit.engines.messages import ExitStatus, Killed, TimedOut
from envkit.engines.process import failure_of, remove_leftovers, run_process
from envkit.engines.setup_messages import ForeignNotes

from tests import second_user
from tests.processes import gone, until
from tests.refusals import refusal

SLEEP_S = 600


@pytest.fixture
def shell(tmp_path):
    """Run a shell script as a worker is run."""
    return lambda script, timeout_s=60.0: run_process(["/bin/sh", "-c", script], os.environ, tmp_path, timeout_s)


@pytest.fixture
def sleeper():
    """Start a session that sleeps, and end it in any case."""
    started = []

    def start():
        started.append(subprocess.Popen(["/bin/sleep", str(SLEEP_S)], start_new_session=True))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


def notes():
    return Path(tempfile.gettempdir()) / f"envkit-workers-{os.getuid()}-{platform.node()}"


def test_output_time_and_a_good_end(shell):
    outcome = shell("echo out; echo err >&2; sleep 0.2")
    assert (outcome.stdout, outcome.stderr_tail, outcome.failure) == ("out\n", "err\n", None)
    assert outcome.seconds >= 0.2


def test_much_output_does_not_block_and_only_the_tail_of_stderr_is_kept(shell):
    outcome = shell("yes o | head -c 300000; { yes e | head -c 300000; echo; echo last; } >&2")
    assert len(outcome.stdout) == 300_000
    assert len(outcome.stderr_tail) == 2000
    assert outcome.stderr_tail.endswith("last\n")


def test_output_that_is_no_text(shell):
    assert shell(r"printf 'a\377b'").stdout == "a\ufffdb"


def test_a_complaint_of_a_library_is_kept_however_much_follows(shell):
    printed = shell("echo 'libgomp: Invalid value for X' >&2; seq 5000 >&2").stderr_tail
    assert printed.startswith("libgomp: Invalid value for X\n")
    assert printed.endswith("4999\n5000\n")
    assert len(printed) < 2100


def test_it_runs_in_the_folder_with_the_environment_given(tmp_path):
    outcome = run_process(["/bin/sh", "-c", "pwd; env | sort"], {"ONLY": "this"}, tmp_path, 60)
    assert outcome.stdout.splitlines()[0] == str(tmp_path)
    assert "ONLY=this" in outcome.stdout
    assert "HOME=" not in outcome.stdout


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (0, None),
        (3, ExitStatus(3)),
        (-9, Killed("SIGKILL")),
        (137, Killed("SIGKILL")),
        (139, Killed("SIGSEGV")),
        (250, ExitStatus(250)),
    ],
)
def test_what_an_exit_status_means(status, failure):
    assert failure_of(status) == failure


def test_a_command_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_process(["/no/such/command"], {}, tmp_path, 60)


def test_after_the_time_limit_the_whole_group_is_ended(shell, tmp_path):
    begin = time.monotonic()
    outcome = shell(f"sleep {SLEEP_S} & echo $! > child; echo started; sleep {SLEEP_S}", timeout_s=4)
    assert time.monotonic() - begin < SLEEP_S / 2
    assert outcome.failure == TimedOut(4.0)
    assert outcome.stdout == "started\n"
    until(lambda: gone(int((tmp_path / "child").read_text())))


def test_what_ignores_sigterm_is_killed(shell, monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    outcome = shell(f"trap '' TERM; echo $$; sleep {SLEEP_S} & while :; do wait; done", timeout_s=4)
    assert outcome.failure == TimedOut(4.0)
    assert gone(int(outcome.stdout))


def test_an_interrupt_ends_the_group_too(shell, tmp_path):
    def interrupt(number, frame):
        if (tmp_path / "pid").exists() and any(notes().glob("[0-9]*")):  # it is known, and so can be ended
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            shell(f"echo $$ > pid.new; mv pid.new pid; sleep {SLEEP_S}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_interrupt_while_it_is_started_ends_it(tmp_path, monkeypatch):
    started, start = [], subprocess.Popen

    def interrupted(*arguments, **options):
        started.append(start(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        process.Process(["/bin/sleep", str(SLEEP_S)], os.environ, tmp_path)
    assert gone(started[0].pid)


def test_nothing_is_noted_when_all_has_ended(shell):
    shell(f"ls {notes()} > noted; exit 1")
    shell(f"sleep {SLEEP_S}", timeout_s=0.2)
    assert list(notes().iterdir()) == []


def test_a_session_is_noted_while_it_runs(shell, tmp_path):
    outcome = shell(f'echo $$; until [ -n "$(ls {notes()})" ]; do sleep 0.02; done; ls {notes()}')
    session, noted = outcome.stdout.split()
    assert session == noted


# --- what a runner that was killed has left behind ---


def note(session, **fields):
    gone_runner = f"{os.uname().nodename}/{os.getuid()}/{owner.boot_id()}/{owner.namespace()}/1/not-then"
    document = {"owner": gone_runner, "started": owner.started(session)}
    notes().mkdir(mode=0o700, exist_ok=True)
    (notes() / str(session)).write_text(json.dumps({**document, **fields}))


def test_leftovers_of_a_killed_runner_are_ended():
    """The runner is killed while its worker runs; the worker does not die with it, as an Apptainer's would not."""
    script = (
        "import os, pathlib; from envkit.engines.process import run_process\n"
        f"run_process(['/bin/sleep', '{SLEEP_S}'], os.environ, pathlib.Path('/'), 60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", script])
    try:
        until(lambda: any(noted.stat().st_size for noted in notes().glob("[0-9]*")))
        session = int(next(notes().glob("[0-9]*")).name)
        remove_leftovers()
        assert not gone(session)  # its runner lives
    finally:
        runner.kill()
        runner.wait()
    remove_leftovers()
    until(lambda: gone(session))
    assert list(notes().iterdir()) == []


def test_a_number_that_another_session_has_now_is_left_alone(sleeper):
    other = sleeper()
    note(other.pid, started="12345")
    remove_leftovers()
    assert other.poll() is None
    assert list(notes().iterdir()) == []


def test_another_machines_and_a_living_runners_notes_are_left_alone(sleeper):
    one, two = sleeper(), sleeper()
    note(one.pid, owner=f"elsewhere/{os.getuid()}/{owner.boot_id()}/{owner.namespace()}/1/1")
    note(two.pid, owner=owner.me())
    remove_leftovers()
    assert (one.poll(), two.poll()) == (None, None)
    assert len(list(notes().iterdir())) == 2


@pytest.mark.parametrize("content", ["", '{"owner": "x'])
def test_a_note_cut_short_by_the_kill_is_removed(sleeper, content):
    one = sleeper()
    note(one.pid)
    (notes() / str(one.pid)).write_text(content)
    remove_leftovers()
    assert one.poll() is None
    assert list(notes().iterdir()) == []


# Makes the folder for notes first, or puts something else there.
SQUAT = """
path = Path(sys.argv[1])
{"folder": path.mkdir, "link": lambda: path.symlink_to(sys.argv[3]), "fifo": lambda: os.mkfifo(path)}[sys.argv[2]]()
"""


@second_user.needs_root
@pytest.mark.parametrize("what", ["folder", "link", "fifo"])
def test_another_user_who_takes_the_place_of_the_notes_first_is_answered_before_anything_starts(
    shared_folder, tmp_path, what
):
    second_user.said(SQUAT, notes(), what, tmp_path)
    begun = tmp_path / "begun"
    assert refusal(run_process, ["touch", str(begun)], dict(os.environ), tmp_path, 60.0) == ForeignNotes(str(notes()))
    assert not begun.exists()
    assert list(tmp_path.iterdir()) == []
    remove_leftovers()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's folder")
def test_notes_in_a_folder_that_another_user_made_are_not_believed(sleeper):
    """Anyone can make this folder in /tmp first, and would so have a user's own sessions ended."""
    one = sleeper()
    note(one.pid)
    os.chown(notes(), 65534, 65534)
    remove_leftovers()
    assert one.poll() is None
