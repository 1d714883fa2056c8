"""Messages about what a run needs of workloads, profiles, images and machines."""

from __future__ import annotations

from envkit.messages import Message


class WithFix(Message):
    """A problem, and what to do about it."""

    template = "{problem}; {fix}"

    problem: Message
    fix: Message


# Ranks and batches.


class NotSharable(Message):
    template = "ranks can't share the batches of {workload}"

    workload: str


class StagesOfRanks(Message):
    template = "{workload} has {stages} stages, each in its own ranks"

    workload: str
    stages: int


class UnevenBatch(Message):
    template = "a batch of {workload} has {batch} {items}, which {ranks:d} ranks can't share evenly"

    workload: str
    batch: int
    items: str  # images or sentences
    ranks: int


class NoGrowingBatch(Message):
    template = "{workload} has no batch that grows with ranks"

    workload: str


class LargerThanData(Message):
    """Ranks take more images or sentences at once than a workload has."""

    template = "{ranks:d} ranks with {batch} {items} each need more than the {most} of {workload}"

    ranks: int
    batch: int
    items: str  # images or sentences
    most: int
    workload: str


class NameAnother(Message):
    template = "leave it out, or name one of: {workloads:list}"

    workloads: tuple[str, ...]


class GiveMultiple(Message):
    template = "give a multiple of {of}"

    of: int


class GiveRanks(Message):
    template = "give one of: {ranks:list}, or another --scale"

    ranks: tuple[str, ...]


class GiveNodes(Message):
    template = "use another number of nodes, or another --scale"


class FewerRanks(Message):
    template = "train on {most:d} ranks or fewer[, or give a smaller {option}]"

    most: int
    option: str | None = None


class SmallerScale(Message):
    template = "give a smaller --scale"


class LeaveOut(Message):
    template = "leave it out"


class GiveFewer(Message):
    template = "give {option} {most:d} or less"

    option: str
    most: int


class TooFewCores(Message):
    """Processes would share cores, whose hardware threads slow each other down."""

    template = (
        "{option} {number:d}: only {cores:count core is|cores are} usable ({where}), and {who} needs its own; {fix}"
    )

    option: str
    number: int
    cores: int
    where: str
    who: str  # as "each rank"
    fix: LeaveOut | GiveFewer


class HasRanks(Message):
    """A search leaves out a candidate with ranks of its own."""

    template = "has {ranks} ranks of its own, and --nproc {given} is given"

    ranks: int
    given: int


class StartsRanksItself(Message):
    template = "your own command starts its ranks itself"


class TooFewGpus(Message):
    template = "{ranks} ranks take a GPU each, and {usable:count is|are} usable[ ({where})]"

    ranks: int
    usable: int
    where: str | None = None


class OneProcess(Message):
    template = "train on one process"


class RanksLearnOtherwise(Message):
    template = "several ranks give different losses; --numerics any tries them too"


class WeakOnOneRank(Message):
    template = "--weak: the batch grows with the ranks, and there is one; add --nproc N, or leave it out"


class WeakWithoutOneProcess(Message):
    template = "--weak: no arm runs one process on the CPUs of one rank for comparison; leave it out"


class RanksOnOneNode(Message):
    template = "profile '{profile}' has {ranks} ranks of its own, on one node; leave --nodes out"

    profile: str
    ranks: int


class RanksOfCommand(Message):
    template = "profile '{profile}' has {ranks} ranks, which your own command must start itself; leave one of them out"

    profile: str
    ranks: int


class RanksOfProfile(Message):
    """How a message names the ranks that it is about, if a profile sets them."""

    template = "profile '{profile}', ranks: {ranks}: {problem}"

    profile: str
    ranks: int
    problem: Message


class NcclWithoutGpus(Message):
    template = "--backend nccl: NCCL works only between GPUs; add --device cuda, or leave it out"


class NobodyToExchangeWith(Message):
    template = "--workload all-reduce: one process has no peer to exchange with; give envkit bench --nproc N"


