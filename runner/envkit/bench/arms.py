"""The arms of a study and its contrasts: which arm is compared with which, and what the comparison tells.

Contrasts are data, and stand in the record. A command that measures builds them. Measuring, analysis and reports go
through them by their roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: a profile under an engine. None stands for the value of the study."""

    name: str  # what records and reports call it
    profile: str
    engine: str
    workload: str | None = None
    ranks: int | None = None  # processes that train together, on one node
    image: str | None = None  # the name of an OCI image, or the file of one
    cpu_shares: int | None = None  # one process, compared with ranks, on the first of so many shares of the CPUs
    file: str | None = None  # the profile's, as it was named
    instances: int | None = None  # above 1: so many at once, each a training of its own on its share of the CPUs

    @property
    def target(self) -> str:
        """Return what its workers run in, as records call it: the engine, with the arm's own image where it has one."""
        return f"{self.engine} {self.image}" if self.image else self.engine


def own_ranks(ranks: int) -> int | None:
    """Return what an arm has as ``ranks`` whose profile or environment trains on so many; one is as the study says."""
    return ranks if ranks > 1 else None


class View(str, Enum):
    """The question of a study, as the command that builds it sets it. The values are those of records."""

    EFFECTS = "effects"  # how much faster each arm is than the reference
    IMAGES = "images"  # how much faster one profile is in another image
    WORKLOADS = "workloads"  # how much faster profiles are on several workloads, each with its own reference
    SETTINGS = "settings"  # how much each setting of one profile contributes
    LOADERS = "loaders"  # how long input takes with each setting of DataLoader
    CALIBRATION = "calibration"  # how much the baseline differs from itself: the noise floor
    RACE = "race"  # which arm to measure next: nothing is claimed, and nothing is compared with a reference


@dataclass(frozen=True)
class Ablated:
    """A setting of a profile that is taken apart, and the arms that tell what it is worth; None is not measured."""

    setting: str
    needs: str | None  # the library without which nothing reads it
    alone: str | None  # the arm that has it alone, with the library that it needs
    beside: str  # what that is compared with: the reference, or the arm that has the library alone
    without: str | None  # the arm that has all but it, with which the whole profile is compared


class Role(str, Enum):
    """The purpose of a contrast. The values are those of records."""

    EFFECT = "effect"  # what the arm is worth beside its reference: its verdict
    CHOICE = "choice"  # which of two arms with an effect is the better one
    ALONE = "setting-alone"  # what a setting of a profile is worth beside the reference, or its library
    IN_PROFILE = "setting-in-profile"  # what the profile loses without the setting
    SPEEDUP = "rank-speedup"  # several ranks beside one process
    EFFICIENCY = "rank-efficiency"  # several ranks beside one process that has a rank's part of the CPUs
    INSTANCES = "instances"  # several trainings at once beside one under the same profile


@dataclass(frozen=True)
class Contrast:
    """An arm and the one it is compared with, both by name; the ratio is the reference's time over the arm's."""

    arm: str
    reference: str
    role: Role = Role.EFFECT
    divisor: int = 1  # the ratio is divided by it: efficiency divides by the number of ranks
    setting: str | None = None  # the setting that it is about

    @property
    def pair(self) -> frozenset[str]:
        """Return both arms: contrasts of the same two share one interval, and one part of the error rate."""
        return frozenset((self.arm, self.reference))


def effects(arms: Sequence[Arm], references: Iterable[str] = ()) -> list[Contrast]:
    """Return the effect of each arm: compared with the first, or with the one of ``references`` that trains the same.

    Arms of one process that only ranks are compared with have none.
    """
    names = {arms[0].name, *references}
    by_workload = {arm.workload: arm.name for arm in reversed(arms) if arm.name in names}
    return [
        Contrast(arm.name, by_workload.get(arm.workload, arms[0].name))
        for arm in arms
        if arm.name not in names and arm.cpu_shares is None
    ]


def of_settings(arms: Sequence[Arm], settings: Sequence[Ablated]) -> list[Contrast]:
    """Return what settings are worth in a profile, the second of ``arms``, and without it.

    An arm has its verdict beside the profile if it lacks one setting, and beside the reference, or a library alone, if
    it has one. One that is both is compared as one that has it.
    """
    reference, profile_arm = arms[0].name, arms[1].name
    beside = {setting.alone: setting.beside for setting in reversed(settings) if setting.alone is not None}
    of_parts = [Contrast(arm.name, beside.get(arm.name, profile_arm)) for arm in arms[2:]]
    contrasts = [Contrast(profile_arm, reference), *of_parts]
    for setting in settings:
        if setting.alone is not None:
            contrasts.append(Contrast(setting.alone, setting.beside, Role.ALONE, setting=setting.setting))
        if setting.without is not None:
            contrasts.append(Contrast(profile_arm, setting.without, Role.IN_PROFILE, setting=setting.setting))
    return contrasts


def of_ranks(arms: Sequence[Arm], ranks: int, nodes: int, weak: bool) -> list[Contrast]:
    """Return how each arm of several ranks does beside one process: ``ranks`` on each of so many ``nodes``.

    All are compared with one process that has all CPUs, or in ``weak`` scaling those of one rank. Under the profile of
    a process with a rank's part of the CPUs, the efficiency of ranks is known too.
    """
    single = [arm for arm in arms if arm.cpu_shares is not None]
    single_process = next((arm for arm in single if arm.cpu_shares == (ranks if weak else 1)), None)
    contrasts = []
    for arm in arms:
        together = arm.ranks or ranks * nodes
        if together == 1:
            continue
        if single_process is not None:
            contrasts.append(Contrast(arm.name, single_process.name, Role.SPEEDUP))
        shares = (part for part in single if part.cpu_shares == ranks and part.profile == arm.profile)
        contrasts += [Contrast(arm.name, part.name, Role.EFFICIENCY, together) for part in shares]
    return contrasts


def of_instances(arms: Sequence[Arm]) -> list[Contrast]:
    """Return how each arm of several trainings at once does beside one under its profile, where that has an effect."""
    single = [arm for arm in arms[1:] if not arm.instances and arm.cpu_shares is None]
    alone = {(arm.profile, arm.target, arm.workload): arm.name for arm in reversed(single)}
    at_once = [(arm, (arm.profile, arm.target, arm.workload)) for arm in arms if arm.instances]
    return [Contrast(arm.name, alone[alike], Role.INSTANCES) for arm, alike in at_once if alike in alone]
