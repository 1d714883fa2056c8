"""``envkit plan [PROFILE]``: measure the noise here, and say how long a difference takes to find.

Without a PROFILE the baseline is measured against itself. Later reports of such runs show that noise floor.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from functools import partial
from pathlib import Path

from envkit.analysis.result import Result, conclude
from envkit.bench.arms import Arm, View
from envkit.bench.run import read
from envkit.bench.study import MARGIN, REFERENCE_PROFILE, Study
from envkit.cli import measuring, measuring_options, user_command
from envkit.cli.arguments import option, words
from envkit.cli.commands import messages
from envkit.cli.commands.help_messages import PlanBlocks, PlanBudget
from envkit.cli.measuring_options import against_baseline
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED, InputError
from envkit.common.folders import short
from envkit.common.plain_table import plain_table
from envkit.engines.base import EngineOptions
from envkit.rendering import text
from envkit.report import certainty, commands, model, terminal, verdict
from envkit.stats.bootstrap import bootstrap
from envkit.stats.interval import ERROR_RATE
from envkit.stats.power import POWER, blocks_needed, interval_scale

REFUSED = ("full", "epochs", "until")
AGAIN = "again"  # the second arm of the baseline against itself
BLOCKS = 5
LEAST_BLOCKS = 3
DIFFERENCES = (0.01, 0.02, 0.05)
# Above this share of the noise, longer samples are worth trying.
NOTABLE_SHARE = 0.5


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        nargs="?",
        help=f"name of a profile, or a YAML file (default: {REFERENCE_PROFILE})",
    )
    budget = text(PlanBudget(measuring_options.BUDGET, BLOCKS))
    measuring_options.add(parser, budget, text(PlanBlocks(LEAST_BLOCKS)), REFUSED)
    measuring_options.add_dry_run(parser)


def run(arguments: argparse.Namespace) -> int:
    for name in REFUSED:
        if getattr(arguments, name):
            raise InputError(messages.NoInterval("plan", option(name)))
    invocation = measuring.invocation(arguments, resumed_by="plan")
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation, partial(_tell, as_json=arguments.json))
    if arguments.blocks and arguments.blocks < LEAST_BLOCKS:
        raise InputError(messages.TooFewBlocksForNoise(arguments.blocks, LEAST_BLOCKS))
    return measuring.run(_study(arguments), invocation, partial(_tell, as_json=arguments.json, options=arguments))


def _study(arguments: argparse.Namespace) -> Study:
    """Return what to measure: the baseline and PROFILE in a few blocks, or the baseline twice for three minutes."""
    profile, engine = arguments.profile or REFERENCE_PROFILE, arguments.engine or "local"
    if profile == REFERENCE_PROFILE:
        arms = [Arm(name, profile, engine) for name in (profile, AGAIN)]
        return measuring_options.study(arguments, f"plan-{profile}", arms, view=View.CALIBRATION)
    arms = against_baseline([profile], engine)
    study = measuring_options.study(arguments, f"plan-{arms[1].name}", arms)
    limited = arguments.budget is not None or arguments.half_width is not None
    return study if study.stopping.blocks or limited else study.with_stopping(blocks=BLOCKS)


def _same_options(arguments: argparse.Namespace) -> list[str]:
    """The options that decide what is measured, and so how much noise it has, as they were given."""
    modes = ("device", "precision", "compile", "channels_last", "scale")
    trained = ("workload", *modes, *user_command.OPTIONS, "steps", "warmup_steps", "data")
    names = (*trained, "timeout", "keep_env", "force", "allow_unknown")
    return words(arguments, ("engine", *EngineOptions.names(), *names))


def _tell(folder: Path, as_json: bool, options: argparse.Namespace | None = None) -> int:
    """Print how long a difference takes to find; ``options`` is None for a run that the record alone goes on with."""
    measured = read(folder)
    study, result = measured.study, conclude(measured)
    (arm,) = study.compared
    ratios = measured.block_ratios(arm)
    scale = interval_scale(ratios) or 0.0
    noise = bootstrap(measured.timed_steps(study.reference), measured.timed_steps(arm))
    within = noise.within_share if noise else 0.0
    needs = _needs(study, scale, len(ratios), result.seconds_per_block, options or _recorded(result))
    if as_json:
        noise_document = {
            "scale": scale,
            "blocks": len(ratios),
            "within_share": within,
            "chance": POWER,
            "needs": needs,
        }
        seconds = {"seconds_per_block": result.seconds_per_block}
        print(json.dumps({**model.to_json(result, str(folder)), **noise_document, **seconds, "record": str(folder)}))
        return MEASURED
    out = terminal.console()
    if study.view is View.CALIBRATION:
        terminal.headline(verdict.headline(result), out)
        out.print()
        terminal.item(out, "floor", certainty.floor(result, len(ratios)))
    terminal.item(out, "noise", messages.NoiseFound(scale, len(ratios), result.seconds_per_block))
    longer = messages.TrainLonger() if study.user_command else messages.TryLonger(2 * study.training.steps)
    terminal.item(out, "", messages.NoiseWithin(within, longer if within > NOTABLE_SHARE else messages.LongerInVain()))
    out.print()
    figures = ("to find", "blocks", "minutes")
    table = plain_table(figures, right=figures)
    for need in needs:
        table.add_row(f"{need['difference']:.0%}", f"{need['blocks']:,}", f"{need['minutes']:,}")
    out.print(table)
    out.print()
    for need in needs:
        terminal.item(out, f"for {need['difference']:.0%}", str(need["command"]), whole=True)
    terminal.item(out, "chance", messages.Chance(POWER, ERROR_RATE))
    terminal.item(out, "details", commands.details(str(short(folder))), whole=True)
    return MEASURED


def _recorded(result: Result) -> argparse.Namespace:
    """Return the options that a run was begun with, by the command line in its record, which carries our seal."""
    from envkit.cli import parsed  # which imports commands

    return parsed(result.command[1:])[1]


def _needs(
    study: Study, scale: float, blocks: int, seconds: float, options: argparse.Namespace
) -> list[dict[str, object]]:
    """Return what it takes to find each of DIFFERENCES (shares) with the chance POWER, and the command for it.

    A ratio of ``blocks`` blocks of ``seconds`` each has the noise ``scale`` (``interval_scale``).
    """
    needs: list[dict[str, object]] = []
    profile = "PROFILE" if study.view is View.CALIBRATION else options.profile
    for difference in DIFFERENCES:
        needed = blocks_needed(scale, blocks, difference)
        minutes = math.ceil(needed * seconds / 60) + 1
        # a margin above the difference would end the run as soon as it is known to be below that margin
        least = min(difference, study.stopping.margin)
        margin = ["--margin", f"{least * 100:g}%"] if least != MARGIN else []
        training = ["--", *options.user_command] if options.user_command else []
        command = ["envkit", "bench", profile, *_same_options(options), *margin, "--budget", f"{minutes}m", *training]
        needs.append({"difference": difference, "blocks": needed, "minutes": minutes, "command": shlex.join(command)})
    return needs
