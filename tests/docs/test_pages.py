"""The tables of what tests change in commands of pages, or do not execute, have nothing that no page needs.

Commands within a sentence are not executed: envkit's own parser takes them.
"""

from __future__ import annotations

import re
import shlex

import pytest
from envkit.cli import parsed
from envkit.common.errors import InputError

from tests.docs.rules import CHANGES, NOT_EXECUTED, shortened
from tests.docs.shell_blocks import FENCE, PAGES, commands, simple_words

INLINE = re.compile(r"`((?:[^`\n]|\n(?!\n))+)`")
# Names for what a user chooses, of which the parser wants a number or a word that it knows.
PLACEHOLDERS = {"N": "2", "FORMAT": "shell"}
# An option with the command that it belongs to, and not all that the command needs.
MENTIONS = {
    "envkit exec --keep-env TMPDIR", "envkit exec --evidence FILE", "envkit advise --pid", "envkit bench --nproc",
    "envkit bench glibc-retain --budget",
}  # fmt: skip
COMMANDS = [command for page in PAGES for command in commands(page)]
# By targets of make.
MADE = (
    "images/build oci",
    "images/setup .venv",
    "envkit bench intel-omp --engine apptainer",
    "envkit bench x --engine enroot",
)


def inline(text: str) -> list[str]:
    """Return the commands with arguments that stand between backticks in a page's text."""
    found = (" ".join(code.split()) for code in INLINE.findall(FENCE.sub("", text)))
    return [code for code in found if re.match(r"envkit (?!help )[a-z-]+ .", code)]


def parse(command: str) -> None:
    """Raise InputError if envkit has no such command or option; what comes after a pipe or an arrow is the shell's."""
    words = shlex.split(re.sub(r" [|>] .*", "", command))
    parsed([PLACEHOLDERS.get(word, word) for word in words[1:]])


def test_commands_in_the_text_of_pages_are_valid():
    for page in PAGES:
        for command in inline(page.read_text()):
            if command not in MENTIONS:
                try:
                    parse(command)
                except (InputError, SystemExit) as error:
                    pytest.fail(f"{page.name}: `{command}`: {error!r}")


def test_what_is_no_whole_command_is_on_a_page_and_has_no_end():
    shown = {command for page in PAGES for command in inline(page.read_text())}
    assert MENTIONS - shown == set()
    for command in MENTIONS:
        with pytest.raises(InputError):
            parse(command)


@pytest.mark.parametrize("command", ["envkit bench x --budjet 60s", "envkit bonch x", "envkit env x --format N"])
def test_a_command_that_is_not_valid(command):
    with pytest.raises((InputError, SystemExit, KeyError)):
        parse(command)


def test_each_kind_that_is_not_executed_is_on_a_page():
    typed = [*(command.text for command in COMMANDS), *MADE]
    assert [kind.why for kind in NOT_EXECUTED if not any(map(kind.has, typed))] == []


def test_each_change_is_needed_by_a_command():
    simple = [words[0] for text in (*(command.text for command in COMMANDS), *MADE) if (words := simple_words(text))]
    added = [option for words in simple if words[0] == "envkit" for option in [shortened(words[1:], 1)]]
    unused = [change.why for change in CHANGES if not any({*change.adds} <= {*words} for words in added)]
    assert unused == []
