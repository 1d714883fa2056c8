"""``envkit show PROFILE``: the variables as they would be set here, and why."""

from __future__ import annotations

import argparse
import json

from rich.text import Text

from envkit import rendering
from envkit.checks.core_messages import CoresMeasured
from envkit.cli.commands.profile_messages import RanksOfProfile
from envkit.cli.execution import resolving
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED
from envkit.common.printable import harmless
from envkit.profiles import needs, profile
from envkit.rendering import text
from envkit.report import terminal


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print the settings as JSON")
    resolving.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    resolved = resolving.from_options(arguments)
    chosen, environment, day = resolved.profile, resolved.environment, resolved.inspection.get("cores_measured")
    if arguments.json:
        why = {key: getattr(chosen, key) for key in ("reason", "helps", "hurts", "source", "needs")}
        where = {"from": profile.place_of(chosen), "file": str(chosen.path)}
        print(json.dumps({**environment.to_json(), **why, **where, **({"cores_measured": day} if day else {})}))
        return MEASURED
    out = terminal.console()
    out.print(Text(f"{chosen.name}: {chosen.title}", "bold"))
    out.print(Text(chosen.reason))
    for label, sentence in (("helps", chosen.helps), ("hurts", chosen.hurts)):
        if sentence is not None:
            terminal.item(out, label, sentence)
    if chosen.source is not None:
        out.print(Text(f"source   {chosen.source}"), soft_wrap=True)
    out.print(Text(f"file     {chosen.path}"), soft_wrap=True)
    out.print(Text(f"numerics {chosen.numerics}"))
    if chosen.ranks > 1:
        out.print(Text(f"ranks    {text(RanksOfProfile(chosen.ranks))}"))
    if day is not None:
        facts = resolved.inspection["facts"]
        out.print(Text(f"cores    {text(CoresMeasured(facts['usable_cpus'], facts['physical_cores'], day))}"))
    for fact, wanted in chosen.needs.items():
        terminal.item(out, "needs", rendering.text(needs.described(fact, wanted)))
    for title, pairs in (("sets", environment.variables), ("expects", environment.expect)):
        for index, (name, value) in enumerate(pairs.items()):
            out.print(Text(harmless(f"{title if index == 0 else '':<9}{name}={value}")), soft_wrap=True)
    if environment.prefix:
        out.print(Text(harmless(f"prefix   {' '.join(environment.prefix)}")))
    if not environment.variables and not environment.prefix:
        out.print(Text("sets     nothing"))
    return MEASURED
