"""Print for people, in 80 columns, what was found of a fleet."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from envkit.cluster.fleet import report_messages as messages
from envkit.cluster.fleet import sentences
from envkit.cluster.fleet.differences import ERROR_RATE as DIFFERENCE_RATE
from envkit.cluster.fleet.differences import Fact
from envkit.cluster.fleet.findings import Fleet, FleetResult, NodeVerdict
from envkit.common.messages import About
from envkit.common.plain_table import plain_table
from envkit.rendering import text
from envkit.report.terminal import STYLES, item, items

# What a screen has room for; the page and the JSON document have all.
MOST_NODES, MOST_UNLIKE, MOST_FACTS, MOST_VALUES, MOST_LEFT_OUT = 20, 6, 6, 4, 10
ALL = ("--html FILE", "--json")


def show(fleet: Fleet, out: Console) -> None:
    sentence = sentences.headline(fleet)
    out.print(Text(text(sentence.text), STYLES[sentence.weight]))
    out.print()
    unjudged = fleet.of(NodeVerdict.NOT_JUDGED)
    slow = fleet.of(NodeVerdict.SLOW)
    if slow or unjudged:
        _nodes([*slow, *unjudged], out)
        _unusual(slow, out)
    for kind in fleet.kinds:
        _differences(kind.differences, kind.name if len(fleet.kinds) > 1 else "", bool(slow), out)
    items(out, [*sentences.summary(fleet), *sentences.certainty(fleet)])
    _left_out(fleet, out)
    items(out, sentences.advice(fleet))
    out.print(Text(f"records  {fleet.place}"), soft_wrap=True)


def _nodes(results: Sequence[FleetResult], out: Console) -> None:
    table = plain_table(sentences.SLOW_HEADER, right=sentences.SLOW_HEADER[1:], fold=True)
    for result in results[:MOST_NODES]:
        table.add_row(*map(Text, sentences.slow_row(result)))
    out.print(table)
    if len(results) > MOST_NODES:
        out.print(Text(text(messages.MoreInJson(len(results) - MOST_NODES, ALL))))
    out.print()


def _unusual(slow: Sequence[FleetResult], out: Console) -> None:
    """Print in which facts the slowest of the slow nodes differ from most."""
    different = [result for result in slow if result.unusual]
    for result in different[:MOST_UNLIKE]:
        item(out, "unlike", About(result.node.name, sentences.unusual(result)))
    if len(different) > MOST_UNLIKE:
        item(out, "", messages.MoreInJson(len(different) - MOST_UNLIKE, ALL))
    if different:
        out.print()


def _differences(facts: Sequence[Fact], kind: str, slow: bool, out: Console) -> None:
    """Print in which facts nodes of a kind differ: in figures if some are slow, or else by name."""
    if not facts:
        return
    if not slow:
        item(out, "differs", messages.DifferIn(tuple(fact.name for fact in facts), kind or None))
        return
    table = plain_table(sentences.DIFFERENCE_HEADER, right=sentences.DIFFERENCE_HEADER[2:], fold=True)
    table.title, table.title_justify = kind or None, "left"
    for fact in facts[:MOST_FACTS]:
        for cells, marked in sentences.difference_rows(fact, MOST_VALUES):
            table.add_row(*map(Text, cells), style=STYLES["bad"] if marked else "")
    out.print(table)
    if len(facts) > MOST_FACTS:
        item(out, "also", messages.AlsoDifferIn(tuple(fact.name for fact in facts[MOST_FACTS:]), ALL))
    item(out, "note", messages.NoCause(DIFFERENCE_RATE))
    out.print()


def _left_out(fleet: Fleet, out: Console) -> None:
    if not fleet.left_out:
        return
    count = len(fleet.left_out)
    item(out, "LEFT OUT", messages.CanNotBeCompared(count), STYLES["bad"], width=10)
    for node in fleet.left_out[:MOST_LEFT_OUT]:
        item(out, "", About(node.name, node.reason))
    if count > MOST_LEFT_OUT:
        item(out, "", messages.MoreInJson(count - MOST_LEFT_OUT, ALL))
