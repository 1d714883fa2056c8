"""What was measured and where, and in what the environments of two arms differ."""

from __future__ import annotations

from typing import Any

from envkit.analysis.engine_facts import cpu_name
from envkit.analysis.summary import Summary
from envkit.bench.plan import Arm, Plan
from envkit.bench.user_command import TRACKERS_OFF, UserCommand
from envkit.report import images, scaling, wording
from envkit.report.parts import Row
from envkit.worker.user_command.metric import parse

ABSENT = "-"


def rows(summary: Summary) -> list[Row]:
    """Profiles, machine, images, workload, data and design."""
    plan = summary.plan
    profiles = {arm.profile: summary.environments[arm.name].title for arm in plan.subjects}
    found = [Row("profile", f"{name}: {title}") for name, title in profiles.items()]
    found += [*_machine(summary), *_engines(summary)]
    if plan.user_command is not None:
        command = wording.what_was_run(summary).removeprefix("command ")
        found.append(Row("command", f"{command}, in {plan.user_command.folder}"))
        found.append(Row("metric", f"{_metric(plan, plan.user_command)}; each sample a fresh process"))
        found.append(Row("folder", _folder(plan.user_command)))
        off = [name for name in TRACKERS_OFF if name not in summary.allowed_variables]
        if off:
            found.append(Row("trackers", f"off by {', '.join(off)}; --keep-env NAME keeps yours"))
        if plan.user_command.loss_metric is not None:
            found.append(Row("losses", plan.user_command.loss_metric))
    else:
        found += [Row("workload", f"{name}, {length}, each sample a fresh process") for name, length in _lengths(plan)]
        found.append(Row("modes", plan.options.text() or "fp32, not compiled, usual memory layout"))
    if plan.distributed:
        ranks = ", ".join(f"{arm.name} {plan.ranks_of(arm)}" for arm in plan.distributed)
        text = f"{ranks}; each on its part of the CPUs, and all share each batch"
        found.append(Row("ranks", "; ".join(filter(None, (text, scaling.steps(plan))))))
    if plan.at_once:
        names = ", ".join(arm.name for arm in plan.at_once)
        found.append(Row("instances", f"{names}; each on its part of the CPUs, and each trains all batches"))
    return [*found, Row("data", summary.data_source), Row("design", wording.design(summary))]


def _machine(summary: Summary) -> list[Row]:
    host = summary.inspection(summary.plan.reference)
    facts, machine = host["facts"], host["fingerprint"]
    quota = f", quota {facts['cpu_quota']:g} CPUs" if facts["cpu_quota"] else ""
    kind = machine["hypervisor"] or ("bare metal" if machine["architecture"] == "x86_64" else "")  # others don't tell
    cpus = f"{facts['usable_cpus']} usable CPUs on {facts['physical_cores']} cores"
    memory = f"{(machine['memory_bytes'] or 0) / 2**30:.1f} GiB"
    return [
        Row("machine", f"{cpu_name(machine)}, {cpus}{quota}{', ' if kind else ''}{kind}"),
        Row("system", f"{machine['distribution']}, Linux {machine['kernel']}, {machine['libc']}"),
        Row("memory", f"{memory}, transparent huge pages {machine['thp_enabled']}"),
    ]


def _engines(summary: Summary) -> list[Row]:
    found = []
    for seen in summary.engines.values():
        inside, engine = seen["inspection"], seen["engine"]
        versions = f"Python {inside['python']['version']}, torch {inside['packages']['torch']}"
        digest = f" ({engine['digest'][:19]}…)" if "digest" in engine else ""
        found.append(Row("engine", f"{engine['name']} {engine['version']}: {engine['image']}{digest}, {versions}"))
    options = [f"--{name.replace('_', '-')} {value}" for name, value in summary.plan.engine_options.items()]
    return [*found, *([Row("options", ", ".join(options))] if options else [])]


def _lengths(plan: Plan) -> list[tuple[str, str]]:
    """What is trained, and for how long: one line, or one for each workload where they differ in that."""
    if plan.epochs:
        until = f" at most, until {plan.until}" if plan.until else ""
        return [(", ".join(plan.workloads), f"{plan.epochs} epochs{until}")]
    return [(name, f"{one.steps} steps after {one.warmup_steps} to warm up") for name, one in plan.workloads.items()]


def _folder(own: UserCommand) -> str:
    """Where each start takes place."""
    if own.in_place:
        return "itself (--in-place): each start finds what earlier ones wrote"
    links = f", {', '.join(own.links)} linked" if own.links else ""
    return f"a fresh copy for each start{links}"


def _metric(plan: Plan, own: UserCommand) -> str:
    """How the steps of a user's own command are told apart."""
    if own.is_paced:
        trained = plan.training
        return f"{trained.steps} steps of its optimizer, after {trained.warmup_steps}, by the machine's pace"
    if own.optimizer_steps is not None:
        return f"{own.optimizer_steps} steps of its optimizer, after {own.warmup_lines}"
    if own.metric is None:
        return "none: the whole command is one step"
    unit = "" if parse(own.metric, own.unit).is_clock else f", {own.unit}"
    left_out = f", without the first {own.warmup_lines} readings" if own.warmup_lines else ""
    return f"{own.metric}{unit}{left_out}"


def sides(summary: Summary, arm: Arm) -> list[tuple[str, str, str]]:
    """What the reference and ``arm`` were started with, and in what their images and limits differ.

    Each has a name, and what it is there and here. What of the images differs does not come from the engines alone.
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
