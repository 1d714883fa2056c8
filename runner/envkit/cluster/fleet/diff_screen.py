"""Print which nodes became slower, in 80 columns."""

from __future__ import annotations

from collections.abc import Sized

from rich.console import Console
from rich.text import Text

from envkit.cluster.fleet import diff_messages as messages
from envkit.cluster.fleet import sentences
from envkit.cluster.fleet.changes import RATE
from envkit.cluster.fleet.comparability import in_words
from envkit.cluster.fleet.diff import Change, ChangeVerdict, Diff, KindDiff
from envkit.cluster.fleet.diff_messages import HEADER
from envkit.cluster.fleet.report_messages import IN_BOTH, MoreInJson, Names, NotJudged
from envkit.cluster.fleet.slow import MIN_NODES
from envkit.common.messages import About
from envkit.common.plain_table import plain_table
from envkit.messages import Message
from envkit.rendering import text
from envkit.report.parts import Row
from envkit.report.terminal import STYLES, items
from envkit.stats.outlying import FEWEST

MOST_NODES, MOST_NAMES = 20, 10
ALL = ("--json",)


def show(diff: Diff, out: Console) -> None:
    sentence = headline(diff)
    out.print(Text(text(sentence.text), STYLES[sentence.weight]))
    out.print()
    changed = [*diff.of(ChangeVerdict.SLOWER), *diff.of(ChangeVerdict.FASTER), *diff.of(ChangeVerdict.NOT_JUDGED)]
    if changed:
        table = plain_table(HEADER, right=HEADER[1:2], fold=True)
        for change in changed[:MOST_NODES]:
            table.add_row(*map(Text, _cells(change)))
        out.print(table)
        if len(changed) > MOST_NODES:
            out.print(Text(text(MoreInJson(len(changed) - MOST_NODES, ALL))))
        out.print()
    items(out, rows(diff))


def headline(diff: Diff) -> Row:
    """Return the verdict on the fleet."""
    slower = len(diff.of(ChangeVerdict.SLOWER))
    judged = sum(len(kind.changes) for kind in diff.kinds) - len(diff.of(ChangeVerdict.NOT_JUDGED))
    if judged == 0:
        return Row("diff", NotJudged(MIN_NODES, IN_BOTH))
    if slower:
        return Row("diff", messages.BecameSlower(slower, judged), "bad")
    together = max((kind for kind in diff.kinds if _is_judged(kind)), key=lambda kind: kind.fleet_ratio)
    if together.fleet_ratio <= 1 + diff.margin:
        return Row("diff", messages.NoneBecameSlower(judged), "good")
    middle = messages.TimesAsLong(together.fleet_ratio, together.name if len(diff.kinds) > 1 else None)
    return Row("diff", messages.NoneBecameSlower(judged, middle))


def rows(diff: Diff) -> list[Row]:
    """Return what became of the fleet itself, how sure that is, and which nodes are not compared."""
    rows = [Row("fleet", _of_kind(kind, diff.margin)) for kind in diff.kinds]
    if len(diff.of(ChangeVerdict.NOT_JUDGED)) < sum(len(kind.changes) for kind in diff.kinds):
        rows.append(Row("errors", messages.FalseChanges(RATE, FEWEST)))
    if maybe := diff.of(ChangeVerdict.NOT_CERTAIN):
        shown = tuple(messages.ChangedBy(change.node, change.ratio - 1) for change in maybe[:MOST_NAMES])
        rows.append(Row("maybe", messages.MaybeChanged(len(maybe), shown, _more(maybe))))
    for label, names in (("gone", diff.gone), ("new", diff.new)):
        if names:
            rows.append(Row(label, Names(tuple(names[:MOST_NAMES]), _more(names))))
    rows += [Row("left out", About(node.name, node.reason)) for node in diff.left_out[:MOST_NAMES]]
    if more := _more(diff.left_out):
        rows.append(Row("", MoreInJson(more, ALL)))
    return rows


def _more(things: Sized) -> int | None:
    """Return how many are not named."""
    return len(things) - MOST_NAMES if len(things) > MOST_NAMES else None


def _of_kind(kind: KindDiff, margin: float) -> Message:
    facts = in_words(kind.other_now) if kind.other_now else None
    return messages.KindChanged(kind.name, messages.TimesAsLong(kind.fleet_ratio), _judgement(kind, margin), facts)


def _judgement(kind: KindDiff, margin: float) -> Message:
    """Return which nodes of a kind are named."""
    if not _is_judged(kind):
        return messages.KindNotJudged(len(kind.changes), MIN_NODES)
    if kind.allowance > margin * 1.001:  # it is worked out by logarithms
        return messages.NamedBeyond(kind.allowance, kind.between, kind.noise)
    return messages.NamedBeyond(kind.allowance)


def _is_judged(kind: KindDiff) -> bool:
    return len(kind.changes) >= MIN_NODES


def _cells(change: Change) -> list[str]:
    interval = f"{sentences.percent(change.low)} to {sentences.percent(change.high)}"
    return [
        change.node,
        sentences.percent(change.ratio),
        interval,
        str(change.verdict).upper(),
        text(in_words(change.facts)),
    ]
