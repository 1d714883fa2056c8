"""How often does ``envkit fleet diff`` name a node where nothing changed, and how many slower ones does it find?

Pairs of reports on simulated fleets, in which nodes differ, change a little from one time to
the next, and have samples with noise.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from envkit.bench.study import MARGIN
from envkit.cli.arguments import count
from envkit.cluster.fleet.changes import RATE
from envkit.cluster.fleet.diff import ChangeVerdict, diff
from envkit.cluster.fleet.node import Node
from envkit.stats.outlying import FEWEST

from benchmarks import page, script

SIZES, RUNS, POWER_RUNS = (8, 64, 500), 1000, 400
# As logarithms: by how much nodes differ (standard deviation), and how many samples a node has.
BETWEEN, SAMPLES, STEP_S = 0.010, 12, 0.025
NORMAL, STUDENT, MIXED = "normal", "Student's t of 3 degrees", "normal, for one node in 20 five times as much"


class Healthy(NamedTuple):
    """How nodes change to which nothing happened, and the noise of a sample, as standard deviations of logarithms."""

    deviation: float  # of Student's t its scale; of the mixture that of most nodes
    shape: str
    noise: float

    def changes(self, chance: numpy.random.Generator, size: int) -> Any:
        if self.shape == STUDENT:
            return self.deviation * chance.standard_t(3, size)
        larger = numpy.where(chance.random(size) < 0.05, 5.0, 1.0) if self.shape == MIXED else 1.0
        return self.deviation * larger * chance.normal(0, 1, size)

    def __str__(self) -> str:
        return f"{self.deviation:.1%}, {self.shape}; noise {self.noise:.1%}"


HEALTHY = tuple(
    Healthy(deviation, shape, noise)
    for shape in (NORMAL, STUDENT, MIXED)
    for deviation, noise in ((0.005, 0.010), (0.010, 0.005))
)
USUAL = HEALTHY[0]
PLANTED, SHARE = (0.03, 0.05, 0.10), 0.05
QUESTION = (
    "`envkit fleet diff THEN NOW` names nodes that became slower. How often does it name one where nothing changed, "
    "and how many does it find of those that did?"
)
PROMISE = """What is stated: where nothing changed, any node is called slower or faster in at most {rate:.0%} of
comparisons. It is assumed that the changes of the healthy nodes of a kind have one distribution, that of Student's t
with {degrees} degrees of freedom or more, of which the normal one is a limit. The share of comparisons in which any
node was named, by how nodes change from one time to the next:"""
MIXTURE = """The mixture is no Student's t: it is there to see what becomes of the rate where that is not so. Among few
nodes a rare large change of a healthy one looks like that of a node to which something happened. Tails that can't be
seen are taken for heavy ones, so that a node has to lie farther out among 64 than among 500 whose changes show that
they are normal; and where tails are heavy one that became slower by as much as others change is not found."""
HOW = """Each figure of the first table is of {runs} pairs of reports, of the others of {power_runs}. Nodes differ by
{between:.1%} (standard deviation), and each has {samples} samples. By how much nodes change, and samples vary, is a
standard deviation (of Student's t the scale; of the mixture that of most nodes). The margin is {margin:.0%}. Shares
have 95% intervals (Clopper and Pearson 1934)."""


def _nodes(steps: Any) -> list[Node]:
    return [_node(f"n{number:03}", tuple(node_steps)) for number, node_steps in enumerate(steps.tolist())]


def _node(name: str, step_s: tuple[float, ...]) -> Node:
    return Node(
        name=name, profile="mine", workload="cnn", kind="simulated", must_agree={"profile": "mine"}, facts={},
        memory_bytes=None, began=0.0, finished=True, step_s=step_s, samples_with_interference=0, interference="",
        reference_kernel_s=None, reference_kernel_digest=None, clock_mhz=None,
    )  # fmt: skip


def named(size: int, healthy: Healthy, seed: int, slower: float = 0.0, changed: int = 0) -> tuple[set[str], set[str]]:
    """Who was called slower, and who faster; the first ``changed`` nodes became so much slower."""
    chance = numpy.random.default_rng([seed, size, HEALTHY.index(healthy), round(1000 * slower), changed])
    node_offsets = chance.normal(0, BETWEEN, size)
    later = (
        node_offsets
        + healthy.changes(chance, size)
        + numpy.where(numpy.arange(size) < changed, numpy.log1p(slower), 0.0)
    )
    then, now = (
        STEP_S * numpy.exp(of_node[:, None] + chance.normal(0, healthy.noise, (size, SAMPLES)))
        for of_node in (node_offsets, later)
    )
    comparison = diff((_nodes(then), ()), (_nodes(now), ()), MARGIN)
    verdicts = (ChangeVerdict.SLOWER, ChangeVerdict.FASTER)
    slower_ones, faster_ones = ({change.node for change in comparison.of(verdict)} for verdict in verdicts)
    return slower_ones, faster_ones


def alarms(size: int, healthy: Healthy, runs: int) -> int:
    """In how many comparisons of unchanged fleets any node was named."""
    return sum(any(named(size, healthy, seed)) for seed in range(runs))


def detection_cells(size: int, healthy: Healthy, runs: int, changed: int) -> list[str]:
    """The share found of nodes that became slower, by how much."""
    truly = {f"n{number:03}" for number in range(changed)}
    return [
        page.share(
            sum(len(named(size, healthy, seed, slower, changed)[0] & truly) for seed in range(runs)), runs * changed
        )
        for slower in PLANTED
    ]


def held(rows: dict[Healthy, list[int]], runs: int) -> str:
    """Where the rate is not held, in words."""
    above = [
        f"nodes that change by {healthy}, in a fleet of {size} ({many / runs:.1%})"
        for healthy, of_size in rows.items()
        for size, many in zip(SIZES, of_size, strict=True)
        if page.proportion(many, runs)[0] > RATE
    ]
    if not above:
        return f"No case has a share that is certain to be above {RATE:.0%}."
    return f"The rate of {RATE:.0%} is not held for {'; nor for '.join(above)}."


def _page(path: Path, rows: dict[Healthy, list[int]], power: list[list[str]], many: list[list[str]], runs: int) -> None:
    how = HOW.format(
        runs=runs, power_runs=min(runs, POWER_RUNS), between=BETWEEN, samples=SAMPLES, margin=MARGIN
    )  # fmt: skip
    slower = [f"{more:.0%} slower" for more in PLANTED]
    alarmed = [
        [str(healthy_kind), *(page.share(alarms_found, runs) for alarms_found in of_size)]
        for healthy_kind, of_size in rows.items()
    ]
    page.write(path, [
        page.heading("Fleets over time", QUESTION),
        "## Where nothing changed", PROMISE.format(rate=RATE, degrees=FEWEST),
        page.table(("nodes change by", *(f"{size} nodes" for size in SIZES)), alarmed, 1), held(rows, runs),
        MIXTURE,
        "## One node that became slower", "How often it was named, in fleets whose other nodes change as above:",
        page.table(("nodes change by", "nodes", *slower), power, 1),
        f"## One node in {1 / SHARE:.0f} that became slower", f"The share that was named; nodes change by {USUAL}:",
        page.table(("nodes", *slower), many, 0), "## How", how,
    ])  # fmt: skip


def main() -> int:
    parser = script.page_parser("fleet_diff", __doc__)
    parser.add_argument("--runs", metavar="N", type=count, default=RUNS, help=f"pairs of reports (default: {RUNS})")
    options = parser.parse_args()
    runs, power_runs = options.runs, min(options.runs, POWER_RUNS)
    with script.processes() as processes:
        cases = [(size, healthy) for healthy in HEALTHY for size in SIZES]
        unchanged = [processes.submit(alarms, *case, runs) for case in cases]
        single = [processes.submit(detection_cells, *case, power_runs, 1) for case in cases]
        several = [
            processes.submit(detection_cells, size, USUAL, power_runs, max(1, round(SHARE * size))) for size in SIZES
        ]
        rows: dict[Healthy, list[int]] = {}
        for (_, healthy), future in zip(cases, unchanged, strict=True):
            rows.setdefault(healthy, []).append(future.result())
        power = [
            [str(healthy), str(size), *future.result()] for (size, healthy), future in zip(cases, single, strict=True)
        ]  # fmt: skip
        many = [[str(size), *future.result()] for size, future in zip(SIZES, several, strict=True)]
    _page(options.page, rows, power, many, runs)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("fleet_diff", main))
