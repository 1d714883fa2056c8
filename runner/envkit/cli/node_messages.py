"""Messages of a node's part of a job, and of a tuning by several nodes."""

from __future__ import annotations

from envkit.messages import Message, Note


class NotWhatWasSubmitted(Message):
    """The settings in a submission's folder have another checksum than the batch script names."""

    template = "{file}: is not what was submitted, or was edited since; submit again"

    file: str


class NothingLeft(Note):
    """A node was started again, and has measured all."""

    template = "{node}: nothing is left to do"

    node: str


class HasSearched(Note):
    """A node's search is done."""

    template = "{node}: has searched; see {log}"

    node: str
    log: str


class NodeEnded(Note):
    """A node's run has ended."""

    template = "{node}: ended with exit status {status}; see {log}"

    node: str
    status: int
    log: str


class NearTimeLimit(Message):
    """A node stopped because the job's time limit was near."""

    template = "the job's time limit was near"


class ToldToEnd(Message):
    """A node stopped because Slurm sent a signal."""

    template = "Slurm told the job to end"


class NoFolderHere(Message):
    """A node can't enter the folder in which the command was submitted."""

    template = "{folder}: {reason} here; start from a folder that all nodes share"

    folder: str
    reason: str


class NoImageHere(Message):
    """A node can't read the file of the image."""

    template = "{image}: {reason}; copy it here, or put it on a file system that all nodes share"

    image: str
    reason: Message


class OtherImageHere(Message):
    """A node has another image by the same name. Digests are shortened."""

    template = (
        "{image}: is another image here ({digest}) than where it was submitted ({submitted}); copy that one here, or "
        "put it on a file system that all nodes share"
    )

    image: str
    digest: str
    submitted: str


class OtherNodesHere(Message):
    """A job has other nodes than the run that it should go on with."""

    template = (
        "this job has {nodes}, and the run began on {began_on}: times of other nodes can't be added to it; "
        "go on there with: {again:command}"
    )

    nodes: str
    began_on: str
    again: tuple[str, ...]


class OtherType(Message):
    """A node is of another type than most nodes of the tuning."""

    template = (
        "is of another type than the others: {kind}, and most are {usual}; name nodes of one type with --nodelist, or "
        "a partition of them"
    )

    kind: str
    usual: str


class NotSearched(Message):
    """A node was to confirm what the nodes found, and did not search."""

    template = "did not begin to search, and so does not know what a trial takes; see its earlier messages"


class FoundElsewhereOnly(Message):
    """A node can't apply what the other nodes have found."""

    template = "what the nodes have found can't be applied here; see the log of another node"


class NothingFound(Message):
    """No node has measured a candidate. ``problem`` is the first that a candidate had, if one was tried."""

    template = "no candidate has been measured on any node[; the first problem: {problem}]"

    problem: Message | None


class NothingConfirmed(Message):
    """A tuning by several nodes ended without a result."""

    template = "no node has confirmed anything, and no profile was written"


class ChoiceNotInSpace(Message):
    """The nodes chose settings that the recorded space lacks."""

    template = "{folder}: what the nodes chose is not in {file} there; start a new tuning"

    folder: str
    file: str


class ChoiceNotShipped(Message):
    """The nodes chose a profile that the kit does not ship."""

    template = "{folder}: the nodes chose '{profile}', which is no shipped profile; start a new tuning"

    folder: str
    profile: str


class RecordsIn(Note):
    """Name what a tuned profile rests on."""

    template = "the records in {folder}"

    folder: str
