"""The findings on a fleet, in rows of messages and in cells, for the terminal and the page."""

from __future__ import annotations

import time
from collections.abc import Sequence

from envkit.cluster.fleet import report_messages as messages
from envkit.cluster.fleet.diff_messages import KindNotJudged
from envkit.cluster.fleet.differences import Fact, Value
from envkit.cluster.fleet.findings import Fleet, FleetResult, Kind, NodeVerdict
from envkit.cluster.fleet.messages import MOST, FactBeside, Facts
from envkit.cluster.fleet.slow import ERROR_RATE, MIN_NODES
from envkit.messages import Message
from envkit.report.parts import Row

# Neighbouring samples as alike as this are worth a word.
NOTABLE_CORRELATION = 0.1
MOST_NAMES = 5


def headline(fleet: Fleet) -> Row:
    """Return the verdict on the fleet."""
    slow, judged = len(fleet.of(NodeVerdict.SLOW)), sum(len(kind.results) for kind in fleet.kinds if kind.judged)
    if judged == 0:
        return Row("fleet", messages.NotJudged(MIN_NODES, messages.COMPARABLE))
    if slow == 0:
        return Row("fleet", messages.NoSlowNode(judged), "good")
    return Row("fleet", messages.SlowNodes(slow, judged), "bad")


def summary(fleet: Fleet) -> list[Row]:
    """Return how far the nodes of each kind differ, and how many samples show it."""
    rows = [Row("measured", _measured(fleet))]
    for kind in fleet.kinds:
        counts = [len(result.node.step_s) for result in kind.results]
        fewest, most = min(counts), max(counts)
        of_kind = messages.KindOfNodes(kind.name, kind.spread.nodes, fewest, most if most > fewest else None)
        rows += [Row("kind", of_kind), Row("spread", _spread(kind))]
        if kind.spread.autocorrelation > NOTABLE_CORRELATION:
            rows.append(Row("note", messages.Autocorrelated(kind.spread.autocorrelation)))
    return rows


def _measured(fleet: Fleet) -> Message:
    times = [result.node.began for result in fleet.results]
    first, last = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) for moment in (min(times), max(times)))
    later = last if last != first else None
    return messages.Measured(tuple(fleet.profiles), tuple(fleet.workloads), first, later)


def _spread(kind: Kind) -> Message:
    spread = kind.spread
    if spread.nodes == 1:
        return messages.MiddleNode(spread.median_s * 1000)
    ends = [spread.quantiles[share] - 1 for share in (0.25, 0.75, 0.0, 1.0)]
    spreads = (spread.between, spread.noise) if kind.judged else ()
    return messages.MiddleNode(spread.median_s * 1000, messages.Spread(*ends, *spreads))


def certainty(fleet: Fleet) -> list[Row]:
    """Return what a verdict means, and how often it is wrong."""
    rows = []
    for kind in fleet.kinds:
        if not kind.judged:
            rows.append(Row("note", KindNotJudged(kind.spread.nodes, MIN_NODES, kind.name)))
            continue
        reason = messages.BY_MARGIN if kind.spread.by_margin else messages.AS_HEALTHY
        name = kind.name if len(fleet.kinds) > 1 else None
        rows.append(Row("allowed", messages.Allowed(kind.spread.allowance, reason, name)))
    if any(kind.judged for kind in fleet.kinds):
        rows.append(Row("errors", messages.FalseAlarms(ERROR_RATE, fleet.side)))
    if uncertain := fleet.of(NodeVerdict.NOT_CERTAIN):
        rows.append(Row("maybe", messages.MaybeSlow(len(uncertain), _names(uncertain))))
    if unfinished := [result for result in fleet.results if not result.node.finished]:
        rows.append(Row("note", messages.Unfinished(len(unfinished), _names(unfinished))))
    if apart := fleet.apart:
        hours = (apart[0].node.began - fleet.middle) / 3600
        rows.append(Row("clocks", messages.ClocksApart(len(apart), apart[0].node.name, hours)))
    return rows


def advice(fleet: Fleet) -> list[Row]:
    """Return what to do about slow nodes."""
    slow = fleet.of(NodeVerdict.SLOW)
    disturbed = [result for result in slow if 2 * result.node.samples_with_interference > len(result.node.step_s)]
    rows = []
    if disturbed:
        rows.append(Row("next", messages.MostDisturbed(_names(disturbed), disturbed[0].node.interference)))
    if len(disturbed) < len(slow):
        rows.append(Row("next", messages.MeasureAgain()))
    return rows


SLOW_HEADER = ("node", "more time", "interval", "reference kernel", "clock", "disturbed")


def slow_row(result: FleetResult) -> list[str]:
    """Return the cells of a node under SLOW_HEADER."""
    disturbed = f"{result.node.samples_with_interference} of {len(result.node.step_s)}"
    shares = ["-" if value is None else percent(value) for value in (result.reference_kernel, result.clock)]
    return [
        result.node.name,
        percent(result.ratio),
        f"{percent(result.low)} to {percent(result.high)}",
        *shares,
        disturbed,
    ]


def unusual(result: FleetResult) -> Facts:
    """Return the facts in which the node differs from most of its kind."""
    return Facts(tuple(FactBeside(*fact, MOST) for fact in result.unusual))


DIFFERENCE_HEADER = ("differs", "value", "nodes", "slow", "median", "by chance")


def difference_rows(fact: Fact, most: int) -> list[tuple[list[str], bool]]:
    """Return the cells of a fact's values under DIFFERENCE_HEADER, and whether to mark them.

    The values beyond ``most`` share one row.
    """
    first = [value for value in fact.values if value.slow] + [value for value in fact.values if not value.slow]
    shown = sorted(first[:most], key=lambda value: (-value.nodes, value.text))
    rows = [(_cells(fact.name if number == 0 else "", value), value.shared) for number, value in enumerate(shown)]
    others = first[most:]
    if others:
        counts = [f"{sum(value.nodes for value in others):,}", f"{sum(value.slow for value in others):,}"]
        rows.append((["", f"{len(others):,} other values", *counts, "", ""], False))
    return rows


def _cells(name: str, value: Value) -> list[str]:
    chance = "-" if value.chance is None else chance_text(value.chance)
    return [name, value.text, f"{value.nodes:,}", f"{value.slow:,}", percent(value.ratio), chance]


def chance_text(chance: float) -> str:
    """``0.02``, ``3e-12``, ``1``."""
    return f"{chance:.1g}" if chance < 0.995 else "1"


def percent(ratio: float) -> str:
    """``+12.3%`` for 1.123."""
    return f"{(ratio - 1) * 100:+.1f}%"


def _names(results: Sequence[FleetResult]) -> messages.Names:
    """Return the names of the first few nodes, and how many more there are."""
    more = len(results) - MOST_NAMES
    return messages.Names(tuple(result.node.name for result in results[:MOST_NAMES]), more if more > 0 else None)
