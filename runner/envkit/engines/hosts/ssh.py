"""The command that starts something on a host, and what ssh's messages mean. https://man.openbsd.org/ssh"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Nothing is asked for, an unknown or changed host key ends it, and a host that says nothing more is given up. A shared
# connection (ControlMaster) would outlive what ends this one.
OPTIONS = (
    "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10", "-o", "ControlPath=none",
    "-o", "ServerAliveCountMax=3", "-T",
)  # fmt: skip
# The exit status of ssh itself, where it is not that of what it started.
BROKEN = 255
BEGUN = b"envkit-begun"


@dataclass(frozen=True)
class Patience:
    """In seconds: how long a host has to answer and to end, and what silence means that the link to it is broken."""

    answer_s: float = 40.0  # to the first word from the host: ssh connects within 10 s or not at all
    within_s: float = 0.0  # to the end of what was started; 0: however long that takes
    alive_s: int = 15  # so often ssh asks the host for a sign of life, and gives it up after three without an answer
    beat_s: float = 10.0  # so often a line goes to the host, which shows that somebody is there
    silence_s: int = 60  # without a line for so long the link counts as broken there, also where nothing says so
    kill_wait_s: float = 20.0  # a process group is told to end, and so long after that it is ended, as Slurm does


# What runs on the host: the command in a process group of its own, which ends with the link. For the link's end is that
# of the standard input, on which lines come as long as somebody is there. What bash itself says goes nowhere: where the
# link is gone SIGPIPE would end it too early.
GUARD = """\
set -m
exec 3<&0 4>&2 2>/dev/null
echo {begun}
{take}"$@" </dev/null 2>&4 3<&- 4>&- &
child=$!
{{
    while read -r -t {silence} -u 3; do :; done
    kill -TERM -- "-$child"
    sleep {wait}
    kill -KILL -- "-$child"
}} >/dev/null 4>&- &
watch=$!
wait "$child"
status=$?
kill -KILL -- "-$watch" "-$child"
exit "$status"
"""
# The first of these lines may be the value of a variable, which is on no command line so.
TAKE = "read -r -t {silence} -u 3 {variable} && export {variable} || exit 1\n"

# How ssh's own lines begin where a link breaks.
ENDED = re.compile(r"Connection (to|closed|reset)|Timeout, server|client_loop:|packet_write|ssh: ")
NOT_UP = "does not answer ({last}); is it up? Try: ssh {host} true"
NO_KEY = "lets nobody in without a password, and none is asked for here; put your key there: ssh-copy-id {host}"
# By words of ssh's.
MEANINGS = {
    "host key verification failed":
        "its host key is in no known_hosts file here; log in once by hand, and compare the key: ssh {host}",
    "could not resolve":
        "no such host: its name can't be resolved here; correct --hosts, or name it in ~/.ssh/config ({last})",
    "permission denied": NO_KEY,
    "too many authentication failures": NO_KEY,
    "connection refused": "no sshd answers there; start one, or give its port in ~/.ssh/config ({last})",
    "timed out": NOT_UP,
    "no route to host": NOT_UP,
}  # fmt: skip


def command(
    host: str, variables: Mapping[str, str], argv: Sequence[str], patience: Patience, taken: str | None = None
) -> list[str]:
    """What starts ``argv`` on a host with these ``variables`` beside those that a login has there.

    ``taken`` is the name of one more, whose value is the first line of the standard input.
    """
    alive = ("-o", f"ServerAliveInterval={patience.alive_s}")
    return ["ssh", *OPTIONS, *alive, "--", host, shlex.join(guarded(variables, argv, patience, taken))]


def guarded(variables: Mapping[str, str], argv: Sequence[str], patience: Patience, taken: str | None) -> list[str]:
    """The same on this machine itself, without ssh."""
    take = TAKE.format(variable=taken, silence=patience.silence_s) if taken else ""
    guard = GUARD.format(begun=BEGUN.decode(), silence=patience.silence_s, wait=patience.kill_wait_s, take=take)
    return ["bash", "-c", guard, "envkit", "env", *(f"{name}={value}" for name, value in variables.items()), *argv]


def address(host: str) -> str:
    """Where ssh reaches a host: a name or an address. Raises OSError."""
    told = subprocess.run(
        ["ssh", "-G", "--", host], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    found = dict(line.partition(" ")[::2] for line in told.stdout.splitlines())
    if "hostname" not in found:
        raise OSError(f"ssh -G {host} names none")
    return found["hostname"]


def problem(host: str, said: str, begun: bool) -> str:
    """What ssh's own messages mean, in one line without the host's name, and the mend.

    ``begun`` says whether the command on the host had been started.
    """
    lines = [line.strip() for line in said.strip().splitlines()]
    if begun:  # what was started there may have said something, too
        lines = [line for line in lines if ENDED.match(line)]
    last = lines[-1] if lines else "ssh ended and says nothing"
    if begun:
        return f"the link to it broke ({last}); what was measured stays"
    words = said.lower()
    if "identification has changed" in words:
        return _changed(said, host)
    for known, meaning in MEANINGS.items():
        if known in words:
            return meaning.format(host=shlex.quote(host), last=last)
    return f"ssh starts nothing there ({last}); try: ssh {shlex.quote(host)} true"


def _changed(said: str, host: str) -> str:
    found = re.search(r"Offending (?:\S+ )?key in (.+):(\d+)", said)
    file, line = found.groups() if found else ("known_hosts", "?")
    named = re.search(r'ssh-keygen -f .+? -R "?([^"\n]+)"?', said)
    remove = f"ssh-keygen -f {shlex.quote(file)} -R {shlex.quote(named.group(1) if named else host)}"
    return f"its host key is another than in {file}, line {line}; if it was set up anew: {remove}, and log in by hand"
