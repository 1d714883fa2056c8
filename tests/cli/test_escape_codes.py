"""Escape codes in any text that others wrote: a terminal is given none of them, and a file or pipe all."""

from __future__ import annotations

import copy
import json
import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from envkit.common.printable import harmless

from tests import records
from tests.records import arm, run_events
from tests.sessions import session

# Colours, a title, a link, the clipboard, 8-bit control characters, movements, directions and what takes no room.
CANARY = (
    "<\x1b[35;5m\x1b]0;t\x07\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\\x1b]52;c;Zg==\x07\x9b2J\x85\x9d\x08\r\x7f\0"
    "\u202e\u2066\u2069\u200b\u200d\u061c\u2028\ufeff\U000e0041>"
)
# What the kit itself has a terminal do: colours and weights, and, for a line that is drawn anew, movements.
OWN_COLOURS = re.compile(r"\x1b\[(?:0|[0-9]|3[0-7]|38;5;\d+|[12];3[0-7])?m")
OWN_MOVEMENTS = re.compile(r"\r|\x1b\[(?:2K|1A|\?25[lh])")
# A name of a folder that is not UTF-8.
BYTES = os.fsdecode(b"r\xff\x9bn")


def harm(printed: bytes, moves: bool = False) -> set[str]:
    """Return what a terminal was given besides text and the kit's own colours."""
    text = OWN_COLOURS.sub("", printed.decode("utf-8", "surrogateescape"))
    text = OWN_MOVEMENTS.sub("", text) if moves else text
    return {one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") and one not in "\t\n"}


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where texts are in a document; of a list the first item stands for all."""
    if isinstance(value, str):
        yield place
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from leaves(inner, (*place, key))


def planted(document: Any, place: tuple[Any, ...]) -> Any:
    """Return the document with the canary in the text at ``place``, and in a key beside it."""
    changed = inner = copy.deepcopy(document)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] += CANARY
    return changed


@pytest.fixture
def lines(tmp_path):
    """The events of a run in which one arm, and its profile, has the canary for a name, and the folder they are in."""
    folder = session(tmp_path / "results" / "run", arms=(arm("baseline"), arm(f"mine{CANARY}")))
    return [json.loads(line) for line in (folder / records.FILE_NAME).read_text().splitlines()], folder


def test_each_text_of_a_record_alone(lines, on_terminal):
    """Some make the record one that is refused, and the refusal names them."""
    events, folder = lines
    first = {event["event"]: number for number, event in reversed([*enumerate(events)])}
    places = [(number, *place) for number in first.values() for place in leaves(events[number])]
    # arms are called so elsewhere in the record too, and the fixture has one of such a name
    places = [place for place in places if place[-1] not in ("arm", "name") or "arms" not in place]
    assert len(places) > 50
    for place in places:
        records.write(folder, planted(events, place))
        for options in ((), ("--details",), ("--markdown",)):
            status, printed = on_terminal("report", folder, *options)
            assert (status in (0, 2), harm(printed)) == (True, set()), place


OF_RECORDS = [
    "report RUN", "report RUN --details", "report RUN --markdown", "report RUN --json", "report RUN --markdown TTY",
    "history RESULTS", "history RESULTS --json", "export RUN --format csv", "export RUN --format openmetrics",
    "export RUN --format json", "export RUN --format csv --output TTY", "baseline save old --from RUN",
    "baseline save CANARY --from RUN", "baseline list", "baseline check old --against RUN", "baseline diff old old",
    "fleet report RESULTS", "fleet report RESULTS --json", "fleet report RESULTS --prometheus TTY",
    "fleet diff RESULTS RESULTS", "bench mine --resume RUN", "matrix --resume RUN", "explain CANARY", "show CANARY",
    "bench CANARY", "CANARY", "report CANARY", "report --CANARY", "exec CANARY -- true", "tune --space CANARY",
]  # fmt: skip


def test_all_texts_of_a_record_at_once(lines, on_terminal, cli, tmp_path, monkeypatch):
    """Every command that reads one, beside a record that can't be read, in a folder of an odd name."""
    events, folder = lines
    kept = ("event", "engine", "workload", "code", "arm", "name", "scaling", "digest", "kit_version")
    for number, event in enumerate(events):
        for place in [*leaves(event)]:
            if place[-1] not in kept and not {*place} & {"arms", "comparisons"}:
                events = planted(events, (number, *place)) if number < 4 else events
    records.write(folder, events)
    broken = folder.parent / "broken\x1b[35;5m\x9b2J"
    records.write(broken, [{**records.run_events()[0], f"k{CANARY}": CANARY, "schema": CANARY}])
    odd = folder.parent / "odd\x1b[35;5m\x9b2J\u202e"
    folder.rename(odd)
    for command in OF_RECORDS:
        names = {"RUN": odd, "RESULTS": odd.parent, "TTY": "/dev/tty", "CANARY": CANARY.replace("\0", "")}
        words = [names.get(word, word.replace("CANARY", names["CANARY"])) for word in command.split()]
        print(command)
        status, printed = on_terminal(*words, cwd=tmp_path)
        print(status, printed[:200])
        assert harm(printed) == set(), command
        assert b"Traceback" not in printed
