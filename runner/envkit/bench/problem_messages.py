"""Messages of what a worker did wrong. Each is a clause whose subject is the worker."""

from __future__ import annotations

from envkit.messages import Message, Note

# What a worker used.
INSTANCES, RANKS = "instances", "ranks"
TO_EXCHANGE = "to exchange gradients"
TO_START = "to start DataLoader workers"


class UnknownProblem(Message):
    """A record has a problem that this version does not know, or whose fields it does not know."""

    template = "failed for a reason that this version of envkit does not know[ ({found})]"

    found: str | None = None  # the code of that problem


class WarmingUp(Message):
    """A worker failed before anything was measured."""

    template = "{problem} (warming up)"

    problem: Message


class WithoutVariables(Message):
    """A user's command failed when it was first started, and did not get these variables of the caller."""

    template = "{problem}; not passed on: {names:list}; if it needs one, add --keep-env {option}"

    problem: Message
    names: tuple[str, ...]
    option: str


class NoDocument(Message):
    """A worker ended well, and its output is no JSON."""

    template = "printed no JSON document"


class OtherDocument(Message):
    """A worker printed JSON that lacks keys of a sample."""

    template = "printed a different document than requested"


class OtherMode(Message):
    """A worker trained in another mode than the run's."""

    template = "should have trained with {mode}: {wanted}, but observed {seen}"

    mode: str
    wanted: object
    seen: object


class UsedOther(Message):
    """A worker used another number of processes, or another way, than was requested."""

    template = "should have used {wanted} {what}, but used {found}"

    wanted: str
    what: str  # one of those above
    found: str


class UnknownStart(Message):
    """A worker did not say how DataLoader's workers were started."""

    template = "should have started DataLoader workers by {wanted}, but how they were started is unknown"

    wanted: str


class NoEpochEnd(Message):
    """No epoch ended among the steps of a sample."""

    template = "saw no end of an epoch, so it is unknown whether DataLoader's workers persist; give more --steps"


class WorkersReplaced(Message):
    """DataLoader's workers ended with the epoch, although they were to stay."""

    template = "should have kept its DataLoader workers between epochs, but the next epoch had new ones"


class WorkersStayed(Message):
    """DataLoader's workers stayed, although they were to end with the epoch."""

    template = "should have started new DataLoader workers for each epoch, but kept them"


class Diverged(Message):
    """A loss of one of the kit's workloads is no finite number."""

    template = (
        "diverged: the loss of step {step:d} is {loss}, so its speed is meaningless; the profile[ or the "
        "mode ({mode})] changes the numerics; measure without it"
    )

    step: int
    loss: str  # nan, inf or -inf
    mode: str | None = None


class LossOfStep(Note):
    """A loss of a user's command that prints one for each step."""

    template = "the loss of step {step:d}"

    step: int


class LossAmong(Note):
    """A loss of a user's command that prints other than one for each step."""

    template = "loss {number:d} of {of:d}"

    number: int  # from 1
    of: int


class CommandDiverged(Message):
    """A loss that a user's command printed is no finite number."""

    template = (
        "diverged: {which} is {loss}, so its speed is meaningless; lower its learning rate or, where it "
        "happens under one profile alone, leave this out"
    )

    which: LossOfStep | LossAmong
    loss: str  # nan, inf or -inf


class OtherNumberOfLosses(Message):
    """A user's command printed fewer or more losses than in earlier samples."""

    template = (
        "saw {found:count loss|losses}, and earlier samples had {earlier}; print equally many in each run, "
        "on one line per step and not in a progress bar"
    )

    found: int
    earlier: int


class OtherDigest(Message):
    """A worker had other code, data or weights than earlier samples. ``digest`` is the beginning of the new one."""

    template = "its {name} differs from that of earlier samples ({digest}…)"

    name: str
    digest: str


class OtherTorch(Message):
    """A worker had another version of torch than earlier samples."""

    template = "its torch is {found}, and that of earlier samples was {earlier}; start a new run"

    found: str
    earlier: str


class UnlikeCpus(Message):
    """A rank, and the one process that is to have a rank's part of the CPUs, have unlike many."""

    template = "had {found} CPUs where one of {other} had {wanted}; efficiency needs processes with equally many"

    found: int
    other: str  # an arm
    wanted: int


class FewSteps(Message):
    """A sample has no step behind those that warm it up. Logs of a user's command may be short."""

    template = "found only {found} step times, and the first {skipped} are left out as warm-up"

    found: int
    skipped: int


class Written(Message):
    """Files that a user's command wrote."""

    template = "{files:count file} ({bytes:size}), such as {names:list}"

    files: int
    bytes: int
    names: tuple[str, ...]


class WroteOutside(Message):
    """A user's command wrote past its working copy into its folder."""

    template = (
        "saw files of {folder} change although the command ran in a copy of it: {written}; let it write to paths below "
        "its current folder, keep other programs from writing there, or give --in-place"
    )

    folder: str
    written: Written
