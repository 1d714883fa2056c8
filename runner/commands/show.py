"""``runner show PROFILE``: the variables as they would be set here, and why."""

from __future__ import annotations

import argparse
import json

from rich.text import Text

from runner import engines, profile, report
from runner.commands import measuring
from runner.errors import MEASURED
from runner.inspect_image import inspect
from runner.resolve import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    parser.add_argument("--engine", help=f"resolve inside it: {', '.join(engines.ENGINES)} (default: local)")
    measuring.add_engine_options(parser)


def run(arguments: argparse.Namespace) -> int:
    chosen = profile.load(arguments.profile)
    engine, inherited = measuring.one_engine(arguments)
    inspection = inspect(engine, inherited, chosen.prefix[:1])
    environment = resolve(chosen, inspection)
    if arguments.json:
        print(json.dumps({**environment.to_json(), "reason": chosen.reason, "source": chosen.source}))
        return MEASURED
    out = report.console()
    out.print(Text(f"{chosen.name}: {chosen.title}", "bold"))
    out.print(Text(chosen.reason))
    out.print(Text(f"source   {chosen.source}"), soft_wrap=True)
    out.print(Text(f"numerics {chosen.numerics}"))
    for title, pairs in (("sets", environment.variables), ("expects", environment.expect)):
        for index, (name, value) in enumerate(pairs.items()):
            out.print(Text(f"{title if index == 0 else '':<9}{name}={value}"), soft_wrap=True)
    if environment.prefix:
        out.print(Text(f"prefix   {' '.join(environment.prefix)}"))
    if not environment.variables and not environment.prefix:
        out.print(Text("sets     nothing"))
    return MEASURED
