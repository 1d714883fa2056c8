"""False alarms and slow nodes found, in simulated fleets with many kinds of noise and many sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from envkit.bench.study import MARGIN
from envkit.cluster.fleet.slow import judge, measure

# In every fleet one node of so many is slow, each of these sizes in turn.
ONE_OF = 25
SIZES = (0.05, 0.10, 0.25)
# So many nodes, at least, for each line: as many fleets as that takes.
NODES = 30_000

Random = Any  # numpy's Generator
# The logarithm of what samples take more than others (nodes x samples).
Noise = Callable[[Random, int, int], Any]
# The logarithm of what healthy nodes take more than others (nodes).
Spread = Callable[[Random, int], Any]


def _normal(random: Random, nodes: int, samples: int) -> Any:
    return random.normal(0, 0.02, (nodes, samples))


def _heavy_tails(random: Random, nodes: int, samples: int) -> Any:
    return 0.02 * random.standard_t(3, (nodes, samples))


def _skewed(random: Random, nodes: int, samples: int) -> Any:
    """Never faster than it can be, and now and then much slower (log-normal)."""
    return 0.02 * random.lognormal(0, 1, (nodes, samples))


def _correlated(random: Random, nodes: int, samples: int) -> Any:
    noise = random.normal(0, 0.02, (nodes, samples))
    for sample in range(1, samples):
        noise[:, sample] = 0.6 * noise[:, sample - 1] + 0.8 * noise[:, sample]
    return noise


def _neighbours(random: Random, nodes: int, samples: int) -> Any:
    """On one node of ten somebody else comes once, stays for a fifth of the samples, and slows by 20% to 80%."""
    noise = random.normal(0, 0.01, (nodes, samples))
    stays = max(1, samples // 5)
    for node in numpy.nonzero(random.random(nodes) < 0.1)[0]:
        comes = random.integers(0, samples - stays + 1)
        noise[node, comes : comes + stays] += numpy.log1p(random.uniform(0.2, 0.8))
    return noise


def _noisy_tenth(random: Random, nodes: int, samples: int) -> Any:
    """One node of ten has five times the noise of the others."""
    return _normal(random, nodes, samples) * numpy.where(random.random(nodes) < 0.1, 5.0, 1.0)[:, None]


NOISES: dict[str, Noise] = {
    "normal": _normal, "heavy tails": _heavy_tails, "skewed": _skewed, "correlated samples": _correlated,
    "neighbours": _neighbours, "noisy tenth": _noisy_tenth,
}  # fmt: skip
SPREADS: dict[str, Spread] = {
    "0.5%": lambda random, nodes: random.normal(0, 0.005, nodes),
    "none": lambda random, nodes: numpy.zeros(nodes),
    "2%": lambda random, nodes: random.normal(0, 0.02, nodes),
    "1%, heavy tails": lambda random, nodes: 0.01 * random.standard_t(4, nodes),
}
# Of each line: the noise, the spread of healthy nodes, and how many nodes and samples a fleet has.
LINES = (
    *((noise, "0.5%", 10_000, 20) for noise in NOISES),
    *(("heavy tails", spread, 10_000, 20) for spread in SPREADS if spread != "0.5%"),
    *(("normal", spread, 10_000, 100) for spread in SPREADS if spread != "0.5%"),
    *(
        ("heavy tails", "0.5%", nodes, samples)
        for nodes, samples in ((10_000, 8), (500, 20), (50, 20), (50, 8), (8, 20))
    ),
    *(("heavy tails", "2%", nodes, 20) for nodes in (50, 8)),
)


@dataclass(frozen=True)
class Rates:
    """Shares: of healthy nodes that were called slow, and of slow ones of each of SIZES; ``nodes`` were healthy."""

    nodes: int
    false_alarms: int
    found: dict[float, float]
    allowance: float


def rates(noise: Noise, spread: Spread, nodes: int, samples: int, at_least: int = NODES) -> Rates:
    """Of as many fleets of ``nodes`` nodes as have ``at_least`` nodes together."""
    random = numpy.random.default_rng(0)
    healthy = false_alarms = 0
    called_by_size: dict[float, list[float]] = {size: [] for size in SIZES}
    allowances = []
    for fleet in range(max(1, -(-at_least // nodes))):
        planted = numpy.zeros(nodes)
        slow = numpy.arange(0, nodes, ONE_OF)
        planted[slow] = [SIZES[(fleet + place) % len(SIZES)] for place in range(len(slow))]
        logs = noise(random, nodes, samples) + (spread(random, nodes) + numpy.log1p(planted))[:, None]
        (judged,), _ = judge([measure(numpy.exp(logs))], MARGIN)
        healthy += int((planted == 0).sum())
        false_alarms += int(judged.slow[planted == 0].sum())
        allowances.append(judged.spread.allowance)
        for size in SIZES:
            called_by_size[size] += judged.slow[planted == size].tolist()
    shares = {size: sum(called) / len(called) for size, called in called_by_size.items()}
    return Rates(healthy, false_alarms, shares, float(numpy.median(allowances)))
