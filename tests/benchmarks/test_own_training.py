from __future__ import annotations

import json
import subprocess

import pytest
from envkit.cli.workload_file import load
from envkit.engines.base import PROJECT

from benchmarks import own_training
from tests.docs.shell_blocks import blocks


@pytest.fixture
def page(page_file, monkeypatch):
    """A page like the one in docs/results/, in the place of that."""
    page_file.write_text(f"# Mine\n\nWritten by hand.\n\n{own_training.EXAMPLES_BEGIN}\nof an earlier day\n")
    monkeypatch.setattr(own_training, "PAGE", page_file)
    return page_file


def test_the_end_of_the_page_is_written_anew(benchmark_script, page, monkeypatch):
    monkeypatch.setattr(own_training, "report", lambda arguments, folder: f"found with {json.dumps(arguments[-5:-1])}")
    result = benchmark_script(own_training, "--blocks", 6, "--page", page)
    assert (result.returncode, result.stderr) == (0, "")
    text = page.read_text()
    assert text.startswith("# Mine\n\nWritten by hand.\n\n## Three scripts\n")
    assert text.count('found with ["--blocks", "6", "--", "python"]') == len(own_training.EXAMPLES) == 3
    assert "an earlier day" not in text


def test_a_measurement_that_fails(benchmark_script, page):
    before = page.read_text()
    result = benchmark_script(own_training, "--profile", "none", "--page", page)
    assert result.returncode == 2
    assert "envkit bench none --metric" in result.stderr
    assert " -- python plain_loop.py: " in result.stderr
    assert page.read_text() == before


def test_the_place_of_the_record_is_on_no_page(monkeypatch, tmp_path):
    shown = (PROJECT / "tests/report/golden/faster.txt").read_text()
    printed = shown.replace("some/folder", str(tmp_path))
    assert str(tmp_path) in printed
    ended = subprocess.CompletedProcess([], 0, stdout=printed)
    monkeypatch.setattr(own_training.subprocess, "run", lambda *ignored, **options: ended)
    report = own_training.report(["bench", "mine"], tmp_path)
    assert report == printed.partition("\nDetails ")[0]
    assert str(tmp_path) not in report


def test_the_guide_s_workload_file_is_one(tmp_path):
    (shown,) = (block for block in blocks(PROJECT / "docs/own-script.md") if block.lines[0] == "# train.yaml")
    (tmp_path / "train.yaml").write_text("\n".join(shown.lines))
    name, own = load(tmp_path / "train.yaml")
    assert (name, own.argv, own.unit) == ("my training", ("python", "train.py", "--epochs", "1"), "ms")
