"""Messages about nodes of one type: how much faster profiles train there, and which nodes do not count.

Speedups are ratios over the reference's speed: above 1 is faster. Shares are of 1.
"""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note, Severity

SPEEDUP = "{ratio:ratio}x {reference} speed (95% CI {low:ratio} to {high:ratio}) on {nodes:count node}: "

# What the table of profiles says of one that is not recommended.
NOT_IN_EFFECT, LOSSES_DIFFER, OVER_MEMORY = "not in effect", "losses differ", "over the memory limit"
COLUMNS = ("profile", "speedup", "95% CI", "difference", "nodes", "SD of nodes", "another node")


class OnNodes(Message):
    """A problem that some nodes share, of which ``more`` are not named."""

    template = "{nodes:list}[ and {more} more]: {problem}"

    nodes: tuple[str, ...]
    problem: Message
    more: int | None = None


# --- why a node does not count; the subject is the node ---


class OfAnotherType(Caution):
    """A node is not of the type that most are of."""

    template = "is of another type: {kind}"

    kind: str


class SlowNode(Caution):
    """A node takes more time than the middle node, by this share."""

    template = "is slow: it takes {share:percent} more time than the middle node"

    share: float


class UnderLoad(Caution):
    """Something disturbed most blocks of a node. ``load`` says what."""

    template = "was {load}: measure it again"

    load: Message


# --- why a profile is not recommended ---


class NotInEffectOn(Caution):
    """A profile was not in effect on a node."""

    template = "not in effect on {node}"

    node: str


class LossesDifferOn(Caution):
    """Losses under a profile differ from the baseline's on a node."""

    template = "losses differ from the baseline's on {node}"

    node: str


class OverMemoryOn(Caution):
    """A profile's peak memory is above the limit on a node, by ``share`` above the baseline's."""

    template = "needs {share:percent} more memory than the baseline on {node}, above the limit"

    node: str
    share: float


# --- results ---


class TypeSpeedup(Note):
    """The speedup of a profile on nodes of one type."""

    template = SPEEDUP + "{verdict}; {spread}"

    ratio: float
    low: float
    high: float
    reference: str
    nodes: int
    verdict: str
    spread: Message


class NotRecommended(Caution):
    """A profile is not recommended on nodes of one type, whatever its speed."""

    template = SPEEDUP + "not recommended: {reason}"

    ratio: float
    low: float
    high: float
    reference: str
    nodes: int
    reason: Message


class NoSpeedup(Message):
    """Times of a profile that was not in effect are no result."""

    severity = Severity.ERROR
    template = "no speedup is reported: {reason}"

    reason: NotInEffectOn


class SpreadOfNodes(Note):
    """``between`` is the standard deviation of the nodes' speedups, ``low`` to ``high`` where another node lies."""

    template = (
        "speedups of nodes differ by {between:percent} (SD, at most {between_high:percent}); "
        "another node of the type: {low:ratio}x to {high:ratio}x"
    )

    between: float
    between_high: float
    low: float
    high: float


class SpreadUnknown(Note):
    """One node does not show how far nodes differ. ``low`` to ``high`` is where another one lies."""

    template = (
        "one node does not show how far nodes differ; "
        "another node of the type: {low:ratio}x to {high:ratio}x, if nodes differ as elsewhere"
    )

    low: float
    high: float


class NodesOfType(Note):
    """How many nodes count, and of which type they are."""

    template = "{nodes:count node} of {kind}"

    nodes: int
    kind: str


class RecordOfNodes(Advice):
    """The folder of a submission, and the command that reports one of its nodes."""

    template = "{folder}; of each node: {command:command}"

    folder: str
    command: tuple[str, ...]
