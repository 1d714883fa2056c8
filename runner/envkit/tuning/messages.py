"""Messages of tuning."""

from __future__ import annotations

from envkit.messages import Message, Note


class FarSlower(Message):
    """A trial was stopped because its candidate had lost already. Its subject is the worker."""

    template = "was stopped after {seconds:.0f} s, at least {factor:g} times the baseline's time"

    seconds: float
    factor: float


class OverMemory(Message):
    """The peak memory of a candidate is above the limit; ``memory`` is GPU for that of a GPU. Its subject is it."""

    template = (
        "needs {peak_bytes:size}[ on the {memory}] at its peak, {share:percent} more than the baseline's "
        "{reference_bytes:size}; --max-memory allows {limit:exact_percent}"
    )

    peak_bytes: float
    reference_bytes: float
    share: float
    limit: float
    memory: str | None = None


class NoPlace(Message):
    """The profile that a tuning writes has no place. ``variable`` moves the folder that is taken by default."""

    template = "{file}: {folder} can't be written to: {why}; name another file with --profile[, or set {variable}]"

    file: str
    folder: str
    why: str
    variable: str | None = None


class NotYaml(Message):
    """The file that ``--profile`` names has another ending."""

    template = "--profile {file}: a profile is a YAML file; give a name that ends in .yaml"

    file: str


class NameOfReference(Message):
    """``--profile`` has the name of the reference."""

    template = "--profile {file}: that is the name of what it is compared with; give another name"

    file: str


class NotFromTuning(Message):
    """``--profile`` names a file that something else wrote."""

    template = "--profile {file}: it already exists, and no tuning wrote it; give another name"

    file: str


# The space, on this machine.


class TooManyCandidates(Message):
    """A space is too large to be measured one by one."""

    template = (
        "{file}: --exhaustive would measure more than {most} candidates one by one; "
        "give a smaller space, such as coarse"
    )

    file: str
    most: int


class NothingToTry(Message):
    """No choice of a space can be tried on this machine."""

    template = (
        "{file}: nothing of this space can be tried here: each choice equals the baseline, sets a variable "
        "twice or can't have an effect; give another space"
    )

    file: str


class NothingToVary(Message):
    """No parameter of a space has two levels on this machine. ``first`` and ``why`` are of one that was left out."""

    template = "{file}: nothing of this space can be varied here[: {first}: {why}]; give another space"

    file: str
    first: str | None = None
    why: Message | None = None


class SameAs(Note):
    """Why a level is left out: another one comes to the same on this machine."""

    template = "is the same as {level} here"

    level: str


class MayChangeResults(Note):
    """Why something is left out that may change the results."""

    template = "may change the results; --numerics any tries it too"


class CandidateGone(Message):
    """A search goes on, and its space does not allow a candidate that was measured."""

    template = "{file}: no longer allows candidate {number} ({candidate}), which was measured; start a new tuning"

    file: str
    number: int
    candidate: str


# Nodes that search together.


class NotShared(Message):
    """A file is not the one that nodes share."""

    template = "{file}: is not a journal that nodes share; start a new tuning"

    file: str


class DamagedJournal(Message):
    """A line of the file that nodes share is damaged."""

    template = "{file}:{line:d}: damaged line, so nodes can't go on together; start a new tuning"

    file: str
    line: int


class NoLinks(Message):
    """A file system has no symbolic links, and nodes lock their file with one."""

    template = (
        "{folder}: nodes can't share their trials there, as its file system makes no symbolic links: {reason}; "
        "give a folder on another one with --output"
    )

    folder: str
    reason: str


class JournalUnusable(Message):
    """The file that nodes share can't be read or written."""

    template = (
        "{file}: nodes can't share their trials there: {reason}; what was measured is safe: fix that, then "
        "{command:command}"
    )

    file: str
    reason: Message
    command: tuple[str, ...]


# Workers. A problem is a clause with the worker as its subject.


class NotInEffect(Message):
    """A setting of a candidate did not take effect."""

    template = "was not in effect: {key} should be {expected} and is {seen}"

    key: str
    expected: str
    seen: str


class OtherLosses(Message):
    """A candidate's losses differ from the baseline's by more than rounding."""

    template = "has other losses than the baseline, by up to {difference:.2%}: its results are not the same"

    difference: float


class BaselineWorkerFailed(Message):
    """A worker of the baseline failed. ``printed`` is its last line."""

    code = "tuning.baseline-failed"
    template = "the baseline's worker {problem}[: {printed}]"

    problem: Message
    printed: str | None = None
