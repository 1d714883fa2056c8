"""Print a summary for people, in 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner.plan import Arm
from runner.statistics.interval import CONFIDENCE, MIN_BLOCKS, Speedup
from runner.summary import Comparison, Measured, Summary

WIDTH = 80
LABEL_WIDTH = 9
# The published figures for this workload's full training: seconds, test accuracy.
BOOK = {"baseline": (148, 0.8399), "intel-omp": (106, 0.8325)}
# What others may use during a sample (in CPUs), and how long a quota may hold it back, before the report says so.
NOTABLE_CPUS = 0.1
NOTABLE_S = 0.1
COLOURS = {"faster": "green", "slower": "red", "NOT IN EFFECT": "red", "failed": "red"}


class _Console(Console):
    """rich ends the program with status 1 when the reader of its output has gone; that is for the program to decide."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """The terminal, or plain text of a fixed width where the output goes to a file."""
    plain = _Console()
    return plain if plain.is_terminal and plain.width >= WIDTH else _Console(width=WIDTH)


def show(summary: Summary, folder: str, out: Console) -> None:
    """The whole report; ``folder`` is where its record is."""
    _heading(summary, out)
    _table(summary, out)
    for comparison in summary.comparisons:
        _verdict(summary, comparison, out)
    if summary.not_in_effect:
        _unmet(summary, out)
    for measured in summary.measured:
        _evidence(summary, measured, out)
    _notes(summary, out)
    out.print()
    out.print(Text(f"record   {folder}  (print again: runner report {folder})"), soft_wrap=True)


def item(out: Console, label: str, text: str, style: str = "") -> None:
    """A label in a column of its own, so that a long text goes on below itself."""
    grid = Table.grid()
    grid.add_column(width=LABEL_WIDTH)
    grid.add_column(overflow="fold")
    grid.add_row(label, Text(text, style))
    out.print(grid)


def _heading(summary: Summary, out: Console) -> None:
    plan = summary.plan
    host = summary.inspection(plan.reference)
    facts, machine = host["facts"], host["fingerprint"]
    quota = f", quota {facts['cpu_quota']:g} CPUs" if facts["cpu_quota"] else ""
    length = f"{plan.epochs} epochs" if plan.epochs else f"{plan.steps} steps after {plan.warmup_steps} to warm up"
    profiles = {arm.profile: summary.environments[arm.name].title for arm in plan.compared or plan.arms}
    rows = [("profile", f"{name}: {title}") for name, title in profiles.items()]
    rows += [
        ("machine", f"{machine['cpu_model']}, {facts['usable_cpus']} usable CPUs on {facts['physical_cores']} cores"
         f"{quota}, {machine['hypervisor'] or 'bare metal'}"),
        ("system", f"{machine['distribution']}, Linux {machine['kernel']}, {machine['libc']}"),
        ("memory", f"{(machine['memory_bytes'] or 0) / 2**30:.1f} GiB, "
         f"transparent huge pages {machine['thp_enabled']}"),
    ]  # fmt: skip
    for name, seen in summary.engines.items():
        inside, engine = seen["inspection"], seen["engine"]
        versions = f"Python {inside['python']['version']}, torch {inside['packages']['torch']}"
        digest = f" ({engine['digest'][:19]}…)" if "digest" in engine else ""
        rows.append(("engine", f"{name} {engine['version']}: {engine['image']}{digest}, {versions}"))
    if plan.engine_options:
        options = (f"--{name.replace('_', '-')} {value}" for name, value in plan.engine_options.items())
        rows.append(("options", ", ".join(options)))
    rows.append(("workload", f"{plan.workload}, {length}, each sample a fresh process"))
    rows.append(("data", summary.data_source))
    for name, text in rows:
        item(out, name, text)
    if summary.synthetic:
        out.print(Text("SYNTHETIC DATA: this is not Fashion-MNIST. Losses and accuracy mean nothing.", "bold red"))
    out.print()


def _table(summary: Summary, out: Console) -> None:
    if not summary.measured:
        return
    full = bool(summary.plan.epochs)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("profile" if len(summary.engines) == 1 else "engine")
    columns = ["samples", "ms/step", "images/s", "system time", "faults/step", "peak memory"]
    for column in [*columns[:1], "training", "accuracy", *columns[1:3]] if full else columns:
        table.add_column(column, justify="right")
    for one in summary.measured:
        cells = [f"{one.step_s * 1000:.2f}", f"{one.images_per_s:,.0f}"]
        if full:
            accuracy = "-" if one.accuracy is None else f"{one.accuracy:.2%}"
            table.add_row(one.arm, str(one.samples), f"{one.training_s:.1f} s", accuracy, *cells)
        else:
            cells += [f"{one.system_share:.1%}", f"{one.faults_per_step:,.0f}"]
            table.add_row(one.arm, str(one.samples), *cells, f"{one.peak_memory_bytes / 2**20:,.0f} MiB")
    if full:
        for name, (seconds, share) in BOOK.items():
            table.add_row(f"the book's {name}", "", f"{seconds} s", f"{share:.2%}", "", "", style="dim")
    out.print(table)
    out.print()


def _verdict(summary: Summary, comparison: Comparison, out: Console) -> None:
    verdict, reference = comparison.verdict, summary.plan.reference.name
    style = f"bold {COLOURS.get(verdict, 'default')}"
    whose = f"{comparison.arm}: " if len(summary.comparisons) > 1 else ""
    if comparison.speedup is not None:
        found = comparison.speedup
        interval = f"{CONFIDENCE:.0%} interval {found.low:.3f} to {found.high:.3f}, {found.blocks} blocks"
        item(out, "speedup", f"{whose}{found.ratio:.3f} ({interval}): {verdict.upper()}", style)
        item(out, "", _meaning(comparison.arm, found, reference))
    elif comparison.single_ratio is not None:
        item(out, "ratio", f"{whose}{comparison.single_ratio:.3f}, from one run each: no interval, no verdict")
    elif verdict == "too few samples":
        item(out, "speedup", f"{whose}not worked out: an interval needs {MIN_BLOCKS} complete blocks (raise --budget)")
    else:
        item(out, "speedup", f"{whose}not worked out: {verdict}", style)
    if comparison.losses is not None:
        losses = comparison.losses
        same = (
            "equal to the last bit"
            if losses.largest_difference == 0
            else f"largest relative difference at a step {losses.largest_difference:.1e}"
        )
        final = f"final {losses.reference_final:.6f} and {losses.final:.6f}"
        item(out, "losses", f"{final}; {same} over {losses.steps} steps")
        if not losses.agree and summary.environments[comparison.arm].numerics == "same":
            item(out, "", "LOSSES DIFFER by more than rounding: it changes what is learnt", "bold red")
    out.print()


def _meaning(arm: str, found: Speedup, reference: str) -> str:
    if found.verdict == "faster":
        return f"{arm} takes {1 - 1 / found.ratio:.1%} less time than {reference} here."
    if found.verdict == "slower":
        return f"{arm} takes {1 / found.ratio - 1:.1%} more time than {reference} here."
    return (
        f"Its time is within {1 / found.high - 1:+.1%} to {1 / found.low - 1:+.1%} of {reference}'s, and may be equal."
    )


def _unmet(summary: Summary, out: Console) -> None:
    for one in summary.not_in_effect:
        out.print(Text(f"{one.arm} is NOT IN EFFECT: no speedup is worked out.", "bold red"))
        for check in one.checks:
            if not check.holds:
                out.print(Text(f"  {check.key}: expected {_shown(check.expected)}, seen {_shown(check.seen)}"))
    out.print()


def _evidence(summary: Summary, measured: Measured, out: Console) -> None:
    if not measured.checks:
        return
    state = "in effect" if measured.in_effect else "NOT IN EFFECT"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in (f"{measured.arm}: {state}", "expected", "seen", ""):
        table.add_column(column, overflow="fold")
    for check in measured.checks:
        mark = Text("ok", "green") if check.holds else Text("NOT MET", "bold red")
        table.add_row(Text(check.key), Text(_shown(check.expected)), Text(_shown(check.seen)), mark)
    out.print(table)
    for name, value in summary.environments[measured.arm].variables.items():
        out.print(Text(f"  {name}={value}"), soft_wrap=True)
    out.print()


def _shown(value: object) -> str:
    return "nothing" if value is None else str(value)


def _notes(summary: Summary, out: Console) -> None:
    for failure in summary.failures:
        where = f"block {failure['block'] + 1}, {failure['arm']}"
        out.print(Text(f"FAILED   {where}: the worker {failure['problem']}", "bold red"))
        for line in failure["stderr"].strip().splitlines()[-3:]:
            out.print(Text(f"         | {line}"), soft_wrap=True)
    _noise(summary, out)
    for seen in summary.engines.values():
        if seen["inspection"]["unverified_packages"]:
            text = f"UNVERIFIED package: {seen['inspection']['unverified_packages']}"
            item(out, "note", text, "bold yellow")
    for arm in summary.plan.compared:
        for name, here, there in _differences(summary, arm):
            item(out, "note", f"{name} is {here} in {summary.plan.reference.name} and {there} in {arm.name}")
    if summary.removed_variables:
        item(out, "note", f"not passed on from your environment: {', '.join(summary.removed_variables)}")
    if summary.kept_variables:
        item(out, "note", f"kept from your environment: {', '.join(summary.kept_variables)}")
    item(out, "ended", summary.ended or "not yet, or killed: continue with --resume")
    out.print(Text("by hand  (one sample each)"))
    for measured in summary.measured:
        out.print(Text(f"  {summary.commands[measured.arm]}"), soft_wrap=True)


def _noise(summary: Summary, out: Console) -> None:
    """What may have spoilt the timings: findings from before the run, and what happened meanwhile."""
    for finding in summary.findings:
        item(out, finding["severity"], f"{finding['seen']}: {finding['why']}")
    for one in summary.measured:
        if one.others_cpus > NOTABLE_CPUS or one.steal_cpus > NOTABLE_CPUS:
            held = f", and its hypervisor withheld up to {one.steal_cpus:.2f}" if one.steal_cpus > NOTABLE_CPUS else ""
            item(
                out,
                "note",
                f"while {one.arm} was measured, others used up to {max(0.0, one.others_cpus):.2f} CPUs{held}",
            )
        if one.throttled_s > NOTABLE_S:
            item(out, "note", f"{one.arm} was held back by its CPU quota for {one.throttled_s:.1f} s")


def _differences(summary: Summary, arm: Arm) -> list[tuple[str, str, str]]:
    """What differs between two images and the limits they run in, and so does not come from the engines alone."""
    ours, theirs = (
        {
            "Python": seen["python"]["version"],
            "libc": seen["fingerprint"]["libc"],
            **seen["packages"],
            **{name.replace("_", " "): seen["facts"][name] for name in ("usable_cpus", "physical_cores", "cpu_quota")},
        }
        for seen in (summary.inspection(summary.plan.reference), summary.inspection(arm))
    )
    return [(name, str(here), str(theirs[name])) for name, here in ours.items() if here != theirs[name]]
