"""The packages that only some commands need, and the extras of the kit that bring them (pyproject.toml)."""

from __future__ import annotations

import importlib.util

from envkit.common.errors import InputError
from envkit.common.messages import MissingExtra, MissingPackage

# By the name that is imported; the extras are those of pyproject.toml.
EXTRAS = {
    "docker": "docker",
    "jinja2": "plots",
    "matplotlib": "plots",
    "optuna": "tune",
    "pyarrow": "parquet",
    "sacrebleu": "translation",
}
PICTURE = ("matplotlib",)
PAGE = ("jinja2", *PICTURE)


def is_there(package: str) -> bool:
    """Return whether a package can be imported. It is not imported."""
    return importlib.util.find_spec(package) is not None


def require(needed_by: str, *packages: str) -> None:
    """Raise InputError if one of ``packages``, which extras bring, is missing; ``needed_by`` is what needs it."""
    for package in packages:
        if not is_there(package):
            raise InputError(MissingExtra(needed_by, package, EXTRAS[package]))


def missing(needed_by: str, error: ModuleNotFoundError) -> InputError:
    """Return the error to raise for a package that could not be imported."""
    package = (error.name or "").partition(".")[0]
    if package in EXTRAS:
        return InputError(MissingExtra(needed_by, package, EXTRAS[package]))
    return InputError(MissingPackage(package))
