"""Run a command in the runner's own place: in the same process group and terminal, and with the signals sent to it.

The runner waits meanwhile. Signals from the terminal (Ctrl-C) reach the command anyway. A signal sent to envkit alone
is passed on if programs are commonly ended or steered with it. A signal that a program sends to the whole group, as
``timeout`` does, reaches the command twice. How to end is for the command to decide.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
# Those that Python itself ignores, which a command would inherit.
PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)
FOREVER_S = 10.0**9
SI_KERNEL = 0x80  # siginfo_t's si_code of what a terminal sends to its whole group (asm-generic/siginfo.h)


def launch(
    executable: str, argv: list[str], variables: Mapping[str, str], look: Callable[[int], None],
    moments: Iterator[float],
) -> int:  # fmt: skip
    """Run ``argv`` and return its exit status, or -N where signal N ended it.

    ``look`` is called with the number of its process, ``moments`` seconds after the start as long as it runs. Raises
    OSError if it can't be started.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored no status is kept
    passed_on = {number for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN}  # nohup
    waited_for = {signal.SIGCHLD, *passed_on}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        begin = time.monotonic()
        pid = _spawn(executable, argv, variables, before)
        due = next(moments, FOREVER_S)
        while True:
            sent = signal.sigtimedwait(waited_for, max(0.0, begin + due - time.monotonic()))
            if sent is None:
                look(pid)
                due = next(moments, FOREVER_S)
            elif sent.si_signo != signal.SIGCHLD:
                if sent.si_code != SI_KERNEL or _has_lost_its_terminal(sent.si_signo):
                    with contextlib.suppress(PermissionError):  # it has become another user's, as sudo does
                        os.kill(pid, sent.si_signo)  # not waited for yet, so the number is still its own
            else:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(status)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_lost_its_terminal(number: int) -> bool:
    """Return whether a signal of the kernel is the one that it sends to a session's leader alone."""
    return number == signal.SIGHUP and os.getsid(0) == os.getpid()


def _spawn(executable: str, argv: list[str], variables: Mapping[str, str], mask: Iterable[int]) -> int:
    try:
        return os.posix_spawn(executable, argv, variables, setsigmask=mask, setsigdef=PYTHONS_OWN)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # a script without a first line that names its interpreter: shells run it themselves
        shell = ["sh", executable, *argv[1:]]
        return os.posix_spawn("/bin/sh", shell, variables, setsigmask=mask, setsigdef=PYTHONS_OWN)
