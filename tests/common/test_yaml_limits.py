"""What is too much is refused by what it says, before anything is built of it."""

from __future__ import annotations

import pytest
import yaml
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.common.messages import InFile, RecursiveAnchor, TooDeep, TooLarge, TooManyValues
from envkit.common.yaml_limits import DEEPEST, LARGEST, MOST_VALUES
from envkit.rendering import text

# Each list is nine times the one before it: written out there would be 9 ** 9 texts.
NESTED = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG = f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 200)}]\n"
MUCH = TooManyValues(MOST_VALUES, LARGEST)


@pytest.fixture(params=[True, False], ids=["libyaml", "python"])
def reader(request, monkeypatch, tmp_path):
    """Read a text as a file, with libyaml and without it."""
    monkeypatch.setattr(yaml, "__with_libyaml__", request.param and yaml.__with_libyaml__)

    def read(text):
        (tmp_path / "some.yaml").write_text(text)
        return yamlfile.read(tmp_path / "some.yaml").data

    return read


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (NESTED, 4, MUCH),
        (LONG, 2, MUCH),
        ("env:\n" + "".join(f"  A{number}: x\n" for number in range(MOST_VALUES)), 2500, MUCH),
        (f"a: {'[' * 500}{']' * 500}\n", 1, TooDeep(DEEPEST)),
        (f"a: {'{a: ' * 500}\n", 1, TooDeep(DEEPEST)),
        ("a: &a [[[[x]]]]\nb:\n  - [[[*a]]]\n", 3, TooDeep(DEEPEST)),
        ("a: 1\nb: &b\n  c: [*b]\n", 3, RecursiveAnchor("b")),
    ],
    ids=["nested aliases", "long aliases", "many values", "brackets", "braces", "deep aliases", "circle"],
)
def test_too_much_is_refused_with_its_reason(reader, tmp_path, text, line, problem):
    with pytest.raises(InputError) as caught:
        reader(text)
    assert caught.value.message == InFile(str(tmp_path / "some.yaml"), line, problem)


def test_a_large_file_is_refused(reader, tmp_path):
    with pytest.raises(InputError) as caught:
        reader("env:\n" + f"  A: {'x' * 99}\n" * (LARGEST // 99))
    assert caught.value.message == TooLarge(str(tmp_path / "some.yaml"), LARGEST)


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
    assert refused(*command, path) == f"envkit: {text(InFile(str(path), 4, MUCH))}"
