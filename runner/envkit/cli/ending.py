"""Say what ended a command early: in a line for people, and with --json in a document for scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from envkit.messages import Message, MessageError
from envkit.rendering import text

# What a sentence that is no message yet has in the place of a code.
NO_CODE: Mapping[str, Any] = {"code": None, "severity": "error"}


def end_with(message: Message | str, status: int, as_json: bool, document: Mapping[str, Any] | None = None) -> int:
    """Print ``message`` to stderr, and as JSON to stdout beside what ``document`` has. Return the exit status."""
    print(f"envkit: {_line(message)}", file=sys.stderr)
    if as_json:
        import json  # takes milliseconds, and `envkit exec` is to start fast

        print(json.dumps({**(document or {}), **error(message)}))
    return status


def error(message: Message | str) -> dict[str, Any]:
    """Return what --json has of a message that says why a command failed."""
    known = message.to_json() if isinstance(message, Message) else NO_CODE
    return {"error": {**known, "text": _line(message)}}


def problem_of(error: Exception) -> Message | str:
    """Return the message that an exception carries, or what it says if it carries none."""
    return error.message if isinstance(error, MessageError) else str(error)


def _line(message: Message | str) -> str:
    return text(message if isinstance(message, Message) else " ".join(message.splitlines()))
