"""What differs between images that a run compares: as they were inspected, and as the workers in them saw it.

Of the workers' evidence only what follows from the image is compared, and not what a profile sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.blocks import INITIAL_WEIGHTS, samples
from runner.engine_facts import engine_facts, shortened
from runner.errors import InputError
from runner.plan import Arm, Plan
from runner.record import Event

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


@dataclass(frozen=True)
class Difference:
    """Something of two images that is not the same; None where one of them does not have it."""

    what: str
    reference: str | None
    image: str | None


def require_two(arms: Sequence[Arm], seen: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InputError where images that are to be compared are one, or for different processors.

    ``seen`` has, by ``Arm.place``, what an engine said of itself and its image, and what was seen inside.
    """
    having = [arm for arm in arms if arm.image]
    for arm in having[1:]:
        reference = having[0]
        digests = [seen[one.place]["engine"]["digest"] for one in (reference, arm)]
        if digests[0] == digests[1]:
            raise InputError(
                f"{arm.image} and {reference.image} are the same image ({digests[0][:19]}…); name two that differ, "
                "or measure one against itself: runner calibrate"
            )
        machines = [seen[one.place]["inspection"]["fingerprint"]["architecture"] for one in (reference, arm)]
        if machines[0] != machines[1]:
            raise InputError(
                f"{arm.image} is for {machines[1]} and {reference.image} for {machines[0]}: one of them is emulated "
                "here, and its times mean nothing; name two images for the same architecture"
            )


def of_run(events: Sequence[Event], plan: Plan) -> dict[str, list[Difference]]:
    """For each arm that is compared, in what its image differs from its reference's; empty where they have one image.

    What a timing depends on most comes first, and the packages of the system last.
    """
    if not plan.compares_images:
        return {}
    facts = {arm.name: _inspected(events, arm) for arm in plan.arms}
    first = {arm.name: samples(events, arm)[:1] for arm in plan.arms}
    if all(first.values()):  # else what one of them has not seen yet would be a difference
        facts = {name: {**found, **_observed(first[name][0])} for name, found in facts.items()}
    return {arm.name: between(facts[plan.reference_of(arm).name], facts[arm.name]) for arm in plan.compared}


def between(there: Mapping[str, str | None], here: Mapping[str, str | None]) -> list[Difference]:
    """What is not the same among the facts of two images, of which the reference's are ``there``."""
    names = dict.fromkeys([*there, *here])
    last = sorted(names, key=lambda name: name.startswith(FROM["system"]))
    return [Difference(name, there.get(name), here.get(name)) for name in last if there.get(name) != here.get(name)]


def _inspected(events: Sequence[Event], arm: Arm) -> dict[str, str | None]:
    """Everything of an arm's image that could differ, by the name that reports use."""
    seen = events[0]["engines"][arm.place]
    contents = seen["inspection"].get("contents", {})
    found = engine_facts(seen)
    found |= {f"torch's build: {name}": value for name, value in contents.get("torch", {}).items()}
    for part, words in FROM.items():
        found |= {f"{words} {name}": version for name, version in contents.get(part, {}).items()}
    return found


def _observed(sample: Event) -> dict[str, str | None]:
    """What a worker saw of that, and the weights that it began with."""
    found: dict[str, str | None] = {}
    for probe, names in OBSERVED.items():
        evidence = sample["evidence"].get(probe, {})
        found |= {f"observed {probe}.{name}": _text(evidence.get(name)) for name in names}
    if INITIAL_WEIGHTS in sample["digests"]:
        found[OTHER_WEIGHTS] = shortened(sample["digests"][INITIAL_WEIGHTS])
    return found


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
