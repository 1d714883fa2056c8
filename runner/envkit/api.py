"""The Python interface, for notebooks and scripts: ``envkit.bench`` measures as the command ``envkit bench`` does."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from envkit import cli, rendering
from envkit.analysis.result import Result, conclude
from envkit.bench import run
from envkit.cli import measuring
from envkit.cli.messages import NotInPython
from envkit.common.errors import INTERRUPTED, InputError
from envkit.report import model, terminal


class ReadableInputError(InputError):
    """An InputError whose ``str`` is its message in English, as a traceback shows it. ``message`` has the code."""

    def __str__(self) -> str:
        return rendering.text(self.message)


@dataclass(frozen=True)
class BenchResult:
    """The result of a measurement. ``str()`` of it is the report that the command line prints.

    ``speedup`` is the baseline's time per step over the profile's, and ``low`` to ``high`` its confidence interval.
    They are None if the run has no verdict. ``verdict`` is that of the interval alone. ``headline`` is the first line
    of the report, with its ``code``, fields and ``text``: ``report.faster`` is faster without a load, with the same
    losses and within ``max_memory``. ``settings_in_effect`` is None if nothing was measured.
    """

    profile: str
    verdict: str  # faster, slower, no difference found, NOT IN EFFECT, failed ...
    headline: dict[str, object]  # as in JSON
    speedup: float | None
    low: float | None
    high: float | None
    settings_in_effect: bool | None
    record: Path  # the folder of the record

    def __str__(self) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            terminal.show(model.report_of(self.result, str(self.record)), terminal.console())
        return printed.getvalue()

    @property
    def result(self) -> Result:
        """The record's contents. Its fields may change in any version."""
        return conclude(run.read(self.record))


def bench(
    profile: str, command: Sequence[str] = (), *, budget: str | None = None, output: str | Path | None = None,
    **options: object,
) -> BenchResult:  # fmt: skip
    """Measure ``profile`` against the baseline, and return the result.

    ``command`` is a training as a list of words, such as ``["python", "train.py"]``; without one the kit trains its own
    workload. ``budget`` is a time such as ``"60s"``, and ``output`` the folder of the record. Other options are those
    of ``envkit bench`` with underscores: ``metric="loss ([0-9.]+)"``, ``whole_command=True``, ``keep_env=["A", "B"]``.

    Raise InputError for bad input. A run that fails, or has no verdict, is a Result that says so.

    Until version 1.0 this interface may change with any release; CHANGELOG.md says how. The fields of Result stay.
    """
    argv = ["bench", profile, *_words({"budget": budget, **options}), "--json"]
    with _readable(), _called([*argv, *(["--", *command] if command else [])]):
        module, arguments = cli.parsed(sys.argv[1:])
        for name in ("dry_run", "resume"):
            if getattr(arguments, name):
                raise InputError(NotInPython(name))
        arguments.output = Path(output) if output is not None else measuring.new_folder(Path(profile).stem)
        with redirect_stdout(io.StringIO()):
            status = module.run(arguments)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return _result(arguments.output)


def _result(folder: Path) -> BenchResult:
    result = conclude(run.read(folder))
    name = result.study.subjects[0].name
    finding = next((finding for finding in result.comparisons if finding.arm == name), None)
    speedup = finding.speedup if finding else None
    effect = [arm.in_effect for arm in result.measured]
    return BenchResult(
        profile=name,
        verdict=finding.words if finding else str(result.ended),
        headline=model.headline(result),
        speedup=speedup.ratio if speedup else None,
        low=speedup.low if speedup else None,
        high=speedup.high if speedup else None,
        settings_in_effect=all(effect) if effect else None,
        record=folder,
    )


def _words(options: Mapping[str, object]) -> list[str]:
    words = []
    for name, values in options.items():
        for value in values if isinstance(values, list | tuple) else [values]:
            if value is True:
                words.append(f"--{name.replace('_', '-')}")
            elif value is not None and value is not False:
                words.append(f"--{name.replace('_', '-')}={value}")
    return words


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise ReadableInputError(error.message) from None


@contextmanager
def _called(argv: Sequence[str]) -> Iterator[None]:
    """Let records have the command line that does the same, not that of the notebook."""
    before = sys.argv
    sys.argv = ["envkit", *argv]
    try:
        yield
    finally:
        sys.argv = before
