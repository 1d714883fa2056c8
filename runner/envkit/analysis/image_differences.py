"""Differences between the images of a run, as inspected and as observed by their workers.

The workers' evidence is compared only as far as it follows from the image, not from a profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envkit.analysis.engine_facts import engine_facts, shortened, text
from envkit.bench.arms import Arm
from envkit.bench.events import Sample
from envkit.bench.run import INITIAL_WEIGHTS, Run
from envkit.engines import measurement

# By probe, what its image decides.
OBSERVED = {
    "torch": ("version", "cpu_capability"),
    "mkl": ("version", "code"),
    "onednn": ("isa", "implementation"),
    "openmp": ("runtime", "library"),
    "malloc": ("allocator", "library"),
}
# Where packages come from, by the part of an inspection's contents, in the words that come before a package's name.
FROM = {"python": "package", "conda": "conda package", "system": "system package"}
OTHER_WEIGHTS = "initial weights"
CUDA_OF_BUILD = "torch's build: cuda"


@dataclass(frozen=True)
class Difference:
    """Something of two images that is not the same; None where one of them does not have it."""

    what: str
    reference: str | None
    image: str | None


def of_run(run: Run) -> dict[str, list[Difference]]:
    """Return for each arm that is compared in what its image differs from its reference's, in a run of two images.

    The facts that matter most for timing come first, and system packages last.
    """
    study = run.study
    facts = {arm.name: _inspected(run, arm) for arm in study.arms}
    first = {arm.name: run.samples(arm)[:1] for arm in study.arms}
    if all(first.values()):  # else what one of them has not seen yet would be a difference
        facts = {name: {**found, **_observed(first[name][0])} for name, found in facts.items()}
    return {arm.name: between(facts[study.reference_of(arm).name], facts[arm.name]) for arm in study.compared}


def between(there: Mapping[str, str | None], here: Mapping[str, str | None]) -> list[Difference]:
    """Return what is not the same among the facts of two images, of which the reference's are ``there``."""
    names = dict.fromkeys([*there, *here])
    last = sorted(names, key=lambda name: name.startswith(FROM["system"]))
    return [Difference(name, there.get(name), here.get(name)) for name in last if there.get(name) != here.get(name)]


def _inspected(run: Run, arm: Arm) -> dict[str, str | None]:
    """Everything of an arm's image that could differ, by the name that reports use."""
    surroundings = run.beginning.surroundings(arm.target)
    contents = surroundings["inspection"].get("contents", {})
    facts = engine_facts(surroundings)
    facts |= {f"torch's build: {name}": value for name, value in contents.get("torch", {}).items()}
    for part, words in FROM.items():
        facts |= {f"{words} {name}": version for name, version in contents.get(part, {}).items()}
    return facts


def _observed(sample: Sample) -> dict[str, str | None]:
    """Return what a worker saw of that, and the weights that it began with."""
    facts: dict[str, str | None] = {}
    for probe, names in OBSERVED.items():
        evidence = measurement.probe(sample.evidence, probe)
        facts |= {f"observed {probe}.{name}": text(evidence.get(name)) for name in names}
    if INITIAL_WEIGHTS in sample.digests:
        facts[OTHER_WEIGHTS] = shortened(sample.digests[INITIAL_WEIGHTS])
    return facts
