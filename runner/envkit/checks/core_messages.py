"""Messages about the measurement of which CPUs share a core."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note, Printed


class CoresMeasured(Note):
    """How many cores the usable CPUs are on, by a measurement of that ``day`` (ISO 8601)."""

    template = "{usable_cpus:count usable CPU} on {cores:count core}, measured {day}"

    usable_cpus: int
    cores: int
    day: str


class NothingToShare(Message):
    """One CPU can be used, so nothing shares a core with it."""

    template = "--measure-cores: only one CPU can be used here, so there is nothing to compare"


class QuotaHidesCores(Message):
    """A quota leaves less time than the CPUs have, so their throughput shows the quota."""

    template = (
        "--measure-cores: a quota of {quota:g} CPUs holds back {cpus:count CPU}, so their speed says nothing about "
        "cores; repeat it without the quota"
    )

    quota: float
    cpus: int


class CoresDisturbed(Note):
    """Something else ran during the measurement, which is not kept."""

    template = "the measurement of cores was disturbed and is dropped: {reasons}"

    reasons: tuple[Message, ...]


class LittleCpuTime(Caution):
    """The measuring processes had to wait. ``share`` is how much of their CPUs' time they had."""

    template = "its processes got {share:.0%} of their CPUs' time"

    share: float


class CoresUnclear(Note):
    """The speeds fit neither separate cores nor two CPUs on each.

    ``low`` and ``high`` are the least and the highest speed of a CPU while all compute, as shares of its fastest.
    """

    template = (
        "the speeds of CPUs {cpus} do not settle which share a core: "
        "while all compute, each has {low:.0%} to {high:.0%} of its speed"
    )

    cpus: str
    low: float
    high: float


class CoresNotMeasured(Note):
    """The measuring program failed. ``printed`` is the last line that it printed."""

    template = "the measurement of cores failed[: {printed}]"

    printed: Printed | None = None
