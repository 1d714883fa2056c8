"""A child process that does not outlive this one, nor does what it starts; its end can be awaited beside its output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType

# linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Less than what the engines give a worker to end in.
GRACE_S = 3.0
POLL_S = 0.02


def signal_name(number: int) -> str:
    """``SIGSEGV``, or the number of a signal without a name, as most real-time signals are."""
    return {number_of.value: number_of.name for number_of in signal.Signals}.get(number, str(number))


def die_with(parent: int, number: int) -> bool:
    """Have the kernel send signal ``number`` when the process ``parent`` ends; whether it is our parent still.

    It stays so when this process becomes another program (prctl(2)).
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    return os.getppid() == parent


class Stopped(BaseException):
    """This process was told to stop, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Child:
    """Started when the context is entered; when it is left nothing of it runs any more.

    In the context a signal to stop raises Stopped. Processes that the child leaves behind become this process's own
    (PR_SET_CHILD_SUBREAPER, prctl(2)), so that they are found. Raises OSError if the command can't be started.
    """

    def __init__(self, argv: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        self._argv, self._folder, self._environment = argv, folder, environment

    def __enter__(self) -> Child:
        self.ended, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self.ended, False)
        self._earlier_wake = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, _stop) for number in STOPPING}
        # a signal without a handler would not be written to the pipe
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            prctl = ctypes.CDLL(None).prctl
            adopt()
            parent = os.getpid()

            def prepare() -> None:
                os.setpgid(0, 0)
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)  # it was gone before the kernel could be asked to tell

            self._process = subprocess.Popen(
                self._argv, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, preexec_fn=prepare, bufsize=0,  # noqa: PLW1509 - there is one thread only
            )  # fmt: skip
        except BaseException:
            self._close()
            raise
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def pipes(self) -> tuple[int, int]:
        """The file descriptors to read its stdout and stderr from."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return self.process.stdout.fileno(), self.process.stderr.fileno()

    @property
    def status(self) -> int:
        """Its exit status; a signal's number below 0."""
        return self.process.wait()

    def has_ended(self) -> bool:
        """Return whether it has ended; ask whenever ``ended``, a file descriptor, can be read."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.ended, 4096):
                pass
        return self.process.poll() is not None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for number in STOPPING:  # this is the end already
            signal.signal(number, signal.SIG_IGN)
        if self._process is not None:
            self._end(self._process)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
        kill_children()
        signal.set_wakeup_fd(self._earlier_wake)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self.ended)
        os.close(self._wake)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask it to end, and its group; not for long."""
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        process.kill()
        process.wait()


def adopt() -> None:
    """Be the parent of what children leave behind from now on, so that it is found (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def kill_children() -> None:
    """SIGKILL to all children, and to theirs, which are ours when their parents are gone."""
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    children = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])  # proc(5)
        except (OSError, IndexError):
            continue  # it has just ended
        if parent == os.getpid():
            children.append(int(entry.name))
    return children


def end_by(number: int) -> int:
    """End this process as ``number`` would have; the exit status for where that is not allowed (the first process)."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(POLL_S)
    return 128 + number
