"""Messages of reports on a fleet: which nodes are slow, and how sure that is.

Shares are of 1: a node that takes 12% more time per step has 0.12. Times are in seconds.
"""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

BY_MARGIN = "--margin"
AS_HEALTHY = "healthy nodes of this fleet differ by as much"
COMPARABLE = "can be compared"
IN_BOTH = "are in both reports"

# --- texts without fields ---

# Titles and captions of the page, and the legend of its pictures.
TITLES = {
    "found": "Result",
    "spread": "How far nodes differ",
    "certainty": "Confidence",
    "slow": "Slow nodes",
    "nodes": "Nodes",
    "differences": "What differs between nodes",
    "left_out": "Nodes that can't be compared",
}
READING = {
    "spread": (
        "Number of nodes by extra time per step over the middle node of their kind. Above ten nodes, heights "
        "are logarithmic. Nodes beyond the dotted line take more than the allowance."
    ),
    "slow": "Each square is a slow node's time, and the line through it its confidence interval.",
}
NONE_SLOW, NONE_LEFT_OUT = "No node is slow.", "None."
NO_DIFFERENCES = "No recorded fact of machines and images differs."
UNLIKE = "differs from most in"
LEGEND = {"slow": "slow", "others": "not called slow", "allowed": "allowance"}
MORE_TIME = "more time than the middle node, %"
# What each gauge of Prometheus is.
HELP = {
    "envkit_node_time_ratio": "Time per step over that of the middle node of its kind.",
    "envkit_node_time_low_ratio": "Lower end of the interval of the time ratio.",
    "envkit_node_time_high_ratio": "Upper end of the interval of the time ratio.",
    "envkit_node_slow": "1 if the node is slow, otherwise 0.",
    "envkit_node_samples": "Samples that were measured.",
    "envkit_node_interference_samples": "Samples that were disturbed from outside.",
    "envkit_node_reference_kernel_ratio": "Time of a fixed piece of work over the median of the node's kind.",
    "envkit_node_measured_timestamp_seconds": (
        "When the measurement began, by the node's own clock, in seconds since 1970."
    ),
    "envkit_node_change_ratio": "Time over the middle node's, now over the same in an earlier report.",
    "envkit_node_change_low_ratio": "Lower end of the interval of the change.",
    "envkit_node_change_high_ratio": "Upper end of the interval of the change.",
    "envkit_node_became_slower": "1 if the node became slower, otherwise 0; absent if the node was not judged.",
    "envkit_fleet_nodes": "Nodes by verdict.",
    "envkit_fleet_step_seconds": "Time per step of the middle node.",
    "envkit_fleet_spread_ratio": "Standard deviation between healthy nodes.",
    "envkit_fleet_allowance_ratio": "Extra time that is allowed for a node.",
    "envkit_fleet_measured_timestamp_seconds": (
        "When the last node's measurement began, by its own clock, in seconds since 1970."
    ),
    "envkit_fleet_change_complete": "1 if every node except new ones was judged, otherwise 0.",
    "envkit_fleet_change_nodes": "Nodes by outcome.",
    "envkit_fleet_change_ratio": "Time per step of the middle node, now over the same in an earlier report.",
    "envkit_fleet_change_allowance_ratio": "Change that is allowed for a node.",
    "envkit_fleet_change_measured_timestamp_seconds": (
        "When the last node's later measurement began, by its own clock, in seconds since 1970."
    ),
}


class Names(Note):
    """Names of nodes, of which ``more`` are left out."""

    template = "{names:list}[ and {more} more]"

    names: tuple[str, ...]
    more: int | None = None


class MoreInJson(Note):
    """How many are not shown on a screen or page."""

    template = "and {more} more; all of them: {options:or}"

    more: int
    options: tuple[str, ...]


# --- the first line ---


class NotJudged(Caution):
    template = "NOT JUDGED  fewer than {least} nodes of one kind {which}"

    least: int
    which: str  # COMPARABLE or IN_BOTH


class NoSlowNode(Note):
    """No node is slow with certainty."""

    template = "NO SLOW NODE  none of {nodes:count node} is certain to be slow"

    nodes: int


class SlowNodes(Caution):
    """Some nodes are slow."""

    template = "SLOW  {slow} of {nodes:count node}"

    slow: int
    nodes: int


# --- what was measured ---


class Title(Note):
    """The title of a page."""

    template = "{profiles:list} on a fleet"

    profiles: tuple[str, ...]


