"""Texts of profiles and records are printed as what they are: neither the terminal nor rich acts upon them."""

from __future__ import annotations

import pytest
from envkit.report import terminal

from tests.records import arm, run_events, write

EVIL = "a\x1b]0;t\x07\x1b[31m\x9b2J\u202eb [/x] [red] :smile: c"


@pytest.fixture
def folder(tmp_path):
    """A run of profiles whose titles, settings and names a terminal would act upon."""
    events = run_events(arm("baseline"), arm("mi\x1b[2Jne"))
    for one in events[0]["environments"].values():
        one |= {"title": EVIL, "variables": {"A": EVIL}}
    return write(tmp_path / "run", events)


def test_escapes_of_control_characters_take_no_other_character_s_place(capsys):
    text = "\x1b" * 5 + " and all the words that follow "
    out = terminal.console()
    terminal.item(out, "label", 5 * text)
    shown = capsys.readouterr().out
    assert shown.split() == ["label", *(5 * text.replace("\x1b", "\\x1b")).split()]
    assert max(map(len, shown.splitlines())) <= terminal.WIDTH


def test_what_looks_like_markup_is_shown_and_texts_of_a_record_are_harmless_in_a_file_too(cli, folder):
    shown = cli("report", folder, "--details").stdout
    assert "[31m\\x9b2J\\u202eb [/x] [red] :smile: c" in shown
    assert "mi\\x1b[2Jne" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*shown}


def test_texts_of_a_profile_are_harmless_where_they_are_shown_and_refused(cli, refused, simulation, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text('name: mine\ntitle: A [/x] test\nwhy: {reason: "[/y]"}\nenv: {A: "x\\e[31my"}\n')
    shown = cli("show", path, "--python", simulation.python, "--allow-unknown").stdout
    assert "mine: A [/x] test\n[/y]\n" in shown
    assert "A=x\\x1b[31my" in shown
    path.write_text('name: mine\ntitle: "x\\e[31my"\nwhy: {reason: r}\n')
    fix = "it is printed: take out control characters, such as those of colours"
    assert refused("show", path) == f"envkit: {path}:2: 'title' can't be 'x\\x1b[31my'; {fix}"
