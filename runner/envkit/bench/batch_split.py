"""Which numbers of ranks can share the batches of a workload, and the cores of a node."""

from __future__ import annotations

from envkit.bench.requirement_messages import (
    FewerRanks,
    GiveFewer,
    GiveMultiple,
    GiveNodes,
    GiveRanks,
    HasRanks,
    LargerThanData,
    LeaveOut,
    NameAnother,
    NoGrowingBatch,
    NotSharable,
    RanksLearnOtherwise,
    SmallerScale,
    StagesOfRanks,
    StartsRanksItself,
    TooFewCores,
    TooFewGpus,
    UnevenBatch,
    WithFix,
)
from envkit.messages import Message
from envkit.worker.modes import CUDA, Options
from envkit.worker.pipeline import MICRO_BATCHES
from envkit.worker.workloads import WORKLOADS, get


def shared() -> list[str]:
    """The workloads that several ranks can train."""
    return [name for name, workload in WORKLOADS.items() if workload.batch]


def unshared(name: str, options: Options, ranks: int, nodes: int = 1) -> WithFix | None:
    """Return why ``ranks`` on each of ``nodes`` can't share the batches of the workload ``name``; None if they can."""
    every, workload = ranks * nodes, get(name)
    if every == 1 or workload.exchange:
        return None
    if not workload.batch:
        return WithFix(NotSharable(name), NameAnother(tuple(shared())))
    if every % workload.stages:
        return WithFix(StagesOfRanks(name, workload.stages), GiveMultiple(workload.stages))
    batch = workload.batch * options.scale
    if batch % _pieces(name, every) == 0:
        return None
    possible = (count for count in range(nodes, batch + 1, nodes) if count > 1 and count % workload.stages == 0)
    fitting = tuple(str(count // nodes) for count in possible if batch % _pieces(name, count) == 0)
    return WithFix(UnevenBatch(name, batch, _items(name), every), GiveRanks(fitting) if fitting else GiveNodes())


def ungrown(name: str, options: Options, ranks: int) -> Message | None:
    """Return why the batch of the workload ``name`` can't be ``ranks`` times as large; None if it can."""
    workload = get(name)
    if not workload.batch:
        return WithFix(NoGrowingBatch(name), NameAnother(tuple(shared())))
    batch = workload.batch * options.scale
    if ranks * batch <= workload.items:
        return None
    problem, most = LargerThanData(ranks, batch, _items(name), workload.items, name), workload.items // batch
    if options.scale == 1:
        return WithFix(problem, FewerRanks(most)) if most > 1 else problem
    return WithFix(problem, FewerRanks(most, "--scale") if most > 1 else SmallerScale())


def crowded(number: int, cores: int, where: str, option: str = "--nproc", who: str = "each rank") -> TooFewCores | None:
    """Return why so many processes can't be on the usable ``cores`` of one node; None if they can.

    Two hardware threads of a core share its units: processes on them would slow each other down. ``option`` asks for
    the ``number``, and ``who`` is how the message calls one of them.
    """
    if number <= max(1, cores):
        return None
    return TooFewCores(option, number, cores, where, who, LeaveOut() if cores == 1 else GiveFewer(option, cores))


def not_tried(
    trained: str | None, options: Options, numerics: str, together: int, gpus: int, ranks: int
) -> Message | None:
    """Return why a search leaves out that ``ranks`` train the workload ``trained``; None if it does not.

    ``trained`` is None for a command of the user's; ``numerics`` is ``same`` or ``any``. So many train ``together`` in
    all candidates, unless a candidate chooses; ``gpus`` are usable.
    """
    if ranks == 1:
        return None
    if together > 1:
        return HasRanks(ranks, together)
    if trained is None:
        return StartsRanksItself()
    if options.device == CUDA and ranks > gpus:
        return TooFewGpus(ranks, gpus)
    if problem := unshared(trained, options, ranks):
        return problem.problem
    return RanksLearnOtherwise() if numerics == "same" and get(trained).ranks_tolerance > 0 else None


def _items(name: str) -> str:
    """Return what its batches have."""
    return "images" if get(name).images else "sentences"


def _pieces(name: str, ranks: int) -> int:
    """Into how many equal parts a batch is cut."""
    stages = get(name).stages
    return ranks if stages == 1 else ranks // stages * MICRO_BATCHES
