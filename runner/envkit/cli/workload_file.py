"""A command of the user's own: what its words and its metric may be, and the YAML file that keeps it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from envkit.bench.user_command import UserCommand
from envkit.common import schema, yamlfile
from envkit.common.yamlfile import YamlFile
from envkit.worker.messages import RefusedText
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
    """The command in a workload file, and its name. Raises InputError, which names the file, the line and the key."""
    file = yamlfile.read(path, "a workload file")
    schema.validate(file, SCHEMA)
    given = file.data
    argv = _argv(file)
    folder = (path.resolve().parent / given.get("folder", ".")).resolve()
    if not folder.is_dir():
        raise file.error(("folder",), f"folder: there is no folder {folder}; it is taken from where this file is")
    metric, unit = given.get("metric"), given.get("unit")
    if metric is not None:
        try:
            require_metric(metric, unit)
        except MetricError as error:
            raise file.error(("metric",), RefusedText(metric, error.message, "metric:")) from None
    losses = given.get("loss_metric")
    if losses is not None:
        try:
            parse_losses(losses)
        except MetricError as error:
            raise file.error(("loss_metric",), RefusedText(losses, error.message, "loss_metric:")) from None
    has_no_steps = metric is not None or given.get("whole_command")
    steps = None if has_no_steps else given.get("optimizer_steps", 0)
    name = given.get("name", path.stem)
    if given.get("in_place") and given.get("link"):
        raise file.error(("link",), "'link' means nothing with 'in_place'; remove one of them")
    place = {"in_place": given.get("in_place", False), "links": tuple(given.get("link", ()))}
    return name, UserCommand(argv, str(folder), metric, unit or "s", _left_out(file), losses, steps, **place)


def _left_out(file: YamlFile) -> int:
    """How many readings, or steps of an optimizer, don't count. Raises InputError for what does not go with that."""
    given = file.data
    if given.get("whole_command"):
        for key in ("metric", "optimizer_steps", "warmup_lines"):
            if key in given:
                raise file.error((key,), f"'{key}' means nothing with 'whole_command'; remove one of them")
    if "optimizer_steps" not in given:
        return int(given.get("warmup_lines") or 0)
    if "metric" in given:
        raise file.error(("optimizer_steps",), "'optimizer_steps' means nothing with 'metric'; remove one of them")
    warmup = given.get("warmup_lines", WARMUP_STEPS)
    if not warmup:
        raise file.error(
            ("warmup_lines",),
            "'warmup_lines' must be 1 or more with 'optimizer_steps': a first step has no beginning that is known",
        )
    return int(warmup)


def _argv(file: YamlFile) -> tuple[str, ...]:
    value = file.data["command"]
    try:
        # of a list, numbers as they are written
        argv = words(value) if isinstance(value, str) else [file.text("command", at) for at in range(len(value))]
    except ValueError as error:
        raise file.error(("command",), f"command: {error}") from None
    if not argv or not argv[0]:
        raise file.error(("command",), "command: is empty; say what starts the training, as command: python train.py")
    return tuple(argv)


def words(text: str) -> list[str]:
    """A command's words. Raises ValueError for quotes that don't close, and for what only a shell understands."""
    text = QUOTED.sub(_on_one_line, text.strip())
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}; close it") from None
    bare = QUOTED.sub("''", text)
    if "\n" in bare:
        raise ValueError(
            "a line break ends a command for a shell, and none reads this; use bash -c '…', or end the line with a '\\'"
        )
    if found := ASSIGNMENT.match(text) or OPERATOR.search(bare):
        raise ValueError(f"'{found[0]}' is for a shell, and none reads this; use bash -c '…', or quote it")
    starts_one = any(Path(word).name in SHELLS for word in argv)  # which is given the text to read, and does so
    if found := REPLACED.search(bare if starts_one else QUOTED.sub(_read_by_a_shell, text)):
        raise ValueError(f"'{found[0]}' is for a shell, and none reads this; use bash -c '…', or single quotes")
    return argv


def _on_one_line(quoted: re.Match[str]) -> str:
    """Nothing in the place of a backslash that ends a line, so that the next one goes on."""
    return "" if quoted[0] == "\\\n" else quoted[0]


def _read_by_a_shell(quoted: re.Match[str]) -> str:
    """What of it a shell may still replace: of a text between double quotes all that has no backslash before it."""
    return re.sub(r"\\.", "", quoted[0], flags=re.DOTALL) if quoted[0].startswith('"') else "''"


def require_metric(text: str, unit: str | None) -> None:
    """Raises MetricError."""
    if not text:
        raise MetricError("is empty; give a regular expression, or a path as $.step_time")
    metric = parse(text)
    if unit is None and (other := metric.looks_like):
        what = "a rate" if other == PER_SECOND else f"a number of {other}"
        fix = f"give the unit {other}, or s if that is right"
        raise MetricError(f"looks like {what}, and would be taken for seconds; {fix}")
    if metric.is_clock and unit is not None:
        raise MetricError(
            "has no group that could be a number with a unit; put one around the number, or leave the unit out"
        )
