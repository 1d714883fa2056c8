"""``envkit plan PROFILE``: measure the noise for a minute or two, and say how long a difference takes to find."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import statistics
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from envkit.analysis.summary import summarise
from envkit.bench import record
from envkit.bench.blocks import block_ratios, recorded_plan, timed_steps
from envkit.bench.plan import MARGIN
from envkit.cli import measuring, measuring_options, user_command
from envkit.cli.arguments import option, words
from envkit.cli.commands import messages
from envkit.cli.commands.help_messages import PlanBlocks
from envkit.cli.measuring_options import against_baseline
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED, InputError
from envkit.common.plain_table import plain_table
from envkit.engines.base import EngineOptions
from envkit.rendering import text
from envkit.report import terminal
from envkit.stats.bootstrap import bootstrap
from envkit.stats.interval import ERROR_RATE
from envkit.stats.power import POWER, blocks_needed

# What decides how long to measure, which plan is to find out.
REFUSED = ("full", "epochs", "until", "resume", "budget", "half_width")
BLOCKS = 5
LEAST_BLOCKS = 3
DIFFERENCES = (0.01, 0.02, 0.05)
# Above this share of the noise, longer samples are worth trying.
NOTABLE_SHARE = 0.5


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    measuring_options.add(parser, blocks=text(PlanBlocks(LEAST_BLOCKS, BLOCKS)), refused=REFUSED)


def run(arguments: argparse.Namespace) -> int:
    for name in REFUSED:
        if getattr(arguments, name):
            raise InputError(messages.PlanTakesNo(option(name)))
    blocks = arguments.blocks or BLOCKS
    if blocks < LEAST_BLOCKS:
        raise InputError(messages.TooFewBlocksForNoise(blocks, LEAST_BLOCKS))
    arms = against_baseline([arguments.profile], arguments.engine or "local")
    if len(arms) < 2:
        raise InputError(messages.PlansBaseline())
    asked = replace(measuring_options.specification(arguments, f"plan-{arms[1].name}", arms), blocks=blocks)
    how = measuring.invocation(arguments, resumed_by=None)
    return measuring.run(asked, how, partial(_tell, arguments=arguments))


def _same_options(arguments: argparse.Namespace) -> list[str]:
    """The options that decide what is measured, and so how much noise it has, as they were given."""
    modes = ("device", "precision", "compile", "channels_last", "scale")
    trained = ("workload", *modes, *user_command.OPTIONS, "steps", "warmup_steps", "data")
    names = (*trained, "timeout", "keep_env", "force", "allow_unknown")
    return words(arguments, ("engine", *EngineOptions.names(), *names))


def _tell(folder: Path, arguments: argparse.Namespace) -> int:
    events = record.read(folder)
    plan = recorded_plan(events)
    (arm,) = plan.compared
    ratios = block_ratios(events, plan, arm)
    deviation = statistics.stdev(ratios)
    seconds = summarise(events).seconds_per_block
    noise = bootstrap(timed_steps(events, plan.reference), timed_steps(events, arm))
    needs: list[dict[str, Any]] = []  # what it takes to find a difference (a share) with the chance POWER
    for difference in DIFFERENCES:
        blocks = blocks_needed(deviation, len(ratios), difference)
        minutes = math.ceil(blocks * seconds / 60) + 1
        # a margin above the difference would end the run as soon as it is known to be below that margin
        least = min(difference, plan.stopping.margin)
        margin = ["--margin", f"{least * 100:g}%"] if least != MARGIN else []
        own = ["--", *arguments.user_command] if arguments.user_command else []
        same = _same_options(arguments)
        command = ["envkit", "bench", arguments.profile, *same, *margin, "--budget", f"{minutes}m", *own]
        needs.append({"difference": difference, "blocks": blocks, "minutes": minutes, "command": shlex.join(command)})
    within = noise.within_share if noise else 0.0
    if arguments.json:
        found = {"deviation": deviation, "blocks": len(ratios), "seconds_per_block": seconds, "within_share": within}
        print(json.dumps({**found, "chance": POWER, "needs": needs, "record": str(folder)}))
        return MEASURED
    out = terminal.console()
    terminal.item(out, "noise", messages.NoiseFound(deviation, len(ratios), seconds))
    longer = messages.TrainLonger() if plan.user_command else messages.TryLonger(2 * plan.training.steps)
    terminal.item(out, "", messages.NoiseWithin(within, longer if within > NOTABLE_SHARE else messages.LongerInVain()))
    out.print()
    figures = ("to find", "blocks", "minutes")
    table = plain_table((*figures, ""), right=figures)
    for one in needs:
        table.add_row(f"{one['difference']:.0%}", f"{one['blocks']:,}", f"{one['minutes']:,}", Text(one["command"]))
    out.print(table)
    out.print()
    terminal.item(out, "chance", messages.Chance(POWER, ERROR_RATE))
    return MEASURED
