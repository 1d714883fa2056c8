"""``envkit explain NAME``: what a variable does, who reads it, what it is here and how it is verified."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.text import Text

from envkit.bench.parse_sample import parse_document
from envkit.bench.problem_messages import NoDocument
from envkit.checks.effect import look_up
from envkit.cli import engine_options
from envkit.cli.commands import profile_messages as messages
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import Engine, Launch
from envkit.engines.inspect_image import inspect
from envkit.messages import Message
from envkit.profiles import catalogue, needs, profile
from envkit.profiles.catalogue import Variable
from envkit.profiles.expressions import ExpressionError
from envkit.profiles.inspection import Inspection
from envkit.rendering import text, text_of
from envkit.report import terminal
from envkit.report.parts import together
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.performance_variables import is_performance_variable, is_withheld
from envkit.worker.request import Train

# The shortest training there is: what a library has is only certain in a process that has computed with it.
LOOK = Train("cnn", SYNTHETIC, steps=1)
LOOK_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Explanation:
    """A variable of the catalogue, and where and how it is set here."""

    variable: Variable
    in_image: tuple[str, ...]  # the libraries here that read it
    value: object  # in a worker with nothing set, by key if the variable is a list of settings; None if unknown
    how: Message  # how the value is known
    shell: str | None  # the caller's value
    profiles: dict[str, str]  # the shipped profiles that set it, and to what
    does_not_apply: dict[str, str]  # why some of these profiles do not apply here

    def to_json(self) -> dict[str, object]:
        """Return the document that ``--json`` prints."""
        variable = self.variable
        return {
            "name": variable.name,
            "does": variable.does,
            "read_by": variable.read_by,
            "in_image": self.in_image,
            "type": variable.kind.type,
            "values": text(variable.kind.allowed()),
            "keys": {
                key: {
                    "values": text(kind.allowed()),
                    "default": kind.default,
                    "since": kind.since,
                    "does": kind.does,
                }
                for key, kind in variable.kind.keys.items()
            },
            "default": variable.default,
            "here": self.value,
            "here_how": text(self.how),
            "shell": self.shell,
            "verified_by": variable.verified_by,
            "not_observable": variable.not_observable,
            "profiles": self.profiles,
            "does_not_apply": self.does_not_apply,
            "source": variable.source,
        }


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of an environment variable, e.g. KMP_BLOCKTIME")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    engine_options.add(parser, engine="look inside")


def run(arguments: argparse.Namespace) -> int:
    variable = catalogue.load().get(arguments.name)
    if variable is None:
        raise InputError(messages.UnknownVariable(arguments.name, catalogue.nearest(arguments.name)))
    engine, inherited = engine_options.engine(arguments)
    inspection = inspect(engine, inherited, torch=False)
    present = catalogue.readers(inspection)
    setting = _profiles(variable.name)
    value, source = _here(variable, engine, inspection, inherited)
    explanation = Explanation(
        variable=variable,
        in_image=tuple(library for library in variable.read_by if library in present),
        value=value,
        how=source,
        shell=os.environ.get(variable.name),
        profiles=setting,
        does_not_apply=_not_here(setting, inspection),
    )
    if arguments.json:
        print(json.dumps(explanation.to_json()))
    else:
        _show(explanation)
    return MEASURED


def _here(
    variable: Variable, engine: Engine, inspection: Inspection, inherited: dict[str, str]
) -> tuple[object, Message]:
    """Return the value in a worker with nothing set, None if unknown, and how it is known.

    A short training is started, in which a library that reads the variable runs.
    """
    if variable.verified_by is None:
        return None, messages.Invisible(str(variable.not_observable))
    present = [library for library in variable.read_by if library in catalogue.readers(inspection)]
    if not present:
        return None, messages.NobodyReads()
    # One that is there anyway answers for what training has by default; the others run only where they are preloaded.
    library = next((library for library in present if library not in inspection["libraries"]), present[0])
    preloaded = inspection["libraries"].get(library)
    variables = {"LD_PRELOAD": str(preloaded["path"])} if preloaded else {}
    try:
        with machine_lock():  # a worker more would spoil a measurement that runs
            outcome = engine.run(Launch(LOOK, variables=variables, inherited=inherited, timeout_s=LOOK_TIMEOUT_S))
    except InputError as error:
        return None, messages.NotLookedAt(error.message)
    document, problem = parse_document(outcome, {"evidence"})
    if document is None:
        failure = outcome.failure
        return None, messages.WorkerTellsNothing(failure) if failure else messages.NotLookedAt(problem or NoDocument())
    evidence = document["evidence"]
    worker_check = messages.WorkersAnswer(library if preloaded else None)
    if variable.verified_by.endswith("."):
        values = {key: look_up(evidence, variable.verified_by + key) for key in variable.kind.keys}
        reported = {key: value for key, value in values.items() if value is not None}
        return reported or None, (worker_check if reported else messages.OnlyKeysSet(library))
    value = look_up(evidence, variable.verified_by)
    return value, (worker_check if value is not None else messages.NotReported(worker_check))


def _profiles(name: str) -> dict[str, str]:
    """Return the shipped profiles that set a variable, and to what (before host facts are filled in)."""
    shipped = [profile.load(shipped_name) for shipped_name in profile.names()]
    if name == "LD_PRELOAD":
        return {made.name: ", ".join(made.preload) for made in shipped if made.preload}
    return {made.name: made.env[name] for made in shipped if name in made.env}


def _not_here(names: Iterable[str], inspection: Inspection) -> dict[str, str]:
    """Return why profiles do not apply here, by the facts that were inspected. In containers GPUs are not."""
    facts, reasons = needs.from_facts(inspection["facts"]), {}
    for name in names:
        wanted = {fact: need for fact, need in profile.load(name).needs.items() if fact in inspection["facts"]}
        try:
            lacks = needs.unmet(wanted, facts)
            reason = None if lacks is None else text(lacks[1])
        except ExpressionError as error:
            reason = text_of(error)
        if reason is not None:
            reasons[name] = reason
    return reasons


def _show(explanation: Explanation) -> None:
    out = terminal.console()
    variable, value, source = explanation.variable, explanation.value, text(explanation.how)
    versions = (
        f"{name}{'' if versions_read == 'any' else f' {versions_read}'}"
        for name, versions_read in variable.read_by.items()
    )
    rows = [
        ("read by", text(messages.ReadBy(tuple(versions), explanation.in_image or ("none",)))),
        ("values", text(variable.kind.allowed())),
        ("default", variable.default),
        ("here", source if value is None or variable.kind.keys else f"{value} ({source})"),
        ("shell", text(_in_shell(variable.name, explanation.shell))),
        ("verified", f"{variable.verified_by}{'KEY' if variable.kind.keys else ''}" if variable.verified_by
         else text(messages.NotObservable(str(variable.not_observable)))),
        ("set by", ", ".join(f"{name} ({value})" for name, value in explanation.profiles.items()) or "no profile"),
        *(("not here", f"{names}: {why}") for names, why in together(explanation.does_not_apply).items()),
        ("source", variable.source),
    ]  # fmt: skip
    out.print(Text(variable.name, "bold"))
    out.print(Text(variable.does))
    for title, content in rows:
        out.print(Text(f"{title:<9}{content}"), soft_wrap=True)
    if variable.kind.keys:
        _show_keys(variable, value if isinstance(value, dict) else {})


def _in_shell(name: str, value: str | None) -> Message:
    """Return what the caller's environment has, and which workers start with that."""
    if value is None:
        return messages.NotInShell()
    if not is_performance_variable(name):
        return messages.InShell(value, messages.LOCAL_WORKERS)
    return messages.InShell(value, messages.NO_WORKER if is_withheld(name) else messages.NO_WORKLOAD)


def _show_keys(variable: Variable, here: Mapping[str, object]) -> None:
    out = terminal.console()
    for key, kind in variable.kind.keys.items():
        value = str(here[key]) if key in here else None
        row = messages.KeyRow(key, kind.allowed(), str(kind.default), value, kind.since)
        out.print(Text(f"key      {text(row)}"), soft_wrap=True)
        if kind.does:
            out.print(Text(f"         {kind.does}"), soft_wrap=True)
