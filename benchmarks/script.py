"""How every benchmark is started and ends: the options that all have, and one line for what can't be done."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import msgspec
from envkit.common import output
from envkit.common.errors import BAD_INPUT, INTERRUPTED, InputError
from envkit.common.yamlfile import YamlFile
from envkit.engines.base import PROJECT
from envkit.messages import Printed
from envkit.rendering import text_of

from benchmarks.errors import ScriptError
from benchmarks.page import PAGES
from benchmarks.results import FOLDER

Parsed = TypeVar("Parsed")


def page_parser(name: str, description: str | None, page: Path | None = None) -> argparse.ArgumentParser:
    """Return the options of a benchmark that keeps no results: ``--page``, by default ``page``, or that of its name."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    default = page or PAGES / f"{name.replace('_', '-')}.md"
    made.add_argument("--page", metavar="FILE", type=Path, default=default,
                      help=f"the page to write at the end (default: {default.relative_to(PROJECT)})")  # fmt: skip
    return made


def parser(
    name: str, description: str | None, page: Path | None = None, results: Path | None = None
) -> argparse.ArgumentParser:
    """Return the options ``--page`` and ``--results``, by default these files, or those of the benchmark's name."""
    made = page_parser(name, description, page)
    default = results or FOLDER / f"{name}.jsonl"
    made.add_argument("--results", metavar="FILE", type=Path, default=default,
                      help=f"what was measured; goes on with it (default: {default.relative_to(PROJECT)})")  # fmt: skip
    return made


def parse(file: YamlFile, kind: type[Parsed], *at: str) -> Parsed:
    """Return the part of a file that stands at these keys. Raise InputError that names its line if it is invalid."""
    part: object = file.data
    for key in at:
        part = part.get(key) if isinstance(part, dict) else None
    try:
        return msgspec.convert(part, kind)
    except msgspec.ValidationError as error:
        subject = f"{at[-1]}: " if at else ""
        raise file.error(at, Printed(f"{subject}{error}")) from None


def simulation_parser(name: str, description: str | None, runs: int) -> argparse.ArgumentParser:
    """Return the options of a page of simulated runs: ``--page``, and how many runs a line is of."""
    made = page_parser(name, description)
    made.add_argument("--runs", metavar="N", type=int, default=runs, help=f"for each line (default: {runs})")
    return made


def add_training_options(options: argparse.ArgumentParser) -> None:
    """Add what all benchmarks say of the trainings that they start: their data and their interpreter."""
    options.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    options.add_argument("--python", metavar="PATH", help="the workers' interpreter (default: this one)")


def option_words(arguments: argparse.Namespace, *names: str) -> list[str]:
    """Those of the options called ``names`` that were given, as words for a command of the runner."""
    values = ((name, getattr(arguments, name)) for name in names)
    return [word for name, value in values if value is not None for word in (f"--{name.replace('_', '-')}", str(value))]


def runner(command: str, *options: object, purpose: str, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a command of the runner prints as JSON; ``variables`` are added to its environment.

    Raise ScriptError that names its ``purpose`` if it fails.
    """
    result = subprocess.run(
        [sys.executable, "-m", "envkit", command, *map(str, options), "--json"],
        cwd=PROJECT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **(variables or {})},
    )  # fmt: skip
    if result.returncode != 0:
        complaints = [line for line in result.stderr.splitlines() if line.startswith("envkit: ")]
        why = complaints[-1].removeprefix("envkit: ") if complaints else "it was not in effect"
        raise ScriptError(f"{purpose}: envkit {command} ended with exit status {result.returncode}: {why}")
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@contextlib.contextmanager
def processes(number: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """So many processes to work in, or one for each usable CPU. They end at once with an interrupt."""
    with ProcessPoolExecutor(number or len(os.sched_getaffinity(0)), get_context("fork")) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.terminate()
            raise


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def run(name: str, main: Callable[[], int]) -> int:
    """The exit status of ``main``, whose InputError and interrupts end in one line."""
    signal.signal(signal.SIGTERM, _interrupt)  # so that what was started is ended too
    output.guard()
    try:
        return main()
    except InputError as error:
        print(f"{name}: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command goes on", file=sys.stderr)
        return INTERRUPTED
