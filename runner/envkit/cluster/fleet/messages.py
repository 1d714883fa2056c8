"""Messages about the nodes of a fleet that can't be compared, and about reports and records that can't be used."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

GIVE_NODES = "give a folder with a folder per node"
GIVE_REPORT = "give a fleet's folder, or its report"
# What a report of an earlier fleet must have, by kind of value.
EXPECTED = {
    "text": "a text",
    "texts": "texts by name",
    "reason": "a text, or a message of this version of envkit",
    "digest": "a text, or null",
    "time": "a number above 0, or null",
    "times": "a list of times above 0, in seconds",
    "bytes": "a whole number, or null",
    "began": "a time in seconds since 1970",
    "flag": "true or false",
    "samples": "a number of samples",
}


# --- why nothing can be reported ---


class AtNode(Message):
    """A node and what is wrong with it."""

    template = "{node}: {reason}"

    node: str
    reason: Message


class NoRecords(Message):
    """A folder has no folder with a record."""

    template = "{place}: holds no records; give a folder with a folder for each node that has a {file}"

    place: str
    file: str


class NoUsableNode(Message):
    """No node can be used. ``first`` is one of them."""

    template = "{place}: none of its {nodes:count node} can be used; {first}"

    place: str
    nodes: int
    first: AtNode


class NoCommonNode(Message):
    """No node of two reports can be compared. ``first`` is one of them."""

    template = "no node can be compared in the two reports; {first}"

    first: AtNode


class NoNameInBoth(Message):
    """Two reports have no node of one name."""

    template = "no node can be compared in the two reports; they have no node of the same name"


class ReaderKilled(Message):
    """A process that read records was killed."""

    template = "a process that was reading records was killed; is there enough memory?"


class UnusableReport(Message):
    """A report of an earlier fleet can't be used. ``anew`` is the command that writes it from its records."""

    template = "{file}: {problem}; write it again: {anew:command}"

    file: str
    problem: Message
    anew: tuple[str, ...]


class UnusableReportAlone(Message):
    """The records of a report are not in its folder."""

    template = "{file}: {problem}; give another report, or a fleet's folder with its records"

    file: str
    problem: Message


class NotAReport(Message):
    """A file is no report of a fleet, or is damaged."""

    template = "is not a fleet report, or is damaged"


class NotAList(Message):
    """A key of a report has no list."""

    template = "{key}: is not a list"

    key: str


class NoNodes(Message):
    """A report has no node."""

    template = "nodes: the list is empty"


class NodeTwice(Message):
    """A report has two nodes of one name."""

    template = "nodes: has {node} twice"

    node: str


class WrongKeys(Message):
    """An entry of a report has other keys than it should."""

    template = "{key}[[{number:d}]]: has the wrong keys"

    key: str
    number: int


class WrongValue(Message):
    """A value of a report is of another kind. ``expected`` is one of ``EXPECTED``."""

    template = "{key}[[{number:d}]].{field}: is not {expected}"

    key: str
    number: int
    field: str
    expected: str


class OtherProfileJudged(Message):
    """A report judged its nodes by another profile than the one that was named."""

    template = "{file}: judged its nodes by {profile}; leave --profile out, or give the folder of its records"

    file: str
    profile: str


# --- why a node can't be compared; the subject is the node ---


class NoRecord(Caution):
    """The folder of a node has no record."""

    template = "has no {file}: nothing was measured"

    file: str


class NoFolder(Caution):
    """A node that was submitted has no folder."""

    template = "has no folder: its job did not begin"


class SeveralWorkloads(Caution):
    """A node measured several workloads."""

    template = "measured several workloads, and nodes are compared by one: measure that, with --workload"


class SeveralProfiles(Caution):
    """A node measured several profiles, and none was chosen."""

    template = "measured several profiles ({profiles:list}): choose one with --profile"

    profiles: tuple[str, ...]


class OtherProfiles(Caution):
    """A node did not measure the chosen profile."""

    template = "did not measure {profile}, but {profiles:list}"

    profile: str
    profiles: tuple[str, ...]


class NoSample(Caution):
    """A node has no sample of the profile that judges it."""

    template = "has no sample of {arm}"

    arm: str


class NoTime(Caution):
    """A sample of a node took no time."""

    template = "has a sample whose time is not above 0"


class InvalidBeginning(Caution):
    """A node's clock said something that is no time when its run began."""

    template = "began at {seconds:g} seconds since 1970, which is not a valid time"

    seconds: float


class NodeFailed(Caution):
    """A worker failed and ended a node's run. ``printed`` is its last line."""

    template = "the worker {problem}[: {printed}]"

    problem: Message
    printed: str | None = None


class ProfileNotInEffect(Caution):
    """The profile that judges a node was not in effect there."""

    template = "{profile} was not in effect[: {key}: expected {expected}, observed {observed}]"

    profile: str
    key: str | None = None
    expected: Message | None = None
    observed: Message | None = None


class TooFewSamples(Caution):
    """A node has too few samples."""

    template = "has {samples:count sample} only, and {least} are needed"

    samples: int
    least: int


class TooFewSamplesYet(Caution):
    """The same of a node whose run has not ended."""

    template = "has {samples:count sample} only, and {least} are needed; its run has not ended"

    samples: int
    least: int


class UnlikeMost(Note):
    """A fact of a node, and that of most nodes of its kind."""

    template = "{fact} {own} (most: {usual})"

    fact: str
    own: str
    usual: str


class ChangedFact(Note):
    """A fact of a node, now and in an earlier report."""

    template = "{fact} {now} (was {then})"

    fact: str
    now: str
    then: str


class Facts(Note):
    """Several facts, of which ``more`` are not named."""

    template = "{facts:list}[ and {more} more]"

    facts: tuple[Message, ...]
    more: int | None = None


class MeasuredOtherwise(Caution):
    """A node measured something else than most nodes of its kind, or than it did itself."""

    template = "measured something else: {facts}"

    facts: Facts


class OtherKind(Caution):
    """A node is of another kind of machine than in an earlier report."""

    template = "is another kind of machine: {now} (was {then})[: {facts}]"

    now: str
    then: str
    facts: Facts | None = None


class InReport(Caution):
    """Why a node of one of two reports can't be compared. ``which`` is first or second."""

    template = "in the {which}: {reason}"

    which: str
    reason: Message
