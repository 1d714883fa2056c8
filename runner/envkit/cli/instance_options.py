"""``--instances``: several trainings at once, each by itself, beside one process."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from envkit.bench.arms import Arm
from envkit.cli.arguments import count, option
from envkit.cli.messages import REASONS, HasNoEffect
from envkit.cli.parser import Parser
from envkit.cli.rank_options import BUDGET_EACH_S, GROUP
from envkit.common.errors import InputError


def add_option(parser: Parser) -> None:
    parser.add_argument_group(GROUP, advanced=True).add_argument(
        "--instances", metavar="N", type=count,
        help="train N independent copies at once under each PROFILE, each on its share of the cores, and compare "
        "their total throughput with one process on all cores",
    )  # fmt: skip


def arms(arguments: argparse.Namespace, given: Sequence[Arm]) -> list[Arm]:
    """``given``, of one process each, and so many at once under each of the profiles that were named."""
    number = arguments.instances or 1
    named = [arm for arm in given if arm.profile in arguments.profile] if number > 1 else []
    return [*given, *(replace(arm, name=f"{number} x {arm.name}", instances=number) for arm in named)]


def budget_s(arguments: argparse.Namespace, arms: Sequence[Arm]) -> float | None:
    """Return what it usually takes to measure the ``arms``; None where none are several at once."""
    return BUDGET_EACH_S * len(arms) if (arguments.instances or 1) > 1 else None


def require_one_image(arguments: argparse.Namespace, against: str) -> None:
    """Raise InputError where two images are to be compared, by the option ``against``, with several at once."""
    if (arguments.instances or 1) > 1:
        raise InputError(HasNoEffect(f"--instances {arguments.instances}", option(against), REASONS["two images"]))
