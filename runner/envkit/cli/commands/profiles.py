"""``envkit profiles``: what there is to choose from, and what of it is not for this machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from envkit.cli.commands.profile_messages import PROFILE_COLUMNS, NotForThisMachine, OfPlace
from envkit.cli.parser import Parser
from envkit.common.errors import FAILED, MEASURED
from envkit.common.plain_table import plain_table
from envkit.engines.measured_cores import facts_here
from envkit.messages import Message
from envkit.profiles import needs, places, profile
from envkit.profiles.expressions import ExpressionError
from envkit.profiles.messages import HiddenProfile, PassedOver
from envkit.profiles.places import Place
from envkit.profiles.profile import Profile
from envkit.rendering import text, text_of
from envkit.report import terminal
from envkit.worker import gpus

Listed = tuple[Profile, Place, list[Path]]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(arguments: argparse.Namespace) -> int:
    listed, bad = profile.listed()
    for problem in dict.fromkeys(map(text_of, bad)):  # one for a file, and not for each that extends it
        print(f"envkit: {problem}", file=sys.stderr)
    status = FAILED if bad else MEASURED
    facts = needs.from_facts({**facts_here(), "gpus": gpus.look()["usable"]})
    lacking = {listed_profile.name: _lacks(listed_profile, facts) for listed_profile, _, _ in listed}
    if arguments.json:
        print(json.dumps([{**_document(*entry), "does_not_apply": lacking[entry[0].name]} for entry in listed]))
        return status
    out = terminal.console()
    _show(listed, lacking, out)
    for listed_profile, _, hidden in listed:
        for file in hidden:
            terminal.item(out, "note", text(HiddenProfile(listed_profile.name, str(file), str(listed_profile.path))))
    for path in places.untrusted():
        terminal.item(out, "note", text(PassedOver(str(path))))
    return status


def _show(listed: Sequence[Listed], lacking: Mapping[str, str | None], out: Console) -> None:
    """Print a line for each profile: first those that apply here, by place, then others by reason."""
    groups: dict[Message | None, list[Profile]] = {}
    for listed_profile, place, _ in sorted(listed, key=lambda entry: lacking[entry[0].name] is not None):
        why, is_users = lacking[listed_profile.name], place.kind != "shipped"
        of_place = OfPlace(place.kind, str(place.folder)) if is_users else None
        title = NotForThisMachine(why) if why else of_place
        groups.setdefault(title, []).append(listed_profile)
    widest = max(len(listed_profile.name) for listed_profile, _, _ in listed)
    for heading, profiles in groups.items():
        table = plain_table(PROFILE_COLUMNS)
        table.show_header = heading is None
        name, title_column = table.columns
        name.min_width, name.no_wrap, title_column.no_wrap = widest, True, True  # a name is to be typed
        for listed_profile in profiles:
            table.add_row(listed_profile.name, listed_profile.title)
        if heading is not None:
            out.print()
            out.print(Text(f"{text(heading)}:", "bold"))
        out.print(table)


def _document(described: Profile, place: Place, hidden: Sequence[Path]) -> dict[str, object]:
    """Return what ``--json`` has of a profile."""
    keys = ("name", "title", "preload", "numerics")
    where = {"from": place.kind, "file": str(described.path), "hides": [str(file) for file in hidden]}
    return {**{key: getattr(described, key) for key in keys}, **where}


def _lacks(candidate: Profile, facts: Mapping[str, object]) -> str | None:
    """Return why a profile does not apply to this machine, for its own Python; None if it does."""
    try:
        unmet = needs.unmet(candidate.needs, facts)
    except ExpressionError as error:
        return text_of(error)
    return unmet and text(unmet[1])
