"""Links to hosts: what was started on them, whose output comes in whole lines, and which ends with this process.

Of a host that is not reached a line says so: ``unreached HOST why``.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from envkit.common.errors import FAILED
from envkit.engines.hosts import ssh
from envkit.engines.hosts.ssh import Patience
from envkit.engines.start import GIVEN

UNREACHED = "unreached"
# To end, after that was told and KILL has come, too.
END_S = 15.0
# How often it is looked whether one has ended, and that in the moment in which one does.
LOOK_S, ENDING_S = 0.5, 0.02


class Link:
    """One host: ``status`` is None until what was started there has ended; then the link is over, too."""

    def __init__(self, host: str, command: Sequence[str], until: float, given: bytes) -> None:
        self.host = host
        self.until = until  # it has to have begun, or ended, by then
        self.begun = False
        self.silent = False  # it has closed its output
        self.gave_up = ""
        self.status: int | None = None
        self._unsent = given  # what a login reads of it would be lost: nothing is sent before the command's first word
        self._rest = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the link
        self._by_ssh = command[0] == "ssh"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self.output = self.process.stdin, self.process.stdout
        os.set_blocking(self.output.fileno(), False)
        os.set_blocking(self._input.fileno(), False)

    def beat(self) -> None:
        self._unsent += b"\n"

    def send(self) -> None:
        """As much as there is room for."""
        if self.begun and self._unsent:
            with contextlib.suppress(OSError, ValueError):  # it is over, or was told to end
                self._unsent = self._unsent[self._input.write(self._unsent) or 0 :]

    def let_go(self) -> None:
        """Tell the host that nobody is there any more."""
        with contextlib.suppress(OSError):
            self._input.close()

    def take(self) -> bool:
        """Print what has come, line by line, from the first word of the command's own on; whether more may come."""
        try:
            new = os.read(self.output.fileno(), 65536)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            if self.begun:
                sys.stdout.buffer.write(line + b"\n")
            self.begun = self.begun or line.strip() == ssh.BEGUN
        sys.stdout.buffer.flush()
        return bool(new)

    def give_up(self, why: str) -> None:
        self.gave_up = why
        self.process.kill()

    def end(self) -> None:
        """Say what is left to say of what has ended."""
        status = self.process.wait()
        self.let_go()
        self.take()
        self.output.close()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")
        self._errors.close()
        if self.gave_up or (self._by_ssh and (status == ssh.BROKEN or status < 0)):
            print(f"{UNREACHED} {self.host} {self.gave_up or ssh.problem(self.host, said, self.begun)}", flush=True)
            self.status = FAILED
        else:
            sys.stderr.write(said)
            sys.stderr.flush()
            self.status = FAILED if status < 0 else status


class Links:
    """To all hosts of a job; where the descriptor ``lifeline`` comes to its end, all are told to end.

    ``given`` is a value that each has in the variable GIVEN. Where they work ``together``, the others are told to end
    when one ends badly.
    """

    def __init__(
        self, job: str, lifeline: int, patience: Patience, given: str | None = None, together: bool = False
    ) -> None:
        self.let_down = False  # the lifeline has ended
        self.statuses: list[int] = []  # in the order in which hosts ended
        self._job, self._lifeline, self._patience, self._given = job, lifeline, patience, given
        self._together = together
        self._told = False  # all were told to end
        self._left: list[Link] = []
        self._selector = selectors.PollSelector()
        self._selector.register(lifeline, selectors.EVENT_READ)
        self._began = self._beaten = time.monotonic()

    def start(self, hosts: Sequence[str], command: Sequence[str], here: str | None = None) -> None:
        """Start the command on each of these; on that called ``here``, which this machine is, without ssh."""
        if select.select([self._lifeline], [], [], 0)[0] and not os.read(self._lifeline, 4096):
            self.let_down = True
            return
        taken = GIVEN if self._given is not None else None
        given = b"" if self._given is None else self._given.encode() + b"\n"
        for number, host in enumerate(hosts):
            variables = {"SLURMD_NODENAME": host, "SLURM_JOB_ID": self._job, "SLURM_NODEID": str(number)}
            if host == here:
                argv = ssh.guarded(variables, command, self._patience, taken)
            else:
                argv = ssh.command(host, variables, command, self._patience, taken)
            link = Link(host, argv, self._began + self._patience.answer_s, given)
            self._selector.register(link.output, selectors.EVENT_READ, link)
            self._left.append(link)

    def wait(self) -> None:
        """Until all have ended."""
        while self._left:
            self._listen()
            self._judge(time.monotonic())
            for link in self._left:
                link.send()
                if link.process.poll() is not None:
                    with contextlib.suppress(KeyError):
                        self._selector.unregister(link.output)
                    link.end()
                    self.statuses.append(link.status or 0)
                    if link.status and self._together:
                        self._tell()
            self._left = [link for link in self._left if link.status is None]

    def _listen(self) -> None:
        ending = any(link.silent for link in self._left)
        for key, _ in self._selector.select(ENDING_S if ending else LOOK_S):
            if key.data is not None:
                if not key.data.take():
                    key.data.silent = True
                    self._selector.unregister(key.fileobj)
            elif not os.read(self._lifeline, 4096):
                self._selector.unregister(self._lifeline)
                self.let_down = True
                self._tell()

    def _tell(self) -> None:
        """All to end."""
        if not self._told:
            self._told = True
            for link in self._left:
                link.let_go()
                link.until = time.monotonic() + self._patience.kill_wait_s + END_S

    def _judge(self, now: float) -> None:
        beat = now - self._beaten >= self._patience.beat_s
        if beat:
            self._beaten = now
        within_s = self._patience.within_s
        for link in self._left:
            if beat:
                link.beat()
            if link.begun and not self._told:
                link.until = self._began + within_s if within_s else math.inf
            if now <= link.until:
                continue
            if self._told:
                link.give_up("did not end when it was told to; look there for what still runs")
            elif link.begun:
                link.give_up(
                    f"did not say within {within_s:g} s what it has; does the folder that all share hang there?"
                )
            else:
                answer_s = self._patience.answer_s
                link.give_up(f"starts nothing within {answer_s:g} s; what keeps its login? Try: ssh {link.host} true")
