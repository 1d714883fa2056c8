"""Run one command as a session of its own, with a time limit, and end all of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.common import documents, files
from envkit.common.errors import InputError
from envkit.engines import owner
from envkit.engines.base import Outcome, ended, tail
from envkit.engines.messages import ExitStatus, Killed, TimedOut
from envkit.engines.setup_messages import ForeignNotes, NotesUnwritable
from envkit.messages import Message
from envkit.worker import cgroup
from envkit.worker.measure import turn
from envkit.worker.request import WorkerRequest

GRACE_S = 5.0
READ_BYTES = 2**16
OTHERS_CAN_WRITE = 0o022
# Slurm signals all processes of a job: the runner's own signal may come a moment after that of its worker, and on a
# node whose CPUs are all busy that moment is longer.
OWN_SIGNAL_S = 1.0
LONGEST_S = 2**31 / 1000 - 1  # poll(2) takes its time limit in milliseconds, in 31 bits


class Process:
    """A command that was started as a session of its own. Whoever starts it must see that ``end`` is called.

    It reads ``request`` at its stdin. One that is started ``ahead`` then waits for its turn there
    (``envkit.worker.measure.turn``).

    Raises FileNotFoundError or PermissionError if it can't be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        request: WorkerRequest | None = None,
        ahead: bool = False,
    ) -> None:
        self._begin = time.monotonic()
        self._before_ready = b""
        notes, me = _make_notes(), owner.me()
        self._memory, self._program, self._variables = cgroup.memory_counters(), Path(command[0]).name, environment
        process = None
        try:
            with _interrupts_held_back():
                stdin = subprocess.DEVNULL if request is None else subprocess.PIPE
                process = subprocess.Popen(
                    command, cwd=folder, env=environment, stdin=stdin,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                )  # fmt: skip
            self._note = _write_down(process.pid, notes, me)
        except BaseException:  # an interrupt that was held back, too
            if process is not None:
                end(process)
            raise
        self._process = process
        self._unread = request.line() if request else None
        if ahead:
            self._write((self._unread or "").encode())
            self._unread = None

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def is_ready(self, wait_s: float) -> bool:
        """Return whether it waits for its turn, as its next line tells. Wait ``wait_s`` seconds at most."""
        assert self._process.stdout is not None, "its output is read here"
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        if poll.poll(wait_s * 1000):
            self._before_ready += (output := os.read(self._process.stdout.fileno(), READ_BYTES))
            if not output:  # it has closed it, and so is never ready
                time.sleep(wait_s)
        return turn.after_ready(self._before_ready) is not None

    def give_turn(self) -> None:
        self._write(turn.GO)

    def _write(self, text: bytes) -> None:
        """Write what fits into a pipe."""
        assert self._process.stdin is not None, "it was started ahead"
        with contextlib.suppress(BrokenPipeError):  # it has ended
            os.write(self._process.stdin.fileno(), text)

    def wait(self, timeout_s: float) -> Outcome:
        """How it ended; after ``timeout_s`` seconds from now its whole session is ended."""
        process = self._process
        failure: Message | None = None
        try:
            stdout, stderr = process.communicate(self._unread, min(timeout_s, LONGEST_S))
        except subprocess.TimeoutExpired:
            failure = TimedOut(timeout_s, "SIGSTOP" if _is_stopped(process.pid) else None)
            end(process)
            stdout, stderr = process.communicate()
        stdout = self._of_before(stdout)
        failure = failure or self._with_memory(failure_of(process.returncode))
        if failure:
            _kill_session(process.pid)  # what a worker that was killed has left running
            if process.returncode < 0 or process.returncode > 128:
                time.sleep(OWN_SIGNAL_S)  # where it comes, the worker did not fail: it was told to end, as we were
        return Outcome(stdout, tail(stderr), time.monotonic() - self._begin, failure)

    def _with_memory(self, failure: ExitStatus | Killed | None) -> ExitStatus | Killed | None:
        """Return the failure, with the memory that ran out if the kernel killed the worker or its children for it."""
        if failure is None:
            return None
        was_killed = isinstance(failure, Killed) and failure.signal == signal.SIGKILL.name
        ran_out = cgroup.ran_out(self._memory, self._program, was_killed, self._variables)
        return failure if ran_out is None else failure.replace(memory=ran_out)

    def _of_before(self, stdout: str) -> str:
        """All that it has printed; of one that was ready, what it has printed since."""
        after = turn.after_ready(self._before_ready)
        return (self._before_ready if after is None else after).decode(errors="replace") + stdout

    def end(self) -> None:
        """End its whole session where it still runs. One that waits for its turn then ends by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.returncode is None:
            end(self._process)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._note.unlink(missing_ok=True)


@dataclass
class Started:
    """A worker that is a process of the runner's, or is started by one: what engines return.

    ``finish`` adds what the engine knows of how it ended, and ``clean`` removes what the engine made for it.
    """

    process: Process
    timeout_s: float
    finish: Callable[[Outcome], Outcome] = lambda outcome: outcome
    clean: Callable[[], None] = lambda: None

    def has_ended(self) -> bool:
        return self.process.has_ended()

    def is_ready(self, wait_s: float) -> bool:
        return self.process.is_ready(wait_s)

    def give_turn(self) -> None:
        self.process.give_turn()

    def wait(self) -> Outcome:
        return self.finish(self.process.wait(self.timeout_s))

    def end(self) -> None:
        try:
            self.process.end()
        finally:
            self.clean()


def run_process(command: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float) -> Outcome:
    """Run ``command`` in ``folder``; after ``timeout_s`` seconds or an interrupt its whole session is ended.

    Raises FileNotFoundError or PermissionError if the command can't be started.
    """
    return ended(Started(Process(command, environment, folder), timeout_s))


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let an interrupt wait until the process that is being started is known, and so can be ended."""
    waiting: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, frame: waiting.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if waiting:
            os.kill(os.getpid(), waiting[0])


