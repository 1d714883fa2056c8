"""The workload and machine of a run, and the differences between the environments of two arms."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from envkit.analysis.engine_facts import cpu_name
from envkit.analysis.image_differences import Difference
from envkit.analysis.result import Result
from envkit.bench.arms import Arm
from envkit.bench.job import TRACKERS_OFF
from envkit.bench.study import Study, WorkloadSpec
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection, Surroundings
from envkit.report import certainty, scaling
from envkit.report.messages import context as messages
from envkit.report.messages.certainty import Numbered
from envkit.report.messages.headings import DEFAULT_MODES
from envkit.report.messages.lines import OfSubject
from envkit.report.messages.tables import MoreDifferences
from envkit.report.parts import Row, Table
from envkit.worker.request import UserCommand
from envkit.worker.user_command.metric import parse

ABSENT = "-"
# So many differences are in the short report; packages of the system, which come last, can be hundreds.
SHOWN = 5
# The digest of an image, as far as it is shown: sha256: and twelve digits.
SHOWN_OF_DIGEST = 19


def rows(result: Result) -> list[Row]:
    """Return profiles, machine, images, workload, data and design."""
    study = result.study
    profiles = {arm.profile: result.environments[arm.name].title for arm in study.subjects}
    rows = [Row("profile", OfSubject(name, title)) for name, title in profiles.items()]
    rows += _machine(result.inspection(study.reference))
    rows += [Row("engine", _engine(surroundings)) for surroundings in result.engines.values()]
    options = [f"--{name.replace('_', '-')} {value}" for name, value in study.engine_options.to_json().items()]
    rows += [Row("options", ", ".join(options))] if options else []
    if study.user_command:
        rows += _of_command(study.user_command, study.workload, study.training, result.allowed_variables)
    else:
        rows += _of_workloads(study)
    if study.distributed:
        ranks = tuple(Numbered(arm.name, study.ranks_of(arm)) for arm in study.distributed)
        rows.append(Row("ranks", messages.SharedBatches(ranks, scaling.steps(bool(study.at_once), study.weak_ranks))))
    if study.at_once:
        rows.append(Row("instances", messages.AllBatches(tuple(arm.name for arm in study.at_once))))
    return [*rows, Row("data", result.data_source), Row("design", certainty.interim_analyses(result.design))]


def _of_command(
    command: UserCommand, workload: str, length: WorkloadSpec, allowed_variables: Collection[str]
) -> list[Row]:
    """Return a user's command by the name of its ``workload``, with what was read of it and where it ran."""
    name = _other_name(workload, command.argv)
    rows = [
        Row("command", messages.OwnCommand(tuple(command.argv), name, command.folder)),
        Row("metric", messages.FreshProcesses(_metric(command, length))),
        Row("folder", messages.InPlace() if command.in_place else messages.FreshCopy(tuple(command.links))),
    ]
    off = tuple(name for name in TRACKERS_OFF if name not in allowed_variables)
    rows += [Row("trackers", messages.TrackersOff(off))] if off else []
    return [*rows, *([Row("losses", command.loss_metric)] if command.loss_metric is not None else [])]


def _of_workloads(study: Study) -> list[Row]:
    """Return what is trained and for how long: one row, or one for each workload if they differ in that."""
    lengths: list[Message] = [
        messages.TrainedSteps(name, length.steps, length.warmup_steps) for name, length in study.workloads.items()
    ]
    if study.epochs:
        lengths = [messages.TrainedEpochs(tuple(study.workloads), study.epochs, study.until)]
    return [*(Row("workload", length) for length in lengths), Row("modes", study.options.text() or DEFAULT_MODES)]


def what_was_run(command: UserCommand | None, workload: str, trained: str) -> Message:
    """Return what was ``trained``, or the user's own command with the name of its workload."""
    if command is None:
        return messages.Workload(trained)
    return messages.OwnCommand(tuple(command.argv), _other_name(workload, command.argv), label=messages.COMMAND)


def _other_name(workload: str, argv: Sequence[str]) -> str | None:
    """Return the name of a user's command if it is not the command's own beginning."""
    return None if shlex.join(argv).startswith(workload.rstrip("…")) else workload


