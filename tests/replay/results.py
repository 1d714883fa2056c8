"""The numbers and verdicts of a study, beside those that it had before.

ENVKIT_REPLAY=numbers writes the files anew.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.replay.cases import Bench

NUMBERS = Path(__file__).parent / "numbers"
# The parts of a report's JSON that hold results.
RESULTS = (
    "reference", "references", "comparisons", "design", "warm_up_steps", "unsteady", "skipped_steps", "reference_drift",
    "measured", "scaling", "instances", "gpus", "settings", "learning_curves", "ended",
)  # fmt: skip
# What is in a part and is no result.
OTHERS = ("checks",)


def results_of(bench: Bench, name: str) -> dict[str, Any]:
    """Return the numbers and verdicts of a study's report, by where they stand in its JSON."""
    folder = bench.output / "confirmation" if name == "tune" else bench.output
    result = bench.cli("report", folder, "--json")
    assert result.returncode == 0, result
    document = json.loads(result.stdout)
    return {where: value for part in RESULTS if part in document for where, value in leaves(part, document[part])}


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, float) and isinstance(wanted, float):
        return math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12)
    return bool(value == wanted)


def leaves(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in OTHERS:
                yield from leaves(f"{where}.{name}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(f"{where}.{number}", inner)
    else:
        yield where, value


def compare(bench: Bench, name: str) -> None:
    """Compare the results of a study that ``bench`` has run with its file."""
    path, found = NUMBERS / f"{name}.json", results_of(bench, name)
    if os.environ.get("ENVKIT_REPLAY") == "numbers":
        path.write_text(json.dumps(found, indent=0) + "\n")
    wanted = json.loads(path.read_text())
    assert found.keys() == wanted.keys()
    assert {where: value for where, value in found.items() if not _same(value, wanted[where])} == {}
