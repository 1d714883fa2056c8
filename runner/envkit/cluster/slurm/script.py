"""The batch script: the files of ``batch/`` with settings filled in, so that it can be read before it is submitted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from envkit.cluster.slurm import node_preflight
from envkit.cluster.slurm.settings import FILE_NAME, Settings
from envkit.common.errors import INTERRUPTED

NAME = "batch.sh"
# So long before the time limit a node is told to end, and has recorded what it measured when Slurm ends it. Slurm looks
# about every half minute, and tells up to a minute early.
GRACE_S = 60
SHORTEST_GRACE_S = 10

_PARTS = resources.files(__package__) / "batch"
# What stands for a value in a part of the script: bash has its own use for dollars and braces.
_VALUE = re.compile(r"@\{(\w+)\}")


def render(
    settings: Settings, folder: Path, name: str, nodes: int, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()
) -> str:
    """Return a script for ``nodes`` nodes: ``wanted`` are among them, and ``unwanted`` are not. A fleet wants all.

    ``name`` is the job's. Options are documented at https://slurm.schedmd.com/sbatch.html
    """
    values = {
        "options": _options(settings, folder, name, nodes, wanted, unwanted),
        "verb": "tune" if settings.tuning else "measure",
        "what": _what(settings),
        "settings": FILE_NAME,
        "roll_call": node_preflight.NAME,
        "command": shlex.join(["envkit", settings.by, f"--resume={folder}"]).replace("\n", "\n#   "),
        "folder": shlex.quote(str(folder)),
        "python": shlex.quote(settings.python),
        "project": shlex.quote(settings.project),
        "id": settings.id,
        "sha256": settings.sha256,
        "interrupted": str(INTERRUPTED),
    }
    work = "tuning" if settings.tuning else "joint" if settings.joint else "each"
    return "".join(_part(part, values) for part in ("head", work, "end"))


def _part(name: str, values: Mapping[str, str]) -> str:
    """Return a part of the script with ``values`` filled in."""
    return _VALUE.sub(lambda match: values[match[1]], (_PARTS / f"{name}.sh").read_text(encoding="utf-8"))


def _options(
    settings: Settings, folder: Path, name: str, nodes: int, wanted: Sequence[str], unwanted: Sequence[str]
) -> str:
    """Return the lines in which sbatch reads its options."""
    lines = [
        f"--job-name={name}",
        *(["--nodes=1"] if settings.fleet else _one_job(nodes, wanted, unwanted)),
        "--ntasks-per-node=1",
        "--exclusive",  # other jobs on a node would be measured too
        "--mem=0",  # all of a node's memory
        *([f"--time={settings.minutes}"] if settings.minutes else []),
        *([f"--partition={settings.partition}"] if settings.partition else []),
        "--chdir=/",
        f"--output={str(folder).replace('%', '%%')}/slurm-%j.out",
        "--open-mode=append",  # a job that is requeued writes to it again
        "--requeue",
        "--no-kill",  # the other nodes go on where one dies
        f"--signal=URG@{grace_s(settings.minutes)}",
        *(f"--{option}" for option in settings.options),
    ]
    places = _part("fleet", {"nodes": ",".join(wanted)}) if settings.fleet else ""
    return "".join(f"#SBATCH {_quoted(line)}\n" for line in lines) + places


def _what(settings: Settings) -> str:
    """Return what is measured, for people who read the script: ``baseline, mine on cnn, 6 blocks``."""
    study = settings.study
    if settings.tuning:
        return f"{study.workload or 'a command'}, {settings.tuning.settings.budget_s:g} s"
    profiles = settings.profiles or dict.fromkeys(arm.profile for arm in study.arms)
    length = f"{study.stopping.blocks} blocks" if study.stopping.blocks else f"{study.stopping.budget_s:g} s"
    how_long = f"{study.epochs} epochs" if study.epochs else length
    return " ".join(f"{', '.join(profiles)} on {study.workload}, {how_long}".split())


def _one_job(nodes: int, wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    return [
        f"--nodes={nodes}",
        *([f"--nodelist={','.join(wanted)}"] if wanted else []),
        *([f"--exclude={','.join(unwanted)}"] if unwanted else []),
    ]


def grace_s(minutes: int | None) -> int:
    """Return the seconds between the signal to end and a job's time limit: a sixth of a short limit."""
    return GRACE_S if minutes is None else max(SHORTEST_GRACE_S, min(GRACE_S, minutes * 10))


def _quoted(option: str) -> str:
    """Return an option as sbatch reads it from a script: with quotes around what holds blanks, as in a shell."""
    name, equals, value = option.partition("=")
    return f"{name}{equals}{shlex.quote(value)}" if equals else option
