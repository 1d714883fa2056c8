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
from envkit.worker.host import expand_cpu_list
from envkit.worker.libraries import COMPLAINT, LIBRARIES, LOADER, NUMA, setting
from envkit.worker.performance_variables import PRELOAD, is_performance_variable, preloaded

# What the loader could not use: object '/x' from LD_PRELOAD cannot be preloaded, audit interface '/x' requires ...
OBJECT = re.compile(r"'([^']*)'")
AUDIT = "LD_AUDIT"
VARIABLE = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b")
# Several variables for one thing: a runtime that refuses one may name another of them.
SAME_THING = [{*setting(purpose)} for purpose in ("binding", "stack", "waiting", "limit")]
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
    by = [name for name, library in LIBRARIES.items() if library.complaint and re.match(library.complaint, line)]
    of_its_kind = {library for library in running if LIBRARIES[library].kind == LIBRARIES[by[0]].kind}
    if of_its_kind and of_its_kind.isdisjoint(by):
        return False  # another process printed it, or a runtime that does no work
    return any(name not in proved for name in _read_by(by, environment))


def _names_of_the_profile(line: str, environment: Environment) -> bool | None:
    """Return whether a runtime or an allocator names something that the profile sets; None if it names nothing."""
    if pair := PAIR.match(line):
        return pair[1].strip() in map(str.strip, environment.variables.get(CONF, "").split(","))
    if team := TEAM.search(line):
        return environment.variables.get(THREADS, "").partition(",")[0] == team[1]
    named = {name for name in VARIABLE.findall(line) if is_performance_variable(name)}
    if not named:
        return None
    return not named.union(*(group for group in SAME_THING if group & named)).isdisjoint(environment.variables)


def _is_preloaded(line: str, environment: Environment) -> bool:
    """Return whether the loader complains of the profile's preloads, not of those that the caller keeps."""
    objects = {*environment.preload.values(), *preloaded(environment.variables.get(AUDIT, ""))}
    named = OBJECT.search(line)
    if named is not None and named[1].startswith(f"${PRELOAD}"):
        return True  # as a record has what the caller preloads, which is judged by what is mapped
    return named[1] in objects if named else bool(objects)


def _is_of_the_prefix(line: str, environment: Environment) -> bool:
    """Return whether the profile's numactl may have printed a line: its arguments have the named one."""
    if not environment.prefix or Path(environment.prefix[0]).name != "numactl":
        return False
    argument = ARGUMENT.search(line)
    lists = (cpus.rstrip(",-") for option in environment.prefix[1:] for cpus in re.findall(r"\d[\d,-]*", option))
    return argument is None or int(argument[1]) in set().union(*map(expand_cpu_list, lists))


def _read_by(libraries: Collection[str], environment: Environment) -> Iterator[str]:
    """Yield the profile's variables that one of these ``libraries`` reads."""
    described = catalogue.load()
    for name in environment.variables:
        if name != PRELOAD and name in described and not described[name].read_by.keys().isdisjoint(libraries):
            yield name
