"""What is trained and how: the options for it, what does not go together, and the data that it takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner import dataset, quality
from runner.arguments import count
from runner.commands.own_command import EVERY
from runner.dataset import DataSet
from runner.errors import InputError
from runner.plan import Arm
from runner.worker.gpus import CHOOSING
from runner.worker.modes import CPU, CUDA, DEVICES, FP32, PRECISIONS, USUAL, Options
from runner.worker.workloads import GENERATED, WORKLOADS, get

MOST_SCALE = 64
# What torch.compile needs in an image to make code for CPUs (torch._inductor.config.cpp.cxx).
COMPILER = "g++"
# How a CPU build of torch ends its version.
CPU_BUILD = "+cpu"


def add_options(group: argparse._ArgumentGroup) -> None:
    """The modes, which any workload takes, and the scale."""
    group.add_argument("--device", metavar="DEVICE", type=_device,
                       help=f"where to train: {CPU}, or {CUDA}: the first GPU, or one for each rank; {CUDA} "
                       f"gives a command of your own the GPUs in a container (default: {CPU})")  # fmt: skip
    group.add_argument("--precision", metavar="FORMAT", type=_precision,
                       help=f"number format to train in: {', '.join(PRECISIONS)} (default: {FP32})")  # fmt: skip
    group.add_argument("--compile", action="store_true", help="train a model that torch.compile has compiled")
    group.add_argument("--channels-last", action="store_true", help="keep the channels of images innermost in memory")
    group.add_argument("--scale", metavar="N", type=_scale,
                       help="make steps N times as large, for more than two cores (default: 1)")  # fmt: skip


def _device(text: str) -> str:
    if text not in DEVICES:
        mend = f"give {' or '.join(DEVICES)}; CUDA_VISIBLE_DEVICES says which GPU is the first"
        raise argparse.ArgumentTypeError(f"'{text}' is no device; {mend}")
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
    backend = getattr(arguments, "backend", None) or how.exchange
    return how if backend == how.exchange else replace(how, backend=backend)


def names(arms: Iterable[Arm], trained: str) -> list[str]:
    """The workloads that ``arms`` train, ``trained`` being that of an arm without one of its own."""
    return list(dict.fromkeys(arm.workload or trained for arm in arms))


def require_one(arguments: argparse.Namespace) -> None:
    """Raise InputError for ``--workload all`` where a command can measure one only."""
    if arguments.workload == EVERY and (arguments.command != "bench" or getattr(arguments, "full", False)):
        what = "--full, which trains epochs of one" if arguments.command == "bench" else f"runner {arguments.command}"
        raise InputError(f"--workload all means nothing to {what}; name one of: {', '.join(WORKLOADS)}")


def require(workloads: Sequence[str], how: Options) -> None:
    """Raise InputError where ``workloads`` can't be trained like that."""
    for name in workloads:
        workload = get(name)
        if how.channels_last and not workload.images:
            raise InputError(f"--channels-last means nothing to {name}, which has no images; leave it out")
        if how.scale != 1 and not workload.scales:
            raise InputError(f"--scale means nothing to {name}, whose name says its sizes; leave it out")
        if workload.stages > 1 and how.modes != USUAL.modes:
            what = "on CPUs in fp32, not compiled and not channels-last"
            raise InputError(f"{name} is trained {what}; leave such options out")
        if workload.exchange and replace(how, device=CPU).modes != USUAL.modes:
            raise InputError(f"{name} trains nothing: it is not compiled, and always in fp32; leave such options out")
    quality.require(workloads)


def tools(how: Options) -> list[str]:
    """The commands that an image must have."""
    return [COMPILER] if how.compile else []


def choosing(how: Options) -> tuple[str, ...]:
    """What training on a GPU keeps of the caller's: a batch system says so which GPU it may use."""
    return CHOOSING if how.device == CUDA else ()


def on_gpus(how: Options, own: bool) -> bool | None:
    """Whether GPUs are trained on; None where a command of the user's ``own`` may do so if it finds some."""
    return True if how.device == CUDA else None if own else False


def require_in(seen: Mapping[str, Mapping[str, Any]], workloads: Sequence[str], how: Options) -> None:
    """Raise InputError where an image, as it was ``seen`` under each engine, lacks what the training needs."""
    for engine, about in seen.items():
        inspection, image = about["inspection"], about["engine"]["image"]
        if how.device == CUDA:
            _require_gpu(inspection["accelerator"], f"{image} (engine {engine})")
        missing = [command for command in tools(how) if inspection["commands"][command] is None]
        if how.compile and not inspection["python_headers"]:
            missing.append("Python's headers (Python.h)")
        if missing:
            raise InputError(
                f"--compile: torch.compile needs {' and '.join(missing)}, and {image} (engine {engine}) has none; "
                "install it there, or leave --compile out"
            )
        version = inspection["packages"]["torch"]
        pinning = [name for name in workloads if get(name).pins]
        if pinning and version.endswith(CPU_BUILD):
            raise InputError(
                f"{pinning[0]}: pinned memory is for an accelerator, and torch {version} in {image} has none; "
                "leave -pin out"
            )


def _require_gpu(found: Mapping[str, Any], where: str) -> None:
    """``found`` is what ``runner.worker.gpus.look`` saw there."""
    if found["problem"] is not None:
        raise InputError(f"--device {CUDA}: {where} can't: {found['problem']}; {found['mend']}")


def data(given: str | None, workloads: Sequence[str]) -> DataSet:
    """The data that ``workloads`` train on; ``given`` is --data. Where it comes from is printed on stderr.

    Raises InputError where none of them takes it.
    """
    reading = [name for name in workloads if not get(name).generated]
    if not reading:
        if given is not None:
            raise InputError(
                f"--data {given}: means nothing to {workloads[0]}, which makes its data itself; leave it out"
            )
        return DataSet(GENERATED, "generated from a seed")
    found = dataset.find(given, lambda text: print(text, file=sys.stderr))
    if len(reading) == len(workloads):
        return found
    return replace(found, source=f"{found.source}; the others' is generated from a seed")
