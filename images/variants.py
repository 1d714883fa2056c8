#!/usr/bin/env python3
"""Read images/variants.yaml: which variants of the image there are, and of which locked files each is made.

list         print their names and titles
show [NAME]  print what one is made of, a word and a value on each line, as images/common.sh reads it; without NAME
             the first one
overrides    print each lock of Python packages that is the usual one but for one version, and that version
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "runner"))

from envkit.common import output, yamlfile  # noqa: E402
from envkit.common.errors import InputError  # noqa: E402
from envkit.common.yamlfile import YamlFile  # noqa: E402
from envkit.messages import Printed  # noqa: E402
from envkit.rendering import text_of  # noqa: E402
from providers import packages  # noqa: E402
from wheels import read_lock  # noqa: E402

FILE = Path("images/variants.yaml")
REQUIRED = ("title", "torch", "intel-openmp", "libraries", "locks")
LIBRARIES = ("conda", "debian")
# The compilers that can be in an image, which may have none; install.sh installs it, with Python's headers.
COMPILERS = ("g++",)
# Conda packages whose version may be chosen.
PINS = tuple(packages("conda"))
# The lock that has the version of a key, and how such a lock is made.
LOCKED_IN = {"torch": "torch", "intel-openmp": "packages"}
BY_LOCK, BY_HAND = "images/lock makes it", "it is made by hand, as images/cpu/torch.lock says"
# How the version of a PyTorch that is built for CPUs alone ends, and how the names of variants for GPUs begin.
FOR_CPUS, FOR_GPUS = "+cpu", "cuda"
# What can be a tag of an image and a part of a file's name.
NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
# An image of a registry, or of this machine: by a tag, by a digest, or by both.
BASE = "debian:bookworm-slim"
IMAGE = re.compile(r"[a-z0-9][a-z0-9._:/-]*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")
VERSION = re.compile(r"\d+(\.\d+)*[a-z0-9]*(\+[a-z0-9.]+)?")


@dataclass(frozen=True)
class Variant:
    """``locks`` are by what they lock: packages, torch and, where the libraries are conda's, conda."""

    name: str
    title: str
    versions: dict[str, str]
    libraries: str
    locks: dict[str, Path]
    pins: dict[str, str]
    compiler: str | None
    base: str

    @property
    def has_cuda(self) -> bool:
        """Whether its PyTorch is built with CUDA; that runs on CPUs, too."""
        return not self.versions["torch"].endswith(FOR_CPUS)

    @property
    def image(self) -> str:
        """What its image is called; a SIF has a dash in the place of the colon."""
        return f"envkit-{self.name}" if self.name.startswith(FOR_GPUS) else f"envkit-cpu:{self.name}"

    def made_by(self, what: str) -> str:
        """How its lock of ``what`` is made."""
        return BY_HAND if what == "torch" and not self.has_cuda else BY_LOCK


def load() -> dict[str, Variant]:
    """All variants by name. Raises InputError, with the file's line and key, for the first thing that is wrong."""
    file = yamlfile.read(FILE, "the list of the image's variants")
    if not file.data:
        raise file.error((), Printed("names no variant; restore the file"))
    return {name: _variant(file, name) for name in file.data}


def _variant(file: YamlFile, name: str) -> Variant:
    entry = file.data[name]
    if not NAME.fullmatch(name):
        raise file.error(
            (name,), Printed(f"'{name}' can't be a variant's name: use a-z and 0-9, with '-' or '.' between them")
        )
    if not isinstance(entry, dict):
        raise file.error((name,), Printed(f"{name}: must have the keys {', '.join(REQUIRED)}"))
    _require_keys(file, name, entry)
    _require_name(file, name, entry["torch"])
    libraries = entry["libraries"]
    if libraries not in LIBRARIES:
        raise file.error(
            (name, "libraries"), Printed(f"{name}.libraries: '{libraries}' is neither {' nor '.join(LIBRARIES)}")
        )
    compiler = entry.get("compiler")
    if compiler not in (None, *COMPILERS):
        known = " or ".join(COMPILERS)
        raise file.error(
            (name, "compiler"), Printed(f"{name}.compiler: '{compiler}' is not {known}; without one leave it out")
        )
    base = entry.get("base", BASE)
    if not IMAGE.fullmatch(base):
        raise file.error(
            (name, "base"), Printed(f"{name}.base: '{base}' is no image, such as {BASE} or debian@sha256:DIGEST")
        )
    pins = {key: entry[key] for key in PINS if key in entry}
    if pins and libraries != "conda":
        key = next(iter(pins))
        raise file.error((name, key), Printed(f"{name}.{key}: can be chosen of conda's libraries only; remove it"))
    wanted = ("packages", "torch", *(("conda",) if libraries == "conda" else ()))
    locks = entry["locks"] if isinstance(entry["locks"], dict) else {}
    if locks.keys() != set(wanted) or not all(isinstance(path, str) for path in locks.values()):
        raise file.error(
            (name, "locks"), Printed(f"{name}.locks: must name a file in images/ for each of: {', '.join(wanted)}")
        )
    paths = {what: FILE.parent / locks[what] for what in wanted}
    versions = {key: entry[key] for key in LOCKED_IN}
    return Variant(name, entry["title"], versions, libraries, paths, pins, compiler, base)


