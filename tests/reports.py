"""Events as a run of this version leaves them, and what is printed of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envkit.analysis.result import Result
from envkit.bench.arms import Arm
from envkit.bench.record import Event
from envkit.bench.requests import of_sample
from envkit.bench.study import WorkloadSpec
from envkit.report import markdown, model, terminal
from rich.console import Console

from tests.plans import study_of
from tests.records import conclude, judge, run_event
from tests.simulated_worker import sample
from tests.simulation import STEADY, times
from tests.worker_runs import document_of

WORKER_S, REFERENCE_KERNEL_S = 2.0, 0.5


def events_of(
    blocks: int = 7,
    mine: dict[str, Any] | None = None,
    others: dict[str, dict[str, Any]] | None = None,
    baseline: dict[str, Any] | None = None,
    ended: str | None = "complete",
    looks: tuple[int, ...] = (),
    profile: str = "mine",
    numerics: str = "same",
    study: dict[str, Any] | None = None,
    workloads: dict[str, str] | None = None,
    profiles: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    **run: Any,
) -> list[Event]:
    """A run of ``blocks`` blocks, in which the workers of ``mine``, which take half the time, behave as given.

    ``others`` are further arms and how theirs behave; ``workloads`` are arms' own, and ``profiles`` those of ``others``
    that are called otherwise. The last of ``looks`` are the
    planned blocks.
    """
    behaviours = {"baseline": {"seconds": STEADY, **(baseline or {})}, "mine": {"seconds": times(0.5), **(mine or {})}}
    behaviours |= {name: {"seconds": times(1), **behaviour} for name, behaviour in (others or {}).items()}
    profiles = {name: profile if name == "mine" else (profiles or {}).get(name, name) for name in behaviours}
    arms = tuple(
        Arm(name, profiles[name], "local", (workloads or {}).get(name), file=(files or {}).get(name))
        for name in behaviours
    )
    fixed = study_of(arms, **(study or {}))
    events: list[Event] = [run_event(fixed, numerics=numerics, **run)]

    def add(event: str, takes_s: float = 0.0, **fields: Any) -> None:
        worker = {"worker_seconds": takes_s} if takes_s else {}
        events.append({"event": event, "time": events[-1]["time"] + takes_s, **fields, **worker})

    for arm in arms:
        add("warm-up", WORKER_S, arm=arm.name)
    if blocks:
        usual = {"warm_up": {}, "unsteady": [], "together": 1, "skipped_steps": 0}
        add("lengths", **usual, commands=events[0]["commands"])
    for block in range(blocks):
        if block == 2:
            looks = looks or (blocks,)
            add("design", planned_blocks=looks[-1], looks=list(looks))
        add("reference-kernel", REFERENCE_KERNEL_S, block=block, seconds=0.1, digest="f" * 64)
        for arm in fixed.order(block):
            document = sample(document_of(of_sample(fixed, arm, block)), behaviours[arm.name], block, {})
            where = {"block": block, "arm": arm.name, "padding_bytes": fixed.padding(block, arm)}
            add("sample", WORKER_S, **where, **document, stderr="")
    judge(events)
    if ended:
        add("end", reason=ended)
    return events


def of_cells(behaviours: dict[Any, dict[str, Any]], length: WorkloadSpec, blocks: int, **run: Any) -> list[Event]:
    """A run of the loader, of which each setting is a workload, under the baseline; how its workers behave by these."""
    names = [one.workload for one in behaviours]
    (first, mine), (baseline, second, *rest) = names[:2], behaviours.values()
    return events_of(
        blocks, second, dict(zip(names[2:], rest, strict=True)), baseline, profile="baseline",
        profiles=dict.fromkeys(names[2:], "baseline"),
        workloads={"baseline": first, "mine": mine} | {name: name for name in names[2:]},
        study={"workloads": dict.fromkeys(names, length), "blocks": 3}, **run,
    )  # fmt: skip


def printed(events: list[Event], full: bool = False, width: int = 80) -> str:
    """Return the report as it looks on a terminal of so many columns."""
    out = io.StringIO()
    terminal.show(model.report_of(conclude(events), "some/folder", full=full), Console(file=out, width=width))
    return out.getvalue()


def details(events: list[Event]) -> str:
    """The long report."""
    return printed(events, full=True)


def said(events: list[Event]) -> str:
    """The report in one line, without what wrapping did to it."""
    return " ".join(printed(events).split())


def markdown_of(folder: Path, events: Sequence[Event], result: Result) -> str:
    """Return the report for a pull request."""
    return markdown.document(model.report_of(result, str(folder), events, wide=True))
