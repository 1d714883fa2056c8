"""Print for people, in 80 columns, how two sessions compare."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.analysis.baseline_diff import BaselineVerdict, Change, Changes, Difference, Factor
from envkit.analysis.baselines import Baseline
from envkit.common.plain_table import plain_table
from envkit.report.terminal import item

STYLES = {
    BaselineVerdict.REGRESSION: "bold red",
    BaselineVerdict.FASTER: "bold green",
    BaselineVerdict.NO_REGRESSION: "bold green",
}
OTHER_KERNEL = (
    "the reference kernel is other work now (Python, the C library or the kit changed), so speeds can't be normalised: "
    "only ratios to the reference, measured within each session, decide, and what slows all profiles alike goes unseen"
)
ONE_SESSION = (
    "each side is one session. What changes from one to the next (where memory lies, neighbours, heat) is in no "
    "interval here: measure once more before you act on a change"
)


def heading(old: Baseline, new: Baseline, out: Console) -> None:
    for label, one in (("then", old), ("now", new)):
        item(out, label, f"{one.source}: measured {when(one)}, {_blocks(one)}")
    if old.skipped_steps != new.skipped_steps:
        then = f"then the first {old.skipped_steps} timed steps of each sample were left out, now {new.skipped_steps}"
        item(out, "note", f"{then}, so part of a change may be that of warming up", "bold yellow")
    for label, one in (("then", old), ("now", new)):
        if one.is_under_load:
            item(out, "note", f"{label}: {under_load(one)}", "bold yellow")
    out.print()


def under_load(one: Baseline) -> str:
    """Return what a session is no good for whose blocks were nearly all disturbed."""
    hit = f"{one.disturbed} of {one.blocks} blocks were disturbed from outside"
    return f"{hit}, so that its times hold only under that load; measure again on a quieter machine"


def _blocks(one: Baseline) -> str:
    return f"{one.blocks} blocks{f', {one.disturbed} of them disturbed from outside' if one.disturbed else ''}"


def when(one: Baseline) -> str:
    """``2026-11-21 11:20 UTC``."""
    return f"{one.document['measured'][:16].replace('T', ' ')} UTC"


def speeds(found: Changes, reference: str, threshold: float, out: Console, saved: bool) -> None:
    """The change of each arm's speed, what it means, and what it does not tell.

    ``saved``: whether the later session is fit to be saved as a new baseline.
    """
    saving = "; save a new baseline to hold that" if saved else ""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("profile", overflow="fold")
    decisive = "normalised" if found.machine else f"to {reference}"
    for column in ("ms/step then", "now", "speed as measured", decisive, f"{_share(found.confidence)} interval"):
        table.add_column(column, justify="right")
    for change in found.arms:
        factor = change.decisive
        cells = (_percent(factor.ratio), _interval(factor)) if factor else ("-", "-")
        then, now = (f"{seconds * 1000:.2f}" for seconds in (change.old_step_s, change.new_step_s))
        table.add_row(change.arm, then, now, _percent(change.measured.ratio), *cells)
    out.print(table)
    out.print()
    for change in found.arms:
        style = STYLES.get(change.verdict, "bold")
        item(out, "verdict", f"{change.arm}: {_verdict(change, threshold, saving)}", style)
    if found.machine is not None:
        for change in found.arms:
            if change.relative is not None:
                text = f"{change.arm} to {reference}, within each session: {_percent(change.relative.ratio)}"
                item(out, "ratio", f"{text} ({_interval(change.relative)})")
        text = f"its own speed, by the reference kernel: {_percent(found.machine.ratio)} ({_interval(found.machine)})"
        item(out, "machine", f"{text}; what is normalised leaves this out")
    else:
        item(out, "note", OTHER_KERNEL, "bold yellow")
    item(out, "note", ONE_SESSION)
    if found.confidence > 0.95:
        item(out, "note", f"with several profiles each interval is at {_share(found.confidence)}, all together at 95%")
    out.print()


def environments(different: Sequence[Difference], out: Console) -> None:
    if not different:
        item(out, "differs", "nothing that is recorded of the two environments")
        return
    table = plain_table(("differs", "then", "now"), fold=True)
    for one in different:
        table.add_row(*(Text("-" if cell is None else cell) for cell in (one.what, one.old, one.new)))
    out.print(table)


def _verdict(change: Change, threshold: float, saving: str) -> str:
    """Return what became of an arm; ``saving`` follows where it became faster."""
    factor = change.decisive
    if factor is None:
        return str(change.verdict)
    what = "its speed relative to the reference kernel" if change.normalised else "its lead"
    relative = " relative to the reference kernel" if change.normalised else ""
    texts = {
        BaselineVerdict.REGRESSION: f"REGRESSION: it has lost {1 - factor.high:.1%} of {what} at least",
        BaselineVerdict.FASTER: f"faster by {factor.low - 1:.1%} at least{relative}{saving}",
        BaselineVerdict.NO_REGRESSION: f"no regression: a loss of more than {_share(threshold)}{relative} is ruled out",
        BaselineVerdict.NOT_CERTAIN: (
            f"not certain: it may have lost up to {1 - factor.low:.1%} of {what}; measure more blocks"
        ),
    }
    if not change.reference_kernel_only:
        return texts[change.verdict]
    only = f"only the reference kernel changed; as measured, its speed changed by {_percent(change.measured.ratio)}"
    if change.verdict == BaselineVerdict.NOT_CERTAIN:
        return f"not certain: relative to the reference kernel it has lost {1 - factor.high:.1%} at least, but {only}"
    return f"{texts[change.verdict]}; relative to it this is faster, but {only}"


def _share(share: float) -> str:
    """``5%``, ``97.5%``."""
    return f"{share * 100:.4g}%"


def _percent(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _interval(factor: Factor) -> str:
    return f"{_percent(factor.low)} to {_percent(factor.high)}"
