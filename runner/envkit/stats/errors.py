"""Errors of the statistics."""

from __future__ import annotations

from envkit.messages import MessageError


class InvalidTimesError(MessageError, ValueError):
    """A time, or a ratio of times, is out of range."""
