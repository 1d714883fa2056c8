"""What was measured is gone on with, and never mixed with what was measured otherwise."""

from __future__ import annotations

import pytest
from envkit.common.errors import InputError

from benchmarks.results import Results

SETTINGS = {"machine": "here", "truths": (0, 3)}


def test_a_second_run_finds_what_the_first_has_written(tmp_path):
    Results(tmp_path / "folder/file.jsonl", SETTINGS).append("sample", block=1, seconds=2.0)
    again = Results(tmp_path / "folder/file.jsonl", SETTINGS)
    assert [line["seconds"] for line in again.of("sample", block=1)] == [2.0]
    assert again.of("sample", block=2) == []


def test_half_a_line_that_a_kill_has_left_is_dropped(tmp_path):
    path = tmp_path / "file.jsonl"
    Results(path, SETTINGS).append("sample", block=1)
    with path.open("a") as file:
        file.write('{"kind": "sample", "blo')
    Results(path, SETTINGS).append("sample", block=2)
    assert [line["block"] for line in Results(path, SETTINGS).of("sample")] == [1, 2]


def test_a_file_that_was_begun_and_no_more_is_begun_again(tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_text('{"kind": "sett')
    assert Results(path, SETTINGS).lines[0]["machine"] == "here"


def test_other_settings_are_refused_with_what_to_do(tmp_path):
    Results(tmp_path / "file.jsonl", SETTINGS)
    with pytest.raises(
        InputError, match=r"file.jsonl: was measured with machine here, and now it is there; .*--results"
    ):
        Results(tmp_path / "file.jsonl", {**SETTINGS, "machine": "there"})


@pytest.mark.parametrize("text", ["no JSON\n", '{"kind": "settings"}\n', "[1]\n"])
def test_another_file_is_not_overwritten(tmp_path, text):
    path = tmp_path / "file.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="is not what this benchmark writes"):
        Results(path, SETTINGS)
    assert path.read_text() == text
