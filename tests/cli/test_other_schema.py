"""Files of another schema: each kind is refused with one message, before anything starts, and stays as it was.

The number of a schema changes with the shape of its documents.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any

import msgspec
import pytest
from envkit.analysis import baselines
from envkit.bench import record
from envkit.bench.events import EVENTS, Beginning
from envkit.bench.study import Study
from envkit.cluster.fleet import kept
from envkit.cluster.slurm import settings
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.tuning.study import SearchSettings

from tests import records
from tests.cluster.fleet.nodes import fleet
from tests.sessions import session

OTHER = 99


@pytest.fixture
def of_other(tmp_path):
    """Write a record, which begins with such an event, as another version would; returns its folder."""

    def write(event="run", name="run"):
        first, *rest = records.run_events()
        return records.write(tmp_path / name, [{**first, "event": event, "schema": OTHER}, *rest])

    return write


def said(path, kind, readable, anew=()):
    return f"envkit: {text(OtherSchema.of(str(path), kind, OTHER, readable, anew))}"


def test_the_message_names_the_file_its_schema_and_what_to_do():
    message = OtherSchema.of("a/record.jsonl", "record", 1, 2)
    assert message.code == "common.other-schema"
    assert text(message) == (
        "a/record.jsonl: this record has an earlier format (schema 1), and this version of envkit reads schema 2; "
        "measure again"
    )
    assert "has a later format (schema 3)" in text(OtherSchema.of("f", "record", 3, 2))
    assert text(OtherSchema.of("f", "fleet report", 2, 1, ("envkit", "fleet", "report", "a b"))).endswith(
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
    result = cli("history", tmp_path).ended(0)
    assert "mine" in result.stdout
    reason = text(OtherSchema.of(record.FILE_NAME, "record", OTHER, record.SCHEMA))
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
    reason = OtherSchema.of(record.FILE_NAME, "record", OTHER, record.SCHEMA)
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
    expected = OtherSchema.of(str(tmp_path / settings.FILE_NAME), "submission", OTHER, settings.SCHEMA)
    assert error.value.message == expected


def plain(part: Any, definitions: dict[str, Any], complete: bool) -> Any:
    """Return a JSON schema without names of classes, docstrings and defaults; also without optional keys, if so."""
    if isinstance(part, list):
        return [plain(item, definitions, complete) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return plain(definitions[part["$ref"].rpartition("/")[2]], definitions, complete)
    kept = {key: value for key, value in part.items() if key not in ("title", "description", "default")}
    if "properties" in kept:
        names = [name for name in kept.pop("properties") if complete or name in part.get("required", ())]
        kept["keys"] = [[name, plain(part["properties"][name], definitions, complete)] for name in sorted(names)]
    return {key: plain(value, definitions, complete) for key, value in kept.items()}


def shape(kinds: dict[type, bool]) -> str:
    """Return a digest of the documents of these classes; of those with False only of the keys that must be there."""
    schemas = []
    for kind, complete in kinds.items():
        (schema,), definitions = msgspec.json.schema_components([kind], schema_hook=lambda of: {"type": of.__name__})
        schemas.append(plain(schema, definitions, complete))
    return hashlib.sha256(json.dumps(schemas, sort_keys=True).encode()).hexdigest()[:16]


# A study's unknown keys are refused, so all of its keys count. Other events may lack a key that has a default.
OF_RECORD = dict.fromkeys(EVENTS.values(), False) | dict.fromkeys((Beginning, Study, Environment, SearchSettings), True)


@pytest.mark.parametrize(("owner", "kinds"), [(record, OF_RECORD), (settings, {settings.Settings: True})])
def test_documents_of_another_shape_have_another_number(owner, kinds):
    expected = shape(kinds)
    assert expected == owner.SHAPE, (
        f"{owner.__name__}: documents have another shape: earlier files would be refused for a key, or misread. "
        f"Set SHAPE to {expected}. Raise SCHEMA by one, unless it was raised since the last landing on main."
    )


def test_a_shape_has_keys_and_types_and_no_words():
    """Keys and types change it. Names of classes, docstrings and defaults do not."""

    class Earlier(msgspec.Struct):
        """Say this."""

        blocks: int
        extra: str = ""

    class Renamed(msgspec.Struct):
        blocks: int
        extra: str = "none"

    class OtherType(msgspec.Struct):
        blocks: float
        extra: str = ""

    class OtherKey(msgspec.Struct):
        blocks: int
        more: str = ""

    assert shape({Earlier: True}) == shape({Renamed: True})
    assert shape({Earlier: False}) == shape({OtherKey: False}) != shape({OtherType: False})
    assert len({shape({kind: True}) for kind in (Earlier, OtherType, OtherKey)}) == 3
