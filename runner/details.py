"""Print the rest of a summary: machine and images, evidence, settings, and how to do one sample by hand."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner import image_wording, report, wording
from runner.engine_facts import cpu_name
from runner.plan import Arm, OwnCommand, Plan
from runner.summary import Measured, Summary
from runner.worker.metric import parse


def show(summary: Summary, folder: str, out: Console) -> None:
    report.show(summary, folder, out)
    out.print()
    for name, text in surroundings(summary):
        report.item(out, name, text)
    out.print()
    if any(map(image_wording.rest, summary.image_differences.values())):
        report.differences(summary, out)
    for measured in summary.measured:
        _evidence(summary, measured, out)
    _notes(summary, out)


def surroundings(summary: Summary) -> list[tuple[str, str]]:
    """What was measured and where: profiles, machine, images, workload, data and design, each with a label."""
    plan = summary.plan
    host = summary.inspection(plan.reference)
    facts, machine = host["facts"], host["fingerprint"]
    quota = f", quota {facts['cpu_quota']:g} CPUs" if facts["cpu_quota"] else ""
    kind = machine["hypervisor"] or ("bare metal" if machine["architecture"] == "x86_64" else "")  # others don't tell
    profiles = {arm.profile: summary.environments[arm.name].title for arm in plan.subjects}
    rows = [("profile", f"{name}: {title}") for name, title in profiles.items()]
    rows += [
        ("machine", f"{cpu_name(machine)}, {facts['usable_cpus']} usable CPUs on {facts['physical_cores']} cores"
         f"{quota}{', ' if kind else ''}{kind}"),
        ("system", f"{machine['distribution']}, Linux {machine['kernel']}, {machine['libc']}"),
        ("memory", f"{(machine['memory_bytes'] or 0) / 2**30:.1f} GiB, "
         f"transparent huge pages {machine['thp_enabled']}"),
    ]  # fmt: skip
    for seen in summary.engines.values():
        inside, engine = seen["inspection"], seen["engine"]
        versions = f"Python {inside['python']['version']}, torch {inside['packages']['torch']}"
        digest = f" ({engine['digest'][:19]}…)" if "digest" in engine else ""
        rows.append(("engine", f"{engine['name']} {engine['version']}: {engine['image']}{digest}, {versions}"))
    if plan.engine_options:
        options = (f"--{name.replace('_', '-')} {value}" for name, value in plan.engine_options.items())
        rows.append(("options", ", ".join(options)))
    if plan.own is not None:
        rows.append(("command", f"{wording.what_was_run(summary).removeprefix('command ')}, in {plan.own.folder}"))
        rows.append(("metric", f"{metric(plan.own)}; each sample a fresh process"))
    else:
        rows += [("workload", f"{name}, {length}, each sample a fresh process") for name, length in _lengths(plan)]
        rows.append(("modes", plan.options.text() or "fp32, not compiled, usual memory layout"))
    if plan.distributed:
        ranks = ", ".join(f"{arm.name} {plan.ranks_of(arm)}" for arm in plan.distributed)
        rows.append(("ranks", f"{ranks}; each on its part of the CPUs, and all share each batch"))
    rows.append(("data", summary.data_source))
    rows.append(("design", wording.design(summary)))
    return rows


def _lengths(plan: Plan) -> list[tuple[str, str]]:
    """What is trained, and for how long: one line, or one for each workload where they differ in that."""
    if plan.epochs or not plan.each:
        steps = f"{plan.steps} steps after {plan.warmup_steps} to warm up"
        return [(", ".join(plan.workloads), f"{plan.epochs} epochs" if plan.epochs else steps)]
    return [(name, f"{one.steps} steps after {one.warmup_steps} to warm up") for name, one in plan.each.items()]


def metric(own: OwnCommand) -> str:
    """How the steps of a user's own command are told apart."""
    if own.metric is None:
        return "none: the whole command is one step"
    unit = "" if parse(own.metric, own.unit).is_clock else f", {own.unit}"
    left_out = f", without the first {own.warmup_lines} readings" if own.warmup_lines else ""
    return f"{own.metric}{unit}{left_out}"


def _evidence(summary: Summary, measured: Measured, out: Console) -> None:
    if not measured.checks:
        return
    state = "NOT IN EFFECT" if not measured.in_effect else "not verified" if measured.unverified else "in effect"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in (f"{measured.arm}: {state}", "expected", "seen", ""):
        table.add_column(column, overflow="fold")
    for check in measured.checks:
        mark = Text("ok", "green") if check.holds else Text("NOT MET", "bold red")
        mark = mark if check.verified else Text("not verified")
        table.add_row(Text(check.key), Text(wording.shown(check.expected)), Text(wording.shown(check.seen)), mark)
    out.print(table)
    for name, value in summary.environments[measured.arm].variables.items():
        out.print(Text(f"  {name}={value}"), soft_wrap=True)
    out.print()


def _notes(summary: Summary, out: Console) -> None:
    for arm in () if summary.plan.compares_images else summary.plan.compared:
        for name, here, there in differences(summary, arm):
            reference = summary.plan.reference_of(arm).name
            report.item(out, "note", f"{name} is {here} in {reference} and {there} in {arm.name}")
    report.item(out, "ended", summary.ended or "not yet, or killed: continue with --resume")
    out.print(Text("by hand  (one sample each)"))
    for measured in summary.measured:
        out.print(Text(f"  {summary.commands[measured.arm]}"), soft_wrap=True)


def differences(summary: Summary, arm: Arm) -> list[tuple[str, str, str]]:
    """What differs between two images and the limits they run in, and so does not come from the engines alone.

    Where images are compared it is everything that is known to differ.
    """
    if arm.name in summary.image_differences:
        return [(what, here, there) for what, here, there in image_wording.rows(summary.image_differences[arm.name])]
    ours, theirs = (
        {
            "Python": seen["python"]["version"],
            "libc": seen["fingerprint"]["libc"],
            **seen["packages"],
            **{name.replace("_", " "): seen["facts"][name] for name in ("usable_cpus", "physical_cores", "cpu_quota")},
        }
        for seen in (summary.inspection(summary.plan.reference_of(arm)), summary.inspection(arm))
    )
    return [(name, str(here), str(theirs[name])) for name, here in ours.items() if here != theirs[name]]
