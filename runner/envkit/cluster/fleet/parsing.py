"""The lines of a record without what says nothing of speed, which is two thirds of what there is to parse.

Losses, warm-up and evidence can be found in a line without parsing it: within a JSON text every quotation mark has a
backslash before it, so what is looked for here stands nowhere but where a key does.
"""

from __future__ import annotations

from typing import Any

from envkit.bench.record import Event
from envkit.common import documents

# How lines begin as the runner writes them.
SAMPLE, ANY = b'{"event": "sample", ', b'{"event": '
# Lists of numbers, and the last part of a sample but for what its worker printed.
LISTS = (b', "warmup_step_s": [', b', "losses": [')
EVIDENCE = b', "evidence": {'
# What a sample must have without these. Where it has not, its keys are in an order of somebody else's.
NEEDED = {"arm", "block", "seconds", "step_s", "digests", "usage"}
WHOLE = "whole line"


def shortened(line: bytes) -> Any:
    """The event in a line of a record; of a sample only what its speed needs, and its line as it is (``WHOLE``).

    Raises ValueError for a damaged line, though not for damage within what is left out.
    """
    if not line.startswith(SAMPLE) or line.count(ANY) != 1 or not line.endswith(b"}"):
        return documents.parse(line)
    short = line
    for start in LISTS:
        before, found, rest = short.partition(start)
        if found:
            short = before + rest.partition(b"]")[2]
    before, found, _ = short.partition(EVIDENCE)
    try:
        event = documents.parse(before + b"}" if found else short)
    except ValueError:
        return documents.parse(line)
    return {**event, WHOLE: line} if event.keys() >= NEEDED else documents.parse(line)


def whole(event: Event) -> Event:
    """A sample with all that was left out of it."""
    return dict(documents.parse(event[WHOLE])) if WHOLE in event else event