# Several trainings at once.


class NotWithInstances(Message):
    """An option or a profile that excludes several independent trainings at once."""

    template = (
        "--instances {instances} trains {instances} independent processes at once, and {other}; leave one of them out"
    )

    instances: int
    other: Message


class RanksTogether(Message):
    template = "--nproc trains one model on several ranks"


class ProfileWithRanks(Message):
    template = "profile '{profile}' has {ranks} ranks of its own"

    profile: str
    ranks: int


class CommandStartedOnce(Message):
    template = "your own command is started once (it may start several processes itself)"


class FullTrainsOnce(Message):
    template = "--full trains each arm once"


class OneProcessForGpu(Message):
    template = "--device cuda runs one process per GPU"


class ComparedOnEach(Message):
    template = "--workload all compares on each workload"


# How workloads are trained.


class NoImages(Message):
    template = "--channels-last has no effect on {workload}, which has no images; leave it out"

    workload: str


class NoScale(Message):
    template = "--scale has no effect on {workload}, whose name says its sizes; leave it out"

    workload: str


class UsualModesOnly(Message):
    template = "{workload} is trained on CPUs in fp32, not compiled and not channels-last; leave such options out"

    workload: str


class TrainsNothing(Message):
    template = "{workload} trains nothing: it is not compiled, and always in fp32; leave such options out"

    workload: str


class MakesItsData(Message):
    template = "--data {data}: has no effect on {workload}, which makes its data itself; leave it out"

    data: str
    workload: str


class LearnsNothing(Message):
    template = "--until {until}: {workload} learns nothing; leave it out"

    until: str
    workload: str


class NoSuchFigure(Message):
    """The test after an epoch gives no figure of this name."""

    template = (
        "--until {until}: {workload} has no '{figure}' after an epoch[ (did you mean '{suggestion}'?)]; "
        "choose one of: {known:list}"
    )

    until: str
    workload: str
    figure: str
    known: tuple[str, ...]
    suggestion: str | None = None


class TargetAboveOne(Message):
    template = "--until {until}: out of range: {figure} is never above 1; write for example {figure}=0.85"

    until: str
    figure: str


# Images: torch.compile's needs, GPUs, and what tells two images apart.

# How a message names Python's headers among commands.
HEADERS = "Python's headers (Python.h)"


class NothingToCompile(Message):
    """An image lacks what torch.compile needs: ``missing`` are commands, ``headers`` is Python's."""

    template = "--compile: torch.compile needs {missing}, which {image} (engine {engine}) lacks; {fix}"

    missing: tuple[str, ...]
    image: str
    engine: str
    fix: Message


class InstallThere(Message):
    template = "install it there, or leave --compile out"


class TakeVariantCompile(Message):
    template = "use the image variant compile, or leave --compile out"


class NothingCompiles(Message):
    """A profile sets what only torch.compile reads, and the training is not compiled."""

    template = "profile '{profile}' sets {variable}, which only compiled training reads; add --compile"

    profile: str
    variable: str


class NoPinnedMemory(Message):
    template = (
        "{workload}: pinned memory is for an accelerator, and torch {version} in {image} has none; leave -pin out"
    )

    workload: str
    version: str
    image: str


class NoGpuInImage(Message):
    """An image can't train on a GPU. ``problem`` is that of ``envkit.worker.gpus``, with its mend."""

    template = "--device cuda: {image} (engine {engine}) can't: {problem}"

    image: str
    engine: str
    problem: Message


class SameImage(Message):
    template = (
        "{image} and {other} are the same image ({identity}); name two different images, "
        "or measure one against itself: envkit plan"
    )

    image: str
    other: str
    identity: str  # the beginning of a digest, or which Python it is


class EmulatedImage(Message):
    template = (
        "{image} is for {architecture} and {other} for {others}: one of them is emulated here, and its times "
        "are meaningless; name two images for the same architecture"
    )

    image: str
    architecture: str
    other: str
    others: str
