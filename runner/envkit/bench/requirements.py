"""Requirements of a study for workloads, profiles, images and machines, checked before anything is measured.

Messages name the options by which it was requested.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.bench import batch_split, dataset, quality
from envkit.bench.arms import Arm, own_ranks
from envkit.bench.dataset import DataSet
from envkit.bench.dataset_messages import FromSeed, OfCommand, PartlyFromSeed
from envkit.bench.messages import FolderTooLarge, FolderUnreadable, NoSuchLink
from envkit.bench.requirement_messages import (
    HEADERS,
    CommandStartedOnce,
    ComparedOnEach,
    EmulatedImage,
    FewerRanks,
    FullTrainsOnce,
    InstallThere,
    MakesItsData,
    NcclWithoutGpus,
    NobodyToExchangeWith,
    NoGpuInImage,
    NoImages,
    NoPinnedMemory,
    NoScale,
    NothingCompiles,
    NothingToCompile,
    NotWithInstances,
    OneProcess,
    OneProcessForGpu,
    ProfileWithRanks,
    RanksOfCommand,
    RanksOfProfile,
    RanksOnOneNode,
    RanksTogether,
    SameImage,
    TakeVariantCompile,
    TooFewGpus,
    TrainsNothing,
    UsualModesOnly,
    WeakOnOneRank,
    WeakWithoutOneProcess,
    WithFix,
)
from envkit.bench.study import EVERY, Study
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.engines import step
from envkit.messages import Message, from_json
from envkit.profiles import catalogue
from envkit.profiles.inspection import Surroundings
from envkit.profiles.profile import Profile
from envkit.worker.distributed import NCCL
from envkit.worker.gpus import CHOOSING, Gpus
from envkit.worker.modes import CPU, CUDA, USUAL, Options
from envkit.worker.request import UserCommand
from envkit.worker.user_command import working_copy
from envkit.worker.workloads import GENERATED, find, get

# What torch.compile needs in an image to make code for CPUs (torch._inductor.config.cpp.cxx). By openssl it tells
# whether headers are those that it compiled before (torch._inductor.codecache).
COMPILERS = ("g++", "openssl")
# How a CPU build of torch ends its version.
CPU_BUILD = "+cpu"


def arm_of(arm: Arm, loaded: Profile) -> Arm:
    """The arm with its profile's own name, and on as many ranks as that says."""
    file = arm.file or (arm.profile if arm.profile.endswith((".yaml", ".yml")) else None)
    return replace(arm, profile=loaded.name, file=file, ranks=arm.ranks or own_ranks(loaded.ranks))


def require(requested: Study) -> int:
    """Raise InputError for what could be measured nowhere; returns the most ranks that an arm has on one node.

    The arms have the ranks of their profiles (``arm_of``).
    """
    if requested.user_command is not None:
        require_copy(requested.user_command)
    if requested.instances > 1:
        ranked = (ProfileWithRanks(arm.profile, arm.ranks) for arm in requested.arms if arm.ranks)
        excluding: tuple[Message | None, ...] = (
            RanksTogether() if requested.ranks * requested.nodes > 1 else None,
            next(ranked, None),
            CommandStartedOnce() if requested.user_command else None,
            FullTrainsOnce() if requested.epochs else None,
            OneProcessForGpu() if requested.options.device == CUDA else None,
            ComparedOnEach() if requested.workload == EVERY else None,
        )
        other = next((reason for reason in excluding if reason is not None), None)
        if other is not None:
            raise InputError(NotWithInstances(requested.instances, other))
    require_modes(requested.own_workloads, requested.options)
    if requested.until is not None:
        quality.require_target(requested.until, requested.own_workloads)
    ranks = [arm.ranks or requested.ranks for arm in requested.arms]
    trained = None if requested.user_command else requested.workload
    options = _grown(requested) if requested.weak else requested.options
    require_shares(requested.arms, trained, options, requested.ranks, requested.nodes)
    require_exchange(requested.own_workloads, requested.options, min(ranks) * requested.nodes)
    return max(ranks)


def require_copy(command: UserCommand) -> None:
    """Raise InputError if the folder of a user's command can't be copied for each start."""
    folder = Path(command.folder)
    for name in command.links:
        inside = os.path.normpath(name)
        if inside.startswith(("..", "/")) or inside == "." or not os.path.lexists(folder / inside):
            raise InputError(NoSuchLink(name, command.folder))
    if command.in_place or not folder.is_dir():  # a node may have it
        return
    try:
        working_copy.survey(folder, command.links)
    except working_copy.TooLarge as error:
        raise InputError(FolderTooLarge(command.folder, error.files, error.size, tuple(error.names))) from None
    except OSError as error:
        raise InputError(FolderUnreadable(command.folder, str(error.filename), str(error.strerror))) from None


