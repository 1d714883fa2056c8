"""What is too much is refused by what it says, before anything is built of it."""

from __future__ import annotations

import pytest
import yaml
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.common.yaml_limits import DEEPEST, LARGEST, MOST_VALUES

# Each list is nine times the one before it: written out there would be 9 ** 9 texts.
NESTED = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG = f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 200)}]\n"
MUCH = "too much: with what its aliases stand for it has more than 5,000 values, or 131,072 characters; leave some out"


@pytest.fixture(params=[True, False], ids=["libyaml", "python"])
def reader(request, monkeypatch, tmp_path):
    """Read a text as a file, with libyaml and without it."""
    monkeypatch.setattr(yaml, "__with_libyaml__", request.param and yaml.__with_libyaml__)

    def read(text):
        (tmp_path / "some.yaml").write_text(text)
        return yamlfile.read(tmp_path / "some.yaml").data

    return read


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (NESTED, ":4: not valid YAML: " + MUCH),
        (LONG, ":2: not valid YAML: " + MUCH),
        ("env:\n" + "".join(f"  A{number}: x\n" for number in range(MOST_VALUES)), ":2500: not valid YAML: " + MUCH),
        ("env:\n" + f"  A: {'x' * 99}\n" * (LARGEST // 99), ": is larger than 128 KiB, "),
        (f"a: {'[' * 500}{']' * 500}\n", ":1: not valid YAML: too deep: nothing here has more than 8 levels; "),
        (f"a: {'{a: ' * 500}\n", ":1: not valid YAML: too deep"),
        ("a: &a [[[[x]]]]\nb:\n  - [[[*a]]]\n", ":3: not valid YAML: too deep"),
        ("a: 1\nb: &b\n  c: [*b]\n", ":3: not valid YAML: the anchor 'b' holds itself; write out what is meant"),
    ],
    ids=["nested aliases", "long aliases", "many values", "large", "brackets", "braces", "deep aliases", "circle"],
)
def test_too_much_is_refused_with_its_reason(reader, tmp_path, text, where):
    with pytest.raises(InputError) as caught:
        reader(text)
    assert str(caught.value).startswith(f"{tmp_path}/some.yaml{where}")


def test_what_is_within_the_limits_is_read(reader):
    assert reader("a: &a [x, y]\nb: {c: *a, d: *a}\n") == {"a": ["x", "y"], "b": {"c": ["x", "y"], "d": ["x", "y"]}}
    deepest = DEEPEST - 1  # in the file's own mapping
    assert reader(f"a: {'[' * deepest}x{']' * deepest}\n")["a"]


@pytest.mark.parametrize(
    "command",
    [("show",), ("tune", "--space"), ("bench", "intel-omp", "--workload")],
    ids=["profile", "space", "workload"],
)
def test_every_file_is_looked_at_first(refused, tmp_path, command):
    path = tmp_path / "mine.yaml"
    path.write_text(NESTED)
    assert refused(*command, path) == f"envkit: {path}:4: not valid YAML: {MUCH}"
