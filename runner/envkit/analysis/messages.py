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
