"""Command lines that reports name: to run a training under a profile as it was measured, to measure, to diagnose.

Also those that repeat a run, with the digest that shows whether its record is unchanged.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.record import FILE_NAME, Event, split_command
from envkit.engines import ENGINES
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


def torchrun(result: Result, arm: Arm) -> str | None:
    """Return the start of an arm's ranks in a training of the user's, or None for one process."""
    ranks, each = result.study.ranks_of(arm), result.study.parts_of(arm)  # of these on a node
    if ranks == 1:
        return None
    return f"torchrun {f'--nnodes {ranks // each} ' if ranks > each else ''}--nproc-per-node {each} train.py"


def _named(result: Result, name: str) -> str:
    """Return the profile ``name`` as a command takes it: the user's file as it was given, if that still names it."""
    typed, _ = split_command(result.command)
    words = [word.partition("=")[2] if word.startswith("--") else word for word in typed]
    words += [arm.file for arm in result.study.arms if arm.file is not None]
    files = [word for word in words if word.endswith((".yaml", ".yml")) and Path(word).stem == name]
    if not files and profile.exists(name):  # a file may be called like one of these
        return name
    file, here = next(iter(files), f"{name}.yaml"), str(Path.cwd())
    return str(Path(result.cwd) / file) if from_folder(result.study.user_command) or result.cwd != here else file


def _there(result: Result, arm: Arm) -> str:
    """Return the profile and where it was measured, as ``envkit exec`` and ``envkit doctor`` take them."""
    image = ENGINES[arm.engine].image_option
    engine_options = {**result.study.engine_options.to_json(), **({image: arm.image} if arm.image else {})}
    local = arm.engine == "local"
    means = {image, *(() if local else LIMITS)}
    pairs = [
        *([] if local else [("engine", arm.engine)]),
        *(pair for pair in engine_options.items() if pair[0] in means),
    ]
    options = [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join([_named(result, arm.profile), *options])


def keep_options(names: Iterable[str], engine: str) -> list[str]:
    """Return the options that make ``envkit exec`` pass on those of ``names`` that it does not pass on unasked."""
    by_itself = {name for name in names if name in CHOOSING or (engine == "local" and is_needed(name))}
    return [word for name in names if name not in by_itself for word in ("--keep-env", name)]


def execute(result: Result, arm: Arm, command: str | None = None) -> str:
    """Return the command that runs the training that was measured, or another ``command``, under the arm's profile."""
    study = result.study
    options = keep_options(result.allowed_variables, arm.engine)
    typed, _ = split_command(result.command)
    allowed = "--allow-unknown" in typed or result.study.allow_unknown
    options += ["--allow-unknown"] if allowed else []
    typed_options = "".join(f" {word}" for word in map(shlex.quote, options))
    training = shlex.join(study.user_command.argv) if study.user_command else "python train.py"
    under = f"{_there(result, arm)}{typed_options}{gpus(study.options.device, arm.engine)}"
    return f"{from_folder(study.user_command)}{_envkit('exec', under, '--', command or training)}"


def diagnose(result: Result, arm: Arm) -> str:
    """Return the command that finds out what of the arm's profile is not in effect, and in which process.

    Doctor trains a workload of the kit, so a user's training is started under the profile instead.
    """
    return execute(result, arm) if result.study.user_command else _envkit("doctor", _there(result, arm))


def breakdown(result: Result, arm: Arm) -> str | None:
    """Return the command that shows where a step's time goes under the arm's profile; None for what it can't train."""
    study = result.study
    if study.user_command or len(study.workloads) > 1 or study.epochs or arm.ranks:
        return None
    trained = [] if study.workload == DEFAULT else ["--workload", study.workload]
    return _envkit("breakdown", _there(result, arm), shlex.join([*trained, *study.options.arguments()]))


def ablate(result: Result, arm: Arm) -> str | None:
    """Return the command that measures the settings of the arm's profile one by one; None for what it can't measure."""
    study, training = result.study, result.study.user_command
    few = len(result.environments[arm.name].variables) < 2
    if few or len(study.workloads) > 1 or study.distributed or study.at_once:
        return None
    return _envkit("ablate", _there(result, arm), f"-- {shlex.join(training.argv)}" if training else "")


def bench(result: Result, arm: Arm) -> str:
    """Return the command that measures the arm's profile with a training of the user's."""
    device = f"--device {CUDA}" if gpus(result.study.options.device, arm.engine) else ""
    return _envkit("bench", _there(result, arm), device, "--", "python train.py")


def _envkit(*words: str) -> str:
    """Return a command line of the kit; empty words are left out."""
    return " ".join(("envkit", *filter(None, words)))


def from_folder(command: UserCommand | None) -> str:
    """Return the ``cd`` before a user's command that starts in another folder than the current one, or nothing."""
    if command is None or Path(command.folder).resolve() == Path.cwd():
        return ""
    return f"cd {shlex.quote(command.folder)} && "


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
