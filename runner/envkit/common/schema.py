"""Hold a YAML file against a JSON schema (draft 2020-12), and say in one line what is wrong, where, and how to fix it.

``x-fix`` in a schema is what that line ends with. What a schema can't say is checked by whoever reads the file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from envkit import __version__
from envkit.common import user_folders
from envkit.common.errors import InputError
from envkit.common.suggestion import suggestion
from envkit.common.yamlfile import Path_, YamlFile

# The checkout, or site-packages.
KIT = next((folder for folder in Path(__file__).resolve().parents[2:4] if (folder / "envprofiles").is_dir()),
           Path(__file__).resolve().parents[2])  # fmt: skip
TYPES = {  # all but null, which only takes away
    "array": "a list", "boolean": "true/false", "integer": "a whole number", "number": "a number",
    "object": "a mapping", "string": "a text",
}  # fmt: skip
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
        raise InputError(f"{file.path}: can't be checked without the package jsonschema; install it") from None
    if errors:
        raise file.error(*_wrong(file, min(errors, key=lambda error: _urgency(file, error))))
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


def _wrong(file: YamlFile, error: Any) -> tuple[Path_, str]:
    """Where it is wrong, and what is."""
    at: Path_ = tuple(error.absolute_path)
    wanted, value, schema = error.validator_value, error.instance, error.schema
    found, fix = _found(file, at, value), schema.get("x-fix", "")
    problem = f"can't be {found}"
    if "propertyNames" in error.absolute_schema_path:
        at, problem = (*at, value), "can't be called so"
    match error.validator:
        case "additionalProperties":
            at = (*at, next(key for key in value if not _is_known(key, schema)))
            patterns = schema.get("patternProperties", {})
            known = [*schema.get("properties", ()), *(one.get("title", key) for key, one in patterns.items())]
            return at, f"unknown key {_name(at)}{suggestion(str(at[-1]), known)}; there are: {', '.join(known)}"
        case "required":
            missing = next(key for key in wanted if key not in value)
            fix = schema.get("properties", {}).get(missing, {}).get("x-fix", "add it")
            return at, f"{_name((*at, missing))} is missing; {fix}"
        case "dependentRequired":
            key = next(key for key, others in wanted.items() if key in value and not set(others) <= set(value))
            at, other = (*at, key), next(other for other in wanted[key] if other not in value)
            problem, fix = f"means nothing without '{other}'", "add that, or remove this"
        case "type":
            *types, last = [TYPES[one] for one in ([wanted] if isinstance(wanted, str) else wanted) if one in TYPES]
            problem = f"must be {', '.join(types)}{' or ' if types else ''}{last}, not {found}"
        case "enum":
            problem += suggestion(value, wanted) if isinstance(value, str) else ""
            fix = f"there are: {', '.join(map(str, wanted))}"
        case "minimum":
            problem = f"must be {wanted} or more, not {found}"
        case "minItems" | "minProperties":
            problem = "is empty"
        case "oneOf":
            problem = "is not right"
    return at, f"{_name(at)} {problem}{'; ' if fix else ''}{fix}"


def _is_known(key: str, schema: Any) -> bool:
    patterns = schema.get("patternProperties", ())
    return key in schema.get("properties", ()) or any(re.search(pattern, key) for pattern in patterns)


def _name(at: Path_) -> str:
    return f"'{_one_line('.'.join(map(str, at)))}'" if at else "the file"


def _found(file: YamlFile, at: Path_, value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"
    text = _one_line(file.texts.get(at, str(value)))
    return f"'{text}'" if isinstance(value, str) else text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]}…{line[-LONGEST // 2 :]}"
