"""Print which nodes became slower, in 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from envkit.cluster.fleet import sentences
from envkit.cluster.fleet.changes import RATE
from envkit.cluster.fleet.comparability import in_words
from envkit.cluster.fleet.diff import Change, ChangeVerdict, Diff, KindDiff
from envkit.cluster.fleet.slow import MIN_NODES
from envkit.common.plain_table import plain_table
from envkit.rendering import text
from envkit.report.parts import Row
from envkit.report.terminal import STYLES, items
from envkit.stats.outlying import FEWEST

MOST_NODES, MOST_NAMES = 20, 10
HEADER = ("node", "change", "interval", "verdict", "what is different now")


def show(diff: Diff, out: Console) -> None:
    found = headline(diff)
    out.print(Text(text(found.text), STYLES[found.weight]))
    out.print()
    changed = [*diff.of(ChangeVerdict.SLOWER), *diff.of(ChangeVerdict.FASTER), *diff.of(ChangeVerdict.NOT_JUDGED)]
    if changed:
        table = plain_table(HEADER, right=HEADER[1:2], fold=True)
        for one in changed[:MOST_NODES]:
            table.add_row(*map(Text, _cells(one)))
        out.print(table)
        if len(changed) > MOST_NODES:
            out.print(Text(f"and {len(changed) - MOST_NODES:,} more; all of them: --json"))
        out.print()
    items(out, rows(diff))


def headline(diff: Diff) -> Row:
    slower = len(diff.of(ChangeVerdict.SLOWER))
    judged = sum(len(kind.changes) for kind in diff.kinds) - len(diff.of(ChangeVerdict.NOT_JUDGED))
    if judged == 0:
        return Row("diff", f"not judged: fewer than {MIN_NODES} nodes of one kind are in both reports")
    if slower:
        return Row("diff", f"{slower:,} of {sentences.nodes(judged)} became SLOWER", "bad")
    none = f"none of {sentences.nodes(judged)} is certain to have become slower"
    together = max((kind for kind in diff.kinds if _is_judged(kind)), key=lambda kind: kind.fleet_ratio)
    if together.fleet_ratio <= 1 + diff.margin:
        return Row("diff", none, "good")
    of_kind = f" of {together.name}" if len(diff.kinds) > 1 else ""
    return Row("diff", f"{none} than others, but the middle one{of_kind} takes {_as_long(together)}")


def rows(diff: Diff) -> list[Row]:
    """What became of the fleet itself, how sure that is, and which nodes are not compared."""
    found = [Row("fleet", _of_kind(kind, diff.margin)) for kind in diff.kinds]
    if len(diff.of(ChangeVerdict.NOT_JUDGED)) < sum(len(kind.changes) for kind in diff.kinds):
        sure = (
            f"where nothing changed, any node is called slower or faster in {RATE:.0%} of comparisons at most, as long "
            f"as changes of healthy nodes have the tails of Student's t of {FEWEST} degrees of freedom, or lighter ones"
        )
        found.append(Row("sure", sure))
    if maybe := diff.of(ChangeVerdict.NOT_CERTAIN):
        shown = ", ".join(f"{one.node} {sentences.percent(one.ratio)}" for one in maybe[:MOST_NAMES])
        more = f" and {len(maybe) - MOST_NAMES:,} more" if len(maybe) > MOST_NAMES else ""
        text = "changed by more than the margin, but others of this fleet change by so much that it may mean nothing"
        found.append(Row("maybe", f"{sentences.nodes(len(maybe))} {text}: {shown}{more}; measure again"))
    for what, names in (("gone", diff.gone), ("new", diff.new)):
        if names:
            more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
            found.append(Row(what, f"{', '.join(names[:MOST_NAMES])}{more}"))
    found += [Row("left out", f"{one.name}: {one.reason}") for one in diff.left_out[:MOST_NAMES]]
    if len(diff.left_out) > MOST_NAMES:
        found.append(Row("", f"and {len(diff.left_out) - MOST_NAMES:,} more; all of them: --json"))
    return found


def _of_kind(kind: KindDiff, margin: float) -> str:
    said = f"{kind.name}: the middle node takes {_as_long(kind)}"
    if kind.other_now:
        said += f" ({in_words(kind.other_now)})"
    if not _is_judged(kind):
        return f"{said}; {sentences.nodes(len(kind.changes))} of this kind, {MIN_NODES} are needed to judge"
    said += f"; nodes are named that changed by {kind.allowance:.1%} more or less"
    if kind.allowance > margin * 1.001:  # it is worked out by logarithms
        said += f", as nodes differ in that by {kind.between:.1%}, and each is known to {kind.noise:.1%}"
        said += " (standard deviations)"
    return said


def _as_long(kind: KindDiff) -> str:
    return f"{kind.fleet_ratio:.3f} times as long as then"


def _is_judged(kind: KindDiff) -> bool:
    return len(kind.changes) >= MIN_NODES


def _cells(one: Change) -> list[str]:
    interval = f"{sentences.percent(one.low)} to {sentences.percent(one.high)}"
    return [one.node, sentences.percent(one.ratio), interval, str(one.verdict).upper(), in_words(one.facts)]