def _grown(requested: Study) -> Options:
    """How all ranks train together where their batch is to grow with them. Raises InputError where it can't."""
    ranks = requested.ranks * requested.nodes
    if ranks == 1:
        raise InputError(WeakOnOneRank())
    for name in requested.own_workloads:
        if problem := batch_split.ungrown(name, requested.options, ranks):
            raise InputError(About("--weak", problem))
    if not any(arm.cpu_shares == requested.ranks for arm in requested.arms):
        raise InputError(WeakWithoutOneProcess())
    return replace(requested.options, scale=requested.options.scale * ranks)


def require_nodes(nodes: int, engine: str) -> None:
    """Raise InputError where a training on so many nodes can't be started."""
    if nodes == 1:
        return
    step.require_engine(engine)
    step.require(nodes)


def require_exchange(workloads: Iterable[str], options: Options, fewest: int) -> None:
    """Raise InputError where ranks can't exchange as they are to; ``fewest`` is how many an arm has at least."""
    if options.exchange == NCCL and options.device != CUDA:
        raise InputError(NcclWithoutGpus())
    if fewest == 1 and any(map(exchanges, workloads)):
        raise InputError(NobodyToExchangeWith())


def require_modes(workloads: Sequence[str], options: Options) -> None:
    """Raise InputError where ``workloads`` can't be trained like that."""
    for name in workloads:
        workload = get(name)
        if options.channels_last and not workload.images:
            raise InputError(NoImages(name))
        if options.scale != 1 and not workload.scales:
            raise InputError(NoScale(name))
        if workload.stages > 1 and options.modes != USUAL.modes:
            raise InputError(UsualModesOnly(name))
        if workload.exchange and replace(options, device=CPU).modes != USUAL.modes:
            raise InputError(TrainsNothing(name))
    quality.require(workloads)


def require_compiled(profiles: Iterable[Profile], may_compile: bool) -> None:
    """Raise InputError if a profile sets what only torch.compile reads, unless the training ``may_compile``."""
    for loaded in [] if may_compile else profiles:
        if names := catalogue.of_compiler(loaded.env):
            raise InputError(NothingCompiles(loaded.name, names[0]))


def require_shares(arms: Iterable[Arm], trained: str | None, options: Options, ranks: int, nodes: int = 1) -> None:
    """Raise InputError where an arm is on several ranks that can't share the batches of what it trains.

    ``trained`` is the workload of arms that have none of their own, None for a command of the user's; ``ranks`` is how
    many there are on each of ``nodes`` where an arm does not say it.
    """
    for arm in arms:
        ranks_of_arm = arm.ranks or 1
        if nodes > 1 and ranks_of_arm > 1:
            raise InputError(RanksOnOneNode(arm.profile, ranks_of_arm))
        if trained is not None:
            each, on = (arm.ranks, 1) if arm.ranks else (ranks, nodes)
            if problem := batch_split.unshared(arm.workload or trained, options, each, on):
                typed = f"--nproc {ranks}" if nodes == 1 else f"--nodes {nodes} --nproc {ranks}"
                raise InputError(
                    RanksOfProfile(arm.profile, ranks_of_arm, problem) if arm.ranks else About(typed, problem)
                )
        elif ranks_of_arm > 1:
            raise InputError(RanksOfCommand(arm.profile, ranks_of_arm))


def exchanges(name: str) -> bool:
    """Return whether a workload is nothing but what ranks exchange; a user's own, in a file, is not."""
    workload = find(name)
    return workload is not None and workload.exchange


def tools(options: Options) -> list[str]:
    """The commands that an image must have."""
    return [*COMPILERS] if options.compile else []


def choosing(options: Options) -> tuple[str, ...]:
    """Return what training on a GPU keeps of the caller's: a batch system says so which GPU it may use."""
    return CHOOSING if options.device == CUDA else ()


def on_gpus(options: Options, is_command: bool) -> bool | None:
    """Return whether GPUs are trained on; None if a user's own command is (``is_command``), which may find some."""
    return True if options.device == CUDA else None if is_command else False


