"""A simulated run for each kind of report."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from envkit.bench.arms import Ablated
from envkit.bench.record import Event

from tests.records import judge
from tests.report import test_grid, test_multi_workload
from tests.report.planted import NOT_IN_EFFECT, OTHER_LOSSES, busy, disturbed, failed, of_baseline
from tests.reports import events_of
from tests.simulation import times

NOISY = {"seconds": [1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05]}
FAULTS = {"usage": {"minor_faults": 0, "system_s": 0.1}}
MKL = {"preload": {"mkl-dispatch": "/kit/mkl-dispatch.so"}, "numerics": "may-differ"}
MAPPED = {
    "evidence": {"openmp": {"runtime": "gnu"}, "variables": {"preloaded": {"/kit/mkl-dispatch.so": "mapped"}}}
}  # as workers observe it
KMP = {"evidence": {"openmp": {"runtime": "gnu"}, "variables": {"sensitive": {"KMP_BLOCKTIME": "0"}}}}
TWO = {"PYTHONMALLOC": "malloc", "TORCH_SHOW_CPP_STACKTRACES": "0"}
SIX = {
    "quick": {"seconds": times(0.4), **MAPPED},
    "second": {"seconds": times(0.7)},
    "learns": {"seconds": times(0.8), **OTHER_LOSSES},
    "same": {},
    "noisy": NOISY,
    "slow": {"seconds": times(1.5)},
}


def with_environment(events: list[Event], arm: str = "mine", **fields: Any) -> list[Event]:
    """Return the events of a run in which the environment of ``arm`` is another one."""
    events[0]["environments"][arm] |= fields
    return judge(events)


def _kmp() -> list[Event]:
    events = with_environment(events_of(1, ended="not in effect", mine=KMP), variables={"KMP_BLOCKTIME": "0"})
    return [event for event in events if event.get("arm") != "baseline" or event["event"] != "sample"]


def _many(others: dict[str, Any] = SIX) -> list[Event]:
    events = events_of(12, mine={"seconds": times(0.5)}, others=others)
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", "second"):
            event["peak_memory_bytes"] *= 2
    return with_environment(with_environment(events, "quick", **MKL), "second", numerics="may-differ")


def _ablated() -> list[Event]:
    parts = {"a alone": {"seconds": times(0.5)}, "b alone": {}, "mine without a": {}, "mine without b": {
        "seconds": times(0.5)}}  # fmt: skip
    ablated = (
        Ablated("a", None, "a alone", "baseline", "mine without a"),
        Ablated("b", None, "b alone", "baseline", "mine without b"),
    )
    return events_of(14, others=parts, study={"ablated": ablated})


def _calibration() -> list[Event]:
    """Return the events of ``envkit plan`` without a profile, which names its second arm ``again``."""
    events = events_of(16, mine={"seconds": times(1)}, profile="baseline")
    again: list[Event] = json.loads(json.dumps(events).replace('"mine"', '"again"'))
    return again


KINDS: dict[str, Callable[[], list[Event]]] = {
    "faster": lambda: events_of(12, mine={"seconds": times(0.6), **FAULTS}),
    "faster-mkl": lambda: with_environment(events_of(12, mine={"seconds": times(0.6), **MAPPED}), **MKL),
    "faster-losses-differ": lambda: with_environment(
        events_of(12, mine={**OTHER_LOSSES, "evidence": {"variables": {"sensitive": TWO}}}), variables=TWO
    ),
    "faster-under-load": lambda: busy(events_of(12)),
    "slower": lambda: events_of(12, mine={"seconds": times(1.25)}),
    "no-difference-found": lambda: events_of(12, mine=NOISY),
    "no-difference-above": lambda: events_of(12, mine={"seconds": times(1)}),
    "not-in-effect": lambda: events_of(mine=NOT_IN_EFFECT),
    "not-in-effect-kmp": _kmp,
    "disturbed": lambda: disturbed(events_of(12), 3),
    "failed": lambda: failed(events_of(), stderr="one\ntwo\nthree\nfour\n"),
    "too-few-blocks": lambda: events_of(5),
    "unfinished": lambda: events_of(3, ended=None),
    "seven": _many,
    "eight": lambda: _many({**SIX, "learns": {"seconds": times(0.8)}, "slower": {"seconds": times(2.0)}}),
    "none-of-two": lambda: events_of(12, mine={"seconds": times(1.5)}, others={"same": {}}),
    "one-run-each": lambda: events_of(1, study={"epochs": 10}),
    "calibration": _calibration,
    "ablated": _ablated,
    "alone": lambda: of_baseline(events_of()),
    "loader": test_grid.events,
    "workloads": test_multi_workload.events,
}
