"""The tools' answers on the CNN, side by side."""

from __future__ import annotations

import pytest

from benchmarks import rivals_cnn, tools
from benchmarks.tools import Answer, Cost, Reading, ToolFailed


@pytest.fixture
def pretended(monkeypatch):
    """The kit finds a speedup, hyperfine fails."""

    def fail(question):
        raise ToolFailed("it broke")

    found = Answer([Reading("envkit", "faster", 1.21, 1.44)], [[1.0], [1.0]])
    monkeypatch.setattr(tools, "TOOLS", {"envkit": lambda question: found, "hyperfine": fail})
    monkeypatch.setattr(tools, "require", lambda: None)
    monkeypatch.setattr(tools, "versions", lambda: {"hyperfine": "1", "pyperf": "2"})
    monkeypatch.setattr(tools, "look", lambda folder, seconds, command: Cost(3.0, 0.5))


def test_the_page_has_each_tools_answers(pretended, benchmark_script, files, page_file):
    result = benchmark_script(rivals_cnn, "--trials", 2, "--data", "synthetic", *files)
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    assert "| envkit | 2 of 2 | 1.320 | 1.320 to 1.320 | ±8.7% |" in text
    assert "| 1 | hyperfine | it broke | no interval |" in text


def test_the_second_command_has_the_variables_of_the_profile(tmp_path):
    asked = rivals_cnn.question(tmp_path, "synthetic", 60.0, Cost(3.0, 0.5))
    assert asked.second[0] == "env"
    assert asked.second[1].startswith("GLIBC_TUNABLES=glibc.malloc.mmap_threshold=")
    assert asked.second[2:] == asked.first
