"""What an environment is worth in time to result: trainings that end when they have reached an accuracy.

The run is an ordinary record of ``envkit bench --full --until``, of which this writes the page. Without DIR it is
measured first.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.learning_curves import LearningCurve
from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.record import Event
from envkit.cli import main as envkit
from envkit.cli import measuring
from envkit.cli.arguments import count
from envkit.common.errors import FAILED, MEASURED
from envkit.rendering import text as rendered
from envkit.report import certainty, learning, lines, observed, pictures
from envkit.report.messages.headings import READING_EPOCHS
from envkit.report.parts import Row
from envkit.report.verdict import headline

from benchmarks import page, recorded, script
from benchmarks.errors import ScriptError

PROFILE, UNTIL, EPOCHS = "mimalloc-retain-mkl", "accuracy=0.85", 15
PICTURE = "Training loss and test accuracy of each profile against the time of its training"
HEADER = ("profile", "epochs", "training", "ratio", "testing", "ms/step", "last accuracy")


def main() -> int:
    arguments = _parser().parse_args()
    folder = arguments.folder or measuring.new_folder("curves")
    if arguments.folder is None and (status := _measure(folder, arguments)) not in (MEASURED, FAILED):
        return status
    events, result = recorded.ended(folder)
    if not result.learning:
        raise ScriptError(f"{folder}: has no learning curves; give the folder of a run with --full, or none")
    with record.reading(folder):
        page_parts = _page(events, result, arguments.page)
    recorded.write(arguments.page, page_parts, pictures.LEARNING_CURVES, result, PICTURE, folder)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = recorded.parser("curves", __doc__, without="one that is measured first")
    parser.add_argument("--profile", metavar="PROFILE", default=PROFILE, help=f"(default: {PROFILE})")
    parser.add_argument("--until", metavar="TARGET", default=UNTIL, help=f"(default: {UNTIL})")
    parser.add_argument("--epochs", metavar="N", type=count, default=EPOCHS, help=f"at most (default: {EPOCHS})")
    script.add_training_options(parser)
    return parser


def _measure(folder: Path, arguments: argparse.Namespace) -> int:
    """The exit status. A target that was never reached gives that of a failure, and is told on the page."""
    how = script.option_words(arguments, "until", "epochs", "data", "python")
    return envkit(["bench", arguments.profile, "--full", *how, "--output", str(folder)])


def _page(events: Sequence[Event], result: Result, path: Path) -> list[str]:
    verdict = Row("verdict", headline(result).text)
    rows = [
        verdict,
        *learning.rows(result.learning, str(result.study.until)),
        *certainty.rows(result),
        *observed.rows(result),
        _host(result),
    ]
    tables = (learning.table(curve) for curve in result.learning)
    return [
        page.heading("How much sooner is a training done?", QUESTION, events, lines.machine(result)),
        "**SYNTHETIC DATA: this is not Fashion-MNIST, and the accuracies mean nothing.**" if result.synthetic else "",
        f"The run: `{_command(result)}`; data: {recorded.data(result)}",
        "## The time to result",
        page.table(HEADER, [_cells(result, curve) for curve in result.learning], numbers_from=1),
        recorded.items(rows),
        recorded.shown(path.stem, PICTURE),
        "## Epoch by epoch",
        READING_EPOCHS,
        *(f"{curve.arm}:\n\n{page.table(table.header, table.rows, numbers_from=0)}"
          for curve, table in zip(result.learning, tables, strict=True)),
    ]  # fmt: skip


def _host(result: Result) -> Row:
    """What disturbed the trainings; of one each a report says nothing of it."""
    disturbances = [rendered(kind) for each in result.interference.values() for kind in each]
    text = f"disturbed from outside: {'; '.join(disturbances)}" if disturbances else "no interference was detected"
    return Row("host", text)


def _command(result: Result) -> str:
    """What measures the same again."""
    study = result.study
    profiles = " ".join(arm.profile for arm in study.compared)
    until = f" --until {shlex.quote(study.until)}" if study.until else ""
    return f"envkit bench {profiles} --full --epochs {study.epochs}{until}"


def _cells(result: Result, curve: LearningCurve) -> list[str]:
    """An arm's line by HEADER; one that never reached the target, or is compared with such a one, has no ratio."""
    measured = next(other for other in result.measured if other.arm == curve.arm)
    compared = next((other for other in result.comparisons if other.arm == curve.arm), None)
    ratio = ranking.ratio_of(compared) if compared else None
    reached = "" if curve not in result.not_reached else " (not reached)"
    tests_s = sum(epoch.test_s for epoch in curve.epochs)
    return [
        curve.arm, str(len(curve.epochs)), f"{curve.epochs[-1].training_s:.1f} s{reached}",
        "-" if ratio is None else f"{ratio:.3f}", f"{tests_s:.1f} s", f"{measured.step_s * 1000:.2f}",
        "-" if measured.accuracy is None else f"{measured.accuracy:.2%}",
    ]  # fmt: skip


QUESTION = """The baseline and a profile each train until the network classifies a stated share of the test images
rightly. The same batches teach it the same in either, so what a profile saves in a step it saves in the time to that
result. Tests after each epoch are in no time but a column of their own. A ratio is the baseline's time divided by the
profile's."""


if __name__ == "__main__":
    sys.exit(script.run("curves", main))
