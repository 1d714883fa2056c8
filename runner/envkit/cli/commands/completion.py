"""``envkit completion SHELL``: a script that completes commands, options and names of profiles."""

from __future__ import annotations

import argparse
import sys

from envkit.cli import completion, parser_of
from envkit.cli.overview_messages import COMMANDS
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=completion.SHELLS,
                        help=f"print the script for {', '.join(completion.SHELLS)}")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    words = completion.words_of({name: parser_of(name)[0] for name in COMMANDS})
    sys.stdout.write(completion.SHELLS[arguments.shell](words))
    return MEASURED
