from __future__ import annotations

import pytest
import yaml
from envkit.common import yamlfile
from envkit.common.errors import InputError
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
    assert str(yamlfile.read(path).error(("b",), "is\nwrong")) == f"{path}:2: is wrong"


def test_keys_that_yaml_would_convert_stay_texts(written):
    assert yamlfile.read(written("on: 1\n2: 3\n")).data == {"on": 1, "2": 3}


def test_byte_order_mark_is_accepted(written):
    assert yamlfile.read(written(b"\xef\xbb\xbfa: 1\n")).data == {"a": 1}


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, r"key 'a' stands twice \(first on line 1\); remove one"),
        ("a:\n  b: 1\n  b: 2\n", 3, r"key 'b' stands twice \(first on line 2\)"),
        ("", 1, "a profile is a mapping .* for example 'name: some'"),
        ("- a\n- b\n", 1, "a profile is a mapping"),
        ("a: 1\nb: [1, 2\n", 3, "not valid YAML: .*expected"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML: .*cannot start any token"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: !!python/object:os.system x\n", 2, "not valid YAML: could not determine a constructor"),
        ("a: 1\n? [x]\n: 2\n", 2, "a key must be a plain word"),
        ("a: *nowhere\n", 1, "not valid YAML: found undefined alias"),
        (b"a: 1\nb: \x00\n", 2, "not valid YAML: special characters are not allowed"),
        ("a: 1\nb: 2026-13-45\n", 2, "not valid YAML"),
        ('a: 1\nb: {c: [x, "y\\0"]}\n', 2, "'b.c.1' has a NUL character, which no process can be given; remove it"),
        ('a: "\\uDC80"\n', 1, r"'a' has half of a character \(\\udc80\)"),
        ("a: 1\nb: &self\n  c: *self\n", 3, "not valid YAML"),
    ],
)
def test_refused_with_file_and_line(written, content, line, problem):
    path = written(content)
    with pytest.raises(InputError, match=f"some.yaml:{line}: {problem}"):
        yamlfile.read(path)


def test_not_utf8_names_the_byte_and_the_mend(written):
    with pytest.raises(InputError, match=r"some.yaml: not UTF-8 \(byte 3 is 0xe9\); save the file as UTF-8"):
        yamlfile.read(written(b"a: \xe9t\xe9\n"))


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(InputError, match="can't be read: Is a directory"):
        yamlfile.read(tmp_path)


def test_the_kits_own_files_are_read_alike_by_the_faster_parser(monkeypatch):
    paths = sorted(catalogue.FOLDER.glob("*.yaml"))
    slowly = [yamlfile.read(path) for path in paths]
    if yaml.__with_libyaml__:
        monkeypatch.setattr(yaml, "SafeLoader", None)
    assert [yamlfile.read(path, own=True) for path in paths] == slowly
    assert len(slowly) > 1
