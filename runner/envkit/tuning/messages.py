"""Messages of tuning."""

from __future__ import annotations

from envkit.messages import Message


class NoEffect(Message):
    """A setting would have no effect here, by a check of doctor's."""

    code = "tuning.no-effect"
    template = "{seen}: {why}"

    seen: str
    why: str


class Hopeless(Message):
    """A trial was stopped because its candidate had lost already. Its subject is the worker."""

    code = "tuning.hopeless"
    template = "was stopped after {seconds:.0f} s, at least {factor:g} times what the baseline's took"

    seconds: float
    factor: float
