"""Hold a YAML file against a JSON schema (draft 2020-12), and say in one line what is wrong, where, and how to fix it.

``x-fix`` in a schema is what that line ends with. Readers of a file check what a schema can't express.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from envkit import __version__
from envkit.common import folders
from envkit.common.errors import InputError
from envkit.common.messages import (
    BAD_KEYS,
    BAD_NAME,
    EMPTY,
    TYPES,
    BadForm,
    BadValue,
    BelowMinimum,
    DependentKey,
    MissingKey,
    NotAChoice,
    NoValidator,
    UnknownKey,
    WrongType,
)
from envkit.common.suggestion import nearest
from envkit.common.yamlfile import Path_, YamlFile
from envkit.messages import Message

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

# The checkout, or site-packages.
KIT = next((folder for folder in Path(__file__).resolve().parents[2:4] if (folder / "envprofiles").is_dir()),
           Path(__file__).resolve().parents[2])  # fmt: skip
LONGEST = 60
# The digests of files that this process has found valid.
_ACCEPTED: set[str] = set()


def validate(file: YamlFile, *schemas: Path) -> None:
    """Raise InputError unless ``file`` is as the first of the schemas says, which may refer to the others by ``$id``.

    Importing jsonschema takes a fifth as long as all else that ``envkit show`` imports. So the user's cache remembers
    what was accepted, and so does this process. jsonschema may be missing, as in a Python with only what training
    needs. The kit's own files are then taken as they are: its tests check them.
    """
    texts = tuple(path.read_text(encoding="utf-8") for path in schemas)
    digest = hashlib.sha256(repr((__version__, texts, file.data)).encode()).hexdigest()
    if digest in _ACCEPTED:
        return
    accepted = None
    with contextlib.suppress(RuntimeError):  # no home
        accepted = folders.cache() / "valid" / digest
        if os.access(accepted, os.F_OK):
            return
    try:
        errors = list(_validator(texts).iter_errors(file.data))
    except ImportError:
        if file.path.resolve().is_relative_to(KIT):
            return
        raise InputError(NoValidator(str(file.path))) from None
    if errors:
        raise file.error(*violation(min(errors, key=lambda error: _urgency(file, error)), file.texts))
    _ACCEPTED.add(digest)
    if accepted is not None:
        with contextlib.suppress(OSError):
            accepted.parent.mkdir(parents=True, exist_ok=True)
            accepted.touch()


@functools.cache
def _validator(texts: tuple[str, ...]) -> Draft202012Validator:
    import jsonschema
    import referencing
    from referencing.jsonschema import DRAFT202012

    draft = jsonschema.Draft202012Validator
    types = draft.TYPE_CHECKER.redefine("integer", lambda checker, value: type(value) is int)  # JSON takes 2.0 for one
    schemas = [json.loads(text) for text in texts]
    registry = referencing.Registry().with_resources(
        (schema["$id"], DRAFT202012.create_resource(schema)) for schema in schemas
    )
    return jsonschema.validators.extend(draft, type_checker=types)(schemas[0], registry=registry)


def _urgency(file: YamlFile, error: ValidationError) -> tuple[bool, int]:
    """Unknown keys come first, as they explain what is missing."""
    return error.validator != "additionalProperties", file.lines.get(tuple(error.absolute_path), 1)


def violation(error: ValidationError, texts: Mapping[Path_, str] | None = None) -> tuple[Path_, Message]:
    """Return where a document breaks its schema, and how, from the validator's keyword and values, never from its text.

    ``texts`` has scalars as they are written in the file.
    """
    at: Path_ = tuple(error.absolute_path)
    value, fix = error.instance, error.schema.get("x-fix")
    if "propertyNames" in error.absolute_schema_path:
        return (*at, value), BadForm(_quoted((*at, value)), BAD_NAME, fix)
    if error.validator in _OF_KEYS:
        key, message = _OF_KEYS[error.validator](at, error)
        return (*at, *key), message
    return at, _of_value(_quoted(at), _in_words((texts or {}).get(at), value), error)


def _of_value(key: str, in_words: str, error: ValidationError) -> Message:
    rule, limit, fix = error.validator, error.validator_value, error.schema.get("x-fix")
    match rule:
        case "type":
            types = tuple(TYPES[name] for name in ([limit] if isinstance(limit, str) else limit) if name in TYPES)
            message: Message = WrongType(key, types, in_words, fix)
        case "enum":
            message = _not_a_choice(key, in_words, error.instance, tuple(map(str, limit)))
        case "minimum":
            message = BelowMinimum(key, in_words, least=limit, fix=fix)
        case "exclusiveMinimum":
            message = BelowMinimum(key, in_words, above=limit, fix=fix)
        case "minItems" | "minProperties":
            message = BadForm(key, EMPTY, fix)
        case "oneOf" | "anyOf":
            message = BadForm(key, BAD_KEYS, fix)
        case _:
            message = BadValue(key, in_words, rule, fix)
    return message


def not_a_choice(file: YamlFile, at: Path_, value: object, choices: tuple[str, ...]) -> NotAChoice:
    """Return what is wrong with a value that must be one of ``choices``, which no schema lists."""
    return _not_a_choice(_quoted(at), _in_words(file.texts.get(at), value), value, choices)


def _not_a_choice(key: str, in_words: str, value: object, choices: tuple[str, ...]) -> NotAChoice:
    return NotAChoice(key, in_words, choices, nearest(value, choices) if isinstance(value, str) else None)


def _unknown(at: Path_, error: ValidationError) -> tuple[Path_, Message]:
    properties, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    key = next(
        key for key in error.instance if key not in properties and not any(re.search(each, key) for each in patterns)
    )
    valid = (*properties, *(schema.get("title", key) for key, schema in patterns.items()))
    return (key,), UnknownKey(_name((*at, key)), valid, nearest(str(key), valid))


def _missing(at: Path_, error: ValidationError) -> tuple[Path_, Message]:
    key = next(key for key in error.validator_value if key not in error.instance)
    schema = error.schema.get("properties", {}).get(key, {})
    return (), MissingKey(_name((*at, key)), schema.get("x-fix", "add it"))


def _dependent(at: Path_, error: ValidationError) -> tuple[Path_, Message]:
    value, rules = error.instance, error.validator_value
    key = next(key for key, others in rules.items() if key in value and not set(others) <= set(value))
    other = next(other for other in rules[key] if other not in value)
    return (key,), DependentKey(_name((*at, key)), _name((*at, other)))


# Keywords of JSON Schema about a mapping's keys: at which key the mapping is wrong, and how.
_OF_KEYS: dict[str, Callable[[Path_, ValidationError], tuple[Path_, Message]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _dependent,
}


def _name(at: Path_) -> str:
    return _one_line(".".join(map(str, at)))


def _quoted(at: Path_) -> str:
    return f"'{_name(at)}'" if at else "the file"


def _in_words(written: str | None, value: object) -> str:
    if value is None or isinstance(value, (dict, list)):
        return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"
    text = _one_line(str(value) if written is None else written)
    return f"'{text}'" if isinstance(value, str) else text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]}…{line[-LONGEST // 2 :]}"
