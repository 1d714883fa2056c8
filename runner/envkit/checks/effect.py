"""Was a profile in effect? Compare what it expects with what a worker observed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from envkit.checks import complaints
from envkit.checks.effect_messages import (
    GLIBC_MALLOC,
    ChangedByProgram,
    Ignored,
    IgnoredByUnknown,
    NoComplaint,
    NoSuchSetting,
    NotAskedFor,
    ReadBy,
    RemovedByProgram,
    SeenFromOutside,
    SetBeforeTorch,
    SetByProgram,
    Value,
)
from envkit.messages import Message, from_json
from envkit.profiles import catalogue
from envkit.profiles.catalogue import Variable
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import read_at_start
from envkit.profiles.values import number_or_boolean
from envkit.worker.libraries import LIBRARIES, of_kind
from envkit.worker.performance_variables import is_performance_variable, without
from envkit.worker.readings import NOT_VERIFIED

# A runtime may spell a text in its own way; what is seen here has the worker's words, which are the variable's.
OWN_WORDS = {"openmp.wait_policy"}
# What is shown of a program that left no evidence of its own.
NOT_SEEN = "not seen"
# What an allocator that was seen from outside does, which only the process itself could tell.
OF_MEMORY = ("malloc.settings.", "memory.")
# Kinds of libraries whose variables nothing reads while another one runs. A second BLAS may work for other code.
EXCLUSIVE = ("openmp", "allocator")
# Libraries that nothing but PyTorch brings and uses.
OF_TORCH = {"pytorch", "onednn"}


@dataclass(frozen=True)
class Check:
    """One thing that was expected, and what was seen in its place: a value, or a message as JSON.

    It is not ``verified`` if the worker can't tell. ``seen`` is then the reason, a message as JSON. This does not prove
    that something else happened, so the check ``holds``, and reports say that it was not verified.
    """

    key: str
    expected: Any
    seen: Any
    verified: bool = True

    @property
    def holds(self) -> bool:
        return not self.verified or _same(self.expected, self.seen)


def shown(value: Any) -> Message:
    """Return what a check expects or has seen as a field of a message. A worker's reason is the message as JSON."""
    if isinstance(value, dict):
        with contextlib.suppress(KeyError, TypeError):  # of another version, or evidence that a program made up
            return from_json(value)
    return Value(str(value))


def _same(expected: Any, seen: Any) -> bool:
    """Return whether two values are equal. Runtimes' texts may differ in case (``CLOSE``), but 1 is not True."""
    if isinstance(expected, str) and isinstance(seen, str):
        return expected.lower() == seen.lower()
    return type(expected) is type(seen) and bool(expected == seen)


def check(
    environment: Environment, evidence: Mapping[str, Any], kept: Mapping[str, str], printed: str = ""
) -> list[Check]:
    """Everything that must hold, in the order to read it: preloads, the profile's `expect`, then the variables.

    The worker must, of the variables that can change the outcome, have been given the profile's and those that the user
    chose to keep (``kept``), and no other. The profile's settings must be read by a library that runs, have the value
    that it was given, and be refused by no library in what the worker ``printed`` to stderr. The list has only what
    does not hold or was not verified.
    """
    preloaded = evidence["variables"].get("preloaded", {})
    checks = [
        Check(f"preload.{library}", "mapped", preloaded.get(path, NotAskedFor().to_json()))
        for library, path in environment.preload.items()
    ]
    # a user's own command that left no evidence was seen from outside only
    missing = NOT_SEEN if "not_observed" in evidence else None
    checks += [_expectation(key, expected, evidence, missing) for key, expected in environment.expect.items()]
    wanted = {name: value for name, value in {**kept, **environment.variables}.items() if is_performance_variable(name)}
    given = evidence["variables"].get("sensitive", {})
    variables = [
        Check(f"variable {name}", wanted.get(name, "not set"), given.get(name, "not set"))
        for name in sorted(wanted.keys() | given.keys())
    ]
    # others of the profile's, which the evidence hook in a user's command was asked for
    variables += [
        Check(f"variable {name}", environment.variables[name], "not set" if value is None else value)
        for name, value in evidence["variables"].get("named", {}).items()
        if name in environment.variables.keys() - wanted.keys()
    ]
    # settings of the caller's own in a list of the profile's are neither verified nor blamed on the profile
    own = without(environment.variables, kept)
    in_force = ((name, own[name]) for name, value in environment.variables.items() if given.get(name) == value)
    variables += _implied(environment.expect, in_force, evidence)
    for name, seen in changed(environment, evidence).items():
        if given.get(name) == environment.variables[name] and not read_at_start(name):
            checks, variables = (_by_the_program(name, seen, one, environment) for one in (checks, variables))
            variables += _nobody_tells(name, seen, environment, evidence)
    lines = [
        line
        for line in complaints.complaints(printed)
        if not _is_unrelated(line, replace(environment, variables=own), evidence)
    ]
    variables += [Check("stderr", NoComplaint().to_json(), line) for line in lines]
    return checks + [variable for variable in variables if not (variable.holds and variable.verified)]


