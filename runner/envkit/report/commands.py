"""Command lines that reports name: to run a training under a profile as it was measured, to measure, to diagnose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from envkit.analysis.result import Result
from envkit.bench.arms import Arm
from envkit.bench.record import split_command
from envkit.bench.study import Study
from envkit.engines import ENGINES
from envkit.engines.container import LIMITS
from envkit.profiles import profile
from envkit.worker.gpus import CHOOSING
from envkit.worker.modes import CUDA
from envkit.worker.performance_variables import is_needed
from envkit.worker.workloads import DEFAULT


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
    given = [word for word in words if word.endswith((".yaml", ".yml")) and Path(word).stem == name]
    if not given and profile.known(name):  # a file may be called like one of these
        return name
    file, here = next(iter(given), f"{name}.yaml"), str(Path.cwd())
    return str(Path(result.cwd) / file) if from_folder(result.study) or result.cwd != here else file


def _there(result: Result, arm: Arm) -> str:
    """Return the profile and where it was measured, as ``envkit exec`` and ``envkit doctor`` take them."""
    image = ENGINES[arm.engine].image_option
    given = {**result.study.engine_options.to_json(), **({image: arm.image} if arm.image else {})}
    local = arm.engine == "local"
    means = {image, *(() if local else LIMITS)}
    pairs = [*([] if local else [("engine", arm.engine)]), *(pair for pair in given.items() if pair[0] in means)]
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
    given = "".join(f" {word}" for word in map(shlex.quote, options))
    own = shlex.join(study.user_command.argv) if study.user_command else "python train.py"
    under = f"{_there(result, arm)}{given}{gpus(study, arm.engine)}"
    return f"{from_folder(study)}{_envkit('exec', under, '--', command or own)}"


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
    study, own = result.study, result.study.user_command
    few = len(result.environments[arm.name].variables) < 2
    if few or len(study.workloads) > 1 or study.distributed or study.at_once:
        return None
    return _envkit("ablate", _there(result, arm), f"-- {shlex.join(own.argv)}" if own else "")


def bench(result: Result, arm: Arm) -> str:
    """Return the command that measures the arm's profile with a training of the user's."""
    device = f"--device {CUDA}" if gpus(result.study, arm.engine) else ""
    return _envkit("bench", _there(result, arm), device, "--", "python train.py")


def _envkit(*words: str) -> str:
    """Return a command line of the kit; empty words are left out."""
    return " ".join(("envkit", *filter(None, words)))


def from_folder(study: Study) -> str:
    """Return the ``cd`` before a user's command that starts in another folder than the current one, or nothing."""
    if study.user_command is None or Path(study.user_command.folder).resolve() == Path.cwd():
        return ""
    return f"cd {shlex.quote(study.user_command.folder)} && "


def gpus(study: Study, engine: str) -> str:
    """Return the option of ``envkit exec`` that gives a container the GPUs that were trained on, or nothing."""
    return " --gpus" if engine != "local" and study.options.device == CUDA else ""
