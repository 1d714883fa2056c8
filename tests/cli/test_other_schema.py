"""Files of another schema: each kind is refused with one message, before anything starts, and stays as it was."""

from __future__ import annotations

import json
import shlex

import pytest
from envkit.analysis import baselines
from envkit.bench import record
from envkit.cluster.fleet import kept
from envkit.cluster.slurm import settings
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema
from envkit.rendering import text

from tests import records
from tests.cluster.fleet.nodes import fleet
from tests.sessions import session

OTHER = 2


@pytest.fixture
def of_other(tmp_path):
    """Write a record, which begins with such an event, as another version would; returns its folder."""

    def write(event="run", name="run"):
        first, *rest = records.run_events()
        return records.write(tmp_path / name, [{**first, "event": event, "schema": OTHER}, *rest])

    return write


def said(path, kind, readable, anew=()):
    return f"envkit: {text(OtherSchema(str(path), kind, OTHER, readable, anew))}"


def test_the_message_names_the_file_its_schema_and_what_to_do():
    message = OtherSchema("a/record.jsonl", "record", 2, 1)
    assert message.code == "common.other-schema"
    assert text(message) == (
        "a/record.jsonl: this record has schema 2, and this version of envkit reads schema 1; measure again"
    )
    assert text(OtherSchema("f", "fleet report", 2, 1, ("envkit", "fleet", "report", "a b"))).endswith(
        "measure again, or write it again: envkit fleet report 'a b'"
    )


@pytest.mark.parametrize(
    ("event", "command"),
    [
        ("run", "report DIR"),
        ("run", "bench --resume DIR"),
        ("run", "matrix --resume DIR"),
        ("run", "bench mine --resume DIR"),
        ("run", "export DIR --format json"),
        ("run", "baseline save old --from DIR"),
        ("run", "baseline check old --against DIR"),
        ("tune", "tune --resume DIR"),
        ("submit", "submit --resume DIR"),
        ("submit", "fleet --resume DIR"),
    ],
)
def test_a_record(refused, of_other, write_profile, tmp_path, event, command):
    write_profile("mine")
    (tmp_path / "baselines").mkdir()
    if "check" in command:
        saved = baselines.from_record(session(tmp_path / "session"), "old")
        baselines.write(saved, tmp_path / "baselines/old.json", replace=False)
    folder = of_other(event)
    before = (folder / record.FILE_NAME).read_bytes()
    arguments = [str(folder) if word == "DIR" else word for word in shlex.split(command)]
    options = ("--folder", tmp_path / "baselines") if arguments[0] == "baseline" else ()
    assert refused(*arguments, *options) == said(folder / record.FILE_NAME, "record", record.SCHEMA)
    assert (folder / record.FILE_NAME).read_bytes() == before
    assert [path.name for path in folder.iterdir()] == [record.FILE_NAME]


def test_json_has_the_code_and_the_fields(cli, of_other):
    result = cli("report", of_other(), "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.returncode, error["code"]) == (2, OtherSchema.code)
    assert (error["kind"], error["found"], error["readable"]) == ("record", OTHER, record.SCHEMA)


def test_history_names_the_record_and_goes_on(cli, of_other, tmp_path):
    of_other()
    records.write(tmp_path / "good", records.run_events())
    result = cli("history", tmp_path)
    assert result.returncode == 0
    assert "mine" in result.stdout
    reason = text(OtherSchema(record.FILE_NAME, "record", OTHER, record.SCHEMA))
    assert f"not read: run: {reason}" in result.stdout.splitlines()
    (unread,) = json.loads(cli("history", tmp_path, "--json").stdout)["unreadable"]
    assert unread["problem"] == reason


def test_a_baseline(refused, tmp_path):
    path = tmp_path / "old.json"
    baselines.write(baselines.from_record(session(tmp_path / "session"), "old"), path, replace=False)
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": OTHER}))
    for command in (["check", path, "--against", tmp_path / "session"], ["diff", path, path]):
        assert refused("baseline", *command) == said(path, "baseline", baselines.SCHEMA)


def test_a_node_s_record_in_a_fleet_is_left_out_with_the_reason(cli, tmp_path):
    place = fleet(tmp_path / "fleet")
    path = place / "n03" / record.FILE_NAME
    path.write_text(path.read_text().replace(f'"schema": {record.SCHEMA}', f'"schema": {OTHER}', 1))
    result = cli("fleet", "report", place, "--json")
    reason = OtherSchema(record.FILE_NAME, "record", OTHER, record.SCHEMA)
    assert {"name": "n03", "reason": reason.to_json() | {"anew": []}} in json.loads(result.stdout)["left_out"]


def test_a_fleet_s_report(refused, tmp_path):
    now, then = fleet(tmp_path / "now"), fleet(tmp_path / "then")
    path = then / kept.FILE_NAME
    path.write_text(json.dumps({"schema": OTHER, "nodes": []}))
    anew = ("envkit", "fleet", "report", str(then))
    assert refused("fleet", "diff", then, now) == said(path, "fleet report", kept.SCHEMA, anew)


def test_a_submission(tmp_path):
    (tmp_path / settings.FILE_NAME).write_text(json.dumps({"schema": OTHER}))
    with pytest.raises(InputError) as error:
        settings.Settings.read(tmp_path)
    expected = OtherSchema(str(tmp_path / settings.FILE_NAME), "submission", OTHER, settings.SCHEMA)
    assert error.value.message == expected