def _machine(host: Inspection) -> list[Row]:
    facts, machine = host["facts"], host["fingerprint"]
    # other architectures don't tell whether they are virtual
    kind = machine["hypervisor"] or ("bare metal" if machine["architecture"] == "x86_64" else None)
    cpus = (facts["usable_cpus"], facts["physical_cores"], facts["cpu_quota"] or None)
    return [
        Row("machine", messages.Machine(cpu_name(machine), *cpus, kind, host.get("cores_measured"))),
        Row("system", messages.OperatingSystem(machine["distribution"], machine["kernel"], machine["libc"])),
        Row("memory", messages.Memory(machine["memory_bytes"] or 0, machine["thp_enabled"])),
    ]


def _engine(surroundings: Surroundings) -> Message:
    engine, inspection = surroundings["engine"], surroundings["inspection"]
    digest = engine["digest"][:SHOWN_OF_DIGEST] if "digest" in engine else None
    versions = (inspection["python"]["version"], inspection["packages"]["torch"])
    return messages.Engine(engine["name"], engine["version"], engine["image"], digest, *versions)


def _metric(command: UserCommand, length: WorkloadSpec) -> Message:
    """Return how the steps of a user's command are told apart."""
    if command.is_paced:
        return messages.PacedSteps(length.steps, length.warmup_steps)
    if command.optimizer_steps is not None:
        return messages.OptimizerSteps(command.optimizer_steps, command.warmup_lines)
    if command.metric is None:
        return messages.WholeCommand()
    unit = None if parse(command.metric, command.unit).is_clock else command.unit
    return messages.Readings(command.metric, unit, command.warmup_lines or None)


def sides(result: Result, arm: Arm) -> list[tuple[str, str, str]]:
    """Return what the reference and ``arm`` were started with, and in what their images and limits differ.

    Each has a name, and what it is there and here. Differences between images do not come from the engines alone.
    """
    reference = result.study.reference_of(arm)
    there, here = (
        _settings(one, result.environments[one.name], result.engines[one.target]) for one in (reference, arm)
    )
    settings = [(name, there.get(name, ABSENT), here.get(name, ABSENT)) for name in dict.fromkeys([*there, *here])]
    if arm.name in result.image_differences:  # where images are compared, all that is known to differ
        differing = _image_rows(result.image_differences[arm.name])
        return [*settings, *((what, old, new) for what, old, new in differing)]
    ours, theirs = (_inside(result.inspection(one)) for one in (reference, arm))
    return [*settings, *((name, text, theirs[name]) for name, text in ours.items() if text != theirs[name])]


def _inside(seen: Inspection) -> dict[str, str]:
    """The versions in an image, and its limits."""
    limits = {name.replace("_", " "): seen["facts"][name] for name in ("usable_cpus", "physical_cores", "cpu_quota")}
    versions = {"Python": seen["python"]["version"], "libc": seen["fingerprint"]["libc"], **seen["packages"]}
    return {name: str(value) for name, value in (versions | limits).items()}


def _settings(arm: Arm, environment: Environment, surroundings: Surroundings) -> dict[str, str]:
    """Return what an arm was started with: its profile, engine, prefix, libraries and variables, by their names."""
    libraries, engine = surroundings["inspection"]["libraries"], surroundings["engine"]
    values = {"profile": arm.profile, "engine": f"{arm.engine}: {engine['image']}"}
    if environment.prefix:
        values["prefix"] = " ".join(environment.prefix)
    for name, path in environment.preload.items():
        file = libraries.get(name)
        known = file.get("sha256") if file else None
        values[f"preload {name}"] = f"{path} (SHA-256 {known})" if known else path
    return values | environment.variables


def image_table(arm: str, reference: str, differences: Sequence[Difference], most: int | None) -> Table:
    """Return the differences between the images of an arm and its reference, or the first ``most``."""
    more = len(differences) - most if most is not None else 0
    header = ("what differs", f"{reference} (reference)", arm)
    return Table(header, _image_rows(differences[:most]), note=MoreDifferences(more) if more > 0 else None)


def _image_rows(differences: Sequence[Difference]) -> list[tuple[str, str, str]]:
    return [
        (difference.what, _side(difference.what, difference.reference), _side(difference.what, difference.image))
        for difference in differences
    ]


def _side(what: str, value: str | None) -> str:
    if value is None:
        return ABSENT
    return f"{value[:SHOWN_OF_DIGEST]}…" if what == "image digest" else value
