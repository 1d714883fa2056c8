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
from typing import Any

from envkit import __version__
from envkit.common import user_folders
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

# The checkout, or site-packages.
KIT = next((folder for folder in Path(__file__).resolve().parents[2:4] if (folder / "envprofiles").is_dir()),
           Path(__file__).resolve().parents[2])  # fmt: skip
LONGEST = 60


def validate(file: YamlFile, *schemas: Path) -> None:
    """Raise InputError unless ``file`` is as the first of the schemas says, which may refer to the others by ``$id``.

    Importing jsonschema takes a fifth as long as all else that ``envkit show`` imports, so the user's cache remembers
    what was accepted. Where jsonschema is missing, as in a Python with only what training needs, the kit's own files
    are taken as they are: its tests check them.
    """
    texts = tuple(path.read_text(encoding="utf-8") for path in schemas)
    accepted = None
    with contextlib.suppress(RuntimeError):  # no home
        accepted = (
            user_folders.cache() / "valid" / hashlib.sha256(repr((__version__, texts, file.data)).encode()).hexdigest()
        )
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
    if accepted is not None:
        with contextlib.suppress(OSError):
            accepted.parent.mkdir(parents=True, exist_ok=True)
            accepted.touch()


@functools.cache
def _validator(texts: tuple[str, ...]) -> Any:
    import jsonschema
    import referencing

    documents = [json.loads(text) for text in texts]
    draft = jsonschema.Draft202012Validator
    types = draft.TYPE_CHECKER.redefine("integer", lambda checker, value: type(value) is int)  # JSON takes 2.0 for one
    registry: Any = referencing.Registry().with_contents((one["$id"], one) for one in documents)
    return jsonschema.validators.extend(draft, type_checker=types)(documents[0], registry=registry)


def _urgency(file: YamlFile, error: Any) -> tuple[bool, int]:
    """Unknown keys come first, as they explain what is missing."""
    return error.validator != "additionalProperties", file.lines.get(tuple(error.absolute_path), 1)


def violation(error: Any, texts: Mapping[Path_, str] | None = None) -> tuple[Path_, Message]:
    """Return where a document breaks its schema, and how, from the validator's keyword and values, never from its text.

    ``error`` is a ValidationError of jsonschema; ``texts`` has scalars as they are written in the file.
    """
    at: Path_ = tuple(error.absolute_path)
    value, schema = error.instance, error.schema
    fix = schema.get("x-fix")
    if "propertyNames" in error.absolute_schema_path:
        return (*at, value), BadForm(_quoted((*at, value)), BAD_NAME, fix)
    if error.validator in _OF_KEYS:
        key, message = _OF_KEYS[error.validator](at, error.validator_value, value, schema)
        return (*at, *key), message
    found = _found((texts or {}).get(at), value)
    return at, _of_value(error.validator, _quoted(at), error.validator_value, found, value, fix)


def _of_value(rule: str, key: str, wanted: Any, found: str, value: Any, fix: str | None) -> Message:
    match rule:
        case "type":
            types = tuple(TYPES[one] for one in ([wanted] if isinstance(wanted, str) else wanted) if one in TYPES)
            message: Message = WrongType(key, types, found, fix)
        case "enum":
            message = _not_a_choice(key, found, value, tuple(map(str, wanted)))
        case "minimum":
            message = BelowMinimum(key, found, least=wanted, fix=fix)
        case "exclusiveMinimum":
            message = BelowMinimum(key, found, above=wanted, fix=fix)
        case "minItems" | "minProperties":
            message = BadForm(key, EMPTY, fix)
        case "oneOf" | "anyOf":
            message = BadForm(key, BAD_KEYS, fix)
        case _:
            message = BadValue(key, found, rule, fix)
    return message


def not_a_choice(file: YamlFile, at: Path_, value: Any, choices: tuple[str, ...]) -> NotAChoice:
    """Return what is wrong with a value that must be one of ``choices``, which no schema lists."""
    return _not_a_choice(_quoted(at), _found(file.texts.get(at), value), value, choices)


def _not_a_choice(key: str, found: str, value: Any, choices: tuple[str, ...]) -> NotAChoice:
    return NotAChoice(key, found, choices, nearest(value, choices) if isinstance(value, str) else None)


def _unknown(at: Path_, wanted: Any, value: Any, schema: Any) -> tuple[Path_, Message]:
    key = next(key for key in value if not _is_known(key, schema))
    patterns = schema.get("patternProperties", {})
    known = (*schema.get("properties", ()), *(one.get("title", key) for key, one in patterns.items()))
    return (key,), UnknownKey(_name((*at, key)), known, nearest(str(key), known))


def _missing(at: Path_, wanted: Any, value: Any, schema: Any) -> tuple[Path_, Message]:
    key = next(key for key in wanted if key not in value)
    known = schema.get("properties", {}).get(key, {})
    return (), MissingKey(_name((*at, key)), known.get("x-fix", "add it"))


def _dependent(at: Path_, wanted: Any, value: Any, schema: Any) -> tuple[Path_, Message]:
    key = next(key for key, others in wanted.items() if key in value and not set(others) <= set(value))
    other = next(other for other in wanted[key] if other not in value)
    return (key,), DependentKey(_name((*at, key)), _name((*at, other)))


# What keywords of JSON Schema say of a mapping's keys: at which key the mapping is wrong, and how.
_OF_KEYS: dict[str, Callable[[Path_, Any, Any, Any], tuple[Path_, Message]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _dependent,
}


def _is_known(key: str, schema: Any) -> bool:
    patterns = schema.get("patternProperties", ())
    return key in schema.get("properties", ()) or any(re.search(pattern, key) for pattern in patterns)


def _name(at: Path_) -> str:
    return _one_line(".".join(map(str, at)))


def _quoted(at: Path_) -> str:
    return f"'{_name(at)}'" if at else "the file"


def _found(written: str | None, value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"
    text = _one_line(str(value) if written is None else written)
    return f"'{text}'" if isinstance(value, str) else text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]}…{line[-LONGEST // 2 :]}"
