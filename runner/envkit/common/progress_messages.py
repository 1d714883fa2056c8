"""Messages of progress, which is a line now and then if stderr is no terminal."""

from __future__ import annotations

from envkit.messages import Message, Severity


class WorkerDone(Message):
    """A worker ended. ``ms`` is the mean time of a ``step``."""

    code = "common.worker-done"
    severity = Severity.NOTE
    template = "{stage}, {arm}: {ms:.2f} ms per {step}"

    stage: str
    arm: str
    ms: float
    step: str


class StageDone(Message):
    """A block is complete. ``left`` is the time until the end, as ``1:05``."""

    code = "common.stage-done"
    severity = Severity.NOTE
    template = "{stage}[: {standing}][; about {left} left]"

    stage: str
    standing: Message | None = None
    left: str | None = None
