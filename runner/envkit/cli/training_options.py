"""The options of how a workload is trained: its modes and its scale."""

from __future__ import annotations

import argparse
from dataclasses import replace

from envkit.bench.study import EVERY
from envkit.cli.arguments import count
from envkit.cli.measuring_messages import NotADevice, NotAFormat, ScaleTooLarge, TrainsOne
from envkit.cli.parser import BadValue, Parser
from envkit.common.errors import InputError
from envkit.worker.modes import CPU, CUDA, DEVICES, FP32, PRECISIONS, Options
from envkit.worker.workloads import WORKLOADS

MOST_SCALE = 64


def add_options(parser: Parser) -> None:
    """Add the modes, which any workload takes, and the scale."""
    group = parser.add_argument_group("how to train", advanced=True)
    group.add_argument("--device", metavar="DEVICE", type=_device,
                       help=f"train on {CPU}, or on {CUDA}: the first GPU, or one GPU per rank; {CUDA} also gives a "
                       f"command of your own the GPUs in a container (default: {CPU})")  # fmt: skip
    group.add_argument("--precision", metavar="FORMAT", type=_precision,
                       help=f"train in this number format: {', '.join(PRECISIONS)} (default: {FP32})")  # fmt: skip
    group.add_argument("--compile", action="store_true", help="train a model compiled by torch.compile")
    group.add_argument("--channels-last", action="store_true", help="store images channels-last in memory")
    group.add_argument("--scale", metavar="N", type=_scale,
                       help=f"make steps N times as large, for machines with many cores; 1 to {MOST_SCALE} "
                       "(default: 1)")  # fmt: skip
    parser.set_defaults(backend=None)  # of ranks, which not all commands have


def _device(text: str) -> str:
    if text not in DEVICES:
        raise BadValue(NotADevice(text, tuple(DEVICES)))
    return text


def _precision(text: str) -> str:
    if text not in PRECISIONS:
        raise BadValue(NotAFormat(text, tuple(PRECISIONS)))
    return text


def _scale(text: str) -> int:
    number = count(text)
    if number > MOST_SCALE:
        raise BadValue(ScaleTooLarge(number, MOST_SCALE))
    return number


def options(arguments: argparse.Namespace) -> Options:
    """Return the modes and the scale that were asked for."""
    options = Options(
        precision=arguments.precision or FP32,
        compile=arguments.compile,
        channels_last=arguments.channels_last,
        scale=arguments.scale or 1,
        device=arguments.device or CPU,
    )
    return options if arguments.backend in (None, options.exchange) else replace(options, backend=arguments.backend)


def require_one(arguments: argparse.Namespace) -> None:
    """Raise InputError for ``--workload all`` where a command can measure one only."""
    if arguments.workload != EVERY:
        return
    if arguments.command != "bench":
        raise InputError(TrainsOne(f"envkit {arguments.command}", tuple(WORKLOADS)))
    if arguments.full:
        raise InputError(TrainsOne("--full", tuple(WORKLOADS)))
