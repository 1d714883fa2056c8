"""The worker's exceptions carry a message, and never text."""

from __future__ import annotations

from envkit.messages import Message, MessageError


class WorkerError(MessageError):
    """The worker can't go on. It prints the message in place of a sample."""

    message: Message
