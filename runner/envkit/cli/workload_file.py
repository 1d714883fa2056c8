"""A command of the user's own: what its words and its metric may be, and the YAML file that keeps it."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from envkit.cli.workload_messages import (
    FILE,
    GIVE_PATTERN,
    QUOTE_IT,
    SAY_COMMAND,
    SINGLE_QUOTES,
    BadMetric,
    ForAShell,
    IsEmpty,
    KeysExclude,
    NoFolder,
    NoWarmupLines,
    OfRate,
    OfUnit,
    OpenQuote,
    SeveralLines,
    UnitOfClock,
)
from envkit.common import ownership, schema, yamlfile
from envkit.common.messages import About
from envkit.common.yamlfile import YamlFile
from envkit.messages import Message, MessageError, message_of
from envkit.worker.request import UserCommand
from envkit.worker.user_command.losses import parse_losses
from envkit.worker.user_command.metric import MetricError, parse
from envkit.worker.user_command.units import PER_SECOND

SCHEMA = Path(__file__).resolve().parent / "schemas/workload.schema.json"
# What a shell takes as it stands (POSIX.1-2017, Shell Command Language, 2.2), and what it acts upon: variables before a
# command, operators and a home folder, and, between double quotes too, what it replaces.
QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
OPERATOR = re.compile(r"&&|\|\||>>|<<|[|<>;&]|(?<!\S)~(?=/|\s|$)")
REPLACED = re.compile(r"\$(?:\w+|[({@*#?$!-])|`")
SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
# Of an optimizer, where nobody says how many.
WARMUP_STEPS = 3


def load(path: Path) -> tuple[str, UserCommand]:
    """Return the command in a workload file, and its name.

    Raise InputError, which names the file, the line and the key; also for a file that another user can have written.
    """
    file = yamlfile.read(path, FILE)
    ownership.require_own(path)
    schema.validate(file, SCHEMA)
    keys = file.data
    argv = _argv(file)
    folder = Path(os.path.realpath(path.resolve().parent / keys.get("folder", ".")))
    if not os.path.isdir(folder):  # noqa: PTH112 - of a name that is too long, Path raises an exception
        raise file.error(("folder",), NoFolder(str(folder)))
    metric, unit = keys.get("metric"), keys.get("unit")
    if metric is not None and (problem := metric_problem(metric, unit)):
        raise file.error(("metric",), BadMetric("metric:", metric, problem))
    losses = keys.get("loss_metric")
    if losses is not None and (problem := losses_problem(losses)):
        raise file.error(("loss_metric",), BadMetric("loss_metric:", losses, problem))
    has_no_steps = metric is not None or keys.get("whole_command")
    steps = None if has_no_steps else keys.get("optimizer_steps", 0)
    name = keys.get("name", path.stem)
    if keys.get("in_place") and keys.get("link"):
        raise file.error(("link",), KeysExclude("link", "in_place"))
    place = {"in_place": keys.get("in_place", False), "links": tuple(keys.get("link", ()))}
    return name, UserCommand(argv, str(folder), metric, unit or "s", _left_out(file), losses, steps, **place)


def _left_out(file: YamlFile) -> int:
    """Return how many readings, or steps of an optimizer, don't count. Raise InputError for keys that exclude that."""
    keys = file.data
    if keys.get("whole_command"):
        for key in ("metric", "optimizer_steps", "warmup_lines"):
            if key in keys:
                raise file.error((key,), KeysExclude(key, "whole_command"))
    if "optimizer_steps" not in keys:
        return int(keys.get("warmup_lines") or 0)
    if "metric" in keys:
        raise file.error(("optimizer_steps",), KeysExclude("optimizer_steps", "metric"))
    warmup = keys.get("warmup_lines", WARMUP_STEPS)
    if not warmup:
        raise file.error(("warmup_lines",), NoWarmupLines())
    return int(warmup)


def _argv(file: YamlFile) -> tuple[str, ...]:
    value = file.data["command"]
    try:
        # of a list, numbers as they are written
        argv = words(value) if isinstance(value, str) else [file.text("command", at) for at in range(len(value))]
    except CommandError as error:
        raise file.error(("command",), About("command", error.message)) from None
    if not argv or not argv[0]:
        raise file.error(("command",), About("command", IsEmpty(SAY_COMMAND)))
    return tuple(argv)


class CommandError(MessageError):
    """A text is no command."""


def words(text: str) -> list[str]:
    """Return a command's words. Raise CommandError for open quotes, and for what only a shell understands."""
    text = QUOTED.sub(_on_one_line, text.strip())
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise CommandError(OpenQuote(str(error).lower())) from None
    bare = QUOTED.sub("''", text)
    if "\n" in bare:
        raise CommandError(SeveralLines())
    if syntax := ASSIGNMENT.match(text) or OPERATOR.search(bare):
        raise CommandError(ForAShell(syntax[0], QUOTE_IT))
    starts_one = any(Path(word).name in SHELLS for word in argv)  # which is given the text to read, and does so
    if syntax := REPLACED.search(bare if starts_one else QUOTED.sub(_read_by_a_shell, text)):
        raise CommandError(ForAShell(syntax[0], SINGLE_QUOTES))
    return argv


def _on_one_line(quoted: re.Match[str]) -> str:
    """Nothing instead of a backslash that ends a line, so that the next one goes on."""
    return "" if quoted[0] == "\\\n" else quoted[0]


def _read_by_a_shell(quoted: re.Match[str]) -> str:
    """Return the part that a shell may still replace: in double quotes, all without a backslash before it."""
    return re.sub(r"\\.", "", quoted[0], flags=re.DOTALL) if quoted[0].startswith('"') else "''"


def metric_problem(pattern: str, unit: str | None) -> Message | None:
    """Return what is wrong with a metric, as a clause that follows it, or None. ``unit`` is the one that was given."""
    if not pattern:
        return IsEmpty(GIVE_PATTERN)
    try:
        metric = parse(pattern)
    except MetricError as error:
        return message_of(error)
    if unit is None and (other := metric.looks_like):
        return OfRate(other) if other == PER_SECOND else OfUnit(other)
    return UnitOfClock() if metric.is_clock and unit is not None else None


def losses_problem(pattern: str) -> Message | None:
    """Return what is wrong with a metric of losses, as a clause that follows it, or None."""
    try:
        parse_losses(pattern)
    except MetricError as error:
        return message_of(error)
    return None
