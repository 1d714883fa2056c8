"""Tune the environment layer of PyTorch training and measure what it is worth."""

__version__ = "0.1.0"


def check(profile: str) -> bool:
    """Print whether a profile is in effect in this process, and return that: for a cell of a notebook.

    ``profile`` is a profile's name, or a YAML file. Imports torch if nothing has done so yet. It needs no other package
    than PyYAML, so that it works in any Python that finds this one.
    """
    # by name, and not before it is called: the worker imports this package in Pythons that have nothing else of the kit
    import importlib
    import sys

    try:
        importlib.import_module("torch")
        return bool(importlib.import_module("envkit.checks.this_process").check(profile))
    except ModuleNotFoundError as error:
        package = {"yaml": "pyyaml"}.get(str(error.name), error.name)
        missing = importlib.import_module("envkit.common.messages").NotInThisPython(sys.executable, package)
        print(f"envkit: {importlib.import_module('envkit.rendering').text(missing)}")
        return False


def __getattr__(name: str) -> object:
    """Return what ``import envkit`` does not import at once: it stays quick."""
    import importlib

    if name == "bench":
        return importlib.import_module("envkit.bench")  # which can be called
    if name == "InputError":
        return importlib.import_module("envkit.common.errors").InputError
    if name == "BenchResult":
        return importlib.import_module("envkit.api").BenchResult
    raise AttributeError(f"module 'envkit' has no attribute '{name}'")
