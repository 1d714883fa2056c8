"""Check a profile's ``prefix``: a known launcher, by name, and options of it.

A launcher starts the first word that is no option. So all words are checked by the launcher's own rules (its manual
page): no word of a file is ever taken for a program. Which file the name stands for is for the PATH of the caller, or
of the container, to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.messages import Message
from envkit.profiles import code_variables
from envkit.profiles.limit_messages import LacksValue, NotALauncher, NotOfLauncher

ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]*=.*"


@dataclass(frozen=True)
class Launcher:
    """The words of a launcher: options without a value, with one, and with one that follows ``=`` only."""

    flags: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    number: bool = False  # takes an option that is a number, as -10
    operand: str = ""  # the pattern of words that are no options
    least: int = 0  # so many of those must be there
    most: int = 0


LAUNCHERS = {
    "numactl": Launcher(
        flags=("--all", "-a", "--balancing", "-b", "--localalloc", "-l"),
        values=("--interleave", "-i", "--weighted-interleave", "-w", "--preferred", "-p", "--preferred-many", "-P",
                "--physcpubind", "-C", "--cpunodebind", "-N", "--cpubind", "-c", "--membind", "-m"),
    ),
    "taskset": Launcher(
        flags=("--all-tasks", "-a", "--cpu-list", "-c"), operand=r"[0-9a-fA-Fx,:-]+", least=1, most=1
    ),
    "nice": Launcher(values=("--adjustment", "-n"), number=True),
    "ionice": Launcher(flags=("--ignore", "-t"), values=("--class", "-c", "--classdata", "-n")),
    "chrt": Launcher(
        flags=("--batch", "-b", "--deadline", "-d", "--ext", "-e", "--fifo", "-f", "--idle", "-i", "--other", "-o",
               "--rr", "-r", "--reset-on-fork", "-R"),
        values=("--sched-runtime", "-T", "--sched-period", "-P", "--sched-deadline", "-D"),
        operand=r"[0-9]+", least=1, most=1,
    ),
    "setarch": Launcher(
        flags=("--32bit", "-B", "--fdpic-funcptrs", "-F", "--short-inode", "-I", "--addr-compat-layout", "-L",
               "--addr-no-randomize", "-R", "--whole-seconds", "-S", "--sticky-timeouts", "-T", "--read-implies-exec",
               "-X", "--mmap-page-zero", "-Z", "--3gb", "-3", "--4gb"),
        operand=r"x86_64|aarch64|ppc64le|s390x|linux64", most=1,
    ),
    "prlimit": Launcher(
        attached=("--as", "--core", "--cpu", "--data", "--fsize", "--locks", "--memlock", "--msgqueue", "--nice",
                  "--nofile", "--nproc", "--rss", "--rtprio", "--rttime", "--sigpending", "--stack"),
    ),
    "env": Launcher(values=("--unset", "-u"), operand=ASSIGNMENT, most=1000),
}  # fmt: skip
NUMBER = re.compile(r"--?[0-9]+")


def problem(words: Sequence[str]) -> tuple[int, Message] | None:
    """Return which word of a prefix is wrong, and why; None for a prefix that can be used.

    ``words`` have no expressions left in them. A launcher may start another one.
    """
    at = 0
    while at < len(words):
        name = words[at]
        if name not in LAUNCHERS:
            return at, NotALauncher(name, tuple(LAUNCHERS))
        end = _end(name, words, at + 1)
        if not isinstance(end, int):
            return end
        at = end
    return None


def _end(name: str, words: Sequence[str], at: int) -> int | tuple[int, Message]:
    """Return where the words of a launcher end, which begin at ``at``; or which of them is wrong, and why."""
    launcher, operands = LAUNCHERS[name], 0
    while at < len(words):
        word = words[at]
        taken = _option(launcher, word)
        if not taken:
            if operands >= launcher.least and word in LAUNCHERS:
                break
            if operands == launcher.most or not re.fullmatch(launcher.operand, word, re.DOTALL):
                return at, NotOfLauncher(word, name, (*launcher.flags, *launcher.values, *launcher.attached))
            if name == "env" and (reason := code_variables.problem(*word.split("=", 1))):
                return at, reason
            operands, taken = operands + 1, 1
        if at + taken > len(words):
            return at, LacksValue(name, word)
        at += taken
    return at if operands >= launcher.least else (at - 1, LacksValue(name))


def _option(launcher: Launcher, word: str) -> int:
    """Return how many words an option takes with its value: 0 for a word that is no option."""
    if word in launcher.flags or (launcher.number and NUMBER.fullmatch(word)):
        return 1
    if word in launcher.values:
        return 2
    name, equals, _ = word.partition("=")
    if name.startswith("--"):
        return 1 if equals and name in (*launcher.values, *launcher.attached) else 0
    # one letter with its value behind it, as -N0
    return 1 if len(word) > 2 and word[:2] in launcher.values else 0
