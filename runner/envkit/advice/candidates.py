"""Choose the profiles that race: those that are expected to gain most, with one of each allocator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envkit.advice.expected import Expected
from envkit.advice.reasons import PAGE_FAULTS
from envkit.common.errors import InputError
from envkit.profiles import profile
from envkit.profiles.inspection import Inspection
from envkit.tuning.narrow import require
from envkit.worker.libraries import LIBRARIES, of_kind

# Profiles of one allocator race with others until there are so many.
ENOUGH = 4


def allocator_of(name: str) -> str | None:
    """Return the allocator that a profile preloads or sets; None if it leaves the allocator alone."""
    allocator = profile.load(name).expect.get("malloc.allocator")
    return str(allocator) if allocator in of_kind("allocator") else None


def candidates(
    gains: Sequence[Expected], unmeasured: Iterable[str], excluded: Iterable[str], inspection: Inspection
) -> list[str]:
    """Return the profiles to measure, the best first: one of each allocator that is here, and others up to ENOUGH.

    ``gains`` are in their order. Behind those worth trying come ``unmeasured`` ones, which have no number, and then
    profiles of other allocators. ``excluded`` ones are left out, and so is what does not apply to the machine.
    """
    worth = [gain.profile for gain in gains if gain.is_worth_trying]
    not_worth = [gain.profile for gain in gains if not gain.is_worth_trying]
    known = [*dict.fromkeys([*worth, *unmeasured, *not_worth])]
    ranked = [*known, *_of_allocators({*known, *excluded}, inspection)]
    allocators = {name: allocator_of(name) for name in ranked}
    first = {allocator: name for name, allocator in reversed(allocators.items()) if allocator is not None}
    chosen = {*first.values()}
    for name in known:
        if len(chosen) >= ENOUGH:
            break
        chosen.add(name)
    return [name for name in ranked if name in chosen]


def _of_allocators(without: Iterable[str], inspection: Inspection) -> list[str]:
    """Return the profiles that choose an allocator and apply here, but those ``without``."""
    return [name for name in PAGE_FAULTS.mends if name not in without and _applies(name, inspection)]


def _applies(name: str, inspection: Inspection) -> bool:
    loaded = profile.load(name)
    if any(LIBRARIES[library].kind == "openmp" for library in loaded.preload):
        return False  # a training may have its own, which would clash
    try:
        require(loaded, inspection)
    except InputError:
        return False
    return True
