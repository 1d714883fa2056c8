"""Write doctor's findings for scripts."""

from __future__ import annotations

from envkit.checks.doctor.finding import Finding
from envkit.messages import Message
from envkit.rendering import text


def finding_document(one: Finding) -> dict[str, object]:
    """Return a finding as plain data: its texts, and ``message``, which is what was seen as a code with fields."""
    texts = {"seen": text(one.seen), "why": text(one.why), "fix": text(one.fix)}
    message = one.seen.to_json() if isinstance(one.seen, Message) else None
    return {"code": one.code, "severity": one.severity, **texts, "message": message}
