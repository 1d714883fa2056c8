"""A command of the user's own in the place of a workload: its options, and the YAML file that keeps them."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner import yamlfile
from runner.arguments import count
from runner.dataset import DataSet
from runner.errors import InputError
from runner.plan import OwnCommand
from runner.suggestion import suggestion
from runner.worker.metric import PER_SECOND, SECONDS, MetricError, parse
from runner.worker.workloads import WORKLOADS, find
from runner.yamlfile import YamlFile

# In the place of a workload's name: each of those that `runner bench` measures together.
EVERY = "all"
KEYS = ("name", "command", "folder", "metric", "unit", "warmup_lines")
SUFFIXES = (".yaml", ".yml")
# What an inspection has of the command's first word.
PROGRAM = "program"
# In the place of the data set, which a command brings itself.
NO_DATA = DataSet("none", "the command's own")
# What says how to train the kit's own workloads, and which of its data.
NOT_WITH_IT = (
    "full", "epochs", "steps", "warmup_steps", "data", "backend", "precision", "compile", "channels_last", "scale",
)  # fmt: skip
LONGEST_NAME = 60
# What a shell takes as it stands (POSIX.1-2017, Shell Command Language, 2.2), and what it acts upon: variables before a
# command, operators and a home folder, and, between double quotes too, what it replaces.
QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
OPERATOR = re.compile(r"&&|\|\||>>|<<|[|<>;&]|(?<!\S)~(?=/|\s|$)")
REPLACED = re.compile(r"\$(?:\w+|[({@*#?$!-])|`")
SHELLS = ("bash", "dash", "ksh", "sh", "zsh")


def add_own_command_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a command of your own")
    group.add_argument("--command", dest="own_command", metavar="COMMAND",
                       help="measure this training, started in this folder, in the place of a workload")  # fmt: skip
    group.add_argument("--metric", metavar="METRIC",
                       help="a regular expression for lines that end a step or, with a group, hold its time or rate; "
                       "or a path into JSON lines, as $.step_time (default: all of it is one step)")  # fmt: skip
    group.add_argument("--unit", metavar="UNIT", help=f"of the metric's number: {', '.join(SECONDS)} (default: s)")
    group.add_argument("--warmup-lines", metavar="N", type=count, help="leave out the metric's first N readings")
    parser.set_defaults(own=None)


def own_command(arguments: argparse.Namespace) -> tuple[str, OwnCommand] | None:
    """The command that the user gave, with a name for it, or None for a workload of the kit's.

    ``arguments.own`` is one that a command of the kit gives itself. Raises InputError for options that don't go
    together, and for what is no command, metric, unit or workload file.
    """
    given = {"--metric": arguments.metric, "--unit": arguments.unit, "--warmup-lines": arguments.warmup_lines}
    if arguments.own is not None:
        return arguments.workload, arguments.own
    if arguments.own_command is None:
        file = _is_file(arguments.workload)
        for option, value in given.items():
            if value is not None:
                where = f"is a key of {arguments.workload}" if file else "means nothing without --command"
                raise InputError(f"{option} {where}; {'write it there' if file else 'add it, or leave this out'}")
        if not file:
            return None
        found = load(Path(arguments.workload))
    else:
        if arguments.workload is not None:
            raise InputError("--command and --workload both say what to measure; leave one out")
        found = _from_options(arguments)
    for name in NOT_WITH_IT:
        if getattr(arguments, name, None) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            mend = "give --warmup-lines" if name == "warmup_steps" else "give the command options of its own"
            raise InputError(f"{option} means nothing to a command of your own; leave it out, and {mend}")
    return found


def is_given(arguments: argparse.Namespace) -> bool:
    """Whether it is a command of the user's own that is to be measured."""
    return arguments.own is not None or arguments.own_command is not None or _is_file(arguments.workload)


def _is_file(workload: str | None) -> bool:
    return workload is not None and Path(workload).suffix in SUFFIXES


def known_workload(text: str) -> str:
    """For argparse: the name of a workload, ``all``, or a workload file's. Raises ArgumentTypeError."""
    if text == EVERY or find(text) is not None or _is_file(text):
        return text
    known = ", ".join(WORKLOADS)
    raise argparse.ArgumentTypeError(
        f"no workload '{text}'{suggestion(text, WORKLOADS)}; there are: {known}, and a file like mine.yaml"
    )


def _from_options(arguments: argparse.Namespace) -> tuple[str, OwnCommand]:
    try:
        argv = _words(arguments.own_command)
    except ValueError as error:
        raise InputError(f"--command {' '.join(arguments.own_command.splitlines())}: {error}") from None
    if not argv:
        raise InputError("--command is empty; give what starts your training, as 'python train.py'")
    if arguments.metric is None:
        for option, value in (("--unit", arguments.unit), ("--warmup-lines", arguments.warmup_lines)):
            if value is not None:
                raise InputError(f"{option} means nothing without --metric; add it, or leave this out")
    unit = arguments.unit
    if unit is not None and unit not in SECONDS:
        raise InputError(f"--unit {unit}: no such unit{suggestion(unit, SECONDS)}; there are: {', '.join(SECONDS)}")
    if arguments.metric is not None:
        try:
            _require_metric(arguments.metric, unit)
        except MetricError as error:
            raise InputError(f"--metric '{arguments.metric}' {error}") from None
    warmup = arguments.warmup_lines or 0
    name = shortened(shlex.join(argv))
    return name, OwnCommand(tuple(argv), str(Path.cwd().resolve()), arguments.metric, unit or "s", warmup)


