"""Replace what tells who measured, and where, by placeholders: PATH1, HOST1, USER1 and so on.

Equal values stay equal. Numbers, names of profiles and their settings stay, and so do file names of libraries and
folders that every system has.

The name of a key or field says what a whole value is. In texts this replaces the names that it knows of this user and
of the record. It also replaces all that looks like a path or an address.
"""

from __future__ import annotations

import dataclasses
import getpass
import itertools
import json
import os
import platform
import pwd
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path, PurePath
from typing import TypeVar, cast

from msgspec import Struct, structs

from envkit.analysis.result import Result
from envkit.bench.record import Event, split_command
from envkit.engines import ENGINES
from envkit.messages import Message
from envkit.report import commands
from envkit.report.commands import RECORD_DIGEST

Value = TypeVar("Value")
PATH, HOST, USER, COMMAND, IMAGE = "PATH", "HOST", "USER", "COMMAND", "IMAGE"
OUTPUT, PROGRAM, ADDRESS, ARGUMENT = "OUTPUT", "PROGRAM", "ADDRESS", "ARGUMENT"
# What stands below these is alike on all machines with the same system.
OF_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/proc/", "/sys/", "/dev/")
ENDS = r"\s'\",;:=()\[\]{}<>|&"  # what a path in a text ends before
URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
ABSOLUTE = re.compile(rf"(?<![\w./~$-])(?:~|/)[^{ENDS}/]*/?[^{ENDS}]*")
QUOTED = re.compile(r"(['\"])(/[^'\"\n]+)\1")
HOMES = re.compile(r"/(?:home|Users)/([^/\s\"':,\\]+)")
LIBRARY = re.compile(r"\.so(?:\.|$)")
NUMBER = re.compile(r"-?[\d.,]+(?:[smhdkMGT%]|min)?")
SHORTEST = 2  # names of fewer characters also occur in unrelated text
SHORTEST_ARGUMENT = 6
# Keys whose values the kit chooses. They stay, or nothing would know what they stand for.
CHOSEN = {"event", "code", "severity", "engine", "profile", "workload", "kit_version", "seal", "digest", "time"}
# Keys whose values are this.
WHOLE = {
    "cwd": PATH, "folder": PATH, "place": PATH, "run": PATH, "links": PATH,
    "node": HOST, "host": HOST, "nodelist": HOST, "hostname": HOST,
    "commands": COMMAND, "argv": COMMAND, "stderr": OUTPUT, "programs": PROGRAM, "starter": PROGRAM,
    "control_group": PATH,
}  # fmt: skip