def require_in(surroundings: Mapping[str, Surroundings], workloads: Sequence[str], options: Options) -> None:
    """Raise InputError if an image lacks what the training needs; ``surroundings`` are those of each engine."""
    for engine, about in surroundings.items():
        inspection, image = about["inspection"], about["engine"]["image"]
        if options.device == CUDA:
            _require_gpu(inspection["accelerator"], image, engine)
        missing = [command for command in tools(options) if inspection["commands"][command] is None]
        if options.compile and not inspection["python_headers"]:
            missing.append(HEADERS)
        if missing:
            fix = InstallThere() if about["engine"]["name"] == "local" else TakeVariantCompile()
            raise InputError(NothingToCompile(tuple(missing), image, engine, fix))
        version = inspection["packages"]["torch"] or ""
        pinning = [name for name in workloads if get(name).pins]
        if pinning and version.endswith(CPU_BUILD):
            raise InputError(NoPinnedMemory(pinning[0], version, image))


def _require_gpu(accelerator: Gpus, image: str, engine: str) -> None:
    """Raise InputError if no GPU can be used; ``accelerator`` is what ``envkit.worker.gpus.look`` saw in the image."""
    if accelerator["problem"] is not None:
        raise InputError(NoGpuInImage(image, engine, from_json(accelerator["problem"])))


def require_two_images(arms: Sequence[Arm], surroundings: Mapping[str, Surroundings]) -> None:
    """Raise InputError where images that are to be compared are one, or for different processors.

    ``surroundings`` has, by ``Arm.target``, what an engine said of itself and its image, and what was seen inside.
    """
    having = [arm for arm in arms if arm.image]
    for arm in having[1:]:
        reference = having[0]
        identities = [_identity(surroundings[arm_of_image.target]) for arm_of_image in (reference, arm)]
        if identities[0] == identities[1]:
            raise InputError(SameImage(str(arm.image), str(reference.image), identities[0]))
        machines = [
            str(surroundings[arm_of_image.target]["inspection"]["fingerprint"]["architecture"])
            for arm_of_image in (reference, arm)
        ]
        if machines[0] != machines[1]:
            raise InputError(EmulatedImage(str(arm.image), machines[1], str(reference.image), machines[0]))


def _identity(surroundings: Surroundings) -> str:
    """Return what no two images share: their digest, or where this machine's Pythons are installed."""
    engine, python = surroundings["engine"], surroundings["inspection"]["python"]
    return f"{engine['digest'][:19]}…" if "digest" in engine else f"Python {python['version']} in {python['prefix']}"


def require_gpus(surroundings: Mapping[str, Surroundings], ranks: int, options: Options) -> None:
    """Raise InputError if so many ranks have too few GPUs; ``surroundings`` are those of each engine."""
    for place, about in surroundings.items():
        usable = about["inspection"]["facts"].get("gpus", 0)
        if options.device == CUDA and ranks > usable:
            fix = OneProcess() if usable == 1 else FewerRanks(usable)
            raise InputError(About(f"--device {CUDA}", WithFix(TooFewGpus(ranks, usable, place), fix)))


def require_room(
    surroundings: Mapping[str, Surroundings], number: int, option: str = "--nproc", who: str = "each rank"
) -> None:
    """Raise InputError if the cores are too few for so many processes; ``surroundings`` are those of each engine.

    The rest is as for ``batch_split.crowded``.
    """
    for engine, about in surroundings.items():
        cores = about["inspection"]["facts"]["physical_cores"]
        if problem := batch_split.crowded(number, cores, f"engine {engine}", option, who):
            raise InputError(problem)


def data(wanted: str | None, workloads: Sequence[str]) -> DataSet:
    """Return the data that ``workloads`` of the kit are trained on. Print on stderr which sources do not have it.

    ``wanted`` is what the user named, and a user's command has no workload of the kit. Raise InputError if no workload
    takes what was named.
    """
    if not workloads:  # a user's command brings its data
        return DataSet("none", OfCommand())
    reading = [name for name in workloads if not get(name).generated]
    if not reading:
        if wanted is not None:
            raise InputError(MakesItsData(wanted, workloads[0]))
        return DataSet(GENERATED, FromSeed())
    from envkit.common.progress import say  # takes milliseconds, and most callers have no data to find

    source = dataset.find(wanted, say)
    if len(reading) == len(workloads):
        return source
    return replace(source, source=PartlyFromSeed(source.source))
