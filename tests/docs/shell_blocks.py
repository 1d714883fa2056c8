"""Read the commands of a page: those of its fenced blocks for a shell, with the output that a page shows for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
# `sh` has commands alone; in `console`, output follows the command behind a prompt.
SHELL = ("sh", "bash", "console")
PROMPT = "$ "
OPENING, CLOSING = {"do", "then"}, {"done", "fi"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command as a page has it, without its comment; ``output`` is what the page shows below, None if nothing."""

    page: Path
    line: int
    text: str
    output: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(PROJECT)}:{self.line}: {self.text}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield every fenced block of a page, without the indentation of a list that it is in."""
    text = page.read_text()
    for match in FENCE.finditer(text):
        lines = tuple(line.removeprefix(match["indent"]) for line in match["text"].splitlines())
        yield Block(page, text[: match.start()].count("\n") + 2, match["language"], lines)


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands of a page's shell blocks, in order."""
    for block in blocks(page):
        if block.language == "console":
            yield from _with_output(block)
        elif block.language in SHELL:
            yield from _joined(block)


def _with_output(block: Block) -> Iterator[Command]:
    starts = [number for number, line in enumerate(block.lines) if line.startswith(PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        output = "\n".join(block.lines[start + 1 : end])
        yield Command(block.page, block.line + start, block.lines[start].removeprefix(PROMPT), output or None)


def _joined(block: Block) -> Iterator[Command]:
    """Yield the commands of a block, each with the lines that continue it and the body of a loop."""
    begun: list[str] = []
    for number, line in enumerate(block.lines):
        begun.append(without_comment(line))
        text = "\n".join(part for part in begun if part)
        if not text:
            begun = []
        elif not text.endswith("\\") and _is_whole(text):
            yield Command(block.page, block.line + number - len(begun) + 1, text.replace("\\\n", ""))
            begun = []
    assert not begun, f"{block.page}: {begun[0]}: this command has no end"


def _is_whole(text: str) -> bool:
    words = re.findall(r"[a-z]+", text)
    opened, closed = (sum(word in of for word in words) for of in (OPENING, CLOSING))
    return opened == closed


def without_comment(line: str) -> str:
    """Return a line of a shell script without its comment: a ``#`` at the start of a word, outside of quotes."""
    quote = ""
    for place, character in enumerate(line):
        if character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif character == "#" and not quote and (place == 0 or line[place - 1].isspace()):
            return line[:place].rstrip()
    return line.rstrip()


def simple_words(text: str) -> list[str] | None:
    """Return the words of one simple command; None for a pipe, a redirection, a substitution or several commands."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    bare = re.sub(r"'[^']*'", "''", text)
    if "\n" in text or "$" in bare or "`" in bare or any(set(word) <= set("();<>|&") for word in lexer if word):
        return None
    return shlex.split(text)
