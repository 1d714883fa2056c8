"""Two sessions side by side: what can't be compared, how speed changed, and what else is different.

Speed is compared per step. Neighbours on the hypervisor, heat or another clock slow the reference kernel too. It ran in
each block outside of any profile. The normalised speed of a block is therefore the kernel's time over its time per
step, and the shift of its logarithm from session to session is estimated. This takes training to be slowed as much as
the kernel is. The ratio of a profile to the reference was measured within each session and needs no such kernel.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from envkit.analysis import baseline_messages as messages
from envkit.analysis.baselines import Baseline
from envkit.analysis.engine_facts import SHOWN_OF_DIGEST, cpu_name, engine_facts, gpu_names, shortened
from envkit.bench.record_messages import Difference as Changed
from envkit.bench.run import INITIAL_WEIGHTS
from envkit.common.errors import InputError
from envkit.common.text_enum import TextEnum
from envkit.messages import Message
from envkit.profiles.inspection import Inspection
from envkit.stats.interval import ERROR_RATE
from envkit.stats.two_sample import autocorrelation, shift, widened
from envkit.worker.modes import Options

# Samples are as long as a machine's pace makes worthwhile, which is not the same on all days: those are compared that
# differ in length by no more than so many times.
ALIKE = 2


class BaselineVerdict(TextEnum):
    """What became of an arm's speed from the old session to the new one."""

    REGRESSION = "regression"  # the whole interval is below the threshold
    FASTER = "faster"  # the whole interval is as far above 1
    NO_REGRESSION = "no regression"  # none of the interval is below the threshold
    NOT_CERTAIN = "not certain"  # the threshold is inside the interval
    NOT_COMPARED = "not compared"  # another reference kernel, and no ratio to the reference in both sessions


@dataclass(frozen=True)
class Factor:
    """By how much a speed changed from the old session to the new one: below 1 it is slower now."""

    ratio: float
    low: float
    high: float
    autocorrelation: float  # how alike neighbouring blocks were, from 0 to 0.9: the interval is widened by it


@dataclass(frozen=True)
class Change:
    """One arm, then and now. Times are medians over blocks, in seconds per step.

    A change of ``normalised`` counts only where ``measured`` went the same way by half the threshold.
    """

    arm: str
    old_step_s: float
    new_step_s: float
    measured: Factor  # the change of speed as it is
    normalised: Factor | None  # at an equal reference kernel; None where that was other work
    relative: Factor | None  # of the ratio of its speed to the reference's; None for the reference itself
    verdict: BaselineVerdict
    reference_kernel_only: bool  # only the speed of that was seen to change

    @property
    def decisive(self) -> Factor | None:
        """The one that the verdict is by."""
        return self.normalised or self.relative


@dataclass(frozen=True)
class Changes:
    """How two sessions compare."""

    arms: list[Change]
    machine: Factor | None  # the change of its own speed, by the reference kernel; None where that was other work
    confidence: float  # of each interval: by Bonferroni's correction the verdicts then hold together at 95%

    @property
    def regressions(self) -> list[Change]:
        return [one for one in self.arms if one.verdict == BaselineVerdict.REGRESSION]


# A name, and its value then and now.
Pair = tuple[str, object, object]


@dataclass(frozen=True)
class Difference:
    """Something of the two environments that is not the same; None where a session does not have it."""

    what: str
    old: str | None
    new: str | None


def obstacles(old: Baseline, new: Baseline) -> list[Message]:
    """Return why no speeds of the two can be compared, each as a clause; none if they can."""
    pairs: list[Pair] = [(messages.WORKLOAD, old.study["workload"], new.study["workload"])]
    lengths = (
        (messages.PLANNED_STEPS, old.study["steps"], new.study["steps"]),
        (messages.PLANNED_WARM_UP, old.study["warmup_steps"], new.study["warmup_steps"]),
    )
    pairs += [pair for pair in lengths if max(pair[1:]) > ALIKE * max(1, min(pair[1:]))]
    pairs.append((messages.MODES, _modes(old), _modes(new)))
    for name in old.document["digests"]:
        if name != INITIAL_WEIGHTS and name in new.document["digests"]:
            then, now = (one.document["digests"][name][:SHOWN_OF_DIGEST] for one in (old, new))
            pairs.append((f"{messages.WORKLOAD_DIGEST} {name}", then, now))
    for arm in _common(old, new):
        pairs += machine_pairs(old.engine(arm)["inspection"], new.engine(arm)["inspection"])
    lines = [unequal(pair) for pair in dict.fromkeys(pairs) if pair[1] != pair[2]]
    return [*lines, *(messages.NotMeasured(arm) for arm in old.arms if arm not in new.arms)]


def _modes(baseline: Baseline) -> str:
    """Return how it was trained, in words."""
    usual = asdict(Options())
    options = {**usual, **baseline.study["options"]}
    unusual = (
        f"{name.replace('_', ' ')} {value}" for name, value in sorted(options.items()) if value != usual.get(name)
    )
    return ", ".join(unusual) or messages.USUAL


def machine_pairs(old: Inspection, new: Inspection) -> list[Pair]:
    """Return what must be equal of two machines, as seen from inside an image: (name, then, now).

    GPUs are compared if there were some then.
    """
    then, now = gpu_names(old), gpu_names(new)
    return [
        (messages.CPU, cpu_name(old["fingerprint"]), cpu_name(new["fingerprint"])),
        (messages.ARCHITECTURE, old["fingerprint"]["architecture"], new["fingerprint"]["architecture"]),
        (messages.CPUS, old["facts"]["usable_cpus"], new["facts"]["usable_cpus"]),
        *([(messages.GPUS, then, now)] if then else []),
    ]


