"""The check of English that `make lint` runs."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
from types import ModuleType

import pytest

from tests.conftest import PROJECT

FINE = """Return the speedup. A profile is `x`: it sets {}.

| What is in a table | is not prose that it checks, however long it may be, and here it is very long indeed |
"""
BROKEN = {
    "What a sample does not tell is left out.": "opens with a word that hides the subject",
    "Set it on a machine of one's own.": "a riddle",
    f"This sentence {'has many words and ' * 7} goes on.": "more than 25 words",
}


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("prose", str(PROJECT / ".ci/prose"))
    spec = importlib.util.spec_from_loader("prose", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("sentence", "rule"), BROKEN.items())
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "# A page\n\nA sentence. {}\n"),
        ("page.md", "1. One.\n2. A sentence. {}\n"),
        ("code.py", '"""Do it.\n\n{}\n"""\n'),
        ("code.py", 'class Message:\n    template = "A sentence. {}"\n'),
        ("code.py", 'parser.add_argument("--x", help="A sentence. {}")\n'),
    ],
)
def test_a_broken_rule_is_named_with_its_sentence(prose, tmp_path, name, text, sentence, rule):
    path = tmp_path / name
    path.write_text(text.format(sentence))
    (found,) = prose.findings(path)
    assert rule in found
    assert sentence[:20] in found
    path.write_text(text.format("It is fine."))
    assert prose.findings(path) == []


def test_tables_and_code_are_left_alone(prose, tmp_path):
    (tmp_path / "page.md").write_text(FINE + "\n    What is indented is code.\n\n```\nWhat is fenced is code.\n```\n")
    assert prose.findings(tmp_path / "page.md") == []


def test_the_numbers_can_only_go_down(prose, tmp_path, monkeypatch, capsys):
    page, left = tmp_path / "page.md", tmp_path / "left.json"
    monkeypatch.setattr(prose, "PROJECT", tmp_path)
    monkeypatch.setattr(prose, "LEFT", left)
    page.write_text("What is this good for is a riddle.\n")
    left.write_text(json.dumps({"page.md": 1}))
    assert prose.main([]) == 0
    page.write_text("It is good.\n")
    assert prose.main([]) == 1
    assert "fewer sentences" in capsys.readouterr().err
    assert prose.main(["--lower"]) == 0
    assert json.loads(left.read_text()) == {}
    page.write_text("What is this good for is a riddle.\n")
    assert prose.main([]) == 1
    assert "page.md: 1 sentences break a rule" in capsys.readouterr().err
