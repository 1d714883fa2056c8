"""``envkit explain NAME``: what a variable does, who reads it, what it is here and how it is verified."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from envkit import rendering
from envkit.checks.effect import look_up
from envkit.cli import engine_options
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import Engine, Task
from envkit.engines.inspect_image import inspect
from envkit.profiles import catalogue, needs, profile
from envkit.profiles.catalogue import Variable
from envkit.profiles.expressions import ExpressionError
from envkit.report import terminal, wording
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.performance_variables import WHERE, is_performance_variable

# The shortest training there is: what a library has is only certain in a process that has computed with it.
LOOK = ("train", "--workload", "cnn", "--data", SYNTHETIC, "--warmup-steps", "0", "--steps", "1")
LOOK_TIMEOUT_S = 120.0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of an environment variable, e.g. KMP_BLOCKTIME")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    engine_options.add(parser, engine="look inside")


def run(arguments: argparse.Namespace) -> int:
    variable = catalogue.load().get(arguments.name)
    if variable is None:
        near = catalogue.nearest(arguments.name)
        meant = f" (did you mean '{near}'?)" if near else ""
        raise InputError(f"no variable '{arguments.name}' in the catalogue{meant}")
    engine, inherited = engine_options.engine(arguments)
    inspection = inspect(engine, inherited, torch=False)
    present = catalogue.readers(inspection)
    here, how = _here(variable, engine, inspection, inherited)
    setting = _profiles(variable.name)
    document = {
        "name": variable.name,
        "does": variable.does,
        "read_by": variable.read_by,
        "in_image": [library for library in variable.read_by if library in present],
        "type": variable.kind.type,
        "values": rendering.text(variable.kind.allowed()),
        "keys": {
            key: {
                "values": rendering.text(kind.allowed()),
                "default": kind.default,
                "since": kind.since,
                "does": kind.does,
            }
            for key, kind in variable.kind.keys.items()
        },
        "default": variable.default,
        "here": here,
        "here_how": how,
        "shell": os.environ.get(variable.name),
        "verified_by": variable.verified_by,
        "not_observable": variable.not_observable,
        "profiles": setting,
        "does_not_apply": _not_here(setting, inspection),
        "source": variable.source,
    }
    if arguments.json:
        print(json.dumps(document))
    else:
        _show(variable, document)
    return MEASURED


def _here(
    variable: Variable, engine: Engine, inspection: Mapping[str, Any], inherited: dict[str, str]
) -> tuple[Any, str]:
    """What a worker with nothing set has, None where that can't be told, and how that is known.

    A short one is asked, in which a library that reads the variable runs.
    """
    if variable.verified_by is None:
        return None, f"can't be seen: {variable.not_observable}"
    present = [library for library in variable.read_by if library in catalogue.readers(inspection)]
    if not present:
        return None, "nothing in this image reads it"
    # One that is there anyway answers for what training has by default; the others run only where they are preloaded.
    library = next((library for library in present if library not in inspection["libraries"]), present[0])
    found = inspection["libraries"].get(library)
    variables = {"LD_PRELOAD": found["path"]} if found else {}
    try:
        with machine_lock():  # a worker more would spoil a measurement that runs
            outcome = engine.run(Task(LOOK, variables=variables, inherited=inherited, timeout_s=LOOK_TIMEOUT_S))
    except InputError as error:
        return None, f"not looked at: {rendering.text_of(error)}"
    if outcome.failure is not None:
        return None, f"not known: the worker {rendering.text(outcome.failure)}"
    evidence = json.loads(outcome.stdout)["evidence"]
    how = f"a worker's own answer, with {library} preloaded" if found else "a worker's own answer, with nothing set"
    if variable.verified_by.endswith("."):
        values = {key: look_up(evidence, variable.verified_by + key) for key in variable.kind.keys}
        seen = {key: value for key, value in values.items() if value is not None}
        return seen or None, (how if seen else f"{library} tells only of keys that are set")
    value = look_up(evidence, variable.verified_by)
    return value, (how if value is not None else f"{how}: it says nothing of it")


def _profiles(name: str) -> dict[str, str]:
    """The shipped profiles that set it, and to what (before host facts are filled in)."""
    loaded = [profile.load(known) for known in profile.names()]
    if name == "LD_PRELOAD":
        return {one.name: ", ".join(one.preload) for one in loaded if one.preload}
    return {one.name: one.env[name] for one in loaded if name in one.env}


def _not_here(names: Iterable[str], inspection: Mapping[str, Any]) -> dict[str, str]:
    """Say of profiles that do not apply here why, by facts that were looked at: in containers GPUs are not."""
    facts, found = needs.known(inspection["facts"]), {}
    for name in names:
        wanted = {fact: one for fact, one in profile.load(name).needs.items() if fact in inspection["facts"]}
        try:
            lacks = needs.unmet(wanted, facts)
            reason = None if lacks is None else rendering.text(lacks[1])
        except ExpressionError as error:
            reason = rendering.text_of(error)
        if reason is not None:
            found[name] = reason
    return found


def _show(variable: Variable, document: Mapping[str, Any]) -> None:
    out = terminal.console()
    in_image = ", ".join(document["in_image"]) or "none"
    versions = (f"{name}{'' if which == 'any' else f' {which}'}" for name, which in variable.read_by.items())
    here = document["here"]
    shell = document["shell"]
    fate = "workers start without it" if is_performance_variable(variable.name) else "local workers inherit it"
    if variable.name in WHERE:
        fate += ", but for commands of your own"
    rows = [
        ("read by", f"{', '.join(versions)} (in this image: {in_image})"),
        ("values", rendering.text(variable.kind.allowed())),
        ("default", variable.default),
        ("here", document["here_how"] if here is None or variable.kind.keys else f"{here} ({document['here_how']})"),
        ("shell", "not set in your shell" if shell is None else f"{shell} in your shell; {fate}"),
        ("verified", f"{variable.verified_by}{'KEY' if variable.kind.keys else ''}" if variable.verified_by
         else f"not observable: {variable.not_observable}"),
        ("set by", ", ".join(f"{name} ({value})" for name, value in document["profiles"].items()) or "no profile"),
        *(("not here", f"{names}: {why}") for names, why in wording.together(document["does_not_apply"]).items()),
        ("source", variable.source),
    ]  # fmt: skip
    out.print(Text(variable.name, "bold"))
    out.print(Text(variable.does))
    for title, text in rows:
        out.print(Text(f"{title:<9}{text}"), soft_wrap=True)
    if variable.kind.keys:
        _show_keys(variable, here or {})


def _show_keys(variable: Variable, here: Mapping[str, Any]) -> None:
    out = terminal.console()
    for key, kind in variable.kind.keys.items():
        found = f", here {here[key]}" if key in here else ""
        since = f", since version {kind.since}" if kind.since else ""
        values = rendering.text(kind.allowed())
        out.print(Text(f"key      {key}: {values} (default {kind.default}{found}{since})"), soft_wrap=True)
        if kind.does:
            out.print(Text(f"         {kind.does}"), soft_wrap=True)
