"""Say what ended a command early: in a line for people, and with --json in a document for scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from envkit.messages import Message
from envkit.rendering import text


def end_with(message: Message, status: int, as_json: bool, document: Mapping[str, object] | None = None) -> int:
    """Print ``message`` to stderr, and as JSON to stdout beside what ``document`` has. Return the exit status."""
    print(f"envkit: {text(message)}", file=sys.stderr)
    if as_json:
        import json  # takes milliseconds, and `envkit exec` is to start fast

        print(json.dumps({**(document or {}), **error(message)}))
    return status


def error(message: Message) -> dict[str, object]:
    """Return what --json has of a message that says why a command failed."""
    return {"error": {**message.to_json(), "text": text(message)}}
