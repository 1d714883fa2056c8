"""What is said of a file that is not as its schema says, and when nothing is checked again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from envkit.common import schema, user_folders, yamlfile
from envkit.common.errors import InputError
from envkit.engines.base import PROJECT
from jsonschema import Draft202012Validator

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SHAPE = {
    "$schema": DRAFT,
    "$id": "shape.schema.json",
    "required": ["name"],
    "dependentRequired": {"unit": ["value"]},
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "x-fix": "put it in quotes"},
        "unit": {"enum": ["s", "ms"]},
        "value": {"type": ["integer", "null"], "minimum": 1},
        "word": {"pattern": "^a"},
        "items": {
            "type": "array", "minItems": 1, "x-fix": "add one", "items": {"$ref": "other.schema.json#/$defs/item"},
        },
        "map": {
            "propertyNames": {"pattern": "^[a-z. ]+$(?!\\n)", "x-fix": "use small letters"},
            "properties": {"gone": {"not": {}, "x-fix": "remove it"}},
            "patternProperties": {"^x\\.": {"title": "x.NAME"}},
            "additionalProperties": False,
        },
        "either": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "x-fix": "give a or b"},
    },
}  # fmt: skip
OTHER = {"$schema": DRAFT, "$id": "other.schema.json", "$defs": {"item": {"type": "boolean"}}}


@pytest.fixture
def check(tmp_path):
    """Hold lines behind ``name: x`` (of line 1) against SHAPE; the refusal without its file, or None."""
    for one in (SHAPE, OTHER):
        (tmp_path / one["$id"]).write_text(json.dumps(one))

    def validate(text: str, name: str = "name: x\n") -> str | None:
        path = tmp_path / "some.yaml"
        path.write_text(name + text)
        try:
            schema.validate(yamlfile.read(path), *(tmp_path / one["$id"] for one in (SHAPE, OTHER)))
        except InputError as error:
            return str(error).removeprefix(f"{path}:")
        return None

    return validate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nmae: y\n", "2: unknown key 'nmae' (did you mean 'name'?); there are: name, unit, value, word, items, "),
        ("value: 0\n", "2: 'value' must be 1 or more, not 0"),
        ("value: 1.0\n", "2: 'value' must be a whole number, not 1.0"),
        ("value: yes\n", "2: 'value' must be a whole number, not yes"),
        ("value: 2026-01-01\n", "2: 'value' must be a whole number, not 2026-01-01"),
        ("unit: s\n", "2: 'unit' means nothing without 'value'; add that, or remove this"),
        ("value: 1\nunit: mss\n", "3: 'unit' can't be 'mss' (did you mean 'ms'?); there are: s, ms"),
        ("value: 1\nunit: [s]\n", "3: 'unit' can't be a list; there are: s, ms"),
        ("value: 1\nunit:\n", "3: 'unit' can't be nothing; there are: s, ms"),
        ("word: 'b\n\n  c'\n", "2: 'word' can't be 'b c'"),
        (f"word: {'b' * 99}\n", f"2: 'word' can't be '{'b' * 30}…{'b' * 30}'"),
        ("items: []\n", "2: 'items' is empty; add one"),
        ("items: {a: 1}\n", "2: 'items' must be a list, not a mapping; add one"),
        ("items:\n- yes\n- 0x10\n", "4: 'items.1' must be true/false, not 0x10"),
        ("map: {a: 1}\n", "2: unknown key 'map.a'; there are: gone, x.NAME"),
        ("map:\n  x.a: 1\n  x.A: 1\n", "4: 'map.x.A' can't be called so; use small letters"),
        ('map: {"x.a\\n": 1}\n', "2: 'map.x.a' can't be called so; use small letters"),
        ("map:\n  gone: 1\n", "3: 'map.gone' can't be 1; remove it"),
        ("either: {}\n", "2: 'either' is not right; give a or b"),
        # an unknown key comes first, then what stands first
        ("value: 0\nmap: {a: 1}\n", "3: unknown key 'map.a'"),
        ("word: b\nvalue: 0\n", "2: 'word'"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong_where_and_how_to_fix_it(check, text, said):
    message = check(text)
    assert message.startswith(said)
    assert "\n" not in message


def test_what_is_missing_gets_the_fix_of_its_key(check):
    assert check("value: 1\n", name="") == "1: 'name' is missing; put it in quotes"
    assert check("nmae: x\n", name="").startswith("1: unknown key 'nmae' (did you mean 'name'?)")


def test_what_was_accepted_is_not_held_against_the_same_schema_again(check, tmp_path, monkeypatch):
    assert check("value: 1\n") is None
    monkeypatch.setattr(schema, "_validator", None)
    assert check("value: 1\n") is None
    assert check("# a comment\nvalue: 1\n") is None
    with pytest.raises(TypeError):
        check("value: 2\n")
    (tmp_path / OTHER["$id"]).write_text("{}")
    with pytest.raises(TypeError):
        check("value: 1\n")


def test_what_was_refused_is_refused_again(check):
    assert [check("value: 0\n") for _ in range(2)] == ["2: 'value' must be 1 or more, not 0"] * 2


def test_nothing_need_be_remembered(check, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert check("value: 1\n") is None

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(user_folders, "cache", no_home)
    assert check("value: 1\n") is None
    assert check("value: 0\n").startswith("2: ")


def test_without_jsonschema_only_the_kits_own_files_are_taken(check, monkeypatch, tmp_path):
    schema._validator.cache_clear()
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert check("value: 1\n") == " can't be checked without the package jsonschema; install it"
    monkeypatch.setattr(schema, "KIT", tmp_path)
    assert check("value: 0\n") is None


@pytest.mark.parametrize(
    "path", sorted((PROJECT / "runner/envkit").glob("*/schemas/*.json")), ids=lambda path: path.name
)
def test_the_kits_schemas_are_schemas(path):
    Draft202012Validator.check_schema(json.loads(path.read_text()))
