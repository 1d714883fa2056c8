"""The execution context of a run: engines that are ready, what is inside their images, and what workers inherit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.bench import private_values, record, seal
from envkit.bench.arms import Arm
from envkit.bench.messages import VariableNotSet
from envkit.bench.record import Event
from envkit.bench.record_messages import (
    Difference,
    MachineChanged,
    OtherEngines,
    ProgramMoved,
    VariableChanged,
    VariableGone,
)
from envkit.bench.requirements import choosing, on_gpus
from envkit.bench.study import Study
from envkit.common.errors import InputError
from envkit.engines import ENGINES, get_all
from envkit.engines.base import Engine, EngineOptions
from envkit.engines.inspect_image import inspect, require_own_workloads
from envkit.engines.local import LocalEngine
from envkit.engines.messages import InspectionFailed
from envkit.profiles.environment import clean, of_caller
from envkit.profiles.inspection import Inspection, Surroundings
from envkit.worker.gpus import VISIBLE, Gpus
from envkit.worker.messages.gpus import NoneLeft
from envkit.worker.performance_variables import LISTS, is_needed, says_where
from envkit.worker.request import UserCommand


@dataclass(frozen=True)
class ExecutionContext:
    """Hold what workers are started with, whatever they measure."""

    options: EngineOptions
    engines: dict[str, Engine]  # by target (Arm.target)
    inherited: dict[str, str]  # the caller's variables that workers may have
    kept: dict[str, str]  # those of them that could change the outcome, and that the user allowed
    removed: tuple[str, ...]  # the names of those that workers may not have
    seen: dict[str, Surroundings]  # by target


def execution_context(
    requested: Study, commands: Sequence[str] = (), measured: Collection[str] = ()
) -> ExecutionContext:
    """Get ready what the arms run in, and look into it; ``commands`` are looked for in there. Raises InputError.

    A user's command on this machine also gets the caller's variables that it may need to run. Leave out those that a
    profile sets (``measured``), except for lists, which are joined with the profile's.
    """
    for name in requested.keep_env:
        if name not in os.environ:
            raise InputError(VariableNotSet(name))
    is_command = requested.user_command is not None
    wanted = [*requested.keep_env, *choosing(requested.options)]
    caller = of_caller(os.environ, requested.keep_env)
    if is_command and any(arm.engine == "local" for arm in requested.arms):
        wanted += [
            name for name in caller if is_needed(name) and name not in wanted and not _is_measured(name, measured)
        ]
    inherited, removed = clean(caller, [*wanted, *_where_to_run(is_command)])
    kept = {name: inherited[name] for name in wanted if name in inherited}
    removed.update({name: "" for name in os.environ if name not in caller})
    used = _engines_of(requested.arms, requested.engine_options, requested.user_command)
    gpus = on_gpus(requested.options, is_command)
    surroundings = _look(used, inherited, kept, commands, gpus, contents=any(arm.image for arm in requested.arms))
    if requested.user_command is not None:
        _note_program(requested.user_command, surroundings)
    else:
        for place in surroundings.values():
            require_own_workloads(place["engine"], place["inspection"])
    return ExecutionContext(requested.engine_options, used, inherited, kept, tuple(sorted(removed)), surroundings)


def recorded_context(folder: Path, first: Event, study: Study) -> ExecutionContext:
    """Return the context of the record in ``folder``; ``first``, its first event, must carry this user's seal.

    The values of kept variables come from the environment again. Raise InputError if anything changed.
    """
    with record.reading(folder):
        names = sorted(first["allowed_variables"])
        options = study.engine_options
    caller = of_caller(os.environ, study.keep_env)
    for name in names:
        if name not in caller:
            raise InputError(VariableGone(str(folder), name))
    is_command = study.user_command is not None
    inherited, removed = clean(caller, [*names, *_where_to_run(is_command)])
    kept = {name: inherited[name] for name in names}
    require_same_values(folder, first, kept)
    used = _engines_of(study.arms, options, study.user_command)
    surroundings = _look(used, inherited, kept, (), on_gpus(study.options, is_command))
    require_same_machine(folder, first, surroundings)
    return ExecutionContext(options, used, inherited, kept, tuple(sorted(removed)), surroundings)


def require_same_values(folder: Path, first: Event, kept: Mapping[str, str]) -> None:
    """Raise InputError if a kept variable changed its value since this user began the record.

    Skip variables without a digest: this user had no key then, or has none now.
    """
    with record.reading(folder):
        then: dict[str, str | None] = {name: first["allowed_variables"][name] for name in kept}
    now = seal.value_digests(kept, kept)
    for name, before in then.items():
        if None not in (before, now[name]) and before != now[name]:
            raise InputError(VariableChanged(str(folder), name))


def require_same_machine(folder: Path, first: Event, surroundings: Mapping[str, Surroundings]) -> None:
    """Raise InputError if the ``surroundings`` differ from the record's; ``first`` is its first event."""
    with record.reading(folder):
        if first["engines"].keys() != surroundings.keys():
            was, now = (", ".join(sorted(names)) or "none" for names in (first["engines"], surroundings))
            raise InputError(OtherEngines(str(folder), was, now))
        _require_program(folder, first["engines"])
        for name, before in first["engines"].items():
            _require_unchanged(folder, before, surroundings[name])


