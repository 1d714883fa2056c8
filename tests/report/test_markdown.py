"""Markdown for pull requests."""

from __future__ import annotations

import re

import pytest
from envkit.engines.messages import ExitStatus

from tests.report.planted import failed
from tests.reports import events_of, markdown_of


@pytest.fixture
def document(recorded):
    return lambda events: markdown_of(*recorded(events))


def table(text):
    """The rows' cells, as GitHub takes them apart."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def test_the_table_has_a_row_for_each_arm(document):
    header, rule, *rows = table(document(events_of(others={"same": {}})))
    assert [row[0] for row in rows] == ["baseline", "mine", "same"]
    assert {len(row) for row in (header, rule, *rows)} == {len(header)}
    assert rule[0] == "---"
    assert set(rule[1:-1]) == {"---:"}
    last = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["difference"] for row in last] == ["reference", "faster", "within 2%"]
    assert [row["speedup"] for row in last] == ["", "2.00x", "1.00x"]
    assert re.fullmatch(r"1\.9\d to 2\.0\d", last[1]["95% CI"])


def test_the_verdict_the_lines_and_what_to_do(document):
    lines = document(events_of()).splitlines()
    assert lines[0].startswith("**FASTER  mine: 2.00x baseline speed (95% CI ")
    assert "- **Settings**: verified in every process" in lines
    assert "- **Use**: `envkit exec mine.yaml -- python train.py`" in lines
    assert lines[-2] == "- **Command**: `envkit bench mine --budget 60s`"
    assert re.fullmatch(r"- \*\*Record\*\*: SHA-256 [0-9a-f]{64}", lines[-1])


def test_names_can_not_become_markup_or_columns(document):
    text = document(events_of(others={"a|b<i>*c*`d`": {}}))
    header, _, *rows = table(text)
    assert len(rows[-1]) == len(header)
    assert rows[-1][0] == r"a\|b&lt;i>\*c\*\`d\`"
    assert "<i>" not in text


def test_an_arm_without_a_result_is_not_left_out(document):
    events = [event for event in events_of() if event.get("arm") != "mine"]
    text = document(failed(events, block=0, problem=ExitStatus(3)))
    assert table(text)[-1] == ["mine", "0", "-", "-", "-", "-", "-", "-", "", "failed"]
    assert "- **Failed**: **block 1, mine: the worker ended with exit status 3**" in text


def test_full_training(document):
    text = document(events_of(blocks=1, study={"epochs": 10}))
    header, _, *rows = table(text.partition("epoch by epoch")[0])
    assert [row[0] for row in rows] == ["baseline", "mine", "the book's baseline", "the book's intel-omp"]
    assert {len(row) for row in rows} == {len(header)}
    assert rows[1][-1] == "one run each"


def test_synthetic_data_is_named_before_all_but_the_verdict(document):
    assert (
        document(events_of(study={"data": "synthetic"})).splitlines()[2].startswith("- **Caution**: **SYNTHETIC DATA: ")
    )
