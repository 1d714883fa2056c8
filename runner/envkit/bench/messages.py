"""Messages of a run in progress. Ratios are speedups over the reference: above 1 is faster."""

from __future__ import annotations

from envkit.messages import Message, Severity


class InterimSpeedup(Message):
    """A 95% interval that decides nothing: the report's own is wider, as it pays for interim analyses."""

    code = "bench.interim-speedup"
    severity = Severity.NOTE
    template = "{arm} {ratio:ratio}x (interim {low:ratio} to {high:ratio})"

    arm: str
    ratio: float
    low: float
    high: float


class InterimBest(Message):
    code = "bench.interim-best"
    severity = Severity.NOTE
    template = "best of {of}: {best}"

    of: int
    best: InterimSpeedup


class InterimSpeedups(Message):
    code = "bench.interim-speedups"
    severity = Severity.NOTE
    template = "{arms:lines}"

    arms: tuple[InterimSpeedup, ...]
