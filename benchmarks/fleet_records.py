"""The records of a simulated fleet, as runs on its nodes would leave them: a real record with other times in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from envkit.bench.record import FILE_NAME, Event

# Standard deviation of healthy nodes' own times, and the scale of a sample's noise (Student's t, 3 degrees of freedom).
HEALTHY, NOISE = 0.005, 0.02
# The share of nodes with a neighbour who comes once, for how many samples in a row, and how much more time these take.
WITH_NEIGHBOUR, STAYS, SLOWS = 0.03, 3, 0.3
# Of the nodes of a planted group, the share that has what the group shares; and of all other nodes.
HAVING, BACKGROUND = 0.8, 0.01
STEP_S, STEP_NOISE = 0.025, 0.1
DAY_S = 86_400.0


@dataclass(frozen=True)
class Planted:
    """So many of a thousand nodes take ``slower`` more time (a share), and most of them have ``fact`` at ``value``."""

    slower: float
    of_thousand: int
    fact: str = ""
    value: Any = None


PLANTED = (
    Planted(0.03, 4),
    Planted(0.05, 4, "thp_enabled", "never"),
    Planted(0.10, 4, "microcode", "0xold"),
    Planted(0.25, 2, "governor", "powersave"),
    Planted(0.50, 1, "memory_bytes", 2**33),
)


@dataclass(frozen=True)
class Simulated:
    """By node: how much more time it was planted to take (0: healthy), its facts, its samples' seconds per step."""

    slower: list[float]
    facts: list[dict[str, Any]]
    step_s: Any

    @property
    def names(self) -> list[str]:
        return [f"n{number:05d}" for number in range(len(self.slower))]


def simulated(nodes: int, samples: int, seed: int) -> Simulated:
    random = numpy.random.default_rng(seed)
    slower = [0.0] * nodes
    facts: list[dict[str, Any]] = [{} for _ in range(nodes)]
    shuffled = random.permutation(nodes).tolist()
    for group in PLANTED:
        count = max(1, group.of_thousand * nodes // 1000)
        chosen, shuffled = shuffled[:count], shuffled[count:]
        for number in chosen:
            slower[number] = group.slower
            if group.fact and random.random() < HAVING:
                facts[number][group.fact] = group.value
    for number in shuffled:
        for group in PLANTED:
            if group.fact and random.random() < BACKGROUND:
                facts[number][group.fact] = group.value
    logs = random.normal(0, HEALTHY, (nodes, 1)) + numpy.log1p(slower)[:, None]
    logs = logs + NOISE * random.standard_t(3, (nodes, samples))
    for number in random.permutation(nodes)[: int(WITH_NEIGHBOUR * nodes)].tolist():
        comes = int(random.integers(0, max(1, samples - STAYS)))
        logs[number, comes : comes + STAYS] += numpy.log1p(SLOWS)
    return Simulated(slower, facts, STEP_S * numpy.exp(logs))


def write(folder: Path, template: Sequence[Event], fleet: Simulated, seed: int) -> int:
    """Make a folder with a record for each node; returns the bytes written.

    ``template`` is the record of a run of one arm: its first event, and of its other events the first of each kind, are
    taken over but for times, blocks and facts.
    """
    random = numpy.random.default_rng(seed)
    first = {event["event"]: event for event in reversed(template)}
    steps = len(first["sample"]["step_s"])
    shapes = 1 + STEP_NOISE * random.normal(size=(64, steps))
    shapes /= shapes.mean(axis=1, keepdims=True)
    taken_over = ("reference-kernel", "sample", "design", "end")
    lines = {kind: _Line(event) for kind, event in first.items() if kind in taken_over}
    written = 0
    for number, name in enumerate(fleet.names):
        begun = template[0]["time"] + float(random.uniform(0, DAY_S))
        content = [_run(template[0], fleet.facts[number], begun)]
        for block, step_s in enumerate(fleet.step_s[number].tolist()):
            took = (step_s * shapes[random.integers(64)]).round(7).tolist()
            moment = round(begun + 10.0 * (block + 1), 3)
            if "reference-kernel" in lines:
                seconds = first["reference-kernel"]["seconds"] * float(numpy.exp(random.normal(0, 0.01)))
                line = lines["reference-kernel"]
                content.append(line.with_values(time=moment, block=block, seconds=round(seconds, 7)))
            content.append(
                lines["sample"].with_values(time=moment, block=block, seconds=round(sum(took), 6), step_s=took)
            )
            if block == 1 and "design" in lines:
                content.append(lines["design"].with_values(time=moment))
        content.append(lines["end"].with_values(time=round(begun + 10.0 * (len(fleet.step_s[number]) + 2), 3)))
        text = "\n".join(content) + "\n"
        (folder / name).mkdir(parents=True)
        (folder / name / FILE_NAME).write_text(text)
        written += len(text)
    return written


class _Line:
    """A line of a record in which some values can be exchanged without writing the others anew."""

    def __init__(self, event: Event) -> None:
        variable = {name: f"@{name}@" for name in ("time", "block", "seconds", "step_s") if name in event}
        self._text = json.dumps({**event, **variable})

    def with_values(self, **values: Any) -> str:
        text = self._text
        for name, value in values.items():
            text = text.replace(f'"@{name}@"', json.dumps(value), 1)
        return text


def _run(run: Event, facts: dict[str, Any], begun: float) -> str:
    changed = copy.deepcopy(run) if facts else dict(run)
    changed["time"] = round(begun, 3)
    for surroundings in changed["engines"].values() if facts else ():
        surroundings["inspection"]["fingerprint"].update(facts)
    return json.dumps(changed)


def quiet(events: Sequence[Event]) -> list[Event]:
    """The record of a run as if nothing else had run on its machine meanwhile."""
    copied = copy.deepcopy(list(events))
    for event in copied:
        if event["event"] == "sample":
            usage = event["usage"]
            usage |= {"worker_cpus_busy_s": usage["user_s"] + usage["system_s"], "worker_cpus_steal_s": 0.0}
            usage |= {"machine_swapped_bytes": 0, "throttle_events": None}
    return copied
