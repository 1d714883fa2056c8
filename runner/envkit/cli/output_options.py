"""``--json`` and ``--quiet``: what a command prints."""

from __future__ import annotations

import argparse

from envkit.cli.argument_messages import AS_JSON
from envkit.cli.parser import Parser


def add(parser: Parser, json: str = AS_JSON) -> None:
    """Add both, for a command that shows progress; ``json`` is the help of --json."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help=json)
    group.add_argument("-q", "--quiet", action="store_true", help="print no progress, only warnings and the result")


def is_quiet(arguments: argparse.Namespace) -> bool:
    """Return whether to show no progress: asked for, or because stderr is read beside JSON."""
    return bool(arguments.quiet or arguments.json)
