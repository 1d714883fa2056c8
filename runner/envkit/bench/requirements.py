"""Requirements of a study for workloads, profiles, images and machines, checked before anything is measured.

Messages name the options by which it was asked for.
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
from envkit.profiles.inspection import Accelerator, Surroundings
from envkit.profiles.profile import Profile
from envkit.worker.distributed import NCCL
from envkit.worker.gpus import CHOOSING
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


def require(asked: Study) -> int:
    """Raise InputError for what could be measured nowhere; returns the most ranks that an arm has on one node.

    The arms have the ranks of their profiles (``arm_of``).
    """
    if asked.user_command is not None:
        require_copy(asked.user_command)
    if asked.instances > 1:
        ranked = (ProfileWithRanks(arm.profile, arm.ranks) for arm in asked.arms if arm.ranks)
        excluding: tuple[Message | None, ...] = (
            RanksTogether() if asked.ranks * asked.nodes > 1 else None,
            next(ranked, None),
            CommandStartedOnce() if asked.user_command else None,
            FullTrainsOnce() if asked.epochs else None,
            OneProcessForGpu() if asked.options.device == CUDA else None,
            ComparedOnEach() if asked.workload == EVERY else None,
        )
        other = next((reason for reason in excluding if reason is not None), None)
        if other is not None:
            raise InputError(NotWithInstances(asked.instances, other))
    require_modes(asked.own_workloads, asked.options)
    if asked.until is not None:
        quality.require_target(asked.until, asked.own_workloads)
    ranks = [arm.ranks or asked.ranks for arm in asked.arms]
    trained = None if asked.user_command else asked.workload
    how = _grown(asked) if asked.weak else asked.options
    require_shares(asked.arms, trained, how, asked.ranks, asked.nodes)
    require_exchange(asked.own_workloads, asked.options, min(ranks) * asked.nodes)
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


def _grown(asked: Study) -> Options:
    """How all ranks train together where their batch is to grow with them. Raises InputError where it can't."""
    ranks = asked.ranks * asked.nodes
    if ranks == 1:
        raise InputError(WeakOnOneRank())
    for name in asked.own_workloads:
        if found := batch_split.ungrown(name, asked.options, ranks):
            raise InputError(About("--weak", found))
    if not any(arm.cpu_shares == asked.ranks for arm in asked.arms):
        raise InputError(WeakWithoutOneProcess())
    return replace(asked.options, scale=asked.options.scale * ranks)


def require_nodes(nodes: int, engine: str) -> None:
    """Raise InputError where a training on so many nodes can't be started."""
    if nodes == 1:
        return
    step.require_engine(engine)
    step.require(nodes)


def require_exchange(workloads: Iterable[str], how: Options, fewest: int) -> None:
    """Raise InputError where ranks can't exchange as they are to; ``fewest`` is how many an arm has at least."""
    if how.exchange == NCCL and how.device != CUDA:
        raise InputError(NcclWithoutGpus())
    if fewest == 1 and any(map(exchanges, workloads)):
        raise InputError(NobodyToExchangeWith())


def require_modes(workloads: Sequence[str], how: Options) -> None:
    """Raise InputError where ``workloads`` can't be trained like that."""
    for name in workloads:
        workload = get(name)
        if how.channels_last and not workload.images:
            raise InputError(NoImages(name))
        if how.scale != 1 and not workload.scales:
            raise InputError(NoScale(name))
        if workload.stages > 1 and how.modes != USUAL.modes:
            raise InputError(UsualModesOnly(name))
        if workload.exchange and replace(how, device=CPU).modes != USUAL.modes:
            raise InputError(TrainsNothing(name))
    quality.require(workloads)


def require_compiled(profiles: Iterable[Profile], may_compile: bool) -> None:
    """Raise InputError if a profile sets what only torch.compile reads, unless the training ``may_compile``."""
    for loaded in [] if may_compile else profiles:
        if names := catalogue.of_compiler(loaded.env):
            raise InputError(NothingCompiles(loaded.name, names[0]))


def require_shares(arms: Iterable[Arm], trained: str | None, how: Options, ranks: int, nodes: int = 1) -> None:
    """Raise InputError where an arm is on several ranks that can't share the batches of what it trains.

    ``trained`` is the workload of arms that have none of their own, None for a command of the user's; ``ranks`` is how
    many there are on each of ``nodes`` where an arm does not say it.
    """
    for arm in arms:
        own = arm.ranks or 1
        if nodes > 1 and own > 1:
            raise InputError(RanksOnOneNode(arm.profile, own))
        if trained is not None:
            each, on = (arm.ranks, 1) if arm.ranks else (ranks, nodes)
            if found := batch_split.unshared(arm.workload or trained, how, each, on):
                given = f"--nproc {ranks}" if nodes == 1 else f"--nodes {nodes} --nproc {ranks}"
                raise InputError(RanksOfProfile(arm.profile, own, found) if arm.ranks else About(given, found))
        elif own > 1:
            raise InputError(RanksOfCommand(arm.profile, own))


