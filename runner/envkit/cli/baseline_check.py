"""Prepare ``envkit baseline check`` from its command line, and compare the baseline with it.

A baseline is data: it names nothing that is run. It is compared with the measurement that the command line asks for,
and adds two numbers: how many blocks to measure, and how long samples are.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from envkit.analysis.baseline_diff import machine_pairs, unequal
from envkit.analysis.baselines import Baseline
from envkit.bench.prepare import Prepared
from envkit.bench.resuming import NAMED, differences
from envkit.bench.study import REFERENCE_PROFILE, Study, WorkloadSpec
from envkit.cli import engine_options, measuring_options, training_options, user_command
from envkit.cli.arguments import count, duration
from envkit.cli.baseline_check_messages import (
    BadSteps,
    BudgetOfCheck,
    CommandNotGiven,
    NotComparable,
    OtherCommandLine,
    TooFewBlocks,
)
from envkit.cli.measuring_options import against_baseline
from envkit.cli.parser import Parser
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.stats.interval import MIN_BLOCKS
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.modes import Options
from envkit.worker.performance_variables import PRELOAD
from envkit.worker.request import UserCommand
from envkit.worker.workloads import DEFAULT, GENERATED, WORKLOADS

# Options of other commands that measure.
NOT_HERE: dict[str, object] = {
    "full": False, "epochs": None, "until": None, "half_width": None, "margin": None, "seed": None, "nproc": None,
    "max_memory": None,
    "nodes": None, "weak": False, "dry_run": False, "resume": None,
}  # fmt: skip
# The most timed steps of a sample.
MOST_STEPS = 10**7


def add_arguments(parser: Parser) -> None:
    """Add the options of ``envkit bench`` that say what to measure."""
    parser.add_argument("profile", metavar="PROFILE", nargs="*",
                        help="measure these profiles; the baseline must be of the same")  # fmt: skip
    parser.add_argument_group("what to train").add_argument(
        "--workload", type=user_command.known_workload, metavar="NAME",
        help=f"train {', '.join(WORKLOADS)}, or a file like mine.yaml (default: cnn)",
    )  # fmt: skip
    user_command.add_options(parser)
    training_options.add_options(parser)
    engine_options.add(parser)
    group = parser.add_argument_group("how long", advanced=True)
    group.add_argument("--blocks", metavar="N", type=count, help="measure N blocks (default: as many as the baseline)")
    group.add_argument("--steps", metavar="N", type=count, help="time N steps per sample (default: as the baseline)")
    group.add_argument("--warmup-steps", metavar="N", type=count,
                       help="run N untimed steps first (default: as the baseline)")  # fmt: skip
    group.add_argument("--budget", type=duration, help=argparse.SUPPRESS)  # known, to say what to give instead
    measuring_options.add_worker_options(parser)
    group = parser.add_argument_group("workers", advanced=True)
    group.add_argument("--timeout", metavar="TIME", type=duration, help="stop a worker that takes longer (default: 5m)")
    measuring_options.add_output(parser)
    parser.set_defaults(**NOT_HERE)


def study(arguments: argparse.Namespace, old: Baseline) -> Study:
    """Return the measurement that the command line asks for. Raise InputError if the baseline is of another one."""
    if arguments.budget is not None:
        raise InputError(BudgetOfCheck(old.blocks, old.name))
    if arguments.blocks is not None and arguments.blocks < MIN_BLOCKS:
        raise InputError(TooFewBlocks(arguments.blocks, MIN_BLOCKS))
    if not arguments.profile:
        raise InputError(CommandNotGiven(str(old.source), _command(arguments.name, old)))
    arms = against_baseline(arguments.profile, arguments.engine or "local")
    made = measuring_options.study(arguments, f"check-{old.name}", arms)
    # the interval holds for a number of blocks that is fixed before the run
    made = made.with_stopping(blocks=arguments.blocks or old.blocks)
    if made.user_command is None:
        steps, before = (_steps(old, name) for name in ("steps", "warmup_steps"))
        made = made.with_lengths(WorkloadSpec(made.training.warmup_steps or before, made.training.steps or steps))
    _require_same(old, differences(_recorded(old), _intended(made)))
    return made


def require_same_run(old: Baseline, prepared: Prepared) -> None:
    """Raise InputError if the baseline is of another machine, or of other environments, than the prepared run."""
    images = prepared.job.context.seen
    for name, before in old.document["engines"].items():
        pairs = machine_pairs(before["inspection"], {**images[name]["inspection"]})
        refuse(old, [unequal(pair) for pair in pairs if pair[1] != pair[2]])
    recorded = {name: arm["environment"] for name, arm in old.document["arms"].items()}
    environments = differences(
        {
            name: _settings(made["variables"], made["preload"], made["prefix"], made["expect"])
            for name, made in recorded.items()
        },
        {
            name: _settings(made.variables, made.preload, made.prefix, made.expect)
            for name, made in prepared.job.environments.items()
        },
    )
    kept = differences(sorted(old.document["allowed_variables"]), sorted(prepared.job.context.kept), "kept variables")
    data = differences(
        _data(old.study["data"]), _data(prepared.job.study.data_of(prepared.job.study.reference)), "data"
    )
    _require_same(old, [*environments, *kept, *data])


def _data(location: str) -> str:
    """Return the kind of data, whatever its folder. Digests compare the content after the run."""
    return location if location in (SYNTHETIC, GENERATED) else "real"


def refuse(old: Baseline, reasons: Sequence[Message]) -> None:
    """Raise InputError if there are ``reasons`` why the baseline can't be compared."""
    if reasons:
        raise InputError(NotComparable(str(old.source), tuple(reasons)))


