"""``--redact``: results that can be shared without who measured them, and where."""

from __future__ import annotations

import argparse

from envkit.cli.parser import Parser


def add_argument(parser: Parser | argparse._ArgumentGroup, advanced: bool = False) -> None:
    parser.add_argument("--redact", action="store_true", advanced=advanced,
                        help="hide who measured, and where: print HOST1, USER1, PATH1, COMMAND1")  # fmt: skip
