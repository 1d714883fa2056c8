"""The workload and machine of a run, and the differences between the environments of two arms."""

from __future__ import annotations

import shlex
from typing import Any

from envkit.analysis.engine_facts import cpu_name
from envkit.analysis.summary import Summary
from envkit.bench.arms import Arm
from envkit.bench.plan import Plan
from envkit.bench.user_command import TRACKERS_OFF
from envkit.messages import Message
from envkit.report import certainty, images, scaling
from envkit.report.images import SHOWN_OF_DIGEST
from envkit.report.messages import context as messages
from envkit.report.messages.certainty import Numbered
from envkit.report.messages.headings import DEFAULT_MODES
from envkit.report.messages.lines import OfSubject
from envkit.report.parts import Row
from envkit.worker.request import UserCommand
from envkit.worker.user_command.metric import parse

ABSENT = "-"


def rows(summary: Summary) -> list[Row]:
    """Return profiles, machine, images, workload, data and design."""
    plan = summary.plan
    profiles = {arm.profile: summary.environments[arm.name].title for arm in plan.subjects}
    found = [Row("profile", OfSubject(name, title)) for name, title in profiles.items()]
    found += [*_machine(summary), *_engines(summary)]
    found += _of_command(summary, plan.user_command) if plan.user_command else _of_workloads(plan)
    if plan.distributed:
        ranks = tuple(Numbered(arm.name, plan.ranks_of(arm)) for arm in plan.distributed)
        found.append(Row("ranks", messages.SharedBatches(ranks, scaling.steps(plan))))
    if plan.at_once:
        found.append(Row("instances", messages.AllBatches(tuple(arm.name for arm in plan.at_once))))
    return [*found, Row("data", summary.data_source), Row("design", certainty.design(summary))]


def _of_command(summary: Summary, own: UserCommand) -> list[Row]:
    found = [
        Row("command", messages.OwnCommand(tuple(own.argv), _other_name(summary.plan, own), own.folder)),
        Row("metric", messages.FreshProcesses(_metric(summary.plan, own))),
        Row("folder", messages.InPlace() if own.in_place else messages.FreshCopy(tuple(own.links))),
    ]
    off = tuple(name for name in TRACKERS_OFF if name not in summary.allowed_variables)
    found += [Row("trackers", messages.TrackersOff(off))] if off else []
    return [*found, *([Row("losses", own.loss_metric)] if own.loss_metric is not None else [])]


def _of_workloads(plan: Plan) -> list[Row]:
    """Return what is trained and for how long: one row, or one for each workload if they differ in that."""
    lengths: list[Message] = [
        messages.TrainedSteps(name, one.steps, one.warmup_steps) for name, one in plan.workloads.items()
    ]
    if plan.epochs:
        lengths = [messages.TrainedEpochs(tuple(plan.workloads), plan.epochs, plan.until)]
    return [*(Row("workload", one) for one in lengths), Row("modes", plan.options.text() or DEFAULT_MODES)]


def what_was_run(summary: Summary) -> Message:
    """Return the workload and its modes, or the user's own command."""
    own = summary.plan.user_command
    if own is None:
        return messages.Workload(trained(summary.plan))
    return messages.OwnCommand(tuple(own.argv), _other_name(summary.plan, own), label=messages.COMMAND)


def _other_name(plan: Plan, own: UserCommand) -> str | None:
    """Return the name of a user's command if it is not the command's own beginning."""
    return None if shlex.join(own.argv).startswith(plan.workload.rstrip("…")) else plan.workload


def trained(plan: Plan) -> str:
    """Return ``cnn``, or ``cnn, translation (bf16-autocast)``: what is trained and in which modes."""
    names, modes = plan.workloads, plan.how
    what = ", ".join(names) if len(names) <= certainty.MOST_WORKLOADS else f"{plan.workload}, {len(names)} settings"
    return f"{what} ({modes})" if modes else what