def _words(text: str) -> list[str]:
    """Raises ValueError for quotes that don't close, and for what only a shell understands."""
    text = QUOTED.sub(_on_one_line, text.strip())
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}; close it") from None
    bare = QUOTED.sub("''", text)
    if "\n" in bare:
        raise ValueError(
            "a line break ends a command for a shell, and none reads this; use bash -c '…', or end the line with a '\\'"
        )
    if found := ASSIGNMENT.match(text) or OPERATOR.search(bare):
        raise ValueError(f"'{found[0]}' is for a shell, and none reads this; use bash -c '…', or quote it")
    starts_one = any(Path(word).name in SHELLS for word in words)  # which is given the text to read, and does so
    if found := REPLACED.search(bare if starts_one else QUOTED.sub(_read_by_a_shell, text)):
        raise ValueError(f"'{found[0]}' is for a shell, and none reads this; use bash -c '…', or single quotes")
    return words


def _on_one_line(quoted: re.Match[str]) -> str:
    """Nothing in the place of a backslash that ends a line, so that the next one goes on."""
    return "" if quoted[0] == "\\\n" else quoted[0]


def _read_by_a_shell(quoted: re.Match[str]) -> str:
    """What of it a shell may still replace: of a text between double quotes all that has no backslash before it."""
    return re.sub(r"\\.", "", quoted[0], flags=re.DOTALL) if quoted[0].startswith('"') else "''"


def _require_metric(text: str, unit: str | None) -> None:
    """Raises MetricError."""
    if not text:
        raise MetricError("is empty; give a regular expression, or a path as $.step_time")
    metric = parse(text)
    if unit is None and (other := metric.looks_like):
        what = "a rate" if other == PER_SECOND else f"a number of {other}"
        mend = f"give the unit {other}, or s if that is right"
        raise MetricError(f"looks like {what}, and would be taken for seconds; {mend}")
    if metric.is_clock and unit is not None:
        raise MetricError(
            "has no group that could be a number with a unit; put one around the number, or leave the unit out"
        )


def note_program(arguments: argparse.Namespace, seen: Mapping[str, Any]) -> None:
    """Add to what is ``seen`` of this machine which file the command's first word is, by the PATH."""
    found = own_command(arguments)
    if found and "local" in seen and "/" not in (word := found[1].argv[0]):
        seen["local"]["inspection"][PROGRAM] = {word: shutil.which(word)}


def require_program(folder: Path, engines: Mapping[str, Any]) -> None:
    """Raise InputError where a word that was noted is another file now: another Python may have another torch."""
    noted = engines["local"]["inspection"].get(PROGRAM, {}) if "local" in engines else {}
    for word, before in noted.items():
        now = shutil.which(word)
        if before is not None and (now is None or _where(now) != _where(before)):
            raise InputError(
                f"--resume {folder}: {word} was {before} and is {now} on this PATH: samples of both can't be compared; "
                "resume where it is what it was, or start a new run"
            )


def _where(program: str) -> Path:
    """The folder is another name of itself on some machines (/bin); a virtual environment's Python is itself a link."""
    return Path(program).parent.resolve() / Path(program).name


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def load(path: Path) -> tuple[str, OwnCommand]:
    """The command in a workload file, and its name. Raises InputError, which names the file, the line and the key."""
    file = yamlfile.read(path, "a workload file")
    for key in file.data:
        if key not in KEYS:
            raise file.error((key,), f"unknown key '{key}'{suggestion(key, KEYS)}; there are: {', '.join(KEYS)}")
    argv = _argv(file)
    folder = Path(_text(file, "folder") or ".")
    folder = (path.resolve().parent / folder).resolve()
    if not folder.is_dir():
        raise file.error(("folder",), f"folder: there is no folder {folder}; it is taken from where this file is")
    metric, unit = _text(file, "metric"), _text(file, "unit")
    warmup = file.data.get("warmup_lines")
    if warmup is not None and (type(warmup) is not int or warmup < 0):
        raise file.error(("warmup_lines",), "warmup_lines: must be a whole number, 0 or more")
    if metric is None:
        for key in ("unit", "warmup_lines"):
            if file.data.get(key) is not None:
                raise file.error((key,), f"{key}: means nothing without metric; add that, or remove this")
    if unit is not None and unit not in SECONDS:
        raise file.error(
            ("unit",), f"unit: no unit '{unit}'{suggestion(unit, SECONDS)}; there are: {', '.join(SECONDS)}"
        )
    if metric is not None:
        try:
            _require_metric(metric, unit)
        except MetricError as error:
            raise file.error(("metric",), f"metric: '{metric}' {error}") from None
    name = _text(file, "name") or path.stem
    return name, OwnCommand(argv, str(folder), metric, unit or "s", warmup or 0)


def _text(file: YamlFile, key: str) -> str | None:
    """A text's value, or None where there is none. Raises InputError for another kind of value, and for no text."""
    value = file.data.get(key)
    if value is None and key not in file.data:
        return None
    if not isinstance(value, str) or not value.strip():
        raise file.error((key,), f"{key}: must be a text; put it in quotes")
    return value


def _argv(file: YamlFile) -> tuple[str, ...]:
    if "command" not in file.data:
        raise file.error((), "command is missing; say what starts the training, as command: python train.py")
    value = file.data["command"]
    if isinstance(value, str):
        try:
            argv: Sequence[str] = _words(value)
        except ValueError as error:
            raise file.error(("command",), f"command: {error}") from None
    elif isinstance(value, list) and not any(isinstance(word, (list, dict)) for word in value):
        argv = [file.texts.get(("command", index), "") for index in range(len(value))]  # numbers as they are written
    else:
        raise file.error(("command",), "command: must be a text or a list of words")
    if not argv or not argv[0]:
        raise file.error(("command",), "command: is empty; say what starts the training, as command: python train.py")
    return tuple(argv)
