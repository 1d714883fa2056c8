"""``envkit submit PROFILE...``: measure on nodes of a Slurm cluster, each with a record of its own in one folder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from envkit.cli import submission
from envkit.cli.commands.help_messages import SUBMIT
from envkit.cli.parser import Parser
from envkit.cluster.slurm import collect, table
from envkit.cluster.slurm.collect import NodeResult
from envkit.cluster.slurm.settings import Settings
from envkit.common.errors import MEASURED
from envkit.common.folders import short
from envkit.report import terminal


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*", help="name of a profile, or a YAML file")
    submission.add_arguments(parser, **SUBMIT)


def run(arguments: argparse.Namespace) -> int:
    def show(settings: Settings, folder: Path, results: Sequence[NodeResult], document: dict[str, object]) -> int:
        if arguments.json:
            print(json.dumps(document))
        else:
            table.show(results, collect.verdict(folder, settings, results), short(folder), terminal.console())
        return MEASURED

    return submission.run(arguments, show)
