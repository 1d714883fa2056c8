"""What was found of a fleet, in sentences and cells: the terminal and the page print these."""

from __future__ import annotations

import time
from collections.abc import Sequence

from envkit.cluster.fleet.differences import ERROR_RATE as DIFFERENCE_RATE
from envkit.cluster.fleet.differences import Fact, Value
from envkit.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result
from envkit.cluster.fleet.slow import ERROR_RATE, MIN_NODES
from envkit.report.parts import Row

# Neighbouring samples as alike as this are worth a word.
NOTABLE_CORRELATION = 0.1
MOST_NAMES = 5


def headline(fleet: Fleet) -> Row:
    """What was found, in one sentence."""
    slow, judged = len(fleet.of(NodeVerdict.SLOW)), sum(len(kind.results) for kind in fleet.kinds if kind.judged)
    if judged == 0:
        return Row("fleet", f"not judged: fewer than {MIN_NODES} nodes of one kind can be compared")
    if slow == 0:
        return Row("fleet", f"no slow node: none of {nodes(judged)} is certain to be slow", "good")
    return Row("fleet", f"{slow:,} of {nodes(judged)} {'is' if slow == 1 else 'are'} SLOW", "bad")


def summary(fleet: Fleet) -> list[Row]:
    """How far the nodes of each kind differ, and what that rests on."""
    rows = [Row("measured", f"{', '.join(fleet.profiles)}, workload {', '.join(fleet.workloads)}: {_when(fleet)}")]
    for kind in fleet.kinds:
        spread = kind.spread
        rows.append(Row("kind", f"{kind.name}: {nodes(spread.nodes)}, {_samples(kind.results)}"))
        rows.append(Row("spread", _spread(kind)))
        if spread.autocorrelation > NOTABLE_CORRELATION:
            alike = f"a sample resembles the one before it (correlation {spread.autocorrelation:.2f})"
            rows.append(Row("note", f"{alike}: intervals are wider"))
    return rows


def _spread(kind: Kind) -> str:
    spread = kind.spread
    middle = f"the middle node takes {spread.median_s * 1000:.2f} ms per step"
    if spread.nodes == 1:
        return middle
    ends = [percent(spread.quantiles[share]) for share in (0.25, 0.75, 0.0, 1.0)]
    text = f"{middle}; half of all lie within {ends[0]} and {ends[1]}, the outermost at {ends[2]} and {ends[3]}"
    if kind.judged:
        text += f". Nodes themselves differ by {spread.between:.1%}, one node's figure is known to {spread.noise:.1%}"
        text += " (standard deviations)"
    return text


def certainty(fleet: Fleet) -> list[Row]:
    """What a verdict means, and how often it is wrong."""
    rows = []
    for kind in fleet.kinds:
        if not kind.judged:
            few = f"{nodes(kind.spread.nodes)} of this kind, {MIN_NODES} are needed to judge"
            rows.append(Row("note", f"{kind.name}: {few}"))
            continue
        of_kind = f" of {kind.name}" if len(fleet.kinds) > 1 else ""
        why = "--margin" if kind.spread.by_margin else "so far healthy nodes of this fleet differ"
        text = f"slow{of_kind} is more than {percent(1 + kind.spread.allowance)} ({why}) with the whole interval"
        rows.append(Row("allowed", text))
    if any(kind.judged for kind in fleet.kinds):
        wrong = f"of the nodes called slow {ERROR_RATE:.0%} at most are expected to be within what is allowed"
        rows.append(Row("sure", f"{wrong}; each side of an interval misses in {fleet.side:.2g} of cases"))
    if uncertain := fleet.of(NodeVerdict.NOT_CERTAIN):
        text = f"{nodes(len(uncertain))} may be slow, but their intervals reach into what is allowed"
        rows.append(Row("maybe", f"{text}: {_names(uncertain)}; measure more samples there"))
    if unfinished := [one for one in fleet.results if not one.node.finished]:
        text = f"{nodes(len(unfinished))} did not finish; what was measured counts: {_names(unfinished)}"
        rows.append(Row("note", text))
    if apart := fleet.apart:
        rows.append(Row("clocks", _clocks(apart, fleet.middle)))
    return rows


