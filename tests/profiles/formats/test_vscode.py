from __future__ import annotations

import json

import jsonschema
import pytest
from envkit.common.errors import InputError
from envkit.profiles.formats.vscode import vscode
from envkit.profiles.messages import NotExpressible
from hypothesis import given

from tests.profiles.formats.resolving import VALUES, resolved
from tests.refusals import refusal

TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
# Of what VS Code and its Python debugger take, what is used here.
CONFIGURATION = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1}, "type": {"const": "debugpy"},
        "request": {"enum": ["launch", "attach"]}, "program": {"type": "string"},
        "console": {"enum": ["internalConsole", "integratedTerminal", "externalTerminal"]}, "env": TEXTS,
    },
    "required": ["name", "type", "request"],
    "additionalProperties": False,
}  # fmt: skip
LAUNCH = {
    "type": "object",
    "properties": {"version": {"const": "0.2.0"}, "configurations": {"type": "array", "items": CONFIGURATION}},
    "required": ["version", "configurations"],
    "additionalProperties": False,
}
SETTINGS = {
    "type": "object",
    "properties": {"terminal.integrated.env.linux": TEXTS, "launch": LAUNCH},
    "required": ["terminal.integrated.env.linux", "launch"],
    "additionalProperties": False,
}


@given(VALUES)
def test_settings_for_terminals_and_the_debugger(variables):
    if any("${" in value for value in variables.values()):
        with pytest.raises(InputError):
            vscode(resolved(variables))
        return
    settings = json.loads(vscode(resolved(variables)))
    jsonschema.validate(settings, SETTINGS)
    assert settings["terminal.integrated.env.linux"] == variables
    assert [one["env"] for one in settings["launch"]["configurations"]] == [variables]


def test_what_the_editor_would_replace_is_refused():
    found = refusal(vscode, resolved({"X": "${env:HOME}"}))
    assert isinstance(found, NotExpressible)
    assert (found.format, found.name) == ("vscode", "X")
