"""Which of the complaints that libraries printed concern a profile.

All processes of a command print to the same streams, and a program may show the log of another one. The text of a
complaint alone tells what it is about: an object that the loader did not preload, a variable, an option.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from envkit.profiles import catalogue
from envkit.profiles.environment import Environment
from envkit.worker.complaints import COMPLAINT, LOADER, NUMA
from envkit.worker.host import expand_cpu_list
from envkit.worker.libraries import LIBRARIES
from envkit.worker.performance_variables import PRELOAD, is_performance_variable, preloaded

# What the loader could not use: object '/x' from LD_PRELOAD cannot be preloaded, audit interface '/x' requires ...
OBJECT = re.compile(r"'([^']*)'")
AUDIT = "LD_AUDIT"
VARIABLE = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b")
# Several variables for one thing: a runtime that refuses one may name another of them.
SAME_THING = (
    {"KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY"},
    {"KMP_STACKSIZE", "OMP_STACKSIZE", "GOMP_STACKSIZE"},
    {"KMP_BLOCKTIME", "KMP_LIBRARY", "OMP_WAIT_POLICY"},
    {"KMP_ALL_THREADS", "KMP_DEVICE_THREAD_LIMIT", "OMP_THREAD_LIMIT"},
)
# It names no variable, but the number that OMP_NUM_THREADS or the program asked for.
TEAM = re.compile(r"Cannot form a team with (\d+) threads")
THREADS = "OMP_NUM_THREADS"
# Invalid conf pair: dirty_decay_mss:-1
PAIR = re.compile(r"<jemalloc>: [^:]+: (\S+:.*)")
CONF = "MALLOC_CONF"
# node argument 7 is out of range
ARGUMENT = re.compile(r"\bargument (\d+)")


def complaints(printed: str) -> list[str]:
    """Return the lines of ``printed`` in which a library complains, each once."""
    return [*dict.fromkeys(match.group().strip() for match in COMPLAINT.finditer(printed))]


def concerns(line: str, environment: Environment, running: Collection[str], proved: Collection[str]) -> bool:
    """Tell whether a complaint is about something that the profile sets.

    ``running`` are the runtimes and allocators of the process that the profile is about, and ``proved`` those of the
    profile's variables whose values are in force there. Both decide where a complaint names nothing.
    """
    if re.match(LOADER, line):
        return _is_preloaded(line, environment)
    if re.match(NUMA, line):
        return _is_of_the_prefix(line, environment)
    named = _names_of_the_profile(line, environment)
    if named is not None:
        return named
    by = [name for name, one in LIBRARIES.items() if one.complaint and re.match(one.complaint, line)]
    of_its_kind = {library for library in running if LIBRARIES[library].kind == LIBRARIES[by[0]].kind}
    if of_its_kind and of_its_kind.isdisjoint(by):
        return False  # another process printed it, or a runtime that does no work
    return any(name not in proved for name in _read_by(by, environment))


def _names_of_the_profile(line: str, environment: Environment) -> bool | None:
    """Whether a runtime or an allocator names something that the profile sets; None where it names nothing."""
    if pair := PAIR.match(line):
        return pair[1].strip() in map(str.strip, environment.variables.get(CONF, "").split(","))
    if team := TEAM.search(line):
        return environment.variables.get(THREADS, "").partition(",")[0] == team[1]
    named = {name for name in VARIABLE.findall(line) if is_performance_variable(name)}
    if not named:
        return None
    return not named.union(*(group for group in SAME_THING if group & named)).isdisjoint(environment.variables)


def _is_preloaded(line: str, environment: Environment) -> bool:
    """Whether the loader speaks of what the profile preloads, and not of what the caller keeps in LD_PRELOAD."""
    objects = {*environment.preload.values(), *preloaded(environment.variables.get(AUDIT, ""))}
    found = OBJECT.search(line)
    if found is not None and found[1].startswith(f"${PRELOAD}"):
        return True  # as a record has what the caller preloads, which is judged by what is mapped
    return found[1] in objects if found else bool(objects)


def _is_of_the_prefix(line: str, environment: Environment) -> bool:
    """Whether the profile's own numactl may have printed it: one that was given the argument that is named."""
    if not environment.prefix or Path(environment.prefix[0]).name != "numactl":
        return False
    argument = ARGUMENT.search(line)
    lists = (found.rstrip(",-") for option in environment.prefix[1:] for found in re.findall(r"\d[\d,-]*", option))
    return argument is None or int(argument[1]) in set().union(*map(expand_cpu_list, lists))


def _read_by(libraries: Collection[str], environment: Environment) -> Iterator[str]:
    """The profile's variables that one of these ``libraries`` reads."""
    known = catalogue.load()
    for name in environment.variables:
        if name != PRELOAD and name in known and not known[name].read_by.keys().isdisjoint(libraries):
            yield name
