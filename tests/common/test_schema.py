"""What is said of a file that is not as its schema says, and when nothing is checked again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from envkit import rendering
from envkit.common import folders, schema, yamlfile
from envkit.common.errors import InputError
from envkit.common.messages import (
    BAD_KEYS,
    BAD_NAME,
    EMPTY,
    BadForm,
    BadValue,
    BelowMinimum,
    DependentKey,
    InFile,
    MissingKey,
    NotAChoice,
    NoValidator,
    UnknownKey,
    WrongType,
)
from envkit.engines.base import PROJECT
from envkit.messages import Message
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
    """Hold lines behind ``name: x`` (of line 1) against SHAPE. Return the refusal, or None."""
    for one in (SHAPE, OTHER):
        (tmp_path / one["$id"]).write_text(json.dumps(one))

    def validate(text: str, name: str = "name: x\n") -> Message | str | None:
        path = tmp_path / "some.yaml"
        path.write_text(name + text)
        try:
            schema.validate(yamlfile.read(path), *(tmp_path / one["$id"] for one in (SHAPE, OTHER)))
        except InputError as error:
            return error.message
        return None

    return validate


KEYS = ("name", "unit", "value", "word", "items", "map", "either")
WHOLE = ("a whole number",)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("nmae: y\n", 2, UnknownKey("nmae", KEYS, "name")),
        ("value: 0\n", 2, BelowMinimum("'value'", "0", 1)),
        ("value: 1.0\n", 2, WrongType("'value'", WHOLE, "1.0")),
        ("value: yes\n", 2, WrongType("'value'", WHOLE, "yes")),
        ("value: 2026-01-01\n", 2, WrongType("'value'", WHOLE, "2026-01-01")),
        ("unit: s\n", 2, DependentKey("unit", "value")),
        ("value: 1\nunit: mss\n", 3, NotAChoice("'unit'", "'mss'", ("s", "ms"), "ms")),
        ("value: 1\nunit: [s]\n", 3, NotAChoice("'unit'", "a list", ("s", "ms"))),
        ("value: 1\nunit:\n", 3, NotAChoice("'unit'", "nothing", ("s", "ms"))),
        ("word: 'b\n\n  c'\n", 2, BadValue("'word'", "'b c'", "pattern")),
        (f"word: {'b' * 99}\n", 2, BadValue("'word'", f"'{'b' * 30}…{'b' * 30}'", "pattern")),
        ("items: []\n", 2, BadForm("'items'", EMPTY, "add one")),
        ("items: {a: 1}\n", 2, WrongType("'items'", ("a list",), "a mapping", "add one")),
        ("items:\n- yes\n- 0x10\n", 4, WrongType("'items.1'", ("true/false",), "0x10")),
        ("map: {a: 1}\n", 2, UnknownKey("map.a", ("gone", "x.NAME"))),
        ("map:\n  x.a: 1\n  x.A: 1\n", 4, BadForm("'map.x.A'", BAD_NAME, "use small letters")),
        ('map: {"x.a\\n": 1}\n', 2, BadForm("'map.x.a'", BAD_NAME, "use small letters")),
        ("map:\n  gone: 1\n", 3, BadValue("'map.gone'", "1", "not", "remove it")),
        ("either: {}\n", 2, BadForm("'either'", BAD_KEYS, "give a or b")),
        # an unknown key comes first, then what stands first
        ("value: 0\nmap: {a: 1}\n", 3, UnknownKey("map.a", ("gone", "x.NAME"))),
        ("word: b\nvalue: 0\n", 2, BadValue("'word'", "'b'", "pattern")),
    ],
)  # fmt: skip
def test_a_message_says_what_is_wrong_where_and_how_to_fix_it(check, tmp_path, text, line, problem):
    assert check(text) == InFile(str(tmp_path / "some.yaml"), line, problem)


def test_what_is_missing_gets_the_fix_of_its_key(check):
    assert check("value: 1\n", name="").problem == MissingKey("name", "put it in quotes")
    assert check("nmae: x\n", name="").problem == UnknownKey("nmae", KEYS, "name")


def test_the_text_of_each_problem():
    """The one place that holds the whole English of a file that breaks its schema."""
    said = {
        UnknownKey("n", ("name", "unit"), "name"): "unknown key 'n' (did you mean 'name'?); the keys are: name, unit",
        MissingKey("name", "put it in quotes"): "'name' is missing; put it in quotes",
        DependentKey("unit", "value"): "'unit' has no effect without 'value'; add 'value', or remove 'unit'",
        WrongType("'a'", ("a list", "a text"), "1", "add one"): "'a' must be a list or a text, not 1; add one",
        NotAChoice("'u'", "'m'", ("s", "ms"), "ms"): "'u' can't be 'm' (did you mean 'ms'?); the choices are: s, ms",
        BelowMinimum("'value'", "0", 1): "'value' must be 1 or more, not 0",
        BadForm("'items'", EMPTY, "add one"): "'items' is empty; add one",
        BadForm("'x.A'", BAD_NAME, "use small letters"): "'x.A' is not a valid name; use small letters",
        BadForm("'either'", BAD_KEYS, "give a or b"): "'either' does not have the keys that it needs; give a or b",
        BadValue("'word'", "'b'", "pattern"): "'word' can't be 'b'",
    }  # fmt: skip
    assert {one: rendering.text(one) for one in said} == said
    assert rendering.text(InFile("x.yaml", 1200, BadForm("'items'", EMPTY))) == "x.yaml:1200: 'items' is empty"


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
    assert [check("value: 0\n").problem for _ in range(2)] == [BelowMinimum("'value'", "0", 1)] * 2


def test_nothing_need_be_remembered(check, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert check("value: 1\n") is None

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(folders, "cache", no_home)
    assert check("value: 1\n") is None
    assert check("value: 0\n").line == 2


def test_without_jsonschema_only_the_kits_own_files_are_taken(check, monkeypatch, tmp_path):
    schema._validator.cache_clear()
    schema._ACCEPTED.clear()
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert check("value: 1\n") == NoValidator(str(tmp_path / "some.yaml"))
    monkeypatch.setattr(schema, "KIT", tmp_path)
    assert check("value: 0\n") is None


@pytest.mark.parametrize(
    "path", sorted((PROJECT / "runner/envkit").glob("*/schemas/*.json")), ids=lambda path: path.name
)
def test_the_kits_schemas_are_schemas(path):
    Draft202012Validator.check_schema(json.loads(path.read_text()))
