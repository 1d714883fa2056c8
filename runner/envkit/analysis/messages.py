"""Messages of the analysis."""

from __future__ import annotations

from envkit.messages import Message


class DamagedBaseline(Message):
    """A baseline breaks its schema. ``problem`` says at which key."""

    code = "analysis.damaged-baseline"
    template = "{file}: {problem}; {fix}"

    file: str
    problem: Message
    fix: str


class NoReadings(Message):
    """Blocks of a run have no reading of the reference kernel. ``problem`` is that of its worker."""

    code = "analysis.no-readings"
    template = (
        "{folder}: {missing} of {blocks:count block} have no reference kernel, because the worker {problem}; "
        "no later run could be compared with it: measure again"
    )

    folder: str
    missing: int
    blocks: int
    problem: Message
