"""Split a profile into its settings, and make profiles with fewer of them."""

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
# Observed of several settings together: of all that are about memory, and of how threads are bound and how many.
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
    """Return the settings of a profile; each library comes before the variables that need it."""
    variables = [Setting(name, "variable", _needs(name, profile.preload)) for name in profile.env]
    ordered: list[Setting] = []
    for library in dict.fromkeys(profile.preload):
        ordered += [Setting(library, "library"), *(variable for variable in variables if variable.needs == library)]
    ordered += [variable for variable in variables if variable.needs is None]
    return [*ordered, Setting(" ".join(profile.prefix), "prefix")] if profile.prefix else ordered


def _needs(variable: str, preload: Collection[str]) -> str | None:
    """Return the preloaded library without which nothing reads a variable; None if others read it too."""
    variable_entry = catalogue.load().get(variable)
    if variable_entry is None or not variable_entry.read_by.keys() <= preloadable().keys():
        return None
    return next((library for library in preload if library in variable_entry.read_by), None)


def alone(profile: Profile, setting: Setting) -> Profile:
    """Return the profile with one setting, and the library that this needs, alone."""
    kept = {setting.name, *([setting.needs] if setting.needs else [])}
    return _only(profile, kept, f"only {setting.needs or ''} {setting.name}", f"Of {profile.name}: {setting.alone}")


def without(profile: Profile, setting: Setting) -> Profile:
    """Return the profile without one setting, and without the variables that need it."""
    kept = {other.name for other in settings(profile) if setting.name not in (other.name, other.needs)}
    return _only(profile, kept, setting.without, f"{profile.name} {setting.without}")


def _only(profile: Profile, kept: Collection[str], setting_name: str, title: str) -> Profile:
    """Return the profile with the settings named in ``kept``, and with what is expected of these."""
    return replace(
        profile,
        name=f"{profile.name}-{re.sub(r'[^A-Za-z0-9_.]+', '-', setting_name).strip('-')}",  # it becomes a file's name
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
    """Return the names of the settings on which an expectation rests: it falls with any of them.

    These are all settings where nothing says of which it is expected.
    """
    brought_by = showing(key, str(profile.expect[key]))
    if brought_by in profile.preload or key in ALWAYS_THERE:
        return {brought_by} & {*profile.preload} if brought_by else set()
    all_settings = settings(profile)
    prefix = {setting.name for setting in all_settings if setting.kind == "prefix"}
    if key == HUGE_PAGES:
        names = {setting.name for setting in all_settings if _is_about_memory(setting.name)}
    elif key == NUMA_POLICY:
        names = prefix
    else:
        names = {name for name, value in profile.env.items() if _shows(name, value, key)}
    if key == PINNED and names:
        names |= prefix | ({THREADS} & profile.env.keys())
    return names or {setting.name for setting in all_settings}


def _is_about_memory(name: str) -> bool:
    entry, allocators = catalogue.load().get(name), of_kind("allocator").keys()
    if entry is None:
        return name in allocators
    return entry.read_by.keys() <= allocators or entry.verified_by == HUGE_TENSORS


def _shows(variable: str, value: str, key: str) -> bool:
    """Return whether the evidence shows, at ``key``, the value of a variable."""
    entry = catalogue.load().get(variable)
    if entry is None or entry.verified_by is None:
        return False
    if not entry.verified_by.endswith("."):
        return entry.verified_by == key
    return key in {entry.verified_by + setting for setting, _, _ in catalogue.settings(entry, value)}
