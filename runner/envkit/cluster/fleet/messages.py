"""Messages about the nodes of a fleet that can't be compared, and about reports and records that can't be used."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

WRITE_AGAIN = "write it again"
GIVE_ANOTHER = "give another report, or a fleet's folder with its records"
UNFINISHED = "its run has not ended"
MOST, WAS = "most:", "was"

GIVE_NODES = "give a folder with a folder per node"
GIVE_REPORT = "give a fleet's folder, or its report"
# The form of the parts of a fleet's report.
LIST, SOME_NODES, ENTRY, TEXT = "a list", "a list with a node", "an entry with the keys of a report", "a text"
# The form of the fields of its entries, by their names: all others are a TEXT.
EXPECTED = {
    "must_agree": "texts by name",
    "facts": "texts by name",
    "memory_bytes": "a whole number, or null",
    "began": "a time in seconds since 1970",
    "finished": "true or false",
    "step_s": "a list of times above 0, in seconds",
    "samples_with_interference": "a number of samples",
    "reference_kernel_s": "a number above 0, or null",
    "reference_kernel_digest": "a text, or null",
    "clock_mhz": "a number above 0, or null",
    "reason": "a text, or a message of this version of envkit",
}


# --- why nothing can be reported ---


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
    first: Message


class NoCommonNode(Message):
    """No node of two reports can be compared. ``first`` is one of them."""

    template = "no node can be compared in the two reports; {first}"

    first: Message


class NoNameInBoth(Message):
    """Two reports have no node of one name."""

    template = "no node can be compared in the two reports; they have no node of the same name"


class ReaderKilled(Message):
    """A process that read records was killed."""

    template = "a process that was reading records was killed; is there enough memory?"


class UnusableReport(Message):
    """A report of an earlier fleet can't be used. ``anew`` is the command that writes it from its records."""

    template = "{file}: {problem}; {fix}[: {anew:command}]"

    file: str
    problem: Message
    fix: str  # WRITE_AGAIN, or GIVE_ANOTHER where its records are not in its folder
    anew: tuple[str, ...] = ()


class NotAReport(Message):
    """A file is no report of a fleet, or is damaged."""

    template = "is not a fleet report, or is damaged"


class NodeTwice(Message):
    """A report has two nodes of one name."""

    template = "nodes: has {node} twice"

    node: str


class WrongValue(Message):
    """A value of a report is of another kind. ``expected`` is one of the forms above."""

    template = "{place}: is not {expected}"

    place: str  # as nodes[3].began
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
    """A node has too few samples. ``state`` is UNFINISHED where its run has not ended."""

    template = "has {samples:count sample} only, and {least} are needed[; {state}]"

    samples: int
    least: int
    state: str | None = None


class FactBeside(Note):
    """A fact of a node, and that of most nodes of its kind or of an earlier report."""

    template = "{fact} {value} ({relation} {other})"

    fact: str
    value: str
    other: str
    relation: str  # MOST or WAS


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
