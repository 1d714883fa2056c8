"""Refuse what options, files and facts about this machine decide. Nothing here starts a process or writes a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from envkit import engines
from envkit.bench import record, requirements, room
from envkit.bench.messages import FolderNotWritable, HoldsRun, VariableNotSet
from envkit.bench.plan import REFERENCE_PROFILE, Arm
from envkit.bench.prepare import plan_of
from envkit.bench.specification import Specification
from envkit.common.errors import InputError
from envkit.common.folders import quoted
from envkit.profiles import needs, profile
from envkit.profiles.expressions import ExpressionError
from envkit.profiles.profile import Profile
from envkit.worker import gpus
from envkit.worker.host import cpu_facts
from envkit.worker.workloads import get


def require(asked: Specification, output: Path | None = None, made: Mapping[str, Profile] | None = None) -> None:
    """Raise InputError if the run can't start, or if no machine could give a verdict within its budget.

    ``output`` is the folder for its record, and ``made`` are profiles that are in no file yet.
    """
    made = made or {}
    loaded = {arm.profile: made.get(arm.profile) or profile.load(arm.profile) for arm in asked.arms}
    asked = replace(asked, arms=tuple(requirements.arm_of(arm, loaded[arm.profile]) for arm in asked.arms))
    requirements.require(asked)
    for name in asked.keep_env:
        if name not in os.environ:
            raise InputError(VariableNotSet(name))
    require_engines(asked.arms, asked)
    if asked.data is not None and (asked.user_command or any(get(name).generated for name in asked.workloads)):
        requirements.data(asked)
    elif asked.data is not None and not Path(asked.data).is_dir():
        requirements.data(asked)  # which knows what else it can be
    room.require(plan_of(asked, ""))
    if output is not None:
        require_folder(output)


def require_engines(arms: Iterable[Arm], asked: Specification) -> None:
    """Raise InputError for an engine that is not known, or whose options or files can't be."""
    of_options = [arm.engine for arm in arms if not arm.image]
    if of_options:
        engines.require_static(of_options, asked.engine_options)
    for arm in arms:
        if arm.image and arm.engine in engines.ENGINES:
            own = replace(asked.engine_options, **{engines.ENGINES[arm.engine].image_option: arm.image})
            engines.require_static([arm.engine], own)


def require_folder(folder: Path) -> None:
    """Raise InputError if no record can begin in ``folder``."""
    if record.is_begun(folder):
        record.require_idle(folder)
        raise InputError(HoldsRun(str(folder / record.FILE_NAME), quoted(folder)))
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(FolderNotWritable(str(folder), str(there)))


def require_time(asked: Specification, arms: int) -> None:
    """Raise TooShort if no machine could compare so many ``arms`` within the budget; ``asked`` has the reference."""
    first = asked.arms[0]
    others = (replace(first, name=str(number)) for number in range(1, arms))
    room.require(plan_of(replace(asked, arms=(first, *others)), ""))


def applying(profiles: Iterable[Profile]) -> list[Profile]:
    """Return those that apply to this machine, need no library or command of the image, and set different things."""
    facts = needs.known({**cpu_facts(), "gpus": gpus.look()["usable"]})
    found: dict[str, Profile] = {}
    for one in profiles:
        if one.name == REFERENCE_PROFILE or one.preload or one.prefix or not one.env:
            continue
        try:
            if needs.unmet(one.needs, facts) is None:
                found.setdefault(str(sorted(one.env.items())), one)
        except ExpressionError:
            continue
    return [*found.values()]