def _is_stopped(session: int) -> bool:
    """Return whether the leader of the session was stopped by a signal (state T in proc(5)'s stat)."""
    fields = owner.stat_fields(session)
    return fields is not None and fields[0] == "T"


def failure_of(status: int) -> ExitStatus | Killed | None:
    """Return what an exit status means: below 0, or above 128 as shells and containers report it, a signal."""
    if status == 0:
        return None
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return Killed(signal.Signals(number).name)
    return ExitStatus(status)


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """SIGTERM to the group, which Apptainer cleans up after, and SIGKILL to what is left after a grace period."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    _kill_session(process.pid)
    process.wait()


def _kill_session(session: int) -> None:
    """SIGKILL to a whole session: what serves a mounted image is in a group, but not in a session of its own."""
    for entry in Path("/proc").glob("[0-9]*"):
        fields = owner.stat_fields(int(entry.name))
        if fields and int(fields[3]) == session:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)


def _notes() -> Path:
    # other nodes may share the temporary folder, and have sessions of the same numbers
    return Path(tempfile.gettempdir()) / f"envkit-workers-{os.getuid()}-{platform.node()}"


def _is_mine(folder: Path) -> bool:
    """Return whether this user made the folder: what another one noted there must not be believed."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & OTHERS_CAN_WRITE


def _make_notes() -> Path:
    """Return the folder for notes. Raise InputError if there can be none, which another user may see to."""
    folder = _notes()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_mine(folder):
            raise InputError(ForeignNotes(str(folder))) from None
    except OSError as error:
        raise InputError(NotesUnwritable(str(folder), str(error.strerror))) from None
    return folder


def _write_down(session: int, notes: Path, me: str) -> Path:
    """Make a note of the session, for whoever finds it after this runner was killed; its file."""
    note = notes / str(session)
    note.write_text(json.dumps({"owner": me, "started": owner.started(session)}))
    return note


def remove_leftovers() -> None:
    """End the sessions of runners that are gone.

    The number of a session is not used again while a process of it lives, so a living leader that started at another
    time means that all of the noted session has ended.
    """
    if not _is_mine(_notes()):
        return
    for note in _notes().glob("[0-9]*"):
        try:
            document = documents.parse(files.read(note))
        except (OSError, ValueError):  # the runner was killed while it wrote the note
            document = None
        if document is not None:
            if not owner.is_gone(document["owner"]):
                continue
            if owner.started(int(note.name)) in (None, document["started"]):
                _kill_session(int(note.name))
        note.unlink(missing_ok=True)
