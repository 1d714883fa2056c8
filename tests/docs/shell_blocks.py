"""Read the commands of a page: those of its fenced blocks for a shell, with the output that a page shows for them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
PAGES = [
    *(PROJECT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *sorted(PROJECT.glob("docs/**/*.md")),
]  # fmt: skip
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
# `sh` has commands alone; in `console`, output follows the command behind a prompt. `bash` is what a command printed.
SHELL = ("sh", "console")
PROMPT = "$ "
LOOPS = ("for ", "while ")


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
        return f"{os.path.relpath(self.page, PROJECT)}:{self.line}: {self.text}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield every fenced block of a page, without the indentation of a list that it is in."""
    text = page.read_text()
    for match in FENCE.finditer(text):
        lines = tuple(line.removeprefix(match["indent"]) for line in match["text"].splitlines())
        yield Block(page, text[: match.start()].count("\n") + 2, match["language"], lines)


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands of a page's shell blocks, in order.

    A block directly below one with ``envkit env`` alone is what that prints.
    """
    found = [*blocks(page)]
    for block, below in zip(found, [*found[1:], None], strict=False):
        if block.language == "console":
            yield from _with_output(block)
        elif block.language in SHELL and below is not None and _prints(block, below):
            yield Command(block.page, block.line, block.lines[0], "\n".join(below.lines))
        elif block.language in SHELL:
            yield from _joined(block)


def _prints(block: Block, below: Block) -> bool:
    between = below.line - block.line - len(block.lines)
    is_directly_below = between == len(("```", "", "```sh"))
    return is_directly_below and len(block.lines) == 1 and block.lines[0].startswith("envkit env ")


def _with_output(block: Block) -> Iterator[Command]:
    starts = [number for number, line in enumerate(block.lines) if line.startswith(PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        output = "\n".join(block.lines[start + 1 : end])
        yield Command(block.page, block.line + start, block.lines[start].removeprefix(PROMPT), output or None)


def _joined(block: Block) -> Iterator[Command]:
    """Yield the commands of a block, each with the lines that continue it; a block with a loop is one command."""
    if any(line.startswith(LOOPS) for line in block.lines):
        yield Command(block.page, block.line, "\n".join(map(without_comment, block.lines)))
        return
    begun: list[str] = []
    for number, line in enumerate(block.lines):
        begun.append(without_comment(line))
        text = "\n".join(begun).strip()
        if not text.endswith("\\"):
            # each command of a list counts
            parts = text.replace("\\\n", "").split(" && ")
            yield from (Command(block.page, block.line + number - len(begun) + 1, part) for part in parts if part)
            begun = []
    assert not begun, f"{block.page}: {begun[0]}: this command has no end"


def without_comment(line: str) -> str:
    """Return a line of a shell script without its comment: a ``#`` at the start of a word, outside of quotes."""
    quote = ""
    for place, character in enumerate(line):
        if character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif character == "#" and not quote and (place == 0 or line[place - 1].isspace()):
            return line[:place].rstrip()
    return line.rstrip()


def simple_words(text: str) -> tuple[list[str], str | None] | None:
    """Return the words of a simple command, and the file that its output goes to.

    Return None for anything that a shell has to run: a pipe, a substitution, a variable or a loop.
    """
    unquoted = re.sub(r"'[^']*'|\"[^\"$`]*\"", "''", text)
    before, arrow, after = text.rpartition(" >") if unquoted.count(">") == 1 else (text, "", "")
    if re.search(r"[|&;<()$`\n]", unquoted) or ">" in re.sub(r"'[^']*'", "", before):
        return None
    return shlex.split(before), os.path.expanduser(after.strip()) if arrow else None  # noqa: PTH111
