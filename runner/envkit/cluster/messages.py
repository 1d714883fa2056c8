"""Messages about nodes of one type: how much faster profiles train there, and which nodes do not count.

Speedups are ratios over the reference's speed: above 1 is faster. Shares are of 1.
"""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ADVICE = Severity.NOTE, Severity.WARNING, Severity.ADVICE
SPEEDUP = "{ratio:ratio}x {reference} speed (95% CI {low:ratio} to {high:ratio}) on {nodes:count node}: "

# What the table of profiles says of one that is not recommended.
NOT_IN_EFFECT, LOSSES_DIFFER = "not in effect", "losses differ"
COLUMNS = ("profile", "speedup", "95% CI", "difference", "nodes", "SD of nodes", "another node")


class OnNodes(Message):
    """A problem that some nodes share, of which ``more`` are not named."""

    code = "cluster.on-nodes"
    template = "{nodes:list}[ and {more} more]: {problem}"

    nodes: tuple[str, ...]
    problem: Message
    more: int | None = None


# --- why a node does not count; the subject is the node ---


class OfAnotherType(Message):
    """A node is not of the type that most are of."""

    code = "cluster.of-another-type"
    severity = WARNING
    template = "is of another type: {kind}"

    kind: str


class SlowNode(Message):
    """A node takes more time than the middle node, by this share."""

    code = "cluster.slow-node"
    severity = WARNING
    template = "is slow: it takes {share:percent} more time than the middle node"

    share: float


class UnderLoad(Message):
    """Something disturbed nearly all blocks of a node. ``load`` says what."""

    code = "cluster.under-load"
    severity = WARNING
    template = "was {load}: measure it again"

    load: Message


# --- why a profile is not recommended ---


class NotInEffectOn(Message):
    """A profile was not in effect on a node."""

    code = "cluster.not-in-effect-on"
    severity = WARNING
    template = "not in effect on {node}"

    node: str


class LossesDifferOn(Message):
    """Losses under a profile differ from the baseline's on a node."""

    code = "cluster.losses-differ-on"
    severity = WARNING
    template = "losses differ from the baseline's on {node}"

    node: str


# --- results ---


class TypeSpeedup(Message):
    """The speedup of a profile on nodes of one type."""

    code = "cluster.type-speedup"
    severity = NOTE
    template = SPEEDUP + "{verdict}; {spread}"

    ratio: float
    low: float
    high: float
    reference: str
    nodes: int
    verdict: str
    spread: Message


class NotRecommended(Message):
    """A profile is not recommended on nodes of one type, whatever its speed."""

    code = "cluster.not-recommended"
    severity = WARNING
    template = SPEEDUP + "not recommended: {reason}"

    ratio: float
    low: float
    high: float
    reference: str
    nodes: int
    reason: Message


class NoSpeedup(Message):
    """Times of a profile that was not in effect are no result."""

    code = "cluster.no-speedup"
    severity = Severity.ERROR
    template = "no speedup is reported: {reason}"

    reason: NotInEffectOn


class SpreadOfNodes(Message):
    """``between`` is the standard deviation of the nodes' speedups, ``low`` to ``high`` where another node lies."""

    code = "cluster.spread-of-nodes"
    severity = NOTE
    template = (
        "speedups of nodes differ by {between:percent} (SD, at most {between_high:percent}); "
        "another node of the type: {low:ratio}x to {high:ratio}x"
    )

    between: float
    between_high: float
    low: float
    high: float


class SpreadUnknown(Message):
    """One node does not show how far nodes differ. ``low`` to ``high`` is where another one lies."""

    code = "cluster.spread-unknown"
    severity = NOTE
    template = (
        "one node does not show how far nodes differ; "
        "another node of the type: {low:ratio}x to {high:ratio}x, if nodes differ as elsewhere"
    )

    low: float
    high: float


class NodesOfType(Message):
    """How many nodes count, and of which type they are."""

    code = "cluster.nodes-of-type"
    severity = NOTE
    template = "{nodes:count node} of {kind}"

    nodes: int
    kind: str


class RecordOfNodes(Message):
    """The folder of a submission, and the command that reports one of its nodes."""

    code = "cluster.record-of-nodes"
    severity = ADVICE
    template = "{folder}; of each node: {command:command}"

    folder: str
    command: tuple[str, ...]
