"""Choose the profiles that race: those that are expected to gain most, with one of each allocator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from envkit.advice.expected import Expected
from envkit.advice.reasons import PAGE_FAULTS, SMALL_BLOCKS
from envkit.advice.symptoms import Symptoms
from envkit.profiles import profile
from envkit.worker.libraries import LIBRARIES, of_kind

# Profiles of one allocator race with others until there are so many.
ENOUGH = 4


def allocator_of(name: str) -> str | None:
    """Return the allocator that a profile preloads or sets; None if it leaves the allocator alone."""
    allocator = profile.load(name).expect.get("malloc.allocator")
    return str(allocator) if allocator in of_kind("allocator") else None


def candidates(
    gains: Sequence[Expected], unmeasured: Iterable[str], excluded: Iterable[str], applies: Callable[[str], bool]
) -> list[str]:
    """Return the profiles to measure, the best first: one of each allocator that is here, and others up to ENOUGH.

    ``gains`` are in their order. Behind those worth trying come ``unmeasured`` ones, which have no number, and then
    profiles of other allocators, if the machine has these (``applies``). ``excluded`` ones are left out.
    """
    worth = [gain.profile for gain in gains if gain.is_worth_trying]
    not_worth = [gain.profile for gain in gains if not gain.is_worth_trying]
    first_choice = [*dict.fromkeys([*worth, *unmeasured, *not_worth])]
    others = (name for name in PAGE_FAULTS.mends if name not in {*first_choice, *excluded})
    ranked = [*first_choice, *(name for name in others if not _has_openmp(name) and applies(name))]
    allocators = {name: allocator_of(name) for name in ranked}
    first = {allocator: name for name, allocator in reversed(allocators.items()) if allocator is not None}
    chosen = {*first.values()}
    for name in first_choice:
        if len(chosen) >= ENOUGH:
            break
        chosen.add(name)
    return [name for name in ranked if name in chosen]


def for_small_blocks(symptoms: Symptoms, excluded: Collection[str], applies: Callable[[str], bool]) -> list[str]:
    """Return a profile of each allocator that serves small blocks fast, if the training has many of these.

    ``excluded`` ones are left out, and those that would have no effect on this machine (``applies``).
    """
    if not SMALL_BLOCKS.holds(symptoms):
        return []
    mends = [name for name in SMALL_BLOCKS.mends if name not in excluded and applies(name)]
    first = {allocator_of(name): name for name in reversed(mends)}
    return [name for name in mends if first[allocator_of(name)] == name]


def _has_openmp(name: str) -> bool:
    """Return whether a profile preloads an OpenMP runtime, which may clash with the training's own."""
    return any(LIBRARIES[library].kind == "openmp" for library in profile.load(name).preload)
