"""Typed events of a tuning's record: each line is parsed once into one of these classes.

A field with a default may be missing in the record. Numbers of candidates are those of ``trial_store``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from envkit.bench import events as bench_events
from envkit.bench import record
from envkit.bench.events import Resume, Timed
from envkit.common import codec
from envkit.engines.measurement import ComparedTraining, Usage

Document = dict[str, object]  # plain data that another class parses


class Append(Protocol):
    """Write an event to the record, and return it as plain data."""

    def __call__(self, event: str, **fields: object) -> Mapping[str, object]: ...


class ShippedProfile(Struct, frozen=True, kw_only=True):
    """A shipped profile that competes, and its environment here."""

    profile: Document
    environment: Document


class LeftOut(Struct, frozen=True, kw_only=True):
    """A profile that is not tried, and why: a message as JSON."""

    what: str
    why: Document


class Beginning(Timed, frozen=True, kw_only=True, tag="tune"):
    """The event ``tune``, as far as the search reads it."""

    space_sha256: str
    shipped: list[ShippedProfile]
    left_out_profiles: list[LeftOut]


class NewCandidate(Timed, frozen=True, kw_only=True, tag="candidate"):
    """The event ``candidate``: a profile that is ``shipped`` under this name, or a choice in the space."""

    number: int
    choice: dict[str, str] | None
    shipped: str | None
    title: str
    environment: Document


class Order(Timed, frozen=True, kw_only=True, tag="order"):
    """The event ``order``: the order of the shipped profiles, and the speedup that is expected of them, by name."""

    expected: dict[str, float]
    shipped: list[str]


class Round(Timed, frozen=True, kw_only=True, tag="round"):
    """The event ``round``: a round begins, with these candidates in this order."""

    order: list[int]


class Peaks(Struct, frozen=True, kw_only=True):
    """The peak memory of a worker, and its GPU; None if unknown."""

    peak_memory_bytes: float | None = None
    gpu: bench_events.Gpu | None = None


class Trial(Timed, frozen=True, kw_only=True, tag="trial"):
    """The event ``trial``: one worker under a candidate. ``seconds`` are those of its timed steps.

    ``peak_memory_bytes`` is None if unknown, and ``gpu`` without one.
    """

    round: int
    candidate: int
    step_s: list[float]
    seconds: float
    usage: Usage
    peak_memory_bytes: float | None = None
    gpu: bench_events.Gpu | None = None


class WarmUp(ComparedTraining, frozen=True, kw_only=True, tag_field="event", tag="warm-up"):
    """The event ``warm-up``: the baseline's first trial that counts, with whose losses all others are compared."""

    worker_seconds: float
    time: float = 0.0
    peak_memory_bytes: float | None = None
    gpu: bench_events.Gpu | None = None


class Failure(Timed, frozen=True, kw_only=True, tag="failure"):
    """The event ``failure``: a trial failed. ``problem`` is a message as JSON; a failed warm-up has no round."""

    candidate: int
    problem: Document
    round: int | None = None
    stderr: str = ""


class Promotion(Timed, frozen=True, kw_only=True, tag="promoted"):
    """The event ``promoted``: candidates that get more trials, and their new rungs. JSON has numbers as text."""

    rungs: dict[str, int]


class Finalists(Timed, frozen=True, kw_only=True, tag="finalists"):
    """The event ``finalists``: the candidates that are tried side by side."""

    candidates: list[int]


class End(bench_events.End, frozen=True, kw_only=True, tag="end"):
    """The event ``end``. A profile was written to ``profile``, whose content had this SHA-256 before."""

    profile: str | None = None
    previous_sha256: str | None = None


class Other(Struct, frozen=True, kw_only=True):
    """An event of another name, of which only its time is of matter."""

    event: str
    time: float = 0.0
    worker_seconds: float = 0.0


Event = Timed | WarmUp | Other
COLD, WARM_UP, TRIAL, FAILURE, ORDER = "cold", "warm-up", "trial", "failure", "order"
# By the name of the event.
EVENTS: dict[str, type[Timed | WarmUp]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        Beginning, NewCandidate, Order, Round, Trial, WarmUp, Failure, Promotion, Finalists, End, Resume,
    )
}  # fmt: skip


def parse(document: Mapping[str, object]) -> Event:
    """Return the event of one line. Raise KeyError for a missing field, ``codec.Misfit`` for a bad value."""
    kind: type[Event] = EVENTS.get(str(document["event"]), Other)
    return codec.parse(document, kind)


def parse_all(documents: Iterable[Mapping[str, object]]) -> list[Event]:
    """Return the events of these lines, in order. Raise as ``parse``."""
    return [parse(document) for document in documents]


def read(folder: Path) -> list[Event]:
    """Return the events of the tuning recorded in ``folder``. Raise InputError for a damaged record."""
    documents = record.read(folder, "tune")
    with record.reading(folder):
        return parse_all(documents)
