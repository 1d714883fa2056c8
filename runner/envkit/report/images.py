"""Differences between two compared images."""

from __future__ import annotations

from envkit.analysis.image_differences import Difference
from envkit.analysis.result import Result
from envkit.bench.arms import Arm
from envkit.report.messages.tables import MoreDifferences

# So many differences are in the short report; packages of the system, which come last, can be hundreds.
SHOWN = 5
NONE = "-"
# The digest of an image, as far as it is shown: sha256: and twelve digits.
SHOWN_OF_DIGEST = 19


def header(result: Result, arm: Arm) -> list[str]:
    return ["what differs", f"{result.study.reference_of(arm).name} (reference)", arm.name]


def rows(found: list[Difference], most: int | None = None) -> list[list[str]]:
    """The first differences as cells, by ``header``: all of them, or ``most``."""
    return [[one.what, _shown(one, one.reference), _shown(one, one.image)] for one in found[:most]]


def _shown(one: Difference, text: str | None) -> str:
    if text is None:
        return NONE
    return f"{text[:SHOWN_OF_DIGEST]}…" if one.what == "image digest" else text


def rest(found: list[Difference]) -> MoreDifferences | None:
    """Return what the short report leaves out, in a sentence; None if it has all."""
    more = len(found) - SHOWN
    return MoreDifferences(more) if more > 0 else None
