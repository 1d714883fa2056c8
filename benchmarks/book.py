"""The book's table again: what its changes to the training are worth on this machine, and what the environment is.

All arms are measured in one run, side by side: each is a whole training in a fresh process. The run is an ordinary
record, which ``envkit report`` prints again.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.analysis.result import Comparison, Measured, Result, conclude
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.decide import COMPLETE
from envkit.bench.run import Run
from envkit.bench.study import FULL_TIMEOUT_S, StoppingRule, Study
from envkit.cli import measuring
from envkit.cli.arguments import count
from envkit.cli.measuring import Invocation
from envkit.cli.measuring_options import BUDGET_S
from envkit.common.errors import MEASURED
from envkit.engines.base import PROJECT, EngineOptions
from envkit.rendering import text
from envkit.report import certainty, lines
from envkit.worker.request import FullTraining

from benchmarks import page, recorded, script
from benchmarks.errors import ScriptError

EPOCHS = 10


@dataclass(frozen=True)
class Published:
    """A line of the book: its training took ``seconds``, and classified this share of the test images rightly."""

    what: str
    arm: Arm
    seconds: int
    accuracy: float


BOOK = (
    Published("nothing: the baseline", Arm("baseline", "baseline", ""), 148, 0.8399),
    Published("code: no bias", Arm("cnn-nobias", "baseline", "", "cnn-nobias"), 125, 0.8376),
    Published("code: batches of 128", Arm("cnn-batch128", "baseline", "", "cnn-batch128"), 96, 0.8214),
    Published("code: batches of 256", Arm("cnn-batch256", "baseline", "", "cnn-batch256"), 76, 0.8001),
    Published("environment: Intel OpenMP", Arm("intel-omp", "intel-omp", ""), 106, 0.8325),
)


def main() -> int:
    arguments = _parser().parse_args()
    arms = _arms(arguments.also, arguments.engine)

    def tell(folder: Path) -> int:
        _tell(folder, arguments.page)
        return MEASURED

    if record.is_begun(arguments.record):
        events = record.read(arguments.record)
        with record.reading(arguments.record):
            _check_same(arguments, arms, Study.from_json(events[0]["study"]))
        if events[-1].get("reason") == COMPLETE:
            return tell(arguments.record)
        return measuring.resume(arguments.record, Invocation(), tell)
    study = Study(
        title="book",
        stopping=StoppingRule(BUDGET_S, arguments.blocks, timeout_s=FULL_TIMEOUT_S, open_ended=True),
        full=FullTraining(arguments.epochs),
        data=arguments.data,
        engine_options=EngineOptions(python=arguments.python),
    ).with_arms(arms)
    return measuring.run(study, Invocation(output=arguments.record), tell)


def _parser() -> argparse.ArgumentParser:
    parser = script.page_parser("book", __doc__)
    parser.add_argument("--epochs", metavar="N", type=count, default=EPOCHS, help=f"of each (default: {EPOCHS})")
    parser.add_argument("--blocks", metavar="N", type=count, default=1,
                        help="trainings of each; 8 or more give intervals (default: 1)")  # fmt: skip
    parser.add_argument("--also", metavar="PROFILE", action="append", default=[],
                        help="measure this profile too, for example tuned")  # fmt: skip
    parser.add_argument("--engine", default="local", help="what starts the workers (default: local)")
    script.add_training_options(parser)
    folder = PROJECT / "results" / "book"
    parser.add_argument("--record", metavar="DIR", type=Path, default=folder,
                        help=f"the run; goes on with it (default: {folder.relative_to(PROJECT)})")  # fmt: skip
    return parser


def _arms(also: Sequence[str], engine: str) -> list[Arm]:
    arms = [published.arm for published in BOOK]
    arms += [Arm(Path(name).stem, name, "") for name in dict.fromkeys(also)]
    for number, arm in enumerate(arms):
        if arm.name in {earlier.name for earlier in arms[:number]}:
            raise ScriptError(f"--also {arm.profile}: '{arm.name}' is measured already; leave it out, or rename it")
    return [Arm(arm.name, arm.profile, engine, arm.workload) for arm in arms]


def _check_same(arguments: argparse.Namespace, arms: Sequence[Arm], study: Study) -> None:
    """Raises InputError if the run that is there was begun with other settings than these."""
    pairs = {
        "epochs": (study.epochs, arguments.epochs),
        "blocks": (study.stopping.blocks, arguments.blocks),
        "arms": (", ".join(arm.name for arm in study.arms), ", ".join(arm.name for arm in arms)),
        "engine": (study.reference.engine, arms[0].engine),
        "data": (study.data_of(study.reference), arguments.data or study.data_of(study.reference)),
    }
    recorded.require_same(arguments.record, pairs, "--record")


@dataclass(frozen=True)
class Row:
    """One arm: what the book says of it, if anything, and what was found here."""

    what: str
    published: Published | None
    measured: Measured
    comparison: Comparison | None
    step_ms: tuple[float, float]  # the middle half of all steps

    @property
    def ratio(self) -> float:
        """The baseline's time over this one's."""
        if self.comparison is None:
            return 1.0
        effect = self.comparison.speedup
        return effect.ratio if effect else self.comparison.single_ratio or float("nan")

    def cells(self) -> list[str]:
        book = ["-", "-", "-"]
        if self.published:
            ratio = f"{BOOK[0].seconds / self.published.seconds:.2f}"
            book = [f"{self.published.seconds} s", ratio, f"{self.published.accuracy:.2%}"]
        effect = self.comparison.speedup if self.comparison else None
        interval = [f"{effect.low:.3f} to {effect.high:.3f}" if effect else "-"]
        ratio = "-" if math.isnan(self.ratio) else f"{self.ratio:.3f}"
        low, high = self.step_ms
        return [self.what, *book, f"{self.measured.training_s:.1f} s", ratio, *interval,
                f"{self.measured.accuracy:.2%}", f"{low:.1f} to {high:.1f}", self._losses()]  # fmt: skip

    def _losses(self) -> str:
        losses = self.comparison.losses if self.comparison else None
        if losses is None:
            return "-"
        return "equal" if not losses.largest_difference else f"within {losses.largest_difference:.1e}"


HEADER = ("what changes", "book", "ratio", "accuracy", "here", "ratio", f"{certainty.CONFIDENCE} interval", "accuracy",
          "ms/step", "losses")  # fmt: skip


def _rows(result: Result) -> list[Row]:
    published = {book_row.arm.name: book_row for book_row in BOOK}
    measured = {measurement.arm: measurement for measurement in result.measured}
    compared = {comparison.arm: comparison for comparison in result.comparisons}
    rows = []
    for arm in result.study.arms:
        steps = [1000 * second for sample in result.samples if sample.arm == arm.name for second in sample.step_s]
        low, _, high = statistics.quantiles(steps, n=4)
        in_book = published.get(arm.name)
        label = in_book.what if in_book else f"environment: {arm.name}"
        rows.append(Row(label, in_book, measured[arm.name], compared.get(arm.name), (low, high)))
    return rows


def _tell(folder: Path, path: Path) -> None:
    """Write the page, from the record alone."""
    events = record.read(folder)
    with record.reading(folder):
        result = conclude(Run.parse(events))
    rows = _rows(result)
    notes = _notes(result, rows)
    samples = [event for event in events if event["event"] == "sample"]
    heading = page.heading("The book's table on this machine", QUESTION, samples, lines.machine(result))
    how = HOW.format(engine=result.study.reference.engine, record=_shown(folder))
    synthetic = "**SYNTHETIC DATA: this is not Fashion-MNIST, and the accuracies mean nothing.**"
    table_text = page.table(HEADER, [row.cells() for row in rows], numbers_from=1)
    note_list = "\n".join(f"- {label}: {text}" for label, text in notes)
    page.write(path, [heading, synthetic if result.synthetic else "", how, "## What came out", table_text, note_list])


def _shown(folder: Path) -> str:
    return str(folder.relative_to(PROJECT) if folder.is_relative_to(PROJECT) else folder)


def _notes(result: Result, rows: Sequence[Row]) -> list[tuple[str, str]]:
    study = result.study
    trainings = f"{study.epochs} epoch{'' if study.epochs == 1 else 's'}"
    notes = [("trained", f"{trainings} in {max(row.measured.samples for row in rows)} fresh process(es) of each, in "
                         f"random order; data: {text(result.data_source)}")]  # fmt: skip
    if study.epochs != EPOCHS:
        notes.append(("short", f"the book trains {EPOCHS} epochs: neither times nor accuracies compare with its own"))
    if study.one_run_each:
        notes.append(("sure", "a single pair has no interval: how far a ratio would move if repeated is not known "
                              "(--blocks 8 gives intervals). ms/step is the middle half of one training's steps, and "
                              "says nothing of that"))  # fmt: skip
    elif any(row.comparison and not row.comparison.speedup for row in rows):
        notes.append(("sure", "too few blocks for intervals that hold together: give more --blocks"))
    else:
        notes.append(("sure", f"the {len(study.compared)} intervals hold together in {certainty.CONFIDENCE} of such "
                              "runs. ms/step is the middle half of all steps"))  # fmt: skip
    if not any(math.isnan(row.ratio) for row in rows):
        order = [row.measured.arm for row in sorted(rows, key=lambda row: -row.ratio)]
        books = sorted(BOOK, key=lambda book_row: book_row.seconds)
        here = "here, by one training each," if study.one_run_each else "here"
        notes.append(("order", f"{here} {', '.join(order)}; in the book "
                               f"{', '.join(book_row.arm.name for book_row in books)}, the fastest first"))  # fmt: skip
    if result.interference:
        blocks = len({sample.block for sample in result.samples})
        example = text(next(iter(result.interference.values()))[0])
        hit = f"{len(result.interference)} of {blocks} block(s)"
        notes.append(("noise", f"{hit} disturbed from outside, as {example}"))
    quiet = [f"{comparison.arm} {undisturbed.ratio:.3f} ({undisturbed.low:.3f} to {undisturbed.high:.3f})"
             for comparison in result.comparisons if (undisturbed := comparison.without_interference)]  # fmt: skip
    return [*notes, ("quiet", f"by the other blocks alone: {', '.join(quiet)}")] if quiet else notes


QUESTION = """A book on accelerating PyTorch training reports what four changes are worth for its CNN: three to the code
and one to the environment. What are they worth here, side by side, in time and in accuracy?"""
HOW = """## How

Each line is the book's whole training in a fresh process under the engine {engine}: the same data in the same order,
the same seed. The arms run in random order within a block. A ratio is the baseline's time over the line's, above 1
faster: the time of a whole training, because steps of other batches are not the same work. Losses are compared with the
baseline's on the same batches, and only where the same network trains on the same batches. `envkit report {record}`
prints the run itself."""


if __name__ == "__main__":
    sys.exit(script.run("book", main))
