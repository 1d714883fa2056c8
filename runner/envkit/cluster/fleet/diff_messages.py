"""Messages of a comparison of two reports on a fleet: which nodes became slower, and how sure that is.

Shares are of 1: a node that takes 12% more time than in the first report has changed by 0.12.
"""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

NO_CHANGE_FOUND = "no change found"
HEADER = ("node", "change", "interval", "verdict", "changed facts")


class BecameSlower(Caution):
    """Some nodes became slower."""

    template = "SLOWER  {slower} of {nodes:count node}"

    slower: int
    nodes: int


class NoneBecameSlower(Note):
    """No node became slower with certainty. ``middle`` is what became of the middle node, if that is notable."""

    template = "NONE SLOWER  none of {nodes:count node} is certain to have become slower[ than others, but {middle}]"

    nodes: int
    middle: Message | None = None


class TimesAsLong(Note):
    """How many times as long as in the first report the middle node of a kind takes."""

    template = "the middle node[ of {kind}] takes {ratio:.3f} times as long as in the first report"

    ratio: float
    kind: str | None = None


class KindChanged(Note):
    """How a kind changed: ``facts`` changed on all its nodes, ``judgement`` says which nodes are named."""

    template = "{kind}: {middle}[ ({facts})]; {judgement}"

    kind: str
    middle: Message
    judgement: Message
    facts: Message | None = None


class KindNotJudged(Caution):
    """A kind has too few nodes in both reports."""

    template = "[{kind}: ]{nodes:count node} of this kind, {least} are needed to judge"

    nodes: int
    least: int
    kind: str | None = None


class NamedBeyond(Note):
    """Nodes are named whose change is larger. ``between`` is the standard deviation of changes, ``noise`` the error."""

    template = (
        "nodes are named that changed by more than {allowance:.1%}"
        "[ (SD of changes {between:.1%}, standard error of a node {noise:.1%})]"
    )

    allowance: float
    between: float | None = None
    noise: float | None = None


class FalseChanges(Note):
    """How often a comparison names a node although nothing changed."""

    template = (
        "at most {rate:exact_percent} of comparisons without any change name a node; that assumes changes of healthy "
        "nodes with the tails of Student's t with {degrees} degrees of freedom, or lighter ones"
    )

    rate: float
    degrees: int


class ChangedBy(Note):
    """A node and its change."""

    template = "{node} {change:+.1%}"

    node: str
    change: float


class MaybeChanged(Caution):
    """Nodes that changed by no more than healthy nodes may."""

    template = (
        "{number:count node} changed by more than the margin, but within what healthy nodes of this fleet change by: "
        "{changes:list}[ and {more} more]; measure again"
    )

    number: int
    changes: tuple[Message, ...]
    more: int | None = None