def _machine(summary: Summary) -> list[Row]:
    host = summary.inspection(summary.plan.reference)
    facts, machine = host["facts"], host["fingerprint"]
    # other architectures don't tell whether they are virtual
    kind = machine["hypervisor"] or ("bare metal" if machine["architecture"] == "x86_64" else None)
    cpus = (facts["usable_cpus"], facts["physical_cores"], facts["cpu_quota"] or None)
    return [
        Row("machine", messages.Machine(cpu_name(machine), *cpus, kind)),
        Row("system", messages.OperatingSystem(machine["distribution"], machine["kernel"], machine["libc"])),
        Row("memory", messages.Memory(machine["memory_bytes"] or 0, machine["thp_enabled"])),
    ]


def _engines(summary: Summary) -> list[Row]:
    found = [Row("engine", _engine(**seen)) for seen in summary.engines.values()]
    options = [f"--{name.replace('_', '-')} {value}" for name, value in summary.plan.engine_options.to_json().items()]
    return [*found, *([Row("options", ", ".join(options))] if options else [])]


def _engine(engine: dict[str, Any], inspection: dict[str, Any], **_: Any) -> Message:
    digest = engine["digest"][:SHOWN_OF_DIGEST] if "digest" in engine else None
    versions = (inspection["python"]["version"], inspection["packages"]["torch"])
    return messages.Engine(engine["name"], engine["version"], engine["image"], digest, *versions)


def _metric(plan: Plan, own: UserCommand) -> Message:
    """Return how the steps of a user's own command are told apart."""
    if own.is_paced:
        return messages.PacedSteps(plan.training.steps, plan.training.warmup_steps)
    if own.optimizer_steps is not None:
        return messages.OptimizerSteps(own.optimizer_steps, own.warmup_lines)
    if own.metric is None:
        return messages.WholeCommand()
    unit = None if parse(own.metric, own.unit).is_clock else own.unit
    return messages.Readings(own.metric, unit, own.warmup_lines or None)


def sides(summary: Summary, arm: Arm) -> list[tuple[str, str, str]]:
    """Return what the reference and ``arm`` were started with, and in what their images and limits differ.

    Each has a name, and what it is there and here. Differences between images do not come from the engines alone.
    """
    reference = summary.plan.reference_of(arm)
    there, here = _set(summary, reference), _set(summary, arm)
    settings = [(name, there.get(name, ABSENT), here.get(name, ABSENT)) for name in dict.fromkeys([*there, *here])]
    if arm.name in summary.image_differences:  # where images are compared, all that is known to differ
        differing = images.rows(summary.image_differences[arm.name])
        return [*settings, *((what, old, new) for what, old, new in differing)]
    ours, theirs = (_inside(summary.inspection(one)) for one in (reference, arm))
    return [*settings, *((name, text, theirs[name]) for name, text in ours.items() if text != theirs[name])]


def _inside(seen: dict[str, Any]) -> dict[str, str]:
    """The versions in an image, and its limits."""
    limits = {name.replace("_", " "): seen["facts"][name] for name in ("usable_cpus", "physical_cores", "cpu_quota")}
    versions = {"Python": seen["python"]["version"], "libc": seen["fingerprint"]["libc"], **seen["packages"]}
    return {name: str(value) for name, value in (versions | limits).items()}


def _set(summary: Summary, arm: Arm) -> dict[str, str]:
    environment = summary.environments[arm.name]
    libraries: dict[str, Any] = summary.inspection(arm)["libraries"]
    engine = summary.engines[arm.target]["engine"]
    found = {"profile": arm.profile, "engine": f"{arm.engine}: {engine['image']}"}
    if environment.prefix:
        found["prefix"] = " ".join(environment.prefix)
    for name, path in environment.preload.items():
        known = (libraries.get(name) or {}).get("sha256")
        found[f"preload {name}"] = f"{path} (SHA-256 {known})" if known else path
    return found | environment.variables
