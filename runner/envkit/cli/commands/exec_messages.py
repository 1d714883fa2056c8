"""Messages of ``envkit exec``, which imports them only if it has something to say, because it must start fast."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note


class GpusOnMachine(Message):
    """--gpus is for containers, and the command runs on this machine."""

    template = "--gpus is for a container; on this machine a command has its GPUs, so leave it out"


class NothingAfterDashes(Message):
    """No command follows the dashes."""

    template = "exec: there is no command after --, for example: envkit exec {profile} -- python train.py"

    profile: str


class NoEvidence(Message):
    """--evidence and --no-check were both given."""

    template = "--evidence: --no-check collects no evidence; leave one of them out"


class NoPlaceForEvidence(Message):
    """--evidence names a file in a folder that does not exist."""

    template = "--evidence {file}: there is no such folder; make it first"

    file: str


class VariablesLeftOut(Caution):
    """The command starts without these variables of the caller."""

    template = "left out {names:list}, which could change the outcome (--keep-env NAME passes one on)"

    names: tuple[str, ...]


class VariablesPassedOn(Note):
    """The command starts with these variables of the caller, which it may need. ``replaced`` are keys in lists."""

    template = "passed on {names:list}, which the command may need[; left out {replaced:list}, which a profile sets]"

    names: tuple[str, ...]
    replaced: tuple[str, ...] = ()


class FailedWithout(Message):
    """A command failed soon after its start, and did not get variables that the caller has."""

    template = (
        "{command}: ended with exit status {status:d}; not passed on: {names:list}; if it needs one: {option:command}"
    )

    command: str
    status: int
    names: tuple[str, ...]
    option: tuple[str, ...]


class EndedBySignal(Message):
    """A signal ended the command. ``meaning`` is the system's description."""

    template = "{command}: was ended by signal {signal} ({meaning})"

    command: str
    signal: str  # as SIGKILL
    meaning: str


class KeptInVain(Caution):
    """--keep-env names a variable that the profile sets."""

    template = "--keep-env {name} keeps nothing: the profile itself sets {name}={value}"

    name: str
    value: str


class OneOfSeveralRanks(Caution):
    """A profile is for several ranks, and the command starts one process."""

    template = (
        "{profile} has the settings of each of {ranks} ranks, and this starts one process; to start {ranks}: "
        "{instead:command}"
    )

    profile: str
    ranks: int
    instead: tuple[str, ...]


class EvidenceUnwritable(Message):
    """The file of --evidence can't be written. The command has ended by then."""

    template = "--evidence {problem}"

    problem: Message
