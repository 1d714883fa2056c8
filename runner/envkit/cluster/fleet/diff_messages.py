"""Messages of a comparison of two reports on a fleet: which nodes became slower, and how sure that is.

Shares are of 1: a node that takes 12% more time than in the first report has changed by 0.12.
"""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING = Severity.NOTE, Severity.WARNING

NO_CHANGE_FOUND = "no change found"
HEADER = ("node", "change", "interval", "verdict", "changed facts")


class BecameSlower(Message):
    """Some nodes became slower."""

    code = "cluster.became-slower"
    severity = WARNING
    template = "SLOWER  {slower} of {nodes:count node}"

    slower: int
    nodes: int


class NotJudgedInBoth(Message):
    """There are too few nodes of each kind in both reports."""

    code = "cluster.not-judged-in-both"
    severity = WARNING
    template = "NOT JUDGED  fewer than {least} nodes of one kind are in both reports"

    least: int


class NoneBecameSlower(Message):
    """No node became slower with certainty. ``middle`` is what became of the middle node, if that is notable."""

    code = "cluster.none-became-slower"
    severity = NOTE
    template = "NONE SLOWER  none of {nodes:count node} is certain to have become slower[ than others, but {middle}]"

    nodes: int
    middle: Message | None = None


class TimesAsLong(Message):
    """How many times as long as in the first report the middle node of a kind takes."""

    code = "cluster.times-as-long"
    severity = NOTE
    template = "the middle node[ of {kind}] takes {ratio:.3f} times as long as in the first report"

    ratio: float
    kind: str | None = None


class KindChanged(Message):
    """How a kind changed: ``facts`` changed on all its nodes, ``judgement`` says which nodes are named."""

    code = "cluster.kind-changed"
    severity = NOTE
    template = "{kind}: {middle}[ ({facts})]; {judgement}"

    kind: str
    middle: Message
    judgement: Message
    facts: Message | None = None


class KindNotJudged(Message):
    """A kind has too few nodes in both reports."""

    code = "cluster.kind-not-judged"
    severity = WARNING
    template = "[{kind}: ]{nodes:count node} of this kind, {least} are needed to judge"

    nodes: int
    least: int
    kind: str | None = None


class NamedBeyond(Message):
    """Nodes are named whose change is larger. ``between`` is the standard deviation of changes, ``noise`` the error."""

    code = "cluster.named-beyond"
    severity = NOTE
    template = (
        "nodes are named that changed by more than {allowance:.1%}"
        "[ (SD of changes {between:.1%}, standard error of a node {noise:.1%})]"
    )

    allowance: float
    between: float | None = None
    noise: float | None = None


class FalseChanges(Message):
    """How often a comparison names a node although nothing changed."""

    code = "cluster.false-changes"
    severity = NOTE
    template = (
        "at most {rate:exact_percent} of comparisons without any change name a node; that assumes changes of healthy "
        "nodes with the tails of Student's t with {degrees} degrees of freedom, or lighter ones"
    )

    rate: float
    degrees: int


class ChangedBy(Message):
    """A node and its change."""

    code = "cluster.changed-by"
    severity = NOTE
    template = "{node} {change:+.1%}"

    node: str
    change: float


class MaybeChanged(Message):
    """Nodes that changed by no more than healthy nodes may."""

    code = "cluster.maybe-changed"
    severity = WARNING
    template = (
        "{number:count node} changed by more than the margin, but within what healthy nodes of this fleet change by: "
        "{changes:list}[ and {more} more]; measure again"
    )

    number: int
    changes: tuple[Message, ...]
    more: int | None = None
