"""Print for people, in 80 columns, how two sessions compare: verdicts, a table and a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.analysis.baseline_diff import BaselineVerdict, Change, Changes, Difference, Factor
from envkit.analysis.baselines import Baseline
from envkit.common.messages import About
from envkit.common.plain_table import plain_table
from envkit.messages import Message
from envkit.rendering import exact_percent, ratio, text
from envkit.report.messages import baselines as messages
from envkit.report.messages import headings
from envkit.report.parts import Row
from envkit.report.terminal import item, items

STYLES = {
    BaselineVerdict.REGRESSION: "bold red",
    BaselineVerdict.FASTER: "bold green",
    BaselineVerdict.NO_REGRESSION: "bold green",
}
VERDICTS: dict[BaselineVerdict, type[messages.Changed]] = {
    BaselineVerdict.REGRESSION: messages.Regression,
    BaselineVerdict.FASTER: messages.FasterNow,
    BaselineVerdict.NO_REGRESSION: messages.NoRegression,
    BaselineVerdict.NOT_CERTAIN: messages.NotCertain,
}


def show(old: Baseline, new: Baseline, changes: Changes | None, threshold: float, out: Console) -> None:
    """Print the verdicts, a table of speeds, and the lines on both sessions; the sessions alone without ``changes``."""
    if changes is not None:
        for change, verdict in zip(changes.arms, verdicts(changes), strict=True):
            out.print(Text(text(verdict), STYLES.get(change.verdict, "bold")))
        out.print()
        _table(changes, old.reference, out)
        out.print()
    items(out, [*_sessions(old, new), *(_lines(old, new, changes, threshold) if changes is not None else [])])


def verdicts(changes: Changes) -> list[Message]:
    """Return what became of each arm's speed."""
    return [_verdict(change, changes.confidence) for change in changes.arms]


def _verdict(change: Change, confidence: float) -> Message:
    factor = change.decisive
    if factor is None:
        return messages.NotCompared(change.arm)
    what = "normalised speed" if change.normalised else "lead"
    return VERDICTS[change.verdict](change.arm, what, factor.ratio, factor.low, factor.high, confidence)


def _table(changes: Changes, reference: str, out: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("profile", overflow="fold")
    decisive = "normalised" if changes.machine else f"over {reference}"
    for column in ("ms/step then", "now", "as measured", decisive, f"{exact_percent(changes.confidence)} CI"):
        table.add_column(column, justify="right")
    for change in changes.arms:
        factor = change.decisive
        cells = (f"{ratio(factor.ratio)}x", _interval(factor)) if factor else ("-", "-")
        then, now = (f"{seconds * 1000:.2f}" for seconds in (change.old_step_s, change.new_step_s))
        table.add_row(change.arm, then, now, f"{ratio(change.measured.ratio)}x", *cells)
    out.print(table)
    out.print(Text(headings.THEN_AND_NOW_NORMALISED if changes.machine else headings.THEN_AND_NOW, "dim"))


def _interval(factor: Factor) -> str:
    return f"{ratio(factor.low)} to {ratio(factor.high)}"


def _sessions(old: Baseline, new: Baseline) -> list[Row]:
    rows = [
        Row(label, messages.Session(str(one.source), when(one), one.blocks, one.disturbed or None))
        for label, one in (("Then", old), ("Now", new))
    ]
    cautions: list[Message] = []
    if old.skipped_steps != new.skipped_steps:
        cautions.append(messages.OtherWarmUp(old.skipped_steps, new.skipped_steps))
    sessions = (("then", old), ("now", new))
    cautions += [About(which, under_load(one)) for which, one in sessions if one.is_under_load]
    return [*rows, *(Row("Caution", one, "bad") for one in cautions)]


def _lines(old: Baseline, new: Baseline, changes: Changes, threshold: float) -> list[Row]:
    """Return the lines on what changed, and what to do."""
    rows = [
        Row("Caution", messages.KernelOnly(change.arm, change.measured.ratio), "bad")
        for change in changes.arms
        if change.reference_kernel_only
    ]
    if changes.machine is None:
        rows.append(Row("Caution", messages.OtherKernel(), "bad"))
    else:
        machine = changes.machine
        rows.append(Row("Machine", messages.MachineChanged(machine.ratio, machine.low, machine.high)))
        leads = [(change.arm, change.relative) for change in changes.arms if change.relative is not None]
        rows += [
            Row("Speedup", messages.LeadChanged(arm, old.reference, lead.ratio, lead.low, lead.high))
            for arm, lead in leads
        ]
    kinds = {change.verdict for change in changes.arms}
    if BaselineVerdict.NOT_CERTAIN in kinds:
        rows.append(Row("Next", messages.MoreBlocks(threshold)))
    if BaselineVerdict.FASTER in kinds and not new.is_under_load:
        rows.append(Row("Next", messages.SaveAgain()))
    return [*rows, Row("Next", messages.OneSession())]


def under_load(baseline: Baseline) -> Message:
    """Return what a session is no good for whose blocks were nearly all disturbed."""
    return messages.UnderLoad(baseline.disturbed, baseline.blocks)


def when(baseline: Baseline) -> str:
    """Return ``2026-11-21 11:20 UTC``."""
    return f"{baseline.document['measured'][:16].replace('T', ' ')} UTC"


def environments(different: Sequence[Difference], out: Console) -> None:
    """Print in what the two environments differ."""
    if not different:
        item(out, "Differs", messages.NoDifferences())
        return
    out.print()
    table = plain_table(("differs", "then", "now"), fold=True)
    for difference in different:
        table.add_row(
            *(Text("-" if cell is None else cell) for cell in (difference.what, difference.old, difference.new))
        )
    out.print(table)
