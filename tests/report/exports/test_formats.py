"""What each format makes of rows: read again with another reader, or held against the format's own rules."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest
from pyarrow import parquet

from runner.report.exports import FORMATS, columnar, comma, json_rows, openmetrics

AWKWARD = 'a, "quoted"\nnämé\\'
ROWS = [
    {"run": AWKWARD, "seconds": 0.1 + 0.2, "block": 0, "in_effect": True, "padding_bytes": None},
    {"run": "b", "seconds": 2.0, "block": 1, "in_effect": False, "padding_bytes": None, "usage_new": 5},
]
RESULT = {
    "run": AWKWARD, "time": 1793000000.25, "cpu_model": "CPU", "engine": "local", "arm": "mine", "profile": "mine",
    "reference": "baseline", "workload": "cnn", "modes": "compiled", "ranks": 2, "samples": 7, "step_s": 0.0271,
    "in_effect": True, "ratio": 1.25, "low": 1.1, "high": 1.5, "communication_s": 0.002,
    "communication_share": 0.125,
}  # fmt: skip


# --- csv ---


def test_csv_is_read_again():
    read = list(csv.DictReader(io.StringIO(comma.render(ROWS).decode(), newline="")))
    assert read[0] == {
        "run": AWKWARD, "seconds": "0.30000000000000004", "block": "0", "in_effect": "true", "padding_bytes": "",
        "usage_new": "",
    }  # fmt: skip
    assert read[1]["usage_new"] == "5"
    assert read[1]["in_effect"] == "false"


# --- json ---


def test_json_is_read_again():
    read = json.loads(json_rows.render(ROWS))
    assert read == [{**ROWS[0], "usage_new": None}, ROWS[1]]


def test_json_has_no_numbers_that_json_does_not_have():
    text = json_rows.render([{"a": math.nan, "b": math.inf, "c": 1.5}])
    assert json.loads(text, parse_constant=pytest.fail) == [{"a": None, "b": None, "c": 1.5}]


@pytest.mark.parametrize("name", ["csv", "json"])
def test_nothing_measured_is_no_rows(name):
    assert FORMATS[name].render([]).split() in ([], [b"[]"])


# --- parquet ---


def table(rows):
    return parquet.read_table(io.BytesIO(columnar.render(rows)))


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
    """The rules of the OpenMetrics specification (1.0) that gauges with labels and times are under."""
    families = []
    for line in exposition([RESULT, {**RESULT, "run": "b"}])[:-1]:
        metadata = re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-z_]+) (.+)", line)
        if metadata:
            kind, name, text = metadata.groups()
            if kind == "TYPE":
                families.append(name)
                assert text == "gauge"
            assert name == families[-1]
            if kind == "UNIT":
                assert name.endswith(f"_{text}")
            continue
        label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
        value = re.fullmatch(rf"([a-z_]+)\{{{label}(?:,{label})*\}} (\S+) (\d+\.\d+)", line)
        assert value, line
        assert value.group(1) == families[-1]  # the values of a family stand together
        assert math.isfinite(float(value.group(2)))
    assert len(set(families)) == len(families) == len(openmetrics.GAUGES)


def test_openmetrics_values():
    lines = exposition([RESULT])
    labels = (
        r'{run="a, \"quoted\"\nnämé\\",arm="mine",profile="mine",reference="baseline",engine="local",workload="cnn",'
        'modes="compiled",ranks="2",cpu_model="CPU"}'
    )
    assert f"envkit_speedup_ratio{labels} 1.25 1793000000.250" in lines
    assert f"envkit_speedup_low_ratio{labels} 1.1 1793000000.250" in lines
    assert f"envkit_speedup_high_ratio{labels} 1.5 1793000000.250" in lines
    assert f"envkit_step_seconds{labels} 0.0271 1793000000.250" in lines
    assert f"envkit_samples{labels} 7 1793000000.250" in lines
    assert f"envkit_communication_ratio{labels} 0.125 1793000000.250" in lines
    assert f"envkit_in_effect{labels} 1 1793000000.250" in lines


def test_openmetrics_leaves_out_what_is_not_known():
    lines = exposition([{**RESULT, "ratio": None, "low": None, "high": None, "communication_share": None}])
    assert not [line for line in lines if line.startswith(("envkit_speedup", "envkit_communication"))]


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_openmetrics_spells_numbers_in_its_own_way(value, text):
    assert any(f"}} {text} " in line for line in exposition([{**RESULT, "high": value}]))
