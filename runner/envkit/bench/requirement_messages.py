"""Messages about what a run needs of workloads, profiles, images and machines."""

from __future__ import annotations

from envkit.messages import Message


class WithFix(Message):
    """A problem, and what to do about it."""

    code = "bench.with-fix"
    template = "{problem}; {fix}"

    problem: Message
    fix: Message


# Ranks and batches.


class NotSharable(Message):
    code = "bench.not-sharable"
    template = "ranks can't share the batches of {workload}"

    workload: str


class StagesOfRanks(Message):
    code = "bench.stages-of-ranks"
    template = "{workload} has {stages} stages, each in its own ranks"

    workload: str
    stages: int


class UnevenBatch(Message):
    code = "bench.uneven-batch"
    template = "a batch of {workload} has {batch} {items}, which {ranks:d} ranks can't share evenly"

    workload: str
    batch: int
    items: str  # images or sentences
    ranks: int


class NoGrowingBatch(Message):
    code = "bench.no-growing-batch"
    template = "{workload} has no batch that grows with ranks"

    workload: str


class LargerThanData(Message):
    """Ranks take more images or sentences at once than a workload has."""

    code = "bench.larger-than-data"
    template = "{ranks:d} ranks with {batch} {items} each need more than the {most} of {workload}"

    ranks: int
    batch: int
    items: str  # images or sentences
    most: int
    workload: str


class NameAnother(Message):
    code = "bench.name-another"
    template = "leave it out, or name one of: {workloads:list}"

    workloads: tuple[str, ...]


class GiveMultiple(Message):
    code = "bench.give-multiple"
    template = "give a multiple of {of}"

    of: int


class GiveRanks(Message):
    code = "bench.give-ranks"
    template = "give one of: {ranks:list}, or another --scale"

    ranks: tuple[str, ...]


class GiveNodes(Message):
    code = "bench.give-nodes"
    template = "use another number of nodes, or another --scale"


class FewerRanks(Message):
    code = "bench.fewer-ranks"
    template = "train on {most:d} ranks or fewer[, or give a smaller {option}]"

    most: int
    option: str | None = None


class SmallerScale(Message):
    code = "bench.smaller-scale"
    template = "give a smaller --scale"


class LeaveOut(Message):
    code = "bench.leave-out"
    template = "leave it out"


class GiveFewer(Message):
    code = "bench.give-fewer"
    template = "give {option} {most:d} or less"

    option: str
    most: int


class TooFewCores(Message):
    """Processes would share cores, whose hardware threads slow each other down."""

    code = "bench.too-few-cores"
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

    code = "bench.has-ranks"
    template = "has {ranks} ranks of its own, and --nproc {given} is given"

    ranks: int
    given: int


class StartsRanksItself(Message):
    code = "bench.starts-ranks-itself"
    template = "your own command starts its ranks itself"


class TooFewGpus(Message):
    code = "bench.too-few-gpus"
    template = "{ranks} ranks take a GPU each, and {usable:count is|are} usable[ ({where})]"

    ranks: int
    usable: int
    where: str | None = None


class OneProcess(Message):
    code = "bench.one-process"
    template = "train on one process"


class RanksLearnOtherwise(Message):
    code = "bench.ranks-learn-otherwise"
    template = "several ranks give different losses; --numerics any tries them too"


class WeakOnOneRank(Message):
    code = "bench.weak-on-one-rank"
    template = "--weak: the batch grows with the ranks, and there is one; add --nproc N, or leave it out"


class WeakWithoutOneProcess(Message):
    code = "bench.weak-without-one-process"
    template = "--weak: no arm runs one process on the CPUs of one rank for comparison; leave it out"


class RanksOnOneNode(Message):
    code = "bench.ranks-on-one-node"
    template = "profile '{profile}' has {ranks} ranks of its own, on one node; leave --nodes out"

    profile: str
    ranks: int


class RanksOfCommand(Message):
    code = "bench.ranks-of-command"
    template = "profile '{profile}' has {ranks} ranks, which your own command must start itself; leave one of them out"

    profile: str
    ranks: int


class RanksOfProfile(Message):
    """How a message names the ranks that it is about, if a profile sets them."""

    code = "bench.ranks-of-profile"
    template = "profile '{profile}', ranks: {ranks}: {problem}"

    profile: str
    ranks: int
    problem: Message


class NcclWithoutGpus(Message):
    code = "bench.nccl-without-gpus"
    template = "--backend nccl: NCCL works only between GPUs; add --device cuda, or leave it out"


class NobodyToExchangeWith(Message):
    code = "bench.nobody-to-exchange-with"
    template = "--workload all-reduce: one process has no peer to exchange with; give envkit bench --nproc N"


# Several trainings at once.


class NotWithInstances(Message):
    """An option or a profile that excludes several independent trainings at once."""

    code = "bench.not-with-instances"
    template = (
        "--instances {instances} trains {instances} independent processes at once, and {other}; leave one of them out"
    )

    instances: int
    other: Message


class RanksTogether(Message):
    code = "bench.ranks-together"
    template = "--nproc trains one model on several ranks"


class ProfileWithRanks(Message):
    code = "bench.profile-with-ranks"
    template = "profile '{profile}' has {ranks} ranks of its own"

    profile: str
    ranks: int


class CommandStartedOnce(Message):
    code = "bench.command-started-once"
    template = "your own command is started once (it may start several processes itself)"


class FullTrainsOnce(Message):
    code = "bench.full-trains-once"
    template = "--full trains each arm once"


class OneProcessForGpu(Message):
    code = "bench.one-process-for-gpu"
    template = "--device cuda runs one process per GPU"


class ComparedOnEach(Message):
    code = "bench.compared-on-each"
    template = "--workload all compares on each workload"


# How workloads are trained.


class NoImages(Message):
    code = "bench.no-images"
    template = "--channels-last has no effect on {workload}, which has no images; leave it out"

    workload: str


class NoScale(Message):
    code = "bench.no-scale"
    template = "--scale has no effect on {workload}, whose name says its sizes; leave it out"

    workload: str


class UsualModesOnly(Message):
    code = "bench.usual-modes-only"
    template = "{workload} is trained on CPUs in fp32, not compiled and not channels-last; leave such options out"

    workload: str


class TrainsNothing(Message):
    code = "bench.trains-nothing"
    template = "{workload} trains nothing: it is not compiled, and always in fp32; leave such options out"

    workload: str


class MakesItsData(Message):
    code = "bench.makes-its-data"
    template = "--data {data}: has no effect on {workload}, which makes its data itself; leave it out"

    data: str
    workload: str


class LearnsNothing(Message):
    code = "bench.learns-nothing"
    template = "--until {until}: {workload} learns nothing; leave it out"

    until: str
    workload: str


class NoSuchFigure(Message):
    """The test after an epoch gives no figure of this name."""

    code = "bench.no-such-figure"
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
    code = "bench.target-above-one"
    template = "--until {until}: out of range: {figure} is never above 1; write for example {figure}=0.85"

    until: str
    figure: str
