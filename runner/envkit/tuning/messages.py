"""Messages of tuning."""

from __future__ import annotations

from envkit.messages import Message


class Hopeless(Message):
    """A trial was stopped because its candidate had lost already. Its subject is the worker."""

    code = "tuning.hopeless"
    template = "was stopped after {seconds:.0f} s, at least {factor:g} times what the baseline's took"

    seconds: float
    factor: float