def changed(environment: Environment, evidence: Mapping[str, Any]) -> dict[str, Mapping[str, str | None]]:
    """Those of the profile's variables that the program itself changed after its start, as the evidence has them."""
    found = evidence["variables"].get("changed", {})
    return {name: found[name] for name in environment.variables if name in found}


def _by_the_program(
    name: str, seen: Mapping[str, str | None], checks: Iterable[Check], environment: Environment
) -> list[Check]:
    """Return the ``checks``; those that fail by what the program made of the variable ``name`` say so."""
    keys, value = set_by(name, environment.variables[name]), seen.get("at_torch", seen["now"])

    def blamed(one: Check) -> Check:
        was = shown(one.seen)
        why = RemovedByProgram(was, name) if value is None else SetByProgram(was, name, value)
        return replace(one, seen=why.to_json())

    return [blamed(one) if one.key in keys and not one.holds else one for one in checks]


def set_by(name: str, value: str) -> list[str]:
    """The keys under which the evidence shows what a variable with this ``value`` sets."""
    variable = catalogue.load().get(name)
    if variable is None or variable.verified_by is None:
        return []
    return [variable.verified_by + key for key, _, _ in catalogue.settings(variable, value)]


def readings(name: str, environment: Environment, evidence: Mapping[str, Any]) -> list[Check]:
    """Return what the library that reads one of the profile's variables says of it; nothing where nothing tells."""
    variable = catalogue.load().get(name)
    if variable is None:
        return []
    found = [*told(variable, environment.variables[name], evidence)]
    for key in set_by(name, environment.variables[name]):
        if key in environment.expect and (seen := look_up(evidence, key)) is not None:
            found.append(Check(key, environment.expect[key], seen))
    return found


def _nobody_tells(
    name: str, seen: Mapping[str, str | None], environment: Environment, evidence: Mapping[str, Any]
) -> Iterator[Check]:
    """Yield a check of a variable that the program changed, if the library that reads it says nothing.

    A part of PyTorch has read it when torch was imported, or later; others may have read it before.
    """
    value = environment.variables[name]
    keys = set_by(name, value)
    if readings(name, environment, evidence) or any(
        _why_not(evidence, key) for key in keys if key in environment.expect
    ):
        return
    key, variable = f"variable {name}", catalogue.load().get(name)
    is_torchs = variable is not None and variable.read_by.keys() <= OF_TORCH
    if is_torchs and value not in (seen.get("at_torch", value), seen["now"]):
        yield Check(key, value, SetBeforeTorch(_or_not_set(seen["at_torch"])).to_json())
    else:
        yield Check(key, value, ChangedByProgram(_or_not_set(seen["now"])).to_json(), verified=False)


def _or_not_set(value: str | None) -> str:
    return "not set" if value is None else value


def _expectation(key: str, expected: Any, evidence: Mapping[str, Any], missing: str | None) -> Check:
    """Return what was seen of an expectation; ``missing`` if nothing was, or why the worker could not tell."""
    seen = look_up(evidence, key)
    if seen is not None:
        return Check(key, expected, seen)
    why = _why_not(evidence, key)
    if why is None and missing is not None and look_up(evidence, "malloc.allocator") and key.startswith(OF_MEMORY):
        why = SeenFromOutside().to_json()
    return Check(key, expected, missing) if why is None else Check(key, expected, why, verified=False)


