"""Engines start a worker: locally, or in a container. A new one is a module here and a line in ``ENGINES``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.common import extras
from envkit.common.errors import InputError
from envkit.common.messages import UnknownWord
from envkit.common.suggestion import nearest
from envkit.engines import apptainer, container, enroot, local, podman, process
from envkit.engines.base import IMAGE_FILES, Engine, EngineOptions
from envkit.engines.setup_messages import LimitOfSome, OptionWithoutEffect

DOCKER_OPTION = "--engine docker"


def _docker(options: EngineOptions) -> Engine:
    """Import Docker's package, which nobody else needs, and return the engine."""
    try:
        from envkit.engines.docker import DockerEngine
    except ModuleNotFoundError as error:
        raise extras.missing(DOCKER_OPTION, error) from None
    return DockerEngine(options)


def _remove_dockers() -> None:
    with contextlib.suppress(ModuleNotFoundError):  # without the package nothing was started
        from envkit.engines import docker

        docker.remove_leftovers()


@dataclass(frozen=True)
class Registered:
    """An engine that can be chosen."""

    make: Callable[[EngineOptions], Engine]  # raises InputError where it can't be used here
    remove_leftovers: Callable[[], None]  # of runners that were killed
    image_option: str  # the field of EngineOptions that names what its workers run in
    options: frozenset[str]  # those of EngineOptions that mean something to it
    container: container.Kind | None = None  # how it starts containers, if it does


ENGINES = {
    "local": Registered(local.LocalEngine, process.remove_leftovers, "python", local.LocalEngine.options),
    "docker": Registered(_docker, _remove_dockers, "image", podman.PodmanEngine.options, container.DOCKER),
    "podman": Registered(
        podman.PodmanEngine, podman.remove_leftovers, "image", podman.PodmanEngine.options, podman.CONTAINER
    ),
    "apptainer": Registered(
        apptainer.ApptainerEngine,
        process.remove_leftovers,
        "sif",
        apptainer.ApptainerEngine.options,
        apptainer.CONTAINER,
    ),
    "enroot": Registered(
        enroot.EnrootEngine, process.remove_leftovers, "sqsh", enroot.EnrootEngine.options, enroot.CONTAINER
    ),
}
CONTAINERS = {name: entry.container for name, entry in ENGINES.items() if entry.container is not None}


def taking(option: str) -> str:
    """Return the names of the engines that take a field of EngineOptions, for help texts."""
    return ", ".join(name for name, engine in ENGINES.items() if option in engine.options)


def get_all(names: Sequence[str], options: EngineOptions) -> dict[str, Engine]:
    """The engines called ``names``, ready to run.

    Raises InputError if one is unknown or can't be used here, or if an option means nothing to any of them.
    """
    require_static(names, options)
    return {name: ENGINES[name].make(options) for name in dict.fromkeys(names)}


def require_static(names: Sequence[str], options: EngineOptions) -> None:
    """Raise InputError for what can be told wrong of engines and their options without starting anything."""
    for name in names:
        if name not in ENGINES:
            raise InputError(UnknownWord("engine", name, tuple(ENGINES), nearest(name, ENGINES)))
    registered = {name: ENGINES[name] for name in dict.fromkeys(names)}
    taken = frozenset(option for entry in registered.values() for option in entry.options)
    require_options(options, taken, [*registered])
    for limit in sorted(container.LIMITS & options.to_json().keys()):
        for name, entry in registered.items():
            if limit not in entry.options:
                raise InputError(LimitOfSome(f"--{limit.replace('_', '-')}", name))
    for name, entry in registered.items():
        if name == "local":
            local.LocalEngine(options)
        kind = entry.image_option
        if kind in IMAGE_FILES:
            apptainer.require_file(Path(getattr(options, kind) or IMAGE_FILES[kind]), kind)


def require_options(options: EngineOptions, taken: frozenset[str], names: Sequence[str]) -> None:
    """Raise InputError for an option that is not among those ``taken`` by the engines called ``names``."""
    for option in options.to_json():
        if option not in taken:
            shown = option.replace("_", "-")
            raise InputError(OptionWithoutEffect(f"--{shown}", tuple(names)))


def remove_leftovers() -> None:
    """Remove what runners that were killed have left behind, whatever engine they used."""
    for remove in dict.fromkeys(entry.remove_leftovers for entry in ENGINES.values()):
        remove()
