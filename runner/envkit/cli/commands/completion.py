"""``envkit completion SHELL``: a script that completes commands, options and names of profiles.

It starts nothing: all words are in the script.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources

from envkit.cli import parser_of
from envkit.cli.overview_messages import COMMANDS
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED
from envkit.engines import ENGINES
from envkit.profiles import catalogue, places
from envkit.worker.workloads import WORKLOADS

SCRIPTS = resources.files("envkit.cli") / "scripts"


@dataclass
class Words:
    """Words that can follow a command, by the words before them."""

    options: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)  # values of a positional argument
    values: dict[str, list[str]] = field(default_factory=dict)  # by option, of those that take a value


def words_of(parsers: Mapping[str, Parser]) -> dict[str, Words]:
    """Return the words of every command, and of every action of a command, as ``baseline check``."""
    words = {}
    for name, parser in parsers.items():
        for command, subparser in _with_actions(name, parser):
            words[command] = _words(subparser)
    words["help"] = Words(arguments=[*COMMANDS])
    return words


def _with_actions(name: str, parser: Parser) -> Iterator[tuple[str, Parser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner, subparser in action.choices.items():
                yield f"{name} {inner}", subparser


def _words(parser: Parser) -> Words:
    words = Words()
    for action in parser._actions:
        if not action.option_strings:
            words.arguments += _values(action)
        elif action.help != argparse.SUPPRESS or "--help-all" in action.option_strings:
            words.options += [name for name in action.option_strings if name.startswith("--")]
            if action.nargs != 0:
                words.values |= dict.fromkeys(action.option_strings, _values(action))
    return words


def _values(action: argparse.Action) -> list[str]:
    """Return the words that an argument can be; none where any file or text can be one."""
    if action.choices is not None:
        return [*map(str, action.choices)]
    if action.metavar in ("PROFILE", "PROFILE2"):
        return [*dict.fromkeys(name for place in places.places() for name in place.names())]
    if action.dest == "name" and "variable" in str(action.help):
        return [*catalogue.load()]
    return {"engine": [*ENGINES], "engines": [*ENGINES], "workload": [*WORKLOADS]}.get(action.dest, [])


def bash(words: Mapping[str, Words]) -> str:
    """Return the script for bash."""
    nested = [name.partition(" ")[0] for name in words if " " in name]
    values = [
        f"        {shlex.quote(f'{command} {option}')}) {_shell_words(choices)} ;;"
        for command, entry in words.items()
        for option, choices in entry.values.items()
    ]
    options = [
        f"                    {shlex.quote(name)}) words='{' '.join(entry.options)}' ;;"
        for name, entry in words.items()
    ]
    arguments = [
        f"                    {shlex.quote(name)}) words='{' '.join(entry.arguments)}' ;;"
        for name, entry in words.items() if entry.arguments
    ]  # fmt: skip
    filled = {
        "COMMANDS": " ".join([*COMMANDS, "help"]), "NESTED": "|".join(dict.fromkeys(nested)),
        "VALUES": "\n".join(values), "OPTIONS": "\n".join(options), "ARGUMENTS": "\n".join(arguments),
    }  # fmt: skip
    text = (SCRIPTS / "completion.bash").read_text()
    for name, part in filled.items():
        text = text.replace(f"@{name}@", part)
    return text


def _shell_words(choices: list[str]) -> str:
    return f"words='{' '.join(choices)}'" if choices else "compopt -o default 2>/dev/null; return"


def zsh(words: Mapping[str, Words]) -> str:
    """Return the script for zsh, which reads the one for bash."""
    return (SCRIPTS / "completion.zsh").read_text() + bash(words)


def fish(words: Mapping[str, Words]) -> str:
    """Return the script for fish."""
    lines: list[str] = []
    first = "complete -c envkit -n __fish_use_subcommand"
    lines += [f"{first} -f -a {name} -d {shlex.quote(summary)}" for name, summary in COMMANDS.items()]
    for command, entry in words.items():
        name, _, inner = command.partition(" ")
        condition = f"__fish_seen_subcommand_from {name}" + (
            f"; and __fish_seen_subcommand_from {inner}" if inner else ""
        )
        where = f"complete -c envkit -n {shlex.quote(condition)}"
        for option in entry.options:
            choices = entry.values.get(option)
            takes = "" if choices is None else f" -r -a {shlex.quote(' '.join(choices))}" if choices else " -r"
            lines.append(f"{where} -l {option.removeprefix('--')}{takes}")
        if entry.arguments:
            lines.append(f"{where} -a {shlex.quote(' '.join(entry.arguments))}")
    return (SCRIPTS / "completion.fish").read_text() + "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS,
                        help=f"print the script for {', '.join(SHELLS)}")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    words = words_of({name: parser_of(name)[0] for name in COMMANDS})
    sys.stdout.write(SHELLS[arguments.shell](words))
    return MEASURED
