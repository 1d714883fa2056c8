"""The picture of a report in a terminal."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks import terminal_picture
from tests import records


def test_it_shows_the_command_and_the_report_and_requests_nothing(tmp_path, monkeypatch):
    folder = records.write(tmp_path / "run", records.run_events())
    monkeypatch.setattr("sys.argv", ["terminal_picture", str(folder), str(tmp_path / "picture.svg")])
    assert terminal_picture.main() == 0
    content = (tmp_path / "picture.svg").read_text()
    texts = "".join(ElementTree.fromstring(content).itertext()).replace("\N{NO-BREAK SPACE}", " ")
    assert "$ envkit bench" in texts
    assert "FASTER  mine" in texts
    assert "url(http" not in content.replace('"', "")
    assert "@font-face" not in content
