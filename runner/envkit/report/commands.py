"""Command lines that reports name: to run a training under a profile as it was measured, to measure, to diagnose.

Also those that repeat a run, with the digest that shows whether its record is unchanged.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.record import FILE_NAME, Event, split_command
from envkit.engines import ENGINES
from envkit.engines.base import EngineOptions
from envkit.engines.container import LIMITS
from envkit.profiles import profile
from envkit.report.messages import context as messages
from envkit.report.messages.lines import Details
from envkit.report.parts import Row
from envkit.worker.gpus import CHOOSING
from envkit.worker.modes import CUDA
from envkit.worker.performance_variables import is_needed
from envkit.worker.request import UserCommand
from envkit.worker.workloads import DEFAULT

# Where a redacted record's first event has the digest of the record itself.
RECORD_DIGEST = "record_digest"


@dataclass(frozen=True)
class Commands:
    """Command lines on the profile of an arm as it was measured, to paste."""

    execute: str  # runs the training that was measured
    on_ranks: str  # runs a training on as many ranks
    copied: str | None  # the same under a copy of the profile that has so many ranks; None if they are the profile's
    diagnose: str  # finds out what is not in effect, and in which process
    breakdown: str | None  # shows where a step's time goes; None for what it can't train
    ablate: str | None  # measures the settings one by one; None for what it can't measure
    bench: str  # measures a training of the user's


def of_arm(result: Result, arm: Arm) -> Commands:
    """Return the commands on an arm of a result."""
    study, command = result.study, result.study.user_command
    typed, _ = split_command(result.command)
    files = [arm.file for arm in study.arms if arm.file is not None]
    elsewhere = result.cwd if from_folder(command) or not _is_current(result.cwd) else None
    where, on_gpus = _where(arm, study.engine_options), gpus(study.options.device, arm.engine)
    options = keep_options(result.allowed_variables, arm.engine)
    options += ["--allow-unknown"] if "--allow-unknown" in typed or study.allow_unknown else []
    under = "".join(f" {word}" for word in map(shlex.quote, options)) + on_gpus
    training = shlex.join(command.argv) if command else "python train.py"
    ranks, each = study.ranks_of(arm), study.parts_of(arm)
    on_ranks = training if ranks == 1 else torchrun(ranks, each)

    def there(name: str) -> str:
        return shlex.join([_named(name, [*typed, *files], elsewhere), *where])

    def execute(name: str, training: str) -> str:
        return f"{from_folder(command)}{_envkit('exec', f'{there(name)}{under}', '--', training)}"

    named = there(arm.profile)
    trained = [] if study.workload == DEFAULT else ["--workload", study.workload]
    modes = shlex.join([*trained, *study.options.arguments()])
    is_ablated = len(result.environments[arm.name].variables) > 1
    together = len(study.workloads) > 1 or bool(study.distributed or study.at_once)
    has_steps = command is None and len(study.workloads) == 1 and not study.epochs and not arm.ranks
    return Commands(
        execute=execute(arm.profile, training),
        on_ranks=execute(arm.profile, on_ranks),
        copied=execute(name_of_copy(arm.profile, each), on_ranks) if ranks > 1 and arm.ranks is None else None,
        diagnose=execute(arm.profile, training) if command else _envkit("doctor", named),
        breakdown=_envkit("breakdown", named, modes) if has_steps else None,
        ablate=_envkit("ablate", named, f"-- {training}" if command else "") if is_ablated and not together else None,
        bench=_envkit("bench", named, f"--device {CUDA}" if on_gpus else "", "--", "python train.py"),
    )


def name_of_copy(profile: str, ranks: int) -> str:
    """Return the name of a copy of a profile that trains on so many ranks of a node."""
    return f"{profile}-{ranks}"


def torchrun(ranks: int, each: int) -> str:
    """Return the start of so many ranks, ``each`` of a node, in a training of the user's."""
    return f"torchrun {f'--nnodes {ranks // each} ' if ranks > each else ''}--nproc-per-node {each} train.py"


