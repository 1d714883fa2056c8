"""The options of how a workload is trained: its modes and its scale."""

from __future__ import annotations

import argparse
from dataclasses import replace

from envkit.bench.specification import EVERY
from envkit.cli.arguments import count
from envkit.common.errors import InputError
from envkit.worker.modes import CPU, CUDA, DEVICES, FP32, PRECISIONS, Options
from envkit.worker.workloads import WORKLOADS

MOST_SCALE = 64


def add_options(group: argparse._ArgumentGroup) -> None:
    """The modes, which any workload takes, and the scale."""
    group.add_argument("--device", metavar="DEVICE", type=_device,
                       help=f"where to train: {CPU}, or {CUDA}: the first GPU, or one for each rank; {CUDA} "
                       f"gives a command of your own the GPUs in a container (default: {CPU})")  # fmt: skip
    group.add_argument("--precision", metavar="FORMAT", type=_precision,
                       help=f"number format to train in: {', '.join(PRECISIONS)} (default: {FP32})")  # fmt: skip
    group.add_argument("--compile", action="store_true", help="train a model that torch.compile has compiled")
    group.add_argument("--channels-last", action="store_true", help="keep the channels of images innermost in memory")
    group.set_defaults(backend=None)  # of ranks, which not all commands have
    group.add_argument("--scale", metavar="N", type=_scale,
                       help="make steps N times as large, for more than two cores (default: 1)")  # fmt: skip


def _device(text: str) -> str:
    if text not in DEVICES:
        fix = f"give {' or '.join(DEVICES)}; CUDA_VISIBLE_DEVICES says which GPU is the first"
        raise argparse.ArgumentTypeError(f"'{text}' is no device; {fix}")
    return text


def _precision(text: str) -> str:
    if text not in PRECISIONS:
        known = f"there are: {', '.join(PRECISIONS)}"
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number format; {known} (how narrow the interval is to be is --half-width)"
        )
    return text


def _scale(text: str) -> int:
    number = count(text)
    if number > MOST_SCALE:
        raise argparse.ArgumentTypeError(f"{number} is more than {MOST_SCALE}, the largest that data is made for")
    return number


def options(arguments: argparse.Namespace) -> Options:
    how = Options(
        precision=arguments.precision or FP32,
        compile=arguments.compile,
        channels_last=arguments.channels_last,
        scale=arguments.scale or 1,
        device=arguments.device or CPU,
    )
    return how if arguments.backend in (None, how.exchange) else replace(how, backend=arguments.backend)


def require_one(arguments: argparse.Namespace) -> None:
    """Raise InputError for ``--workload all`` where a command can measure one only."""
    if arguments.workload == EVERY and (arguments.command != "bench" or arguments.full):
        what = "--full, which trains epochs of one" if arguments.command == "bench" else f"envkit {arguments.command}"
        raise InputError(f"--workload all means nothing to {what}; name one of: {', '.join(WORKLOADS)}")
