"""What engines tell their users."""

from __future__ import annotations

from envkit.messages import Message


class NoTorch(Message):
    """A Python of this machine lacks torch. ``untold`` is a command that does not tell which Python it starts."""

    code = "engine.no-torch"
    template = (
        "{python}: has no torch[, and '{untold}' does not tell which Python it starts]; "
        "name the Python that trains, with torch {minimum} or later: --python {example}"
    )

    python: str
    minimum: str
    example: str
    untold: str | None = None


class NoTorchInImage(Message):
    """A container's image lacks torch."""

    code = "engine.no-torch-in-image"
    template = "{image}: has no torch; install it there, or name another image"

    image: str


class TooOld(Message):
    """The kit's own workloads can't be trained with this Python or torch. ``example`` is a Python to name instead."""

    code = "engine.too-old"
    template = (
        "{image}: has {package} {version}, and envkit's own workloads need {package} {minimum} or later[; name another "
        "Python: --python {example}]"
    )

    image: str
    package: str
    version: str
    minimum: str
    example: str | None = None


class NoDescription(Message):
    """What was started as a Python printed something else."""

    code = "engine.no-description"
    template = "{image}: printed no description of itself; is it a Python interpreter?"

    image: str
