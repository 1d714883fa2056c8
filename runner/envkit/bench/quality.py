"""Compute and write the figures of a test: BLEU by a library, the others as the worker gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from envkit.bench.requirement_messages import LearnsNothing, NoSuchFigure, TargetAboveOne
from envkit.common import extras
from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.engines.measurement import TrainingDocument
from envkit.worker.measure.quality_target import LOSS, parse
from envkit.worker.workloads import get
from envkit.worker.workloads.translation import TRANSLATIONS

BLEU = "BLEU"
LIBRARY = "sacrebleu"
# Of these figures a share of 1 is all; a figure of another kind is written as a number.
SHARES = ("accuracy", "pixel accuracy", "token accuracy")


def require(workloads: Iterable[str]) -> None:
    """Raise InputError if one of ``workloads`` has a figure whose library is missing here."""
    if "translation" in workloads:
        extras.require("--workload translation", LIBRARY)


def require_target(until: str, workloads: Iterable[str]) -> None:
    """Raise InputError if no epoch of ``workloads`` can tell whether the training has reached ``until``."""
    target = parse(until)
    for name in workloads:
        figures = get(name).figures
        if not figures:
            raise InputError(LearnsNothing(until, name))
        metrics = (LOSS, *figures)
        if target.metric not in metrics:
            raise InputError(NoSuchFigure(until, name, target.metric, metrics, nearest(target.metric, metrics)))
        if target.metric != LOSS and target.value > 1:
            raise InputError(TargetAboveOne(until, target.metric))


def with_bleu(document: TrainingDocument) -> TrainingDocument:
    """A worker's sample, with BLEU instead of the translations that it is worked out from, in its curve too."""
    figures = document.get("quality")
    if not figures or TRANSLATIONS not in figures:
        return document
    scored: TrainingDocument = {**document, "quality": _scored(figures)}
    if curve := document.get("curve"):
        scored["curve"] = [{**epoch, "quality": _scored(epoch["quality"] or {})} for epoch in curve]
    return scored


def _scored(figures: Mapping[str, object]) -> dict[str, object]:
    others = {name: value for name, value in figures.items() if name != TRANSLATIONS}
    return {**others, BLEU: bleu(cast(Sequence[Sequence[Sequence[int]]], figures[TRANSLATIONS]))}


def bleu(translations: Sequence[Sequence[Sequence[int]]]) -> float:
    """BLEU of a corpus, from 0 to 100; each of ``translations`` is a translation and its reference, as word numbers.

    K. Papineni, S. Roukos, T. Ward, W.-J. Zhu: BLEU: a method for automatic evaluation of machine translation. ACL
    (2002), as worked out by M. Post: A call for clarity in reporting BLEU scores. WMT (2018).
    """
    from sacrebleu.metrics import BLEU as Metric

    hypotheses, references = ([" ".join(map(str, pair[side])) for pair in translations] for side in (0, 1))
    # the words are numbers already, between blanks
    return float(Metric(tokenize="none", force=True).corpus_score(hypotheses, [references]).score)


def shown(figures: Mapping[str, float]) -> str:
    """``pixel accuracy 93.1%, mIoU 0.812``."""
    return ", ".join(f"{name} {figure(name, value)}" for name, value in figures.items())


def figure(name: str, value: float) -> str:
    """``93.1%`` for a share, and a number for another kind of figure."""
    if name in SHARES:
        return f"{value:.1%}"
    return f"{value:.1f}" if name == BLEU else f"{value:.3f}"
