"""What each format makes of rows: read again with another reader, or held against the format's own rules."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from envkit.report.exports import FORMATS, openmetrics, tabular

from tests.report.exports.gauges import gauges

AWKWARD = 'a, "quoted"\nnämé\\'
ROWS = [
    {"run": AWKWARD, "seconds": 0.1 + 0.2, "block": 0, "in_effect": True, "padding_bytes": None},
    {"run": "b", "seconds": 2.0, "block": 1, "in_effect": False, "padding_bytes": None, "usage_new": 5},
]
RESULT = {
    "run": AWKWARD, "time": 1793000000.25, "cpu_model": "CPU", "engine": "local", "arm": "mine", "profile": "mine",
    "reference": "baseline", "workload": "cnn", "modes": "compiled", "ranks": 2, "scaling": "weak scaling",
    "instances": 1,
    "samples": 7, "step_s": 0.0271, "in_effect": True, "ratio": 1.25, "low": 1.1, "high": 1.5, "communication_s": 0.002,
    "communication_share": 0.125,
}  # fmt: skip


# --- csv ---


def test_csv_is_read_again():
    read = list(csv.DictReader(io.StringIO(tabular.to_csv(ROWS).decode(), newline="")))
    assert read[0] == {
        "run": AWKWARD, "seconds": "0.30000000000000004", "block": "0", "in_effect": "true", "padding_bytes": "",
        "usage_new": "",
    }  # fmt: skip
    assert read[1]["usage_new"] == "5"
    assert read[1]["in_effect"] == "false"


# --- json ---


def test_json_is_read_again():
    read = json.loads(tabular.to_json(ROWS))
    assert read == [{**ROWS[0], "usage_new": None}, ROWS[1]]


def test_json_has_no_numbers_that_json_does_not_have():
    text = tabular.to_json([{"a": math.nan, "b": math.inf, "c": 1.5}])
    assert json.loads(text, parse_constant=pytest.fail) == [{"a": None, "b": None, "c": 1.5}]


@pytest.mark.parametrize("name", ["csv", "json"])
def test_nothing_measured_is_no_rows(name):
    assert FORMATS[name].render([]).split() in ([], [b"[]"])


# --- parquet ---


def read_parquet(content):
    from pyarrow import parquet  # not before it is needed: each process that collects tests would import it

    return parquet.read_table(io.BytesIO(content))


def table(rows):
    return read_parquet(tabular.to_parquet(rows))


def test_parquet_is_read_again():
    read = table(ROWS)
    assert read.to_pylist() == [{**ROWS[0], "usage_new": None}, ROWS[1]]
    types = {field.name: str(field.type) for field in read.schema}
    assert types == {
        "run": "string", "seconds": "double", "block": "int64", "in_effect": "bool", "padding_bytes": "double",
        "usage_new": "int64",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"), [([1, 2.5], [1.0, 2.5]), ([1, "two"], ["1", "two"]), ([2**70, None], [str(2**70), None])]
)
def test_parquet_with_values_of_several_kinds(values, expected):
    assert table([{"a": value} for value in values]).column("a").to_pylist() == expected


# --- openmetrics ---


def exposition(rows):
    text = openmetrics.render(rows).decode()
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    return text.splitlines()


def test_openmetrics_is_what_its_grammar_allows():
    """The specification (1.0) also wants a time with each value."""
    lines = exposition([RESULT, {**RESULT, "run": "b"}])[:-1]
    names, values = gauges(lines, ("TYPE", "UNIT", "HELP"), time=r" \d+\.\d+")
    assert len(names) == len(openmetrics.GAUGES)
    assert all(map(math.isfinite, values.values()))


def test_openmetrics_values():
    lines = exposition([RESULT])
    labels = (
        r'{run="a, \"quoted\"\nnämé\\",arm="mine",profile="mine",reference="baseline",engine="local",workload="cnn",'
        'modes="compiled",ranks="2",scaling="weak scaling",instances="1",cpu_model="CPU"}'
    )
    values = {"speedup_ratio": "1.25", "speedup_low_ratio": "1.1", "speedup_high_ratio": "1.5", "samples": "7",
              "step_seconds": "0.0271", "communication_ratio": "0.125", "in_effect": "1"}  # fmt: skip
    assert {f"envkit_{name}{labels} {value} 1793000000.250" for name, value in values.items()} <= set(lines)


def test_openmetrics_leaves_out_what_is_not_known():
    lines = exposition([{**RESULT, "ratio": None, "low": None, "high": None, "communication_share": None}])
    assert not [line for line in lines if line.startswith(("envkit_speedup", "envkit_communication"))]


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_openmetrics_spells_numbers_in_its_own_way(value, text):
    assert any(f"}} {text} " in line for line in exposition([{**RESULT, "high": value}]))


# --- what others wrote ---


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1"])
def test_csv_has_no_text_that_a_spreadsheet_computes(text):
    """Numbers stay numbers, and so do names of columns that others chose."""
    read = [*csv.reader(io.StringIO(tabular.to_csv([{"run": text, "seconds": -1.5, text: 1}]).decode(), newline=""))]
    assert read == [["run", "seconds", f"'{text}"], [f"'{text}", "-1.5", "1"]]


@pytest.mark.parametrize("text", ["a=1", "'=1", "", " =1", "5", "é\x1b"])
def test_csv_has_other_text_as_it_is(text):
    assert [*csv.DictReader(io.StringIO(tabular.to_csv([{"run": text, "b": 1}]).decode()))] == [{"run": text, "b": "1"}]


@pytest.mark.parametrize("name", FORMATS)
def test_text_that_is_not_unicode_is_written_as_escapes(name):
    """A byte of a folder's name that is not UTF-8, and half of a surrogate pair in a record."""
    content = FORMATS[name].render([{**RESULT, "run": "a\udcff\ud800", "usage_\udcff": 1}])
    if name == "parquet":
        assert read_parquet(content).column("run").to_pylist() == ["a\\xff\\ud800"]
    else:
        assert "\\ud800" in content.decode()
