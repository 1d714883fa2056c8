"""Whatever a record holds, each command that reads it prints a result or one line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from envkit.analysis import baselines
from envkit.bench import record
from envkit.bench.record import FILE_NAME
from envkit.common.errors import InputError
from envkit.rendering import text_of
from hypothesis import HealthCheck, given, settings

from tests.mutations import lines
from tests.records import arm, judge, run_events

EVENTS = judge(run_events(arm("baseline"), arm("mine"), blocks=3))
COMMANDS = (
    ("report", "{}"), ("report", "{}", "--json"), ("report", "{}", "--details"), ("report", "{}", "--markdown"),
    ("export", "{}", "--format", "csv"), ("export", "{}", "--format", "openmetrics"), ("history", "{}"),
    ("history", "{}", "--json"), ("fleet", "report", "{}"), ("bench", "--resume", "{}"),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all examples, which each make its record anew."""
    return tmp_path_factory.mktemp("results") / "run"


def put(folder: Path, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / FILE_NAME).write_bytes(content)
    (folder / "fleet.json").unlink(missing_ok=True)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=lines(EVENTS))
def test_every_command_that_reads_a_record(cli, folder, content):
    put(folder, content)
    for words in COMMANDS:
        begin = time.process_time()
        result = cli(*(str(folder) if word == "{}" else word for word in words))
        if result.returncode == 2:
            assert result.stderr.startswith("envkit: ")
            assert len(result.stderr.splitlines()) == 1
        else:
            assert result.stdout or result.stderr
        assert time.process_time() - begin < 10.0


@settings(max_examples=200)
@given(content=lines(EVENTS))
def test_a_baseline_of_it(folder, content):
    put(folder, content)
    try:
        found = baselines.from_record(folder, "mine")
    except InputError as error:
        assert len(text_of(error).splitlines()) == 1
    else:
        assert json.dumps(found.document)
        assert record.first(folder)["event"] == "run"
