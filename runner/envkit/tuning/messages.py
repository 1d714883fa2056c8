"""Messages of tuning."""

from __future__ import annotations

from envkit.messages import Message


class Hopeless(Message):
    """A trial was stopped because its candidate had lost already. Its subject is the worker."""

    code = "tuning.hopeless"
    template = "was stopped after {seconds:.0f} s, at least {factor:g} times what the baseline's took"

    seconds: float
    factor: float


class NoPlaceForProfile(Message):
    """The profile that a tuning writes has no place. ``variable`` moves the folder that is taken by default."""

    code = "tuning.no-place"
    template = "{file}: {folder} can't be written to: {why}; name another file with --profile[, or set {variable}]"

    file: str
    folder: str
    why: str
    variable: str | None = None