class Redaction:
    """Placeholders of one report, or of one command's output."""

    def __init__(self, *names: str) -> None:
        """``names`` are hosts that the output names."""
        self._given: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, itertools.count[int]] = {}
        self._words: dict[str, str] = {}  # what is replaced wherever it stands: its kind
        self._texts: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        hosts = [platform.node(), *names]
        self._know(HOST, [*hosts, *(host.partition(".")[0] for host in hosts)])
        self._know(USER, _users())
        self._know(PATH, _own_folders())

    def events(self, events: Sequence[Event], folder: Path) -> list[Event]:
        """Return the events of a record in ``folder`` without what tells who measured, and where.

        The first has the digest of the record itself, which is no longer found by its name.
        """
        self.know_record(events[0], folder)
        first, *others = [self.value(event) for event in events]
        return [{**first, RECORD_DIGEST: commands.digest(folder)}, *others]

    def know_result(self, result: Result, folder: Path) -> None:
        """Learn what to look for from the result of a record in ``folder``."""
        study = result.study.to_json()
        first = {"study": study, "engines": result.engines, "command": result.command, "cwd": result.cwd}
        self.know_record(first, folder)

    def know_record(self, first: Event, folder: Path) -> None:
        """Learn what to look for from a record's first event."""
        self._know(PATH, [str(folder), str(folder.absolute()), str(first.get("cwd", ""))])
        self._know(USER, HOMES.findall(json.dumps(first)))
        study = first.get("study") or {}
        command = study.get("user_command") or {}
        if command:
            self._know(PATH, [command["folder"], *command.get("links", ())])
            self._know(COMMAND, [str(study["workload"])])
            self._given[COMMAND, shlex.join(command["argv"])] = self._of(COMMAND, str(study["workload"]))
        typed = [*command.get("argv", ()), *split_command(list(map(str, first.get("command", ()))))[1]]
        self._know(ARGUMENT, (word for word in typed if len(word) >= SHORTEST_ARGUMENT and not _is_plain(word)))
        images = [one.get("image") for one in study.get("arms", ())]
        images += [one["engine"].get("image") for one in (first.get("engines") or {}).values()]
        self._know(IMAGE, (one for one in images if one and not one.startswith("/")))
        self._know(PATH, (one for one in (study.get("engine_options") or {}).values() if "/" in str(one)))

    def value(self, value: Value, key: str = "") -> Value:
        """Return the same with placeholders: of plain data, of dataclasses, Structs and messages."""
        return cast("Value", self._value(value, key))  # of the same kind: only texts in it change

    def text(self, words: str) -> str:
        """Return a text with placeholders."""
        redacted = self._texts.get(words)
        if redacted is None:
            redacted = self._texts[words] = self._text(words)
        return redacted

    def path(self, path: Path | str) -> str:
        """Return what stands for a path."""
        return self._of(PATH, str(path))

    def _value(self, value: object, key: str) -> object:
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self._string(value, key)
        if isinstance(value, PurePath):
            return type(value)(self._string(str(value), key))
        return self._several(value, key) if isinstance(value, list | tuple) else self._compound(value, key)

    def _compound(self, value: object, key: str) -> object:
        if isinstance(value, Message):
            return value.replace(**{name: self._value(one, name) for name, one in value.values().items()})
        if isinstance(value, Struct):
            fields = {name: self._value(getattr(value, name), name) for name in value.__struct_fields__}
            return structs.replace(value, **fields)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [one.name for one in dataclasses.fields(value)]
            return _rebuilt(value, {name: self._value(getattr(value, name), name) for name in names})
        if isinstance(value, Mapping):
            inner = key if key == "commands" else ""
            return {self._key(name): self._value(one, inner or str(name)) for name, one in value.items()}
        return value

    def _several(self, value: list[object] | tuple[object, ...], key: str) -> object:
        if key == "command":
            return type(value)(self._typed(list(map(str, value))))
        if key == "argv":
            return type(value)([self._of(COMMAND, shlex.join(map(str, value)))] if value else [])
        return type(value)(self._value(one, key) for one in value)

    def _key(self, key: object) -> object:
        if not isinstance(key, str):
            return key
        return self._known(key) if key in self._words else self.text(key)

    def _string(self, value: str, key: str) -> str:
        if value in self._words:
            return self._known(value)
        if key in CHOSEN:
            return value
        if key in WHOLE and value:
            return self._of(WHOLE[key], value)
        if key == "command":
            return self._of(COMMAND, value)
        entries = value.split(":")
        if all(entry.startswith("/") for entry in entries) and "\n" not in value:
            return ":".join(map(self._path, entries))
        return self.text(value)

    def _typed(self, words: list[str]) -> list[str]:
        """Return a command line of the kit with its options. A user's command is one word."""
        kit_words, user_words = split_command(words)
        typed = ["envkit", *kit_words[1:2]]
        for word in kit_words[2:]:
            option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
            typed.append(f"{option}{equals}{self._argument(value)}" if equals or not option else option)
        return [*typed, "--", self._of(COMMAND, shlex.join(user_words[1:]))] if user_words else typed

    def _argument(self, word: str) -> str:
        if _is_plain(word):
            return self.text(word)
        return self._path(word) if "/" in word or Path(word).suffix else self._of(ARGUMENT, word)

    def _text(self, words: str) -> str:
        if self._pattern is None:
            names = sorted(self._words, key=len, reverse=True)
            either = "|".join(f"{re.escape(name)}{self._behind(name)}" for name in names)
            self._pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)" if names else r"(?!)")
        words = self._pattern.sub(lambda match: self._known(match[0]), words)
        words = URL.sub(lambda match: self._of(ADDRESS, match[0]), words)
        words = QUOTED.sub(lambda match: f"{match[1]}{self._path(match[2])}{match[1]}", words)
        return ABSOLUTE.sub(lambda match: self._path(match[0]), words)

    def _behind(self, name: str) -> str:
        """Return what belongs to a name wherever it stands: what is below a folder, or the domain of a host."""
        if self._words[name] == HOST:
            return r"(?:\.[A-Za-z][\w-]*)*"
        return rf"(?:/[^{ENDS}]*)?" if "/" in name else ""

    def _known(self, name: str) -> str:
        of_host = self._words.get(name.partition(".")[0]) == HOST
        kind = self._words.get(name, HOST if of_host else PATH)
        return self._path(name) if kind == PATH else self._of(kind, name)

    def _path(self, path: str) -> str:
        if path in ("/", "~") or (path.startswith(OF_SYSTEM) and not self._is_own(path)):
            return path
        if LIBRARY.search(path):
            folder, _, name = path.rpartition("/")
            return f"{self._of(PATH, folder)}/{self.text(name)}"
        return self._of(PATH, path)

    def _is_own(self, path: str) -> bool:
        roots = (word for word, kind in self._words.items() if kind == PATH)
        return any(path == root or path.startswith(f"{root}/") for root in roots)

    def _of(self, kind: str, value: str) -> str:
        """Return the placeholder of a value, which is always the same."""
        if kind == HOST:
            value = value.partition(".")[0]
        if re.fullmatch(rf"{kind}\d+", value):
            return value
        if (kind, value) not in self._given:
            number = next(self._numbers.setdefault(kind, itertools.count(1)))
            self._given[kind, value] = f"{kind}{number}"
        return self._given[kind, value]

    def _know(self, kind: str, names: Iterable[str]) -> None:
        for name in names:
            if len(name) >= SHORTEST and name not in ENGINES and not name.startswith("-"):
                self._words.setdefault(name, kind)
        self._pattern = None
        self._texts.clear()


def _is_plain(word: str) -> bool:
    """Return whether a word of a command line is an option, a number or a name as profiles have."""
    return word.startswith("-") or NUMBER.fullmatch(word) is not None or re.fullmatch(r"[a-z][a-z-]*", word) is not None


def _rebuilt(value: object, changed: Mapping[str, object]) -> object:
    """Return a copy of a dataclass with these fields; what is computed when one is made stays as it is."""
    made = object.__new__(type(value))
    for name, one in {**getattr(value, "__dict__", {}), **changed}.items():
        object.__setattr__(made, name, one)
    return made


def _users() -> list[str]:
    """Return the names of this user: in a container nobody may have that number."""
    sources = (getpass.getuser, lambda: pwd.getpwuid(os.getuid()).pw_name)
    return [name for ask in sources if (name := _or_none(ask))]


def _own_folders() -> list[str]:
    """Return the current folder, which may have been removed, and the homes of this user."""
    sources = (lambda: str(Path.cwd()), lambda: str(Path.home()), lambda: pwd.getpwuid(os.getuid()).pw_dir)
    return [folder for ask in sources if (folder := _or_none(ask)) and folder != "/"]


def _or_none(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except (KeyError, OSError, RuntimeError):
        return None
