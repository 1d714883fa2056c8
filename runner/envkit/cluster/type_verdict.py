"""How much profiles gain on a type of nodes, from the runs of several nodes that measured the same.

Each node compares by itself, in its own blocks; only its ratios go on from there. Nodes of another type than most, that
measured something else, or that are slow are left out by the rules of a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit.analysis.load import Load, load
from envkit.analysis.result import Result, conclude
from envkit.bench import record
from envkit.bench.events import OtherPrograms
from envkit.bench.run import Run, read
from envkit.bench.study import Study
from envkit.cluster.fleet import comparability, slow
from envkit.cluster.fleet.extract import read_node
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.cluster.messages import LossesDifferOn, NotInEffectOn, OfAnotherType, OverMemoryOn, SlowNode, UnderLoad
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.report.verdict import beside
from envkit.stats.across_nodes import AcrossNodes, across_nodes
from envkit.stats.interval import ERROR_RATE

# The fewest blocks with which a node counts.
MIN_BLOCKS = 3


@dataclass(frozen=True)
class TypeVerdict:
    """``across`` is by arm; ``cautions`` has the arms that are not recommended, and why.

    ``versus`` compares two arms with each other. ``result`` is that of the first node that counts.
    """

    kind: str
    nodes: tuple[str, ...]
    left_out: Mapping[str, Message]  # why, by node
    across: Mapping[str, AcrossNodes]
    cautions: Mapping[str, Message]
    result: Result
    pair: tuple[str, str] | None = None  # the arms of versus, of which the first is compared with the second
    versus: AcrossNodes | None = None
    load: Load | None = None  # beside which all of these nodes were measured; else one that was is left out

    def not_recommended(self, arm: str) -> Message | None:
        """Return why an arm is not recommended, whatever its speed."""
        return self.cautions.get(arm) or beside(self.load)

    def to_json(self) -> dict[str, object]:
        return {
            "type": self.kind,
            "nodes": list(self.nodes),
            "left_out": {node: why.to_json() for node, why in self.left_out.items()},
            "found": {arm: across.to_json() for arm, across in self.across.items()},
            "wrong": {arm: why.to_json() for arm, why in self.cautions.items()},
            "load": self.load and self.load.to_json(),
            "versus": self.versus.to_json() if self.versus else None,
        }


@dataclass
class _Runs:
    """Log ratios by arm and node, and what is wrong with an arm on some node."""

    ratios: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    versus: dict[str, list[float]] = field(default_factory=dict)
    cautions: dict[str, Message] = field(default_factory=dict)
    first: Result | None = None

    def add(self, node: str, result: Result, run: Run, pair: tuple[str, str] | None) -> None:
        self.first = self.first or result
        study = result.study
        of = {arm.name: arm for arm in study.arms}
        for comparison in result.comparisons:
            self.ratios.setdefault(comparison.arm, {})[node] = run.block_ratios(of[comparison.arm])
            if any(comparison.arm == missed.arm for missed in result.not_in_effect):
                self.cautions.setdefault(comparison.arm, NotInEffectOn(node))
            elif comparison.losses is not None and not comparison.losses.agree:
                self.cautions.setdefault(comparison.arm, LossesDifferOn(node))
            elif comparison.over_memory is not None:
                self.cautions.setdefault(comparison.arm, OverMemoryOn(node, comparison.over_memory.share))
        if pair is not None and {*pair} <= of.keys():
            arm, reference = (of[name] for name in pair)
            self.versus[node] = run.block_ratios(arm, reference=reference)


def find(places: Mapping[str, Path], margin: float, pair: tuple[str, str] | None = None) -> TypeVerdict | None:
    """Judge what the nodes have recorded, by name and folder. Return None if no node has enough blocks.

    ``pair`` names two arms: the first is compared with the second, too. Raise InputError for a damaged record.
    """
    entries = [_node(name, place) for name, place in places.items()]
    left_out: dict[str, Message] = {entry.name: entry.reason for entry in entries if isinstance(entry, LeftOut)}
    groups, others = comparability.groups([entry for entry in entries if isinstance(entry, Node)], least=MIN_BLOCKS)
    left_out |= {node.name: node.reason for node in others}
    if not groups:
        return None
    chosen, *more = groups
    left_out |= {node.name: OfAnotherType(node.kind) for group in more for node in group}
    (judged,), _ = slow.judge([slow.measure([node.step_s for node in chosen])], margin)
    for node, is_slow, ratio in zip(chosen, judged.slow, judged.ratio, strict=True):
        if is_slow:
            left_out[node.name] = SlowNode(float(ratio) - 1)
    nodes = [node.name for node in chosen if node.name not in left_out]
    runs = _Runs()
    loads = {name: load for name in nodes if (load := _load(places[name]))}
    if sound := [name for name in nodes if name not in loads]:
        left_out |= {name: UnderLoad(why) for name, load in loads.items() if (why := beside(load))}
        nodes, loads = sound, {}
    for name in nodes:
        with record.reading(places[name]):
            run = read(places[name])
            runs.add(name, conclude(run), run, pair)
    assert runs.first is not None, "slow nodes are fewer than half"
    study = runs.first.study
    rate = ERROR_RATE / study.sharing
    judged_arms = {arm: across_nodes([*of_arm.values()], rate, margin) for arm, of_arm in runs.ratios.items()}
    return TypeVerdict(
        kind=chosen[0].kind,
        nodes=tuple(nodes),
        left_out=left_out,
        across={arm: across for arm, across in judged_arms.items() if across is not None},
        cautions=runs.cautions,
        result=runs.first,
        pair=pair,
        versus=across_nodes([*runs.versus.values()], rate, margin) if runs.versus else None,
        load=next(iter(loads.values()), None),
    )


def _load(place: Path) -> Load | None:
    """Return the load beside which one of a node's results holds; of a run without intervals, that of its blocks."""
    with record.reading(place):
        run = read(place)
        comparisons = [comparison for comparison in conclude(run).comparisons if comparison.speedup]
        if comparisons:
            return next((comparison.load for comparison in comparisons if comparison.load), None)
        samples = run.samples()
        return load(samples, len({sample.block for sample in samples}), run.first(OtherPrograms))


def _node(name: str, place: Path) -> Node | LeftOut:
    """Return what is known of a node by the reference of its run, or why the node can't be used."""
    try:
        study = Study.from_json(record.read(place)[0]["study"])
    except InputError as error:
        return LeftOut(name, error.message)
    return replace(read_node(place, study.reference.profile), name=name)
