"""``envkit bench PROFILE...``: measure profiles against the baseline, or one profile in two images."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from envkit.bench.arms import View
from envkit.bench.study import EVERY, Study
from envkit.cli import image_options, measuring, measuring_options, rank_options
from envkit.cli.commands import help_messages
from envkit.cli.messages import NeedsProfile
from envkit.cli.parser import Parser
from envkit.rendering import text
from envkit.worker.workloads import ALL

# Of ``--workload all``, for each profile on each workload: eight samples of up to 12 s with their workers' starts.
# Eight are what intervals take that four comparisons share, and with one profile 15 minutes have room for an
# installation too (docs/workloads.md has a run on a slow machine).
BUDGET_EACH_S = 96.0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*",
                        help="name of a profile, or a YAML file; envkit profiles lists them")  # fmt: skip
    budget = text(help_messages.BenchBudget(measuring_options.BUDGET, BUDGET_EACH_S, rank_options.BUDGET))
    measuring_options.add(parser, budget=budget, every=help_messages.BENCH["every"])
    measuring_options.add_keep_arms(parser)
    measuring_options.add_max_memory(parser)
    rank_options.add_option(parser, help_messages.BENCH["ranks"])
    rank_options.add_weak_option(parser)
    rank_options.add_nodes_option(parser)
    rank_options.add_instances_option(parser)
    image_options.add_options(parser)
    measuring_options.add_dry_run(parser)


def run(arguments: argparse.Namespace) -> int:
    invocation = measuring.invocation(arguments)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation)
    if not arguments.profile:
        raise measuring.lacks_profile(arguments, NeedsProfile("bench"))
    return measuring.run(_study(arguments), invocation)


def _study(arguments: argparse.Namespace) -> Study:
    title = "+".join(Path(name).stem for name in arguments.profile)
    engine, nodes = arguments.engine or "local", arguments.nodes or 1
    against = image_options.second_image(arguments)
    if against is not None:
        rank_options.require(arguments, nodes)
        rank_options.require_one_image(arguments, against)
        arms = image_options.arms(arguments, against)
        study = measuring_options.study(arguments, f"{title}-images", arms, view=View.IMAGES)
        # each arm has an image of its own
        study = replace(study, engine_options=replace(study.engine_options, **{image_options.OPTIONS[against]: None}))
    else:
        compared = measuring_options.against_baseline(arguments.profile, engine)
        arms = rank_options.arms(arguments, rank_options.with_instances(arguments, compared), nodes)
        budget_s = rank_options.budget_s(arguments, arms, nodes)
        view = View.WORKLOADS if arguments.workload == EVERY else View.EFFECTS
        if view is View.WORKLOADS:
            # the baseline on a workload is what others are compared with there
            arms = [
                replace(arm, name=f"{arm.name} on {workload}", workload=workload) for workload in ALL for arm in arms
            ]
            title = f"{title}-all"
            budget_s = BUDGET_EACH_S * len(arms)
        drop_arms = len(arguments.profile) > 1 and not arguments.keep_arms
        study = measuring_options.study(arguments, title, arms, budget_s, view, drop_arms)
    if arguments.backend:
        rank_options.require_backend(arguments.backend, rank_options.most(arguments, arms, nodes))
    return study