def _clocks(apart: Sequence[Result], middle: float) -> str:
    hours = (apart[0].node.began - middle) / 3600
    far = f"{apart[0].node.name} {abs(hours):,.0f} hours {'after' if hours > 0 else 'before'} the middle one"
    text = f"by their own clocks {nodes(len(apart))} began at quite another time than most ({far})"
    return f"{text}: measured then, or the clock is wrong. Times of steps do not depend on it"


def advice(fleet: Fleet) -> list[Row]:
    slow = fleet.of(NodeVerdict.SLOW)
    if not slow:
        return []
    disturbed = [one for one in slow if 2 * one.node.samples_with_interference > len(one.node.step_s)]
    rows = []
    if disturbed:
        text = f"{_names(disturbed)}: most samples were disturbed from outside ({disturbed[0].node.interference})"
        rows.append(Row("next", f"{text}; measure again when nothing else runs there"))
    if len(disturbed) < len(slow):
        text = "measure slow nodes again before you act; one that stays slow needs a look at the machine"
        rows.append(Row("next", text))
    return rows


SLOW_HEADER = ("node", "more time", "interval", "reference kernel", "clock", "disturbed")


def slow_row(one: Result) -> list[str]:
    """The cells of a node under SLOW_HEADER."""
    disturbed = f"{one.node.samples_with_interference} of {len(one.node.step_s)}"
    shares = ["-" if value is None else percent(value) for value in (one.reference_kernel, one.clock)]
    return [one.node.name, percent(one.ratio), f"{percent(one.low)} to {percent(one.high)}", *shares, disturbed]


def unusual(one: Result) -> str:
    """In what the node differs from most of its kind."""
    return "; ".join(f"{name} {own} (most: {usual})" for name, own, usual in one.unusual)


DIFFERENCE_HEADER = ("differs", "value", "nodes", "slow", "median", "by chance")
NO_CAUSE = (
    "'By chance' is how likely so many slow nodes with this value are if it has nothing to do with being slow, for all "
    f"values together; below {DIFFERENCE_RATE:.0%} it is marked. Counts name no cause: nodes share many things"
)


def difference_rows(fact: Fact, most: int) -> list[tuple[list[str], bool]]:
    """The cells of a fact's values under DIFFERENCE_HEADER, and whether to mark them; beyond ``most``, all as one."""
    first = [value for value in fact.values if value.slow] + [value for value in fact.values if not value.slow]
    shown = sorted(first[:most], key=lambda value: (-value.nodes, value.text))
    rows = [(_cells(fact.name if number == 0 else "", value), value.shared) for number, value in enumerate(shown)]
    rest = first[most:]
    if rest:
        counts = [f"{sum(value.nodes for value in rest):,}", f"{sum(value.slow for value in rest):,}"]
        rows.append((["", f"{len(rest):,} other values", *counts, "", ""], False))
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


def nodes(count: int) -> str:
    return f"{count:,} node{'' if count == 1 else 's'}"


def verdict_counts(fleet: Fleet) -> dict[str, int]:
    """How many nodes have which verdict."""
    return {str(verdict): len(fleet.of(verdict)) for verdict in NodeVerdict}


def _samples(results: Sequence[Result]) -> str:
    counts = [len(one.node.step_s) for one in results]
    fewest, most = min(counts), max(counts)
    return f"{most} samples each" if fewest == most else f"{fewest} to {most} samples each"


def _names(results: Sequence[Result]) -> str:
    names = [one.node.name for one in results[:MOST_NAMES]]
    more = len(results) - MOST_NAMES
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _when(fleet: Fleet) -> str:
    times = [one.node.began for one in fleet.results]
    first, last = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) for moment in (min(times), max(times)))
    return f"begun {first} UTC" if first == last else f"begun from {first} to {last} UTC, by the nodes' own clocks"
