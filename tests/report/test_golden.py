"""What each kind of report looks like, on 80 columns. ENVKIT_GOLDEN=write writes the files anew."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest
from envkit.rendering import text
from envkit.report import tables
from envkit.report.messages.tables import FAILED, Medians

from tests.records import conclude
from tests.report.kinds import KINDS
from tests.report.planted import failed
from tests.reports import events_of, printed

GOLDEN = Path(__file__).parent / "golden"
MOST_LINES, WIDTH = 22, 80
# A command to paste, or the folder of a record, is never broken into lines.
PASTED = re.compile(r"envkit ")


@cache
def shown(kind: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed(KINDS[kind]()).splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_looks_as_its_file_says(kind):
    path, text = GOLDEN / f"{kind}.txt", shown(kind)
    if os.environ.get("ENVKIT_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_each_file_is_of_a_kind():
    assert {path.stem for path in GOLDEN.iterdir()} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_a_screen_and_says_what_a_block_is(kind):
    lines = shown(kind).splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > WIDTH and not PASTED.search(line)] == []

    # what a block is, where the word first occurs
    lines = [line.replace("--blocks", "") for line in shown(kind).splitlines()]
    lines = [line for line in lines if re.search(r"\bblocks?\b(?! \d)", line)]  # and not "block 7"
    assert not lines or re.search("one sample (of )?each", lines[0])


@pytest.mark.parametrize("events", [KINDS["failed"](), failed(events_of(others={"other": {}}))], ids=["one", "two"])
def test_a_run_that_failed_shows_nothing_to_make_a_speedup_of(events):
    words = printed(events, full=True)
    assert "ms/step" not in words
    assert "times are omitted, because the run failed" in words
    assert text(Medians(FAILED)) in text(tables.note(conclude(events)))  # of the page, whose table has times


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_a_terminal_of_40_columns_and_no_speed_is_a_percentage(kind):
    events = KINDS[kind]()
    lines = printed(events, width=40).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 40 and not PASTED.search(line)] == []
    words = " ".join(printed(events, full=True).split())
    assert not re.search(r"% (faster|slower|(more|less) (time|speed))", words)