def _require_same(old: Baseline, unequal: Sequence[Message]) -> None:
    if unequal:
        more = len(unequal) - NAMED if len(unequal) > NAMED else None
        instead = ("envkit", "baseline", "check", old.name, "--against", "DIR")
        raise InputError(OtherCommandLine(str(old.source), tuple(unequal[:NAMED]), more, instead))


def _steps(old: Baseline, name: str) -> int:
    """Return ``steps`` or ``warmup_steps`` of the baseline's samples. Raise InputError if out of range."""
    steps = old.study["steps"] if name == "steps" else old.study["warmup_steps"]
    if type(steps) is not int or not 0 <= steps <= MOST_STEPS:
        raise InputError(BadSteps(str(old.source), name, repr(steps), MOST_STEPS))
    return steps


def _recorded(old: Baseline) -> dict[str, object]:
    study, command = old.study, old.user_command
    return {
        "arms": {arm["name"]: arm["engine"] for arm in study["arms"]},
        "engine options": study["engine_options"],
        "workload": study["workload"],
        "modes": {**asdict(Options()), **study.get("options", {})},
        "command": command and _without_folder(asdict(command)),
    }


def _intended(made: Study) -> dict[str, object]:
    command = made.user_command
    return {
        "arms": {arm.name: arm.engine for arm in made.arms},
        "engine options": made.engine_options.to_json(),
        "workload": made.workload,
        "modes": asdict(made.options),
        "command": command and _without_folder(asdict(command)),
    }


def _without_folder(command: Mapping[str, object]) -> dict[str, object]:
    """Return a command without its folder: a checkout may be elsewhere."""
    return {key: value for key, value in command.items() if key != "folder"}


def _settings(
    variables: Mapping[str, str], preload: Iterable[str], prefix: Iterable[str], expect: Mapping[str, object]
) -> dict[str, object]:
    """Return what an environment sets and expects, without paths of this machine."""
    portable = {name: value for name, value in variables.items() if name != PRELOAD}
    return {"variables": portable, "preload": [*preload], "prefix": [*prefix], "expect": expect}


def _command(name: str, old: Baseline) -> str:
    """Return the command line that measures the same as the baseline."""
    study, command = old.study, old.user_command
    profiles = [arm["profile"] for arm in study["arms"] if arm["profile"] != REFERENCE_PROFILE] or [REFERENCE_PROFILE]
    words = ["envkit", "baseline", "check", name, *profiles]
    engine = study["arms"][0]["engine"]
    words += ["--engine", engine] if engine != "local" else []
    for option, value in study["engine_options"].items():
        words += [f"--{option.replace('_', '-')}", value]
    if command is None and study["workload"] != DEFAULT:
        words += ["--workload", study["workload"]]
    loader_options = {key: value for key, value in study.get("options", {}).items() if key in asdict(Options())}
    options: Callable[..., Options] = Options  # type: ignore[explicit-any] # the file may be of another form, which nothing here acts upon
    words += options(**loader_options).arguments() if command is None else ()
    words += ["--data", SYNTHETIC] if study["data"] == SYNTHETIC else []
    for variable in old.document["allowed_variables"]:
        words += ["--keep-env", variable]
    if command is not None:
        words += _of_command(command)
    return shlex.join(words)


def _of_command(command: UserCommand) -> list[str]:
    words = []
    for name in ("metric", "unit", "optimizer_steps", "warmup_lines", "loss_metric"):
        value = getattr(command, name)
        if value and not (name == "unit" and command.metric is None):
            words.append(f"--{name.replace('_', '-')}={value}")
    place = ["--in-place"] if command.in_place else [f"--link={link}" for link in command.links]
    return [*words, *(["--whole-command"] if command.is_one_step else []), *place, "--", *command.argv]