def unequal(pair: Pair) -> Message:
    """Return what differs, given its name and what it was then and is now."""
    what, then, now = pair
    return Changed(what, str(then), str(now))


def changes(old: Baseline, new: Baseline, threshold: float) -> Changes | None:
    """How the speed of each arm that both have changed; a loss of more than ``threshold`` (a share) is a regression.

    None where nothing can decide: the kernels are different work, and nothing was measured beside the reference.
    """
    arms = _common(old, new)
    normalise = old.document["reference_kernel"]["digest"] == new.document["reference_kernel"]["digest"]
    beside = [arm for arm in arms if arm != old.reference and old.reference == new.reference]
    decided = arms if normalise else beside
    if not decided:
        return None
    confidence = 1 - ERROR_RATE / len(decided)
    compared = []
    for arm in arms:
        measured = _factor([_ratios([1.0] * one.blocks, one.step_s(arm)) for one in (old, new)], confidence)
        normalised = relative = None
        if normalise:
            normalised = _factor([_ratios(one.reference_kernel_s, one.step_s(arm)) for one in (old, new)], confidence)
        if arm in beside:
            ratios = [_ratios(one.step_s(one.reference), one.step_s(arm)) for one in (old, new)]
            relative = _factor(ratios, confidence)
        then, now = (statistics.median(one.step_s(arm)) for one in (old, new))
        verdict = _verdict(normalised or relative, threshold)
        kernel_only = normalise and not _seen(verdict, measured, threshold)
        if kernel_only:
            lost = verdict == BaselineVerdict.REGRESSION
            verdict = BaselineVerdict.NOT_CERTAIN if lost else BaselineVerdict.NO_REGRESSION
        compared.append(Change(arm, then, now, measured, normalised, relative, verdict, kernel_only))
    speeds = [_ratios([1.0] * one.blocks, one.reference_kernel_s) for one in (old, new)]
    return Changes(compared, _factor(speeds, confidence) if normalise else None, confidence)


def _common(old: Baseline, new: Baseline) -> list[str]:
    return [arm for arm in old.arms if arm in new.arms]


def _ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(above, below, strict=True)]


def _factor(speeds: Sequence[Sequence[float]], confidence: float) -> Factor:
    """The change from the speeds of the old session to those of the new one, each in the order of its blocks.

    Neighbouring blocks are alike (what disturbs them lasts longer than one), so the interval is widened.
    """
    old, new = ([math.log(speed) for speed in session] for session in speeds)
    estimated = shift(old, new, confidence)
    if estimated is None:
        raise InputError(messages.TooFewBlocks(len(old), len(new), confidence))
    correlation = autocorrelation(old, new)
    estimate, low, high = (math.exp(value) for value in widened(estimated, correlation))
    return Factor(estimate, low, high, correlation)


def _seen(verdict: BaselineVerdict, measured: Factor, threshold: float) -> bool:
    """Whether the speed itself changed in the verdict's direction, and not the reference kernel's alone."""
    if verdict == BaselineVerdict.REGRESSION:
        return measured.ratio < 1 - threshold / 2
    return verdict != BaselineVerdict.FASTER or measured.ratio > 1 + threshold / 2


def _verdict(factor: Factor | None, threshold: float) -> BaselineVerdict:
    if factor is None:
        return BaselineVerdict.NOT_COMPARED
    if factor.high < 1 - threshold:
        return BaselineVerdict.REGRESSION
    if factor.low > 1 + threshold:
        return BaselineVerdict.FASTER
    return BaselineVerdict.NO_REGRESSION if factor.low >= 1 - threshold else BaselineVerdict.NOT_CERTAIN


def differences(old: Baseline, new: Baseline) -> list[Difference]:
    """Return what is not the same in the environments of the two, and in what was trained."""
    then, now = _facts(old), _facts(new)
    return [
        Difference(what, then.get(what), now.get(what))
        for what in dict.fromkeys([*then, *now])
        if then.get(what) != now.get(what)
    ]


def _facts(baseline: Baseline) -> dict[str, str]:
    """Return everything that could differ, by the name it is shown with."""
    document = baseline.document
    facts: dict[str, str | None] = {messages.KIT: document["kit_version"]}
    facts[messages.SKIPPED] = str(baseline.skipped_steps)
    facts[messages.STEPS], facts[messages.WARM_UP_STEPS] = (
        str(baseline.study["steps"]),
        str(baseline.study["warmup_steps"]),
    )
    facts |= {f"option {name}": value for name, value in document["study"]["engine_options"].items()}
    for name, seen in document["engines"].items():
        # one engine each: whatever it is called, it is compared with the other session's
        prefix = f"{name}: " if len(document["engines"]) > 1 else ""
        facts |= {f"{prefix}{what}": value for what, value in engine_facts(seen).items()}
    facts[messages.KEPT] = ", ".join(document["allowed_variables"]) or None
    for name, arm in document["arms"].items():
        environment = arm["environment"]
        facts |= {f"{name}: {variable}": value for variable, value in environment["variables"].items()}
        facts |= {f"{name}: preload": ", ".join(environment["preload"]) or None}
        facts |= {f"{name}: prefix": " ".join(environment["prefix"]) or None}
        facts |= {f"{name}: {key} expected": str(value) for key, value in environment["expect"].items()}
        facts |= {f"{name}: {messages.FINAL_LOSS}": str(arm["final_loss"])}
    facts |= {f"{what.replace('_', ' ')} digest": shortened(value) for what, value in document["digests"].items()}
    facts[messages.KERNEL_DIGEST] = shortened(document["reference_kernel"]["digest"])
    return {what: value for what, value in facts.items() if value is not None}
