"""Was a profile in effect? Compare what it expects with what a worker observed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

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
    TensorsBuiltIn,
    TensorsFrom,
    Value,
)
from envkit.checks.evidence import Change, Evidence, part, variables
from envkit.messages import Message, from_json
from envkit.profiles import catalogue
from envkit.profiles.catalogue import Variable
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import read_at_start
from envkit.profiles.values import number_or_boolean
from envkit.worker.evidence.malloc import BUILT_IN
from envkit.worker.libraries import LIBRARIES, of_kind
from envkit.worker.performance_variables import is_performance_variable, without
from envkit.worker.readings import NOT_VERIFIED

# A runtime may spell a text in its own way; what is seen here has the worker's words, which are the variable's.
OWN_WORDS = ("openmp.wait_policy", "compiler.settings.")
# Runtimes print these with both of their values, of which a variable may have the first alone.
BARRIER = re.compile(r"openmp\.settings\.KMP_\w+_BARRIER(_PATTERN)?")
# Shown for a program that left no evidence of its own.
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
    expected: object
    seen: object
    verified: bool = True

    @property
    def holds(self) -> bool:
        return not self.verified or _same(self.expected, self.seen)


def shown(value: object) -> Message:
    """Return what a check expects or has seen as a field of a message. A worker's reason is the message as JSON."""
    if isinstance(value, dict):
        with contextlib.suppress(KeyError, TypeError):  # of another version, or evidence that a program made up
            return from_json(value)
    return Value(str(value))


def _same(expected: object, observed: object) -> bool:
    """Return whether two values are equal. Runtimes' texts may differ in case (``CLOSE``), but 1 is not True."""
    if isinstance(expected, str) and isinstance(observed, str):
        return expected.lower() == observed.lower()
    return type(expected) is type(observed) and bool(expected == observed)


def check(environment: Environment, evidence: Evidence, kept: Mapping[str, str], printed: str = "") -> list[Check]:
    """Everything that must hold, in the order to read it: preloads, the profile's `expect`, then the variables.

    The worker must, of the variables that can change the outcome, have been given the profile's and those that the user
    chose to keep (``kept``), and no other. The profile's settings must be read by a library that runs, have the value
    that it was given, and be refused by no library in what the worker ``printed`` to stderr. The list has only what
    does not hold or was not verified.
    """
    observed = variables(evidence)
    preloaded = observed.get("preloaded", {})
    checks = [
        Check(f"preload.{library}", "mapped", preloaded.get(path, NotAskedFor().to_json()))
        for library, path in environment.preload.items()
    ]
    # a user's own command that left no evidence was seen from outside only
    missing = NOT_SEEN if "not_observed" in evidence else None
    checks += [_expectation(key, expected, evidence, missing) for key, expected in environment.expect.items()]
    wanted = {name: value for name, value in {**kept, **environment.variables}.items() if is_performance_variable(name)}
    present = observed.get("sensitive", {})
    of_variables = [
        Check(f"variable {name}", wanted.get(name, "not set"), present.get(name, "not set"))
        for name in sorted(wanted.keys() | present.keys())
    ]
    # others of the profile's, which the evidence hook in a user's command was asked for
    of_variables += [
        Check(f"variable {name}", environment.variables[name], _or_not_set(value))
        for name, value in observed.get("named", {}).items()
        if name in environment.variables.keys() - wanted.keys()
    ]
    # settings of the caller's own in a list of the profile's are neither verified nor blamed on the profile
    profiles = without(environment.variables, kept)
    in_force = [(name, profiles[name]) for name, value in environment.variables.items() if present.get(name) == value]
    checks += _of_tensors(environment, in_force, evidence)
    of_variables += _implied(environment.expect, in_force, evidence)
    for name, change in changed(environment, evidence).items():
        if present.get(name) == environment.variables[name] and not read_at_start(name):
            checks = _by_the_program(name, change, checks, environment)
            of_variables = _by_the_program(name, change, of_variables, environment)
            of_variables += _unverified_change(name, change, environment, evidence)
    lines = [
        line
        for line in complaints.complaints(printed)
        if not _is_unrelated(line, replace(environment, variables=profiles), evidence)
    ]
    of_variables += [Check("stderr", NoComplaint().to_json(), line) for line in lines]
    return checks + [check for check in of_variables if not (check.holds and check.verified)]