def _named(name: str, typed: Iterable[str], elsewhere: str | None) -> str:
    """Return the profile ``name`` as a command takes it: the user's file as it was ``typed``, if that still names it.

    A file gets its whole name where the run was started ``elsewhere``, in that folder.
    """
    words = [word.partition("=")[2] if word.startswith("--") else word for word in typed]
    files = [word for word in words if word.endswith((".yaml", ".yml")) and Path(word).stem == name]
    if not files and profile.exists(name):  # a file may be called like one of these
        return name
    file = next(iter(files), f"{name}.yaml")
    return file if elsewhere is None else str(Path(elsewhere) / file)


def _where(arm: Arm, engine_options: EngineOptions) -> list[str]:
    """Return the options of ``envkit exec`` and ``envkit doctor`` that say in what the arm ran."""
    image, is_local = ENGINES[arm.engine].image_option, arm.engine == "local"
    options = {**engine_options.to_json(), **({image: arm.image} if arm.image else {})}
    means = {image, *(() if is_local else LIMITS)}
    pairs = [] if is_local else [("engine", arm.engine)]
    pairs += [pair for pair in options.items() if pair[0] in means]
    return [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]


def keep_options(names: Iterable[str], engine: str) -> list[str]:
    """Return the options that make ``envkit exec`` pass on those of ``names`` that it does not pass on unasked."""
    by_itself = {name for name in names if name in CHOOSING or (engine == "local" and is_needed(name))}
    return [word for name in names if name not in by_itself for word in ("--keep-env", name)]


def _envkit(*words: str) -> str:
    """Return a command line of the kit; empty words are left out."""
    return " ".join(("envkit", *filter(None, words)))


def from_folder(command: UserCommand | None) -> str:
    """Return the ``cd`` before a user's command that starts in another folder than the current one, or nothing."""
    if command is None or _is_current(command.folder):
        return ""
    return f"cd {shlex.quote(command.folder)} && "


def _is_current(folder: str) -> bool:
    """Return whether a folder is the current one, which may have been removed: then none is."""
    try:
        return Path(folder).resolve() == Path.cwd()
    except FileNotFoundError:
        return False


def gpus(device: str, engine: str) -> str:
    """Return the option of ``envkit exec`` that gives a container the GPUs that were trained on, or nothing."""
    return " --gpus" if engine != "local" and device == CUDA else ""


# --- to repeat a run, and to check that a report is of an unchanged record ---


def digest(folder: Path, events: Sequence[Event] = ()) -> str:
    """Return the SHA-256 of the record in ``folder``, as ``sha256sum`` prints it; ``events`` may have it."""
    if events and RECORD_DIGEST in events[0]:
        return str(events[0][RECORD_DIGEST])
    return record.digest(folder)


def started_with(events: Sequence[Event]) -> str:
    """Return the command that began the run, as one types it."""
    began, *arguments = events[0]["command"]
    script = Path(began)
    program = ["python", "-m", f"benchmarks.{script.stem}"] if script.parent.name == "benchmarks" else ["envkit"]
    return shlex.join([*program, *arguments])


def repeating(folder: Path, events: Sequence[Event], ended: Row, seed: int | None) -> list[Row]:
    """Return commands, seed, versions and digests, after why the run ``ended``.

    The engines' versions are in ``envkit.report.execution_context``.
    """
    run = events[0]
    rows = [
        Row("measured", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run["time"]))),
        ended,
        Row("command", started_with(events)),
        *([Row("seed", messages.Seed(seed))] if seed is not None else []),
        Row("kit version", messages.KitVersion(run["kit_version"], run["schema"])),
    ]
    if (first := next((event for event in events if event["event"] == "sample"), None)) is not None:
        rows += [Row(name.replace("_", " "), messages.FileDigest(value)) for name, value in first["digests"].items()]
    return [
        *rows,
        Row("record", messages.FileDigest(digest(folder, events), str(folder / FILE_NAME))),
        Row("terminal", details(str(folder))),
    ]


def details(folder: str) -> Details:
    """Return the command that prints all of a report."""
    return Details(("envkit", "report", folder, "--details"))