def _require_keys(file: YamlFile, name: str, entry: dict[str, Any]) -> None:
    """Raise InputError for a key that there is not, or that is missing, and for a value that is no text or version."""
    known = (*REQUIRED, "compiler", "base", *PINS)
    for key in entry:
        if key not in known:
            raise file.error((name, key), Printed(f"{name}.{key}: no such key; there are: {', '.join(known)}"))
    for key in REQUIRED:
        if key not in entry:
            raise file.error((name,), Printed(f"{name}.{key}: is missing; add it"))
    for key, value in entry.items():
        if key != "locks" and not (isinstance(value, str) and value.strip()):
            raise file.error((name, key), Printed(f"{name}.{key}: must be a text; put it in quotes"))
        if key in (*LOCKED_IN, *PINS) and not VERSION.fullmatch(value):
            raise file.error(
                (name, key), Printed(f"{name}.{key}: '{value}' is no version, such as 5.3.0 or 2.13.0+cpu")
            )


def _require_name(file: YamlFile, name: str, torch: str) -> None:
    """Raise InputError for the name of a variant for GPUs, by which its image is called, where it is not for any."""
    if name.startswith(FOR_GPUS) and torch.endswith(FOR_CPUS):
        fix = f"give the variant a name that does not begin with {FOR_GPUS}"
        raise file.error((name, "torch"), Printed(f"{name}.torch: {torch} is for CPUs alone; {fix}"))


def require(variant: Variant) -> None:
    """Raise InputError where a lock is not there, or locks another version than the variant is said to have.

    That of conda packages is left to images/conda_libraries.py, which makes one where conda-forge can be reached.
    """
    for what in ("packages", "torch"):
        path = variant.locks[what]
        if not path.is_file():
            raise InputError(
                Printed(f"{FILE}: {variant.name}.locks.{what}: there is no {path}: {variant.made_by(what)}")
            )
    for key, what in LOCKED_IN.items():
        path, said = variant.locks[what], variant.versions[key]
        try:
            has = next((one.version for one in read_lock(path) if one.name == key), "none of it")
        except ValueError as error:  # of a line that is no requirement
            said_of_it = str(error).splitlines()[0]
            raise InputError(
                Printed(f"{path}: is no lock of Python packages ({said_of_it}): {variant.made_by(what)}")
            ) from None
        if has != said:
            fix = f"correct it, or renew the lock ({variant.made_by(what)})"
            raise InputError(Printed(f"{FILE}: {variant.name}.{key}: is {said}, and {path} has {has}: {fix}"))


def chosen(variants: dict[str, Variant], name: str) -> Variant:
    """The variant ``name``, or the first where that is empty. Raises InputError if there is none of that name."""
    if name and name not in variants:
        raise InputError(Printed(f"{FILE}: there is no variant '{name}'; there are: {', '.join(variants)}"))
    variant = variants[name] if name else next(iter(variants.values()))
    require(variant)
    return variant


def show(variant: Variant) -> list[str]:
    return [
        f"variant {variant.name}",
        f"image_name {variant.image}",
        f"libraries {variant.libraries}",
        f"torch torch=={variant.versions['torch']}",
        *(f"{what}_lock {path}" for what, path in variant.locks.items()),
        f"compiler {variant.compiler or 'none'}",
        f"variant_base {variant.base}",
        *(f"pin {package}={version}" for package, version in variant.pins.items()),
    ]


def overrides(variants: dict[str, Variant]) -> list[str]:
    """``images/cpu/openmp-2025.lock intel-openmp==2025.3.3`` for each lock that is the usual one but for a version.

    The others are made from a requirements.in of their own, beside them.
    """
    locks = {one.locks["packages"]: one.versions["intel-openmp"] for one in variants.values()}
    like_usual = (path for path in locks if not path.with_suffix(".in").is_file())
    return [f"{path} intel-openmp=={locks[path]}" for path in like_usual]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("list", "overrides"):
        commands.add_parser(command)
    commands.add_parser("show").add_argument("name", nargs="?", default="")
    arguments = parser.parse_args()
    output.guard()
    os.chdir(PROJECT)
    try:
        variants = load()
        if arguments.command == "show":
            lines = show(chosen(variants, arguments.name))
        elif arguments.command == "list":
            lines = [f"{name:20}  {one.title}" for name, one in variants.items()]
        else:
            lines = overrides(variants)
    except (InputError, OSError) as error:
        print(f"images/variants.py: {text_of(error)}", file=sys.stderr)
        return 2
    print("".join(f"{line}\n" for line in lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
