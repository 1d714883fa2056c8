from __future__ import annotations

import json
from string import Template

import jsonschema
import pytest
from envkit.profiles.formats.jupyter import jupyter, missing
from envkit.profiles.messages import NotExpressible
from hypothesis import given

from tests.profiles.formats.resolving import VALUES, resolved
from tests.refusals import refusal

# Of what a kernelspec may have, what is used here.
KERNEL = {
    "type": "object",
    "properties": {
        "argv": {"type": "array", "items": {"type": "string"}, "minItems": 5},
        "display_name": {"type": "string", "minLength": 1}, "language": {"const": "python"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}}, "metadata": {"type": "object"},
    },
    "required": ["argv", "display_name", "language", "env"],
    "additionalProperties": False,
}  # fmt: skip
HERE = "/opt/my python/bin/python"


@given(VALUES)
def test_a_kernel_has_every_value_whole_or_it_is_refused(variables):
    if any("$" in value for value in variables.values()):
        found = refusal(jupyter, resolved(variables))
        assert isinstance(found, NotExpressible)
        assert (found.format, found.name in variables) == ("jupyter", True)
        return
    kernel = json.loads(jupyter(resolved(variables)))
    jsonschema.validate(kernel, KERNEL)
    # what Jupyter makes of them
    assert {name: Template(value).safe_substitute({"HOME": "/"}) for name, value in kernel["env"].items()} == variables


def test_the_interpreter_starts_behind_the_prefix():
    kernel = json.loads(jupyter(resolved({"A": "1"}, prefix=["numactl", "-l"], python=HERE)))
    assert kernel["argv"] == ["numactl", "-l", HERE, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert kernel["display_name"] == "Python under mine"
    machine = "profile mine, resolved for 4 usable CPUs on 2 cores of here (a CPU); local python"
    assert kernel["metadata"]["envkit"] == {"resolved": machine}


@pytest.mark.parametrize("word", ["{prefix}", "--x={resource_dir}", "{a_1}"])
def test_a_name_in_braces_is_no_word_of_a_command(word):
    for where in ({"prefix": ["env", word]}, {"python": f"/opt/{word}/python"}):
        found = refusal(jupyter, resolved(**where))
        assert isinstance(found, NotExpressible)
        assert (found.format, found.name) == ("jupyter", "its command")
    assert "{0},{1}-{}" in jupyter(resolved({"OMP_PLACES": word + "{0},{1}-{}"}))


def test_an_interpreter_without_ipykernel_is_named(tmp_path):
    (tmp_path / "has").mkdir()
    (tmp_path / "has/ipykernel_launcher.py").touch()
    without = (str(tmp_path), str(tmp_path / "none"))
    said = f"{HERE} has no ipykernel, which starts kernels: install it there, or give --python"
    assert missing(resolved(python=HERE, package_folders=without)) == [said]
    assert missing(resolved(python=HERE, package_folders=(*without, str(tmp_path / "has")))) == []
    assert missing(resolved()) == []