class Measured(Note):
    """Profiles and workloads, and when nodes began, in UTC; ``last`` is the last beginning, if that is another time."""

    template = "{profiles:list}, workload {workloads:list}: begun {first}[ to {last}] UTC, by the nodes' own clocks"

    profiles: tuple[str, ...]
    workloads: tuple[str, ...]
    first: str
    last: str | None = None


class KindOfNodes(Note):
    """The nodes of a kind, and how many samples each has: ``most`` if they do not have as many."""

    template = "{kind}: {nodes:count node}, {fewest}[ to {most}] samples each"

    kind: str
    nodes: int
    fewest: int
    most: int | None = None


class MiddleNode(Note):
    """The time of the middle node."""

    template = "the middle node takes {ms:.2f} ms per step[; {spread}]"

    ms: float
    spread: Message | None = None


class Spread(Note):
    """How much more time nodes take than the middle node. ``noise`` is the standard error of one node."""

    template = (
        "half of all nodes lie within {lower:+.1%} and {upper:+.1%}, all within {least:+.1%} and {most:+.1%}"
        "[; SD between nodes {between:.1%}, standard error of a node {noise:.1%}]"
    )

    lower: float
    upper: float
    least: float
    most: float
    between: float | None = None
    noise: float | None = None


class Autocorrelated(Caution):
    """Neighbouring samples are alike."""

    template = "a sample resembles the one before it (correlation {correlation:.2f}): intervals are wider"

    correlation: float


# --- how sure a report is ---


class Allowed(Note):
    """From where on a node is slow. ``kind`` is named where there are several."""

    template = "slow[ of {kind}]: the whole interval is beyond {more:+.1%} ({reason})"

    more: float
    reason: str  # BY_MARGIN or AS_HEALTHY
    kind: str | None = None


class FalseAlarms(Note):
    """The false discovery rate, and how often either side of an interval misses."""

    template = (
        "of the nodes called slow, at most {rate:exact_percent} are expected to be false alarms; "
        "each side of an interval misses in {side:.2g} of cases"
    )

    rate: float
    side: float


class MaybeSlow(Caution):
    """Nodes whose intervals reach into the allowance."""

    template = (
        "{number:count node} may be slow, but intervals reach into the allowance: {names}; measure more samples there"
    )

    number: int
    names: Names


class Unfinished(Caution):
    """Nodes whose runs did not end."""

    template = "{number:count node} did not finish; what was measured counts: {names}"

    number: int
    names: Names


class ClocksApart(Caution):
    """Nodes that began at another time than most, by their own clocks. ``hours`` are after the middle node."""

    template = (
        "by their own clocks, {number:count node} began at quite another time than most "
        "({node}: {hours:+,.0f} hours from the middle node): measured then, or the clock is wrong; "
        "times of steps do not depend on it"
    )

    number: int
    node: str
    hours: float


class NoCause(Note):
    """How to read the table of differences."""

    template = (
        "'By chance' is the probability of so many slow nodes with this value if the two are unrelated, corrected for "
        "all values; below {rate:exact_percent} it is marked. Counts name no cause: nodes share many things"
    )

    rate: float


class CanNotBeCompared(Caution):
    """How many nodes are left out."""

    template = "{number:count node} can't be compared:"

    number: int


class DifferIn(Note):
    """Facts in which nodes differ, by name."""

    template = "[{kind}: ]{facts:list}"

    facts: tuple[str, ...]
    kind: str | None = None


class AlsoDifferIn(Note):
    """Facts that have no room in a table."""

    template = "nodes differ in {facts:list}; all of them: {options:or}"

    facts: tuple[str, ...]
    options: tuple[str, ...]


# --- what to do next ---


class MostDisturbed(Advice):
    """Slow nodes of which most samples were disturbed, by ``interference``."""

    template = (
        "{names}: most samples were disturbed from outside ({interference}); measure again when nothing else runs there"
    )

    names: Names
    interference: str


class MeasureAgain(Advice):
    """Slow nodes need a second measurement."""

    template = "measure slow nodes again before you act; inspect the machine of a node that stays slow"


# --- pictures, for those who have them read out ---


class Histogram(Note):
    """The picture of all nodes."""

    template = "Histogram of the nodes' times. {summary:lines}"

    summary: tuple[str, ...]


class IntervalsDrawn(Note):
    """The picture of slow nodes."""

    template = "{headline}; the figures are in the table below"

    headline: str


class BeyondTheEnds(Note):
    """The label of an axis, which ends before the outermost nodes."""

    template = "{label}[; {beyond:count node} beyond the ends]"

    label: str
    beyond: int | None = None
