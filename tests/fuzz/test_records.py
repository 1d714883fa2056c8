"""Whatever a record holds, each command that reads it prints a result or one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from envkit.analysis import baselines
from envkit.bench import record
from envkit.bench.record import FILE_NAME
from envkit.bench.study import MOST_ENTRIES
from envkit.common.errors import InputError
from envkit.rendering import text_of
from hypothesis import HealthCheck, given, settings

from tests.mutations import lines
from tests.records import arm, judge, run_events, write

EVENTS = judge(run_events(arm("baseline"), arm("mine"), blocks=3))
COMMANDS = (
    ("report", "{}"), ("report", "{}", "--json"), ("report", "{}", "--details"), ("report", "{}", "--markdown"),
    ("export", "{}", "--format", "csv"), ("export", "{}", "--format", "openmetrics"), ("history", "{}"),
    ("history", "{}", "--json"), ("fleet", "report", "{}"),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all examples, which each make its record anew."""
    made = tmp_path_factory.mktemp("results") / "run"
    made.mkdir()
    return made


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=lines(EVENTS))
def test_every_command_that_reads_a_record(cli, folder, content):
    """An exception that gets out of a command fails the test."""
    (folder / FILE_NAME).write_bytes(content)
    for words in COMMANDS:
        (folder / "fleet.json").unlink(missing_ok=True)
        result = cli(*(str(folder) if word == "{}" else word for word in words))
        if result.returncode == 2:
            assert result.stderr.startswith("envkit: ")
            assert len(result.stderr.splitlines()) == 1
        else:
            assert result.stdout + result.stderr


@pytest.mark.parametrize("value", [[[]], [None], {"x": []}, 10**400, -1, "../x"])
@pytest.mark.parametrize(
    ("number", "place"),
    [
        (0, ("engines", "local", "inspection", "packages", "torch")),
        (0, ("engines", "local", "inspection", "fingerprint", "memory_bytes")),
        (0, ("engines", "local", "inspection", "fingerprint", "cpu_model")),
        (0, ("time",)), (2, ("time",)), (-1, ("time",)),
    ],
)  # fmt: skip
def test_values_that_no_type_of_an_event_describes(cli, tmp_path, number, place, value):
    """Each stands in a record of enough samples to be compared, which random changes seldom leave."""
    events = judge(run_events(arm("baseline"), arm("mine"), blocks=7))
    inner = events[number]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    write(tmp_path / "run", events)
    for words in COMMANDS:
        (tmp_path / "run/fleet.json").unlink(missing_ok=True)
        result = cli(*(str(tmp_path / "run") if word == "{}" else word for word in words))
        assert result.returncode in (0, 1, 2)
        assert result.returncode != 2 or len(result.stderr.splitlines()) == 1


def refused(call, *arguments):
    """The one line with which a call is refused; None if it is not."""
    try:
        call(*arguments)
    except InputError as error:
        return text_of(error)
    return None


@settings(max_examples=150)
@given(content=lines(EVENTS))
def test_a_baseline_of_it(folder, content):
    (folder / FILE_NAME).write_bytes(content)
    line = refused(baselines.from_record, folder, "mine")
    if line is None:
        assert json.dumps(baselines.from_record(folder, "mine").document)
    else:
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("key", ["arms", "ablated", "contrasts", "workloads"])
def test_a_plan_with_thousands_of_entries(cli, tmp_path, key):
    """A report on them would take minutes."""
    events = json.loads(json.dumps(EVENTS))
    study = events[0]["study"]
    one = study["arms"][1]
    part = {"setting": "s", "needs": None, "alone": "mine", "beside": "baseline", "without": "mine"}
    more = {
        "arms": [*study["arms"], *({**one, "name": f"a{number}"} for number in range(20_000))],
        "ablated": [part] * 20_000,
        "contrasts": study["contrasts"] * 20_000,
        "workloads": {**study["workloads"], **dict.fromkeys(map(str, range(20_000)), study["workloads"]["cnn"])},
    }  # fmt: skip
    study[key] = more[key]
    write(tmp_path, events)
    result = cli("report", tmp_path)
    assert result.returncode == 2
    assert f"'study.{key}' has more than {MOST_ENTRIES} entries" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_record_of_a_gigabyte(cli, tmp_path):
    """It is refused by its size, and not read."""
    write(tmp_path, EVENTS)
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.truncate(2**30)
    result = cli("report", tmp_path)
    assert result.returncode == 2
    assert "it has 1.0 GiB, and at most 256 MiB are read" in result.stderr


def test_a_record_of_millions_of_values(monkeypatch, tmp_path):
    monkeypatch.setattr("envkit.common.documents.MOST_VALUES", 10_000)
    write(tmp_path, [*EVENTS, *({"event": "x", "values": [0] * 500} for _ in range(20))])
    assert "more than 10,000 values" in (refused(record.read, Path(tmp_path)) or "")