def changed(environment: Environment, evidence: Evidence) -> dict[str, Change]:
    """Return those of the profile's variables that the program itself changed after its start."""
    changes = variables(evidence).get("changed", {})
    return {name: changes[name] for name in environment.variables if name in changes}


def _by_the_program(name: str, change: Change, checks: Iterable[Check], environment: Environment) -> list[Check]:
    """Return the ``checks``; those that fail by what the program made of the variable ``name`` say so."""
    keys, value = set_by(name, environment.variables[name]), change.get("at_torch", change["now"])

    def blamed(check: Check) -> Check:
        was = shown(check.seen)
        why = RemovedByProgram(was, name) if value is None else SetByProgram(was, name, value)
        return replace(check, seen=why.to_json())

    return [blamed(check) if check.key in keys and not check.holds else check for check in checks]


def set_by(name: str, value: str) -> list[str]:
    """Return the keys under which the evidence shows what a variable with this ``value`` sets."""
    variable = catalogue.load().get(name)
    if variable is None or variable.verified_by is None:
        return []
    return [variable.verified_by + key for key, _, _ in catalogue.settings(variable, value)]


def readings(name: str, environment: Environment, evidence: Evidence) -> list[Check]:
    """Return what the library that reads one of the profile's variables says of it; nothing where nothing tells."""
    variable = catalogue.load().get(name)
    if variable is None:
        return []
    checks = [*reported_settings(variable, environment.variables[name], evidence)]
    for key in set_by(name, environment.variables[name]):
        if key in environment.expect and (reported := look_up(evidence, key)) is not None:
            checks.append(Check(key, environment.expect[key], reported))
    return checks


def _unverified_change(name: str, change: Change, environment: Environment, evidence: Evidence) -> Iterator[Check]:
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
    if is_torchs and value not in (change.get("at_torch", value), change["now"]):
        yield Check(key, value, SetBeforeTorch(_or_not_set(change["at_torch"])).to_json())
    else:
        yield Check(key, value, ChangedByProgram(_or_not_set(change["now"])).to_json(), verified=False)


def _or_not_set(value: str | None) -> str:
    return "not set" if value is None else value


def _expectation(key: str, expected: object, evidence: Evidence, missing: str | None) -> Check:
    """Return what was seen of an expectation; ``missing`` if nothing was, or why the worker could not tell."""
    reported = look_up(evidence, key)
    if reported is not None:
        return Check(key, expected, reported)
    why = _why_not(evidence, key)
    if why is None and missing is not None and look_up(evidence, "malloc.allocator") and key.startswith(OF_MEMORY):
        why = SeenFromOutside().to_json()
    return Check(key, expected, missing) if why is None else Check(key, expected, why, verified=False)


def _why_not(evidence: Evidence, key: str) -> object:
    """Return the message (JSON) on why the worker could not tell ``key``, or all settings among which that is."""
    probe, _, name = key.partition(".")
    reasons = part(part(evidence, probe), NOT_VERIFIED)
    return reasons.get(name) or reasons.get(name.partition(".")[0])


def _implied(expect: Mapping[str, object], in_force: Iterable[tuple[str, str]], evidence: Evidence) -> Iterator[Check]:
    """Yield what a profile need not expect: a library that reads each variable runs, and has the value given."""
    runs = _running(evidence)
    for name, value in sorted(in_force):
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
        yield from (check for check in reported_settings(variable, value, evidence) if check.key not in expect)