def _why_not(evidence: Mapping[str, Any], key: str) -> dict[str, Any] | str | None:
    """Return the message (JSON) on why the worker could not tell ``key``, or all settings among which that is."""
    probe, _, name = key.partition(".")
    reasons: Mapping[str, Any] = (evidence.get(probe) or {}).get(NOT_VERIFIED) or {}
    return reasons.get(name) or reasons.get(name.partition(".")[0])


def _implied(
    expect: Mapping[str, Any], given: Iterable[tuple[str, str]], evidence: Mapping[str, Any]
) -> Iterator[Check]:
    """Yield what a profile need not expect: a library that reads each variable runs, and has the value given."""
    runs = _running(evidence)
    for name, value in sorted(given):
        variable = catalogue.load().get(name)
        if variable is None:
            continue
        kinds = {LIBRARIES[reader].kind for reader in variable.read_by}
        beside = next((library for library in runs if LIBRARIES[library].kind in kinds), None)
        if _is_for_glibcs_malloc(variable, value):
            if beside is not None and beside not in variable.read_by:
                yield Check(f"variable {name}", ReadBy((GLIBC_MALLOC,)).to_json(), Ignored((beside,)).to_json())
        elif kinds <= {*EXCLUSIVE} and "glibc" not in variable.read_by and beside not in variable.read_by:
            ignored = Ignored((beside,)) if beside else IgnoredByUnknown()
            yield Check(f"variable {name}", ReadBy(tuple(variable.read_by)).to_json(), ignored.to_json())
        yield from (one for one in told(variable, value, evidence) if one.key not in expect)


def told(variable: Variable, value: str, evidence: Mapping[str, Any]) -> Iterator[Check]:
    """Yield what a library says of the settings that a variable with this ``value`` makes."""
    if variable.verified_by is None:
        return
    for key, kind, text in catalogue.settings(variable, value):
        at = variable.verified_by + key
        wanted = text.lower() if at in OWN_WORDS else number_or_boolean(kind, text)
        seen = look_up(evidence, at)
        if wanted is not None and type(seen) is type(wanted):
            yield Check(at, wanted, seen)
        elif seen is None and _is_of_another_version(variable, evidence):
            yield Check(at, text, NoSuchSetting().to_json())


def _is_for_glibcs_malloc(variable: Variable, value: str) -> bool:
    """It reads only some of its tunables: the others are read under any allocator."""
    if set(variable.read_by) != {"glibc"}:
        return False
    return variable.name.startswith("MALLOC_") or "glibc.malloc." in value


def _is_of_another_version(variable: Variable, evidence: Mapping[str, Any]) -> bool:
    """Whether a library runs that lists all its settings, and has only in some versions what this one sets."""
    for runs in _running(evidence):
        probe = LIBRARIES[runs].shows[0].partition(".")[0]
        if LIBRARIES[runs].lists_all_settings and (evidence.get(probe) or {}).get("settings"):
            return variable.read_by.get(runs, "any") != "any"
    return False


def unrelated_complaints(environment: Environment, evidence: Mapping[str, Any], printed: str) -> list[str]:
    """Return the complaints of libraries that concern nothing which the profile sets: those of other commands."""
    return [line for line in complaints.complaints(printed) if _is_unrelated(line, environment, evidence)]


def _is_unrelated(line: str, environment: Environment, evidence: Mapping[str, Any]) -> bool:
    proved = []
    for name in environment.variables:
        found = readings(name, environment, evidence)
        if found and all(one.holds for one in found):
            proved.append(name)
    return not complaints.concerns(line, environment, _running(evidence), proved)


def _running(evidence: Mapping[str, Any]) -> set[str]:
    """The OpenMP runtime and the allocator of a process, as far as they are known."""
    candidates = [(name, LIBRARIES[name].shows) for kind in EXCLUSIVE for name in of_kind(kind)]
    return {name for name, (key, value) in candidates if look_up(evidence, key) == value}


def look_up(evidence: Mapping[str, Any], key: str) -> Any:
    """``openmp.settings.GOMP_SPINCOUNT`` in the nested evidence; None where there is nothing.

    A setting's own name may have dots (``malloc.settings.glibc.malloc.hugetlb``).
    """
    probe, _, rest = key.partition(".")
    found = evidence.get(probe) or {}
    if rest.startswith("settings."):
        return (found.get("settings") or {}).get(rest.removeprefix("settings."))
    return found.get(rest)
