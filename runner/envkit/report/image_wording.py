"""What a report says of two images that were compared: which is the reference, and what differs."""

from __future__ import annotations

from envkit.analysis.image_differences import CUDA_OF_BUILD, OTHER_WEIGHTS, Difference
from envkit.analysis.summary import Summary
from envkit.bench.plan import Arm
from envkit.report.parts import Row

# So many differences are in the short report; packages of the system, which come last, can be hundreds.
SHOWN = 14
NONE = "-"
# The digest of an image, as far as it is shown: sha256: and twelve digits.
SHOWN_OF_DIGEST = 19


def introduction(summary: Summary) -> list[Row]:
    """Which image is compared with which; nothing where no images are compared."""
    if not summary.plan.compares_images:
        return []
    rows = []
    for arm in summary.plan.compared:
        reference = summary.plan.reference_of(arm)
        of = f"the image {arm.name} against the image {reference.name}, which is the reference"
        rows.append(Row("compared", f"{of}, both under the profile {arm.profile}: above 1 {arm.name} is faster"))
        if any(one.what == OTHER_WEIGHTS for one in summary.image_differences[arm.name]):
            rows.append(Row("losses", "not compared: the two begin with other weights, which PyTorch makes"))
        rows += _builds(summary, arm)
    return rows


def _builds(summary: Summary, arm: Arm) -> list[Row]:
    """That one PyTorch is built for CPUs alone and the other one with CUDA, where that is so."""
    build = next((one for one in summary.image_differences[arm.name] if one.what == CUDA_OF_BUILD), None)
    if build is None or None not in (build.reference, build.image):
        return []
    named = ((summary.plan.reference_of(arm).name, build.reference), (arm.name, build.image))
    kinds = [f"{name}'s PyTorch is built {f'with CUDA {cuda}' if cuda else 'for CPUs alone'}" for name, cuda in named]
    return [Row("builds", f"{' and '.join(kinds)}, which can make a difference of its own")]


def header(summary: Summary, arm: Arm) -> list[str]:
    return ["what differs", f"{summary.plan.reference_of(arm).name} (reference)", arm.name]


def rows(found: list[Difference], most: int | None = None) -> list[list[str]]:
    """The first differences as cells, by ``header``: all of them, or ``most``."""
    return [[one.what, _shown(one, one.reference), _shown(one, one.image)] for one in found[:most]]


def _shown(one: Difference, text: str | None) -> str:
    if text is None:
        return NONE
    return f"{text[:SHOWN_OF_DIGEST]}…" if one.what == "image digest" else text


def rest(found: list[Difference]) -> str | None:
    """What the short report leaves out, in a sentence; None where it has all."""
    more = len(found) - SHOWN
    return f"and {more} more, which --details shows" if more > 0 else None
