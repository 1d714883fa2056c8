"""The options of ``envkit bench`` that compare two images under one profile, in one interleaved run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from envkit.bench.arms import Arm
from envkit.bench.study import EVERY
from envkit.cli import user_command
from envkit.cli.arguments import option
from envkit.cli.measuring_messages import (
    OneProfileInImages,
    PythonOfCommand,
    SameImage,
    TrainsOne,
)
from envkit.cli.parser import Parser
from envkit.common.errors import InputError
from envkit.engines import ENGINES, container, taking
from envkit.engines.base import IMAGE_FILES
from envkit.engines.setup_messages import NoInterpreter, OptionWithoutEffect
from envkit.worker.workloads import WORKLOADS

# Of each of these options the one that names the other image, which is compared with it.
OPTIONS = {"against_python": "python", "against_image": "image", "against_sif": "sif", "against_sqsh": "sqsh"}


def add_options(parser: Parser) -> None:
    group = parser.add_argument_group(
        "compare two images under one PROFILE",
        "The image named by --against-… is the reference. The report says what differs between the two.",
        advanced=True,
    )
    group.add_argument("--against-python", metavar="PATH", help="local: compare the Python of --python with this one")
    group.add_argument("--against-image", metavar="NAME", help=f"{taking('image')}: compare --image with this image")
    group.add_argument("--against-sif", metavar="FILE", help="apptainer: compare --sif with this image")
    group.add_argument("--against-sqsh", metavar="FILE", help="enroot: compare --sqsh with this image")


def second_image(arguments: argparse.Namespace) -> str | None:
    """Return the name of the option that names a second image; None without one."""
    return next((name for name in OPTIONS if getattr(arguments, name) is not None), None)


def arms(arguments: argparse.Namespace, against: str) -> list[Arm]:
    """Return the one profile in the image that ``against`` names, the reference, and in that of the engine's option.

    Raise InputError for what does not go together; whether the images are there, and are two, is seen when they are
    looked into.
    """
    requested, engine = option(against), arguments.engine or "local"
    usual = ENGINES[engine].image_option if engine in ENGINES else None
    for name, kind in OPTIONS.items():
        if getattr(arguments, name) is not None and kind != usual:
            fitting = tuple(engine_name for engine_name, of in ENGINES.items() if of.image_option == kind)
            raise InputError(OptionWithoutEffect(option(name), (engine,), fitting))
    profiles = list(dict.fromkeys(arguments.profile))
    if len(profiles) > 1:
        raise InputError(OneProfileInImages(requested, tuple(profiles)))
    if arguments.workload == EVERY:
        raise InputError(TrainsOne(requested, tuple(WORKLOADS)))
    if against == "against_python" and user_command.is_given(arguments):
        raise InputError(PythonOfCommand(requested))
    kind = OPTIONS[against]
    first, second = getattr(arguments, against), getattr(arguments, kind)
    if kind in IMAGE_FILES:
        first, second = (str(Path(path).resolve()) for path in (first, second or IMAGE_FILES[kind]))
    elif kind == "python":
        first, second = (_interpreter(path) for path in (first, second or sys.executable))
    else:
        second = second or container.IMAGE
    if first == second:
        instead = ("envkit", "plan", "--engine", engine, f"--{kind}", first)
        raise InputError(SameImage(requested, first, f"--{kind}", instead))
    names = short_names(first, second, kind)
    return [Arm(name, profiles[0], engine, image=image) for name, image in zip(names, (first, second), strict=True)]


def short_names(first: str, second: str, kind: str) -> tuple[str, str]:
    """Return what reports call two images: what is not the same in their names, where that says enough.

    ``envkit-cpu:debian`` and ``envkit-cpu:conda`` are ``debian`` and ``conda``; so are ``envkit-cpu-debian.sif`` and
    ``envkit-cpu-conda.sif``. ``.venv-book/bin/python`` is ``venv-book``.
    """
    if kind in IMAGE_FILES:
        short = [Path(path).stem.removeprefix(f"{container.IMAGE}-") for path in (first, second)]
    elif kind == "python":
        short = [Path(path).parent.parent.name.lstrip(".") or path for path in (first, second)]
    else:
        tagged = [_repository_and_tag(path) for path in (first, second)]
        short = [tag for _, tag in tagged] if tagged[0][0] == tagged[1][0] else [first, second]
    return (short[0], short[1]) if short[0] != short[1] else (first, second)


def _interpreter(named: str) -> str:
    """Return the path of an interpreter, by its name's place in PATH; a link stays one, as in a virtual environment.

    Raise InputError if it is missing.
    """
    if (path := shutil.which(named)) is None:
        raise InputError(NoInterpreter(named))
    return os.path.normpath(Path.cwd() / path)


def _repository_and_tag(image: str) -> tuple[str, str]:
    """``envkit-cpu:debian`` is ("envkit-cpu", "debian"); what names no tag has ``latest``, and a digest is a name."""
    repository, _, tag = image.rpartition(":")
    if "@" in image or not repository or "/" in tag:  # then what follows the colon is a port
        return image, "latest"
    return repository, tag
