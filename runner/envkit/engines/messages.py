"""The messages of what starts workers."""

from __future__ import annotations

from envkit.messages import Message


class UnknownEngine(Message):
    code = "engine.unknown"
    template = "no engine '{name}'[; did you mean '{suggestion}'?]; there are: {known}"

    name: str
    known: tuple[str, ...]
    suggestion: str | None = None
