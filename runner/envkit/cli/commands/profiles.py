"""``envkit profiles``: what there is to choose from, and what of it is not for this machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED
from envkit.common.plain_table import plain_table
from envkit.profiles import needs, profile
from envkit.profiles.expressions import ExpressionError
from envkit.profiles.profile import Profile
from envkit.report import terminal
from envkit.worker import gpus
from envkit.worker.host import cpu_facts


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(arguments: argparse.Namespace) -> int:
    loaded = [profile.load(name) for name in (*profile.names(), *profile.local_names())]
    facts = needs.known({**cpu_facts(), "gpus": gpus.look()["usable"]})
    lacking = {one.name: _lacks(one, facts) for one in loaded}
    if arguments.json:
        keys = ("name", "title", "preload", "numerics")
        listed = [{**{key: getattr(one, key) for key in keys}, "does_not_apply": lacking[one.name]} for one in loaded]
        print(json.dumps(listed))
        return MEASURED
    table = plain_table(("profile", "what it does", "preloads"))
    for one in loaded:
        table.add_row(one.name, one.title, ", ".join(one.preload) or "-")
    out = terminal.console()
    out.print(table)
    for why in dict.fromkeys(why for why in lacking.values() if why):
        names = ", ".join(name for name, lacks in lacking.items() if lacks == why)
        terminal.item(out, "note", f"does not apply here: {names}: {why}")
    return MEASURED


def _lacks(one: Profile, facts: Mapping[str, Any]) -> str | None:
    """Why a profile does not apply to this machine, for its own Python; None where it does."""
    try:
        found = needs.unmet(one.needs, facts)
    except ExpressionError as error:
        return str(error)
    return found and found[1]