def same_gpus(inspection: Inspection) -> dict[str, object]:
    """Return what must stay the same of GPUs that are trained on.

    Network interfaces come and go with containers.
    """
    seen = inspection.get("accelerator") or {}
    return {key: value for key, value in seen.items() if key not in ("interfaces", "problem")}


def _is_measured(name: str, measured: Collection[str]) -> bool:
    return name in measured and name not in LISTS


def _where_to_run(is_command: bool) -> Sequence[str]:
    """Return what a user's command inherits to know where to run, which may be elsewhere when it is resumed."""
    return [name for name in os.environ if says_where(name)] if is_command else []


def _engines_of(arms: Sequence[Arm], options: EngineOptions, command: UserCommand | None) -> dict[str, Engine]:
    """An engine that is ready to run for each place (``Arm.target``) of ``arms``.

    On this machine it looks into the Python that the user's ``command`` starts, unless one is named.

    Raises InputError as ``engines.get_all`` does, and for an image that is not there.
    """
    of_options = [arm.engine for arm in arms if not arm.image]
    used = get_all(of_options, options) if of_options else {}
    for arm in arms:
        if arm.image:
            with_image = replace(options, **{ENGINES[arm.engine].image_option: arm.image})
            used[arm.target] = get_all([arm.engine], with_image)[arm.engine]
    if command is None:
        return used
    return {
        target: engine.for_command(command.argv, Path(command.folder)) if isinstance(engine, LocalEngine) else engine
        for target, engine in used.items()
    }


def _look(
    used: dict[str, Engine],
    inherited: dict[str, str],
    kept: Mapping[str, str],
    commands: Sequence[str],
    gpus: bool | None,
    contents: bool = False,
) -> dict[str, Surroundings]:
    """Return what each engine says of itself, and what is seen inside its image; the rest is as for ``inspect``."""
    try:
        return {
            name: {"engine": engine.describe(), "inspection": inspect(engine, inherited, commands, contents, gpus)}
            for name, engine in used.items()
        }
    except InputError as error:
        if isinstance(error.message, InspectionFailed):  # it quotes what the Python printed
            raise InputError(private_values.of_message(error.message, kept, inherited)) from None
        raise


def recorded(by_target: Mapping[str, Surroundings]) -> dict[str, Surroundings]:
    """Return what was seen (``by_target``) without the values of the caller's variables, for a record.

    The caller's PYTHONPATH is in two keys. No record has them.
    """
    stripped: dict[str, Surroundings] = {}
    for name, surroundings in by_target.items():
        inspection: Inspection = {**surroundings["inspection"]}
        inspection.pop("python_path", None)
        inspection.pop("package_folders", None)
        accelerator: Gpus = inspection.get("accelerator") or {}
        if accelerator.get("by_setting"):
            inspection["accelerator"] = {**accelerator, "problem": NoneLeft(VISIBLE).to_json()}
        stripped[name] = {**surroundings, "inspection": inspection}
    return stripped


def _note_program(command: UserCommand, surroundings: Mapping[str, Surroundings]) -> None:
    """Add to this machine's ``surroundings`` which file the command's first word is, by the PATH."""
    if "local" in surroundings and "/" not in (word := command.argv[0]):
        surroundings["local"]["inspection"]["program"] = {word: shutil.which(word)}


def _require_program(folder: Path, engines: Mapping[str, Surroundings]) -> None:
    """Raise InputError where a word that was noted is another file now: another Python may have another torch."""
    noted = engines["local"]["inspection"].get("program", {}) if "local" in engines else {}
    for word, before in noted.items():
        now = shutil.which(word)
        if before is not None and (now is None or _file(now) != _file(before)):
            raise InputError(ProgramMoved(str(folder), word, str(before), str(now)))


def _file(program: str) -> Path:
    """The folder is another name of itself on some machines (/bin); a virtual environment's Python is itself a link."""
    return Path(program).parent.resolve() / Path(program).name


def _require_unchanged(folder: Path, then: Surroundings, now: Surroundings) -> None:
    """A run is only continued where it was started: on the same machine, with the same image, code and libraries."""
    inside, inside_now = then["inspection"], now["inspection"]
    sections: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = [
        ("facts", inside["facts"], inside_now["facts"]),
        ("fingerprint", inside["fingerprint"], inside_now["fingerprint"]),
        ("packages", inside["packages"], inside_now["packages"]),
        ("libraries", inside["libraries"], inside_now["libraries"]),
        ("python", inside["python"], inside_now["python"]),
        ("engine", then["engine"], now["engine"]),
        ("accelerator", same_gpus(inside), same_gpus(inside_now)),
    ]
    for part, before, after in sections:
        for key in {**before, **after}:  # in their order, so that the first difference is always the same one
            if before.get(key) != after.get(key):
                changed = Difference(f"{part}.{key}", str(before.get(key)), str(after.get(key)))
                raise InputError(MachineChanged(str(folder), changed))
