"""Refuse what options, files and facts about this machine decide. Nothing here starts a process or writes a file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit import engines
from envkit.bench import record, requirements, room
from envkit.bench.arms import Arm
from envkit.bench.messages import (
    FolderNotWritable,
    HoldsRun,
    NoSuchProgram,
    ProgramMissing,
    ProgramNotExecutable,
    TooManyArms,
    VariableNotSet,
)
from envkit.bench.study import MOST_ENTRIES, REFERENCE_PROFILE, Study
from envkit.common.errors import InputError
from envkit.common.folders import quoted
from envkit.engines.base import EngineOptions
from envkit.engines.measured_cores import facts_here
from envkit.profiles import needs, profile
from envkit.profiles.expressions import ExpressionError
from envkit.profiles.profile import Profile
from envkit.worker import gpus
from envkit.worker.request import UserCommand
from envkit.worker.workloads import get

# A Python by its name, its options that take the next word, and those after which no file follows.
PYTHON = re.compile(r"python[0-9.]*")
WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
MODULE_OR_CODE = re.compile(r"-[a-zA-Z]*[cm]")


def require(requested: Study, output: Path | None = None, made: Mapping[str, Profile] | None = None) -> None:
    """Raise InputError if the run can't start, or if no machine could give a verdict within its budget.

    ``output`` is the folder for its record, and ``made`` are profiles that are in no file yet.
    """
    if (number := max(len(requested.arms), len(requested.contrasts))) > MOST_ENTRIES:
        raise InputError(TooManyArms(number, MOST_ENTRIES))
    made = made or {}
    loaded = {arm.profile: made.get(arm.profile) or profile.load(arm.profile) for arm in requested.arms}
    requested = replace(requested, arms=tuple(requirements.arm_of(arm, loaded[arm.profile]) for arm in requested.arms))
    requirements.require(requested)
    requirements.require_compiled(loaded.values(), requested.options.compile or requested.user_command is not None)
    for name in requested.keep_env:
        if name not in os.environ:
            raise InputError(VariableNotSet(name))
    require_engines(requested.arms, requested.engine_options)
    if requested.user_command is not None and not any(
        "PATH" in loaded_profile.env for loaded_profile in loaded.values()
    ):
        require_program(requested.user_command, {arm.engine for arm in requested.arms} == {"local"})
    if requested.data is not None and (
        requested.user_command or any(get(name).generated for name in requested.own_workloads)
    ):
        requirements.data(requested.data, requested.own_workloads)
    elif requested.data is not None and not Path(requested.data).is_dir():
        requirements.data(requested.data, requested.own_workloads)  # which knows what else it can be
    room.require(requested.completed(""))
    if output is not None:
        require_folder(output)


def require_program(command: UserCommand, on_this_machine: bool) -> None:
    """Raise InputError if a user's command can't be started: its program is missing, or the script of its Python.

    In a container only the folder is known, which it has in common with this machine.
    """
    folder, program = Path(command.folder), command.argv[0]
    if not folder.is_dir():  # a node may have it
        return
    file = folder / program
    if "/" not in program:
        if on_this_machine and shutil.which(program) is None:
            raise InputError(NoSuchProgram(program, f"./{program}" if file.exists() else None, unquoted(program)))
    elif on_this_machine or not Path(program).is_absolute():
        if not file.exists():
            raise InputError(ProgramMissing(program, str(folder), unquoted(program)))
        if on_this_machine and not os.access(file, os.X_OK):
            raise InputError(ProgramNotExecutable(program, ("chmod", "+x", program)))
    script = script_of(command.argv)
    if script is not None and not Path(script).is_absolute() and not (folder / script).exists():
        raise InputError(ProgramMissing(script, str(folder)))


def unquoted(program: str) -> tuple[str, ...] | None:
    """Return the words of a command line that was given as one, as other tools take it, or None for another name."""
    words = tuple(program.split())
    return words if len(words) > 1 and shutil.which(words[0]) else None


def script_of(argv: Sequence[str]) -> str | None:
    """Return the file that Python runs, or None for another program, a module, or code on the command line.

    https://docs.python.org/3/using/cmdline.html has the options; those of WITH_VALUE take the next word.
    """
    if not PYTHON.fullmatch(Path(argv[0]).name):
        return None
    words = iter(argv[1:])
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
        elif word == "-" or MODULE_OR_CODE.match(word):
            return None
    return None


def require_engines(arms: Sequence[Arm], options: EngineOptions) -> None:
    """Raise InputError for an engine that is not known, or whose options or files can't be."""
    of_options = [arm.engine for arm in arms if not arm.image]
    if of_options:
        engines.require_static(of_options, options)
    for arm in arms:
        if arm.image and arm.engine in engines.ENGINES:
            own = replace(options, **{engines.ENGINES[arm.engine].image_option: arm.image})
            engines.require_static([arm.engine], own)


def require_folder(folder: Path) -> None:
    """Raise InputError if no record can begin in ``folder``."""
    if record.is_begun(folder):
        record.require_idle(folder)
        raise InputError(HoldsRun(str(folder / record.FILE_NAME), quoted(folder)))
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(FolderNotWritable(str(folder), str(there)))


def require_time(requested: Study, arms: int) -> None:
    """Raise TooShort if no machine could compare so many ``arms`` in the budget; ``requested`` has the reference."""
    first = requested.arms[0]
    others = (replace(first, name=str(number)) for number in range(1, arms))
    room.require(requested.with_arms((first, *others)).completed(""))


def applying(profiles: Iterable[Profile]) -> list[Profile]:
    """Return those that apply to this machine, need no library or command of the image, and set different things."""
    facts = needs.from_facts({**facts_here(), "gpus": gpus.look()["usable"]})
    distinct: dict[str, Profile] = {}
    for candidate in profiles:
        if candidate.name == REFERENCE_PROFILE or candidate.preload or candidate.prefix or not candidate.env:
            continue
        try:
            if needs.unmet(candidate.needs, facts) is None:
                distinct.setdefault(str(sorted(candidate.env.items())), candidate)
        except ExpressionError:
            continue
    return [*distinct.values()]
