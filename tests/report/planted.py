"""What can go wrong with a run, planted into its events or given to its workers."""

from __future__ import annotations

from typing import Any

from envkit.bench.decide import FAILED
from envkit.bench.record import Event
from envkit.engines.messages import Killed
from envkit.messages import Message

from tests.plans import with_arms

# What workers see of themselves that were to run with GNU's OpenMP.
NOT_IN_EFFECT = {"evidence": {"openmp": {"runtime": "intel"}}}
NOT_VERIFIED = {"evidence": {"openmp": {"runtime": None, "not_verified": {"runtime": "two answer for it"}}}}
OTHER_LOSSES = {"losses": [3.0, 2.299, 2.298]}

KILLED = Killed("SIGKILL")


def disturbed(events: list[Event], *blocks: int, arm: str = "mine", **usage: Any) -> list[Event]:
    """The samples of ``arm`` in these blocks were disturbed from outside, as ``usage`` says, or by a hypervisor."""
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", arm) and event["block"] in blocks:
            event["usage"] |= usage or {"worker_cpus_steal_s": 2 * event["seconds"]}
    return events


def of_baseline(events: list[Event]) -> list[Event]:
    """Return the events without those of other arms than the baseline, as of a run that compares nothing."""
    events[0]["study"] = with_arms(events[0]["study"], events[0]["study"]["arms"][:1])
    return [event for event in events if event.get("arm") in (None, "baseline")]


def failed(
    events: list[Event], arm: str = "mine", block: int = 6, problem: Message = KILLED, stderr: str = ""
) -> list[Event]:
    """The run ended as a worker of ``arm`` failed."""
    begun = [event for event in events if event["event"] != "end"]
    time = begun[-1]["time"]
    failure = {"time": time, "block": block, "arm": arm, "problem": problem.to_json(), "stderr": stderr}
    return [*begun, {"event": "failure", **failure}, {"event": "end", "time": time, "reason": FAILED}]


def busy(events: list[Event], cpus: float = 4.0) -> list[Event]:
    """The CPUs of the workers were busy with so many CPUs' work, most of it that of other programs."""
    for event in events:
        if event["event"] == "sample":
            event["usage"]["worker_cpus_busy_s"] = cpus * event["seconds"]
    return events
