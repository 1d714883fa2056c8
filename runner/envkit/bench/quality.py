"""The figures that say how well a workload has learnt: BLEU from a library, and how all of them are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from envkit.common import extras
from envkit.common.errors import InputError
from envkit.common.suggestion import suggestion
from envkit.worker.measure.quality_target import LOSS, parse
from envkit.worker.workloads import get
from envkit.worker.workloads.translation import TRANSLATIONS

BLEU = "BLEU"
LIBRARY = "sacrebleu"
# Of these figures a share of 1 is all; a figure of another kind is written as a number.
SHARES = ("accuracy", "pixel accuracy", "token accuracy")


def require(workloads: Iterable[str]) -> None:
    """Raise InputError where one of ``workloads`` has a figure whose library is missing here."""
    if "translation" in workloads:
        extras.require("--workload translation", LIBRARY)


def require_target(until: str, workloads: Iterable[str]) -> None:
    """Raise InputError where a training of ``workloads`` can't tell after an epoch whether it has reached ``until``."""
    target = parse(until)
    for name in workloads:
        figures = get(name).figures
        if not figures:
            raise InputError(f"--until {until}: {name} learns nothing; leave it out")
        known = (LOSS, *figures)
        if target.metric not in known:
            there = f"there are: {', '.join(known)}"
            near = suggestion(target.metric, known)
            raise InputError(f"--until {until}: {name} has no '{target.metric}' after an epoch{near}; {there}")
        if target.metric != LOSS and target.value > 1:
            raise InputError(
                f"--until {until}: out of range: {target.metric} is never above 1; write for example "
                f"{target.metric}=0.85"
            )


def worked_out(document: dict[str, Any]) -> dict[str, Any]:
    """A worker's sample, with BLEU in the place of the translations that it is worked out from, in its curve too."""
    found = document.get("quality")
    if not found or TRANSLATIONS not in found:
        return document
    curve = document.get("curve")
    epochs = {"curve": [{**epoch, "quality": _with_bleu(epoch["quality"])} for epoch in curve]} if curve else {}
    return {**document, "quality": _with_bleu(found), **epochs}


def _with_bleu(found: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: value for name, value in found.items() if name != TRANSLATIONS}
    return {**figures, BLEU: bleu(found[TRANSLATIONS])}


def bleu(translations: Sequence[Sequence[Sequence[int]]]) -> float:
    """BLEU of a corpus, from 0 to 100; each of ``translations`` is a translation and its reference, as word numbers.

    K. Papineni, S. Roukos, T. Ward, W.-J. Zhu: BLEU: a method for automatic evaluation of machine translation. ACL
    (2002), as worked out by M. Post: A call for clarity in reporting BLEU scores. WMT (2018).
    """
    from sacrebleu.metrics import BLEU as Metric

    own, references = ([" ".join(map(str, pair[side])) for pair in translations] for side in (0, 1))
    # the words are numbers already, between blanks
    return float(Metric(tokenize="none", force=True).corpus_score(own, [references]).score)


def shown(figures: Mapping[str, float]) -> str:
    """``pixel accuracy 93.1%, mIoU 0.812``."""
    return ", ".join(f"{name} {figure(name, value)}" for name, value in figures.items())


def figure(name: str, value: float) -> str:
    """``93.1%`` for a share, and a number for another kind of figure."""
    if name in SHARES:
        return f"{value:.1%}"
    return f"{value:.1f}" if name == BLEU else f"{value:.3f}"
