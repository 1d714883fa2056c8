from __future__ import annotations

import pytest
import yaml
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.common.messages import (
    ComplexKey,
    DuplicateKey,
    HalfCharacter,
    InFile,
    InvalidScalar,
    InvalidYaml,
    NotAMapping,
    NotUtf8,
    NulCharacter,
    RecursiveAnchor,
    Unreadable,
)
from envkit.messages import Printed
from envkit.profiles import catalogue


@pytest.fixture
def written(tmp_path):
    """Write bytes or text to a YAML file and return its path."""

    def write(content):
        path = tmp_path / "some.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_data_lines_and_texts(written):
    file = yamlfile.read(written("a: 1\nb:\n  c: 0x10\n  d: [x, 1e3]\ne: yes\n"))
    assert file.data == {"a": 1, "b": {"c": 16, "d": ["x", "1e3"]}, "e": True}
    assert file.lines[("b", "c")] == 3
    assert file.lines[("b", "d", 1)] == 4
    assert file.texts[("b", "c")] == "0x10"
    assert file.texts[("e",)] == "yes"


def test_error_names_file_and_line_of_the_key(written):
    path = written("a: 1\nb: 2\n")
    assert yamlfile.read(path).error(("b",), ComplexKey()).message == InFile(str(path), 2, ComplexKey())


def test_keys_that_yaml_would_convert_stay_texts(written):
    assert yamlfile.read(written("on: 1\n2: 3\n")).data == {"on": 1, "2": 3}


def test_byte_order_mark_is_accepted(written):
    assert yamlfile.read(written(b"\xef\xbb\xbfa: 1\n")).data == {"a": 1}


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, DuplicateKey("a", 1)),
        ("a:\n  b: 1\n  b: 2\n", 3, DuplicateKey("b", 2)),
        ("", 1, NotAMapping("a profile", "some")),
        ("- a\n- b\n", 1, NotAMapping("a profile", "some")),
        ("a: 1\nb: [1, 2\n", 3, InvalidYaml("expected ',' or ']', but got '<stream end>'")),
        ("a: 1\n\tb: 2\n", 2, InvalidYaml("found character '\\t' that cannot start any token")),
        ("a: 1\n---\nb: 2\n", 2, InvalidYaml("but found another document")),
        ("a: 1\nb: !!python/object:os.system x\n", 2,
         InvalidYaml("could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'")),
        ("a: 1\n? [x]\n: 2\n", 2, ComplexKey()),
        ("a: *nowhere\n", 1, InvalidYaml("found undefined alias 'nowhere'")),
        (b"a: 1\nb: \x00\n", 2, InvalidYaml("special characters are not allowed")),
        ("a: 1\nb: 2026-13-45\n", 2, InvalidScalar("2026-13-45", "month must be in 1..12")),
        ('a: 1\nb: {c: [x, "y\\0"]}\n', 2, NulCharacter("b.c.1")),
        ('a: "\\uDC80"\n', 1, HalfCharacter("a", 0xDC80)),
        ("a: 1\nb: &self\n  c: *self\n", 3, RecursiveAnchor("self")),
    ],
)  # fmt: skip
def test_refused_with_file_and_line(written, content, line, problem):
    path = written(content)
    with pytest.raises(InputError) as caught:
        yamlfile.read(path)
    assert caught.value.message == InFile(str(path), line, problem)


def test_not_utf8_names_the_byte(written):
    path = written(b"a: \xe9t\xe9\n")
    with pytest.raises(InputError) as caught:
        yamlfile.read(path)
    assert caught.value.message == NotUtf8(str(path), 3, "0xe9")


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(InputError) as caught:
        yamlfile.read(tmp_path)
    assert caught.value.message == Unreadable(str(tmp_path), Printed("Is a directory"))


def test_the_kits_own_files_are_read_alike_by_the_faster_parser(monkeypatch):
    paths = sorted(catalogue.FOLDER.glob("*.yaml"))
    slowly = [yamlfile.read(path) for path in paths]
    if yaml.__with_libyaml__:
        monkeypatch.setattr(yaml, "SafeLoader", None)
    assert [yamlfile.read(path, is_shipped=True) for path in paths] == slowly
    assert len(slowly) > 1