def _of_tensors(environment: Environment, in_force: Iterable[tuple[str, str]], evidence: Evidence) -> Iterator[Check]:
    """Yield a failure for an allocator, or settings of malloc, if PyTorch allocates tensors by a built-in allocator."""
    if look_up(evidence, "malloc.tensors") != BUILT_IN:
        return
    for library in environment.preload.keys() & of_kind("allocator").keys():
        yield Check("malloc.tensors", TensorsFrom(library).to_json(), TensorsBuiltIn().to_json())
    for name, value in sorted(in_force):
        variable = catalogue.load().get(name)
        if variable is not None and _is_for_glibcs_malloc(variable, value):
            yield Check(f"variable {name}", TensorsFrom(GLIBC_MALLOC).to_json(), TensorsBuiltIn().to_json())


def reported_settings(variable: Variable, value: str, evidence: Evidence) -> Iterator[Check]:
    """Yield what a library says of the settings that a variable with this ``value`` makes."""
    if variable.verified_by is None:
        return
    for key, kind, text in catalogue.settings(variable, value):
        at = variable.verified_by + key
        wanted: object = number_or_boolean(kind, text)
        reported = look_up(evidence, at)
        if wanted is None and at.startswith(OWN_WORDS):
            wanted = text.lower()
        elif wanted is None and BARRIER.fullmatch(at) and isinstance(reported, str):
            wanted, reported = text.lower(), reported if "," in text else reported.partition(",")[0]
        if wanted is not None and type(reported) is type(wanted):
            yield Check(at, wanted, reported)
        elif reported is None and _is_of_another_version(variable, evidence):
            yield Check(at, text, NoSuchSetting().to_json())


def _is_for_glibcs_malloc(variable: Variable, value: str) -> bool:
    """It reads only some of its tunables: the others are read under any allocator."""
    if set(variable.read_by) != {"glibc"}:
        return False
    return variable.name.startswith("MALLOC_") or "glibc.malloc." in value


def _is_of_another_version(variable: Variable, evidence: Evidence) -> bool:
    """Return whether a library runs that lists all its settings, and its version need not have what this one sets."""
    if "inductor" in variable.read_by:
        return look_up(evidence, "compiler.backend") == "inductor"
    for runs in _running(evidence):
        probe = LIBRARIES[runs].shows[0].partition(".")[0]
        if LIBRARIES[runs].lists_all_settings and part(evidence, probe).get("settings"):
            return variable.read_by.get(runs, "any") != "any"
    return False


def unrelated_complaints(environment: Environment, evidence: Evidence, printed: str) -> list[str]:
    """Return the complaints of libraries that concern nothing which the profile sets: those of other commands."""
    return [line for line in complaints.complaints(printed) if _is_unrelated(line, environment, evidence)]


def _is_unrelated(line: str, environment: Environment, evidence: Evidence) -> bool:
    proved = []
    for name in environment.variables:
        read = readings(name, environment, evidence)
        if read and all(check.holds for check in read):
            proved.append(name)
    return not complaints.concerns(line, environment, _running(evidence), proved)


def _running(evidence: Evidence) -> set[str]:
    """The OpenMP runtime and the allocator of a process, as far as they are known."""
    candidates = [(name, LIBRARIES[name].shows) for kind in EXCLUSIVE for name in of_kind(kind)]
    return {name for name, (key, value) in candidates if look_up(evidence, key) == value}


def look_up(evidence: Evidence, key: str) -> object:
    """Return ``openmp.settings.GOMP_SPINCOUNT`` of the nested evidence; None where there is nothing.

    A setting's own name may have dots (``malloc.settings.glibc.malloc.hugetlb``).
    """
    probe, _, name = key.partition(".")
    observed = part(evidence, probe)
    if name.startswith("settings."):
        return part(observed, "settings").get(name.removeprefix("settings."))
    return observed.get(name)