def exchanges(name: str) -> bool:
    """Whether a workload is nothing but what ranks exchange; a user's own, in a file, is not."""
    found = find(name)
    return found is not None and found.exchange


def tools(how: Options) -> list[str]:
    """The commands that an image must have."""
    return [*COMPILERS] if how.compile else []


def choosing(how: Options) -> tuple[str, ...]:
    """Return what training on a GPU keeps of the caller's: a batch system says so which GPU it may use."""
    return CHOOSING if how.device == CUDA else ()


def on_gpus(how: Options, own: bool) -> bool | None:
    """Whether GPUs are trained on; None where a command of the user's ``own`` may do so if it finds some."""
    return True if how.device == CUDA else None if own else False


def require_in(seen: Mapping[str, Surroundings], workloads: Sequence[str], how: Options) -> None:
    """Raise InputError where an image, as it was ``seen`` under each engine, lacks what the training needs."""
    for engine, about in seen.items():
        inspection, image = about["inspection"], about["engine"]["image"]
        if how.device == CUDA:
            _require_gpu(inspection["accelerator"], image, engine)
        missing = [command for command in tools(how) if inspection["commands"][command] is None]
        if how.compile and not inspection["python_headers"]:
            missing.append(HEADERS)
        if missing:
            fix = InstallThere() if about["engine"]["name"] == "local" else TakeVariantCompile()
            raise InputError(NothingToCompile(tuple(missing), image, engine, fix))
        version = inspection["packages"]["torch"] or ""
        pinning = [name for name in workloads if get(name).pins]
        if pinning and version.endswith(CPU_BUILD):
            raise InputError(NoPinnedMemory(pinning[0], version, image))


def _require_gpu(found: Accelerator, image: str, engine: str) -> None:
    """Raise InputError if no GPU can be used; ``found`` is what ``envkit.worker.gpus.look`` saw in the image."""
    if found["problem"] is not None:
        raise InputError(NoGpuInImage(image, engine, from_json(found["problem"])))


def require_two_images(arms: Sequence[Arm], seen: Mapping[str, Surroundings]) -> None:
    """Raise InputError where images that are to be compared are one, or for different processors.

    ``seen`` has, by ``Arm.target``, what an engine said of itself and its image, and what was seen inside.
    """
    having = [arm for arm in arms if arm.image]
    for arm in having[1:]:
        reference = having[0]
        identities = [_identity(seen[one.target]) for one in (reference, arm)]
        if identities[0] == identities[1]:
            raise InputError(SameImage(str(arm.image), str(reference.image), identities[0]))
        machines = [str(seen[one.target]["inspection"]["fingerprint"]["architecture"]) for one in (reference, arm)]
        if machines[0] != machines[1]:
            raise InputError(EmulatedImage(str(arm.image), machines[1], str(reference.image), machines[0]))


def _identity(seen: Surroundings) -> str:
    """What two images can't have in common: their digest, and of this machine's Pythons where they are installed."""
    engine, python = seen["engine"], seen["inspection"]["python"]
    return f"{engine['digest'][:19]}…" if "digest" in engine else f"Python {python['version']} in {python['prefix']}"


def require_gpus(seen: Mapping[str, Surroundings], ranks: int, how: Options) -> None:
    """Raise InputError where so many ranks have too few GPUs, as these were ``seen`` in what they run in."""
    for place, about in seen.items():
        usable = about["inspection"]["facts"].get("gpus", 0)
        if how.device == CUDA and ranks > usable:
            fix = OneProcess() if usable == 1 else FewerRanks(usable)
            raise InputError(About(f"--device {CUDA}", WithFix(TooFewGpus(ranks, usable, place), fix)))


def require_room(
    seen: Mapping[str, Surroundings], number: int, option: str = "--nproc", who: str = "each rank"
) -> None:
    """Raise InputError where the cores are too few for so many processes, as they were ``seen`` under each engine.

    The rest is as for ``batch_split.crowded``.
    """
    for engine, about in seen.items():
        cores = about["inspection"]["facts"]["physical_cores"]
        if found := batch_split.crowded(number, cores, f"engine {engine}", option, who):
            raise InputError(found)


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
