"""Take a profile apart: which settings it consists of, and the profile with only some of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from envkit.profiles import catalogue
from envkit.profiles.catalogue_messages import PART_OF_PROFILE
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import THREADS
from envkit.worker.libraries import LIBRARIES, ONE_RUNS, of_kind, preloadable, showing

# Some runtime, allocator and BLAS is there anyway.
ALWAYS_THERE = {library.shows[0] for library in LIBRARIES.values() if library.kind in ONE_RUNS}
# What is seen of several settings together: of all that are about memory, and of how threads are bound and how many.
HUGE_PAGES, PINNED, NUMA_POLICY = "memory.huge_pages", "threads.pinned_cpus", "memory.numa_policy"
HUGE_TENSORS = "torch.huge_page_tensors"


@dataclass(frozen=True)
class Setting:
    """One thing that a profile sets: a library to preload, a variable, or what stands before the interpreter."""

    name: str
    kind: Literal["library", "variable", "prefix"]
    needs: str | None = None  # of a variable: the library that is preloaded too, without which nothing reads it

    @property
    def alone(self) -> str:
        """Return what the profile is called that has it alone, with the library that it needs."""
        return f"{self.needs} + {self.name}" if self.needs else f"{self.name} alone"

    @property
    def without(self) -> str:
        """Return what the profile is called without it, and without what needs it."""
        return f"without {self.name}"


def settings(profile: Profile) -> list[Setting]:
    """All of them; each library comes before the variables that need it."""
    variables = [Setting(name, "variable", _needs(name, profile.preload)) for name in profile.env]
    found: list[Setting] = []
    for library in dict.fromkeys(profile.preload):
        found += [Setting(library, "library"), *(one for one in variables if one.needs == library)]
    found += [one for one in variables if one.needs is None]
    return [*found, Setting(" ".join(profile.prefix), "prefix")] if profile.prefix else found


def _needs(variable: str, preload: Collection[str]) -> str | None:
    """The library without which nothing reads the variable: one that is preloaded, where it is only read by such."""
    known = catalogue.load().get(variable)
    if known is None or not known.read_by.keys() <= preloadable().keys():
        return None
    return next((library for library in preload if library in known.read_by), None)


def alone(profile: Profile, setting: Setting) -> Profile:
    """The profile with one setting, and the library that this needs, alone."""
    kept = {setting.name, *([setting.needs] if setting.needs else [])}
    return _only(profile, kept, f"only {setting.needs or ''} {setting.name}", f"Of {profile.name}: {setting.alone}")


def without(profile: Profile, setting: Setting) -> Profile:
    """The profile without one setting, and without what needs it."""
    kept = {one.name for one in settings(profile) if setting.name not in (one.name, one.needs)}
    return _only(profile, kept, setting.without, f"{profile.name} {setting.without}")


def _only(profile: Profile, kept: Collection[str], what: str, title: str) -> Profile:
    """The profile with the settings named in ``kept``, and with what is expected of these."""
    return replace(
        profile,
        name=f"{profile.name}-{re.sub(r'[^A-Za-z0-9_.]+', '-', what).strip('-')}",  # it becomes a file's name
        title=title,
        reason=PART_OF_PROFILE,
        source=str(profile.path),
        extends=None,
        preload=tuple(library for library in profile.preload if library in kept),
        env={name: value for name, value in profile.env.items() if name in kept},
        prefix=profile.prefix if " ".join(profile.prefix) in kept else (),
        expect={key: value for key, value in profile.expect.items() if rests_on(profile, key) <= {*kept}},
        helps=None,
        hurts=None,
    )


def rests_on(profile: Profile, key: str) -> set[str]:
    """The names of the settings that something is expected of: it is expected no longer where one of them is missing.

    All, where nothing says of which.
    """
    brought_by = showing(key, str(profile.expect[key]))
    if brought_by in profile.preload or key in ALWAYS_THERE:
        return {brought_by} & {*profile.preload} if brought_by else set()
    known = settings(profile)
    prefix = {one.name for one in known if one.kind == "prefix"}
    if key == HUGE_PAGES:
        found = {one.name for one in known if _is_about_memory(one.name)}
    elif key == NUMA_POLICY:
        found = prefix
    else:
        found = {name for name, value in profile.env.items() if _shows(name, value, key)}
    if key == PINNED and found:
        found |= prefix | ({THREADS} & profile.env.keys())
    return found or {one.name for one in known}


def _is_about_memory(name: str) -> bool:
    known, allocators = catalogue.load().get(name), of_kind("allocator").keys()
    if known is None:
        return name in allocators
    return known.read_by.keys() <= allocators or known.verified_by == HUGE_TENSORS


def _shows(variable: str, value: str, key: str) -> bool:
    """Whether the evidence shows, at ``key``, what a variable has been set to."""
    known = catalogue.load().get(variable)
    if known is None or known.verified_by is None:
        return False
    if not known.verified_by.endswith("."):
        return known.verified_by == key
    return key in {known.verified_by + setting for setting, _, _ in catalogue.settings(known, value)}
