"""Tell what a tuning found, in words and as plain data: what won, which parameters mattered, what was not tried."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.analysis.summary import Summary
from envkit.bench.plan import MARGIN, Plan
from envkit.bench.record import Event
from envkit.checks.interference import interference_in
from envkit.common.plain_table import plain_table
from envkit.report import terminal, wording
from envkit.report.advice import from_folder, gpus, quieter
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, Speedup, speedup
from envkit.stats.verdict import Verdict
from envkit.tuning.confirm import BASELINE, SHIPPED, TUNED, Decision
from envkit.tuning.destination import Written
from envkit.tuning.importance import Importance, importance
from envkit.tuning.live import ranked
from envkit.tuning.narrow import LeftOut
from envkit.tuning.space import Space
from envkit.tuning.trial_store import TrialStore
from envkit.tuning.trials import TRIAL, WARM_UP
from envkit.worker.gpus import CHOOSING
from envkit.worker.workloads import DEFAULT

RANKED = 10
LABEL = 12


def busy(events: Iterable[Event]) -> str:
    """What to add to a message about too little time where trials were disturbed from outside; else nothing."""
    found = [reasons for event in events if event["event"] in (TRIAL, WARM_UP) and (reasons := interference_in(event))]
    return f"; the machine is busy ({'; '.join(found[-1])}), and a quiet one needs less" if found else ""


def no_room(least_budget_s: float, events: Iterable[Event]) -> str:
    """What to say of a search that could try nothing."""
    needed = f"give --budget {math.ceil(least_budget_s)}s or more"
    return f"the budget has no room for a single candidate and its confirmation: {needed}{busy(events)}"


def failed_again(confirmation: Summary) -> str:
    """What to do, beside going on, where the arm that failed had failed before: to go on may lead nowhere."""
    arms = [event["arm"] for event in confirmation.failures]
    if arms[-1:] != arms[-2:-1] or not arms:
        return ""
    return (
        f"{arms[-1]} failed before, too: start a new tuning with what its workers lacked or without what it sets, or "
    )


def parameter_importance(space: Space, store: TrialStore) -> list[Importance]:
    """Which parameters mattered, by the candidates of the space that had a trial."""
    scored = store.scored()
    return importance(space, [choice for choice, _ in scored], [score for _, score in scored])


def _best_shipped(untried: Sequence[str]) -> str:
    """How to call the shipped profile in the confirmation, given those that were not tried."""
    return "the best shipped profile tried" if untried else "the best shipped profile"


def reason(decision: Decision, begun: float, machine: str, shipped: str | None, untried: Sequence[str] = ()) -> str:
    """Why the written profile is what it is: what was measured, when (``begun``, in seconds since 1970) and on what."""
    when = f"{time.strftime('%Y-%m-%d', time.localtime(begun))} on {machine}"
    if decision.best == BASELINE:
        nothing = f"nothing that is surely faster than the baseline{_refused(decision)}"
        return f"On {when}, envkit tune found {nothing}, so this sets nothing."
    one = decision.tuned if decision.best == TUNED else decision.shipped
    assert one is not None, "only what was measured can win"
    assert one.speedup is not None, "only what has an interval can win"
    gain = f"{_interval(one.speedup)} times as fast as the baseline, in {one.speedup.blocks} blocks of fresh samples"
    gain += f", {decision.load.words}: measure it again before you use it" if decision.load else ""
    if decision.best == TUNED:
        other = f", and {_interval(decision.versus)} times as fast as {shipped}" if decision.versus else ""
        return f"Found by envkit tune on {when}: {gain}{other}{f', {_best_shipped(untried)}' if other else ''}."
    found = f"; what the search found was {_interval(decision.versus)} times as fast as it" if decision.versus else ""
    kind = f"{_best_shipped(untried)}, {shipped}" if untried else f"the shipped profile {shipped}"
    return f"A copy of {kind}, which envkit tune could not better{_but_refused(decision)} on {when}: {gain}{found}."


def _refused(decision: Decision) -> str:
    """What to add to a sentence that says that nothing was faster, where that is so only of what learns the same."""
    if not decision.refused:
        return ""
    were = "is" if len(decision.refused) == 1 else "are"
    return f" with the same losses ({' and '.join(decision.refused)} {were}, with others)"


def _but_refused(decision: Decision) -> str:
    """The same of a sentence about the shipped profile, which what was refused need not better."""
    return _refused(decision) if decision.versus is not None and decision.versus.verdict == Verdict.FASTER else ""


def _interval(found: Speedup) -> str:
    return f"{found.ratio:.3f} ({wording.CONFIDENCE} interval {found.low:.3f} to {found.high:.3f})"


def show_search(
    store: TrialStore,
    left_out: Sequence[LeftOut],
    found: Sequence[Importance],
    out: Console,
    untried: Sequence[str] = (),
) -> None:
    """Show how much was tried, what was not, and which parameters mattered."""
    trials = sum(len(of_round) for of_round in store.step_s)
    own = sum(entry.shipped is None for entry in store.entries.values())
    of_space = f" ({own} of the space alone)" if own < len(store.entries) else ""
    tried = f"{_counted(len(store.entries))}{of_space} in {trials} trials, {store.spent_s:.0f} s of workers"
    terminal.item(out, "searched", tried, width=LABEL)
    if store.problems:
        number, problem = next(iter(store.problems.items()))
        first = f"{_counted(len(store.problems))}, the first {store.entries[number].title}: its worker {problem}"
        terminal.item(out, "failed", first, width=LABEL)
    if untried:
        were = "profile was" if len(untried) == 1 else "profiles were"
        said = f"{len(untried)} shipped {were} not tried, for want of time: {', '.join(untried)}"
        terminal.item(out, "not seen", said, width=LABEL)
    for what, why in wording.together({one.what: one.why for one in left_out}).items():
        terminal.item(out, "left out", f"{what}: {why}", width=LABEL)
    if found:
        out.print()
        out.print(_importance_table(found))
        out.print(Text("share: of the variance of the candidates' speedups (Breiman 2001); with 95% intervals", "dim"))
        out.print(Text("worth: of the candidates that the search chose; not confirmed", "dim"))
        out.print()


def _importance_table(found: Sequence[Importance]) -> Table:
    table = plain_table(("parameter", "share of it all", "best level", "worth"), fold=True)
    for one in found[:RANKED]:
        share = f"{one.share:.0%} ({one.low:.0%} to {one.high:.0%})"
        if one.share <= 0.005:  # it rounds to 0%
            share = f"none (at most {one.high:.0%})"
        same = one.best == one.first
        worth = "" if same else f"{one.worth:.3f} ({one.worth_low:.3f} to {one.worth_high:.3f}) over {one.first}"
        table.add_row(one.parameter, share, one.best, worth)
    return table


def show_ranking(store: TrialStore, out: Console) -> None:
    """Show the best candidates of an exhaustive measurement, each with the interval that its own trials allow."""
    columns = ("speedup", f"{wording.CONFIDENCE} interval", "trials", "candidate")
    table = plain_table(columns, right=("speedup", "trials"), fold=True)
    lines = ranked(store)
    for line in lines[:RANKED]:
        interval = _alone(store, line.number)
        shown = "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
        table.add_row(f"{line.speedup:.3f}", shown, str(line.trials), line.title)
    out.print(table)
    lucky = f"each interval is of one candidate alone; the first of {len(lines)} was lucky too, and is not confirmed"
    out.print(Text(lucky, "dim"))
    out.print()


def _alone(store: TrialStore, number: int) -> tuple[float, float] | None:
    """The interval of a candidate's speedup by its trials, as if it were the only one; None with too few."""
    ratios = store.ratios(number)
    found = speedup(ratios, ERROR_RATE, MARGIN) if len(ratios) >= MIN_BLOCKS else None
    return None if found is None else (found.low, found.high)


def show_confirmation(
    summary: Summary, decision: Decision, shipped: str | None, out: Console, untried: Sequence[str] = ()
) -> None:
    """The confirmation's figures, then who won."""
    terminal.items(out, wording.verdicts(summary), width=max(LABEL, len(shipped or "") + 2))
    if decision.versus is not None:
        found = decision.versus
        style = terminal.STYLES["good" if found.verdict == Verdict.FASTER else "plain"]
        text = f"{_interval(found)} against {shipped}, {_best_shipped(untried)}: {found.words.upper()}"
        terminal.item(out, TUNED, text, style, max(LABEL, len(shipped or "") + 2))
    out.print()
    terminal.table(summary, out)
    terminal.items(out, [*wording.certainty(summary), *wording.evidence(summary)])
    if decision.load is not None:
        terminal.item(out, "next", quieter(decision.load))
    terminal.failures(summary, out)


def advice(decision: Decision, shipped: str | None, path: Path, written: Written) -> str:
    """What was written, and what became of what was there."""
    nothing = f"nothing is surely faster than the baseline{_refused(decision)}"
    if written.stays and decision.best == BASELINE:
        return f"{nothing}; the profile of an earlier tuning stays as it is: {path}"
    if written.stays and decision.load is not None:
        return f"nothing: what was found holds only {decision.load.words}; the profile that is there stays: {path}"
    if written.stays:
        return f"this tuning wrote its profile when it ended; another one that is there now stays as it is: {path}"
    if decision.best == BASELINE:
        said = f"{nothing}; the profile that was written sets nothing"
    elif decision.best == SHIPPED and decision.tuned is None:
        said = f"{shipped} is the best that was found; a copy of it was written"
    elif decision.best == SHIPPED:
        found = f"the search found nothing that is surely faster than {shipped}{_but_refused(decision)}"
        said = f"{found}; a copy of that was written"
    else:
        said = "the tuned profile was written"
    if decision.load is not None:
        said += f", which holds only {decision.load.words}: measure it again before you use it"
    earlier = f"; the earlier one is kept as {written.earlier.name} beside it" if written.earlier else ""
    return f"{said}: {path}{earlier}"


def usage(plan: Plan, profile: str, ranks: int = 1, kept: Iterable[str] = ()) -> str:
    """How to use the profile as it was measured: on the same engine, with its options, training and ranks, and with the
    caller's variables that were ``kept``.
    """
    engine = plan.reference.engine
    options = ["--engine", engine] if engine != "local" else []
    for name, value in plan.engine_options.items():
        options += [f"--{name.replace('_', '-')}", value]
    for name in kept:
        options += ["--keep-env", name] if name not in CHOOSING else []  # exec passes these on by itself
    with_them = "".join(f" {one}" for one in map(shlex.quote, options))
    given = f"{shlex.quote(profile)}{with_them}"
    asking = gpus(plan, engine)
    if plan.user_command is not None:
        return f"{from_folder(plan)}envkit exec {given}{asking} -- {shlex.join(plan.user_command.argv)}"
    workload = () if plan.workload == DEFAULT else ("--workload", plan.workload)
    trained = "".join(f" {word}" for word in (*workload, *plan.options.arguments()))
    python = f"torchrun --nproc-per-node {ranks}" if ranks > 1 else "python"
    return f"envkit exec {given}{asking} -- {python} train.py, or bench it: envkit bench {given}{trained}"


def to_json(store: TrialStore, left_out: Sequence[LeftOut], found: Sequence[Importance]) -> dict[str, Any]:
    """What a script needs of the search."""
    return {
        "candidates": [
            {
                **{key: getattr(store.entries[line.number], key) for key in ("number", "title", "choice", "shipped")},
                "speedup": line.speedup,
                "trials": line.trials,
                "interval": _alone(store, line.number),
            }
            for line in ranked(store)
        ],
        "failed": [
            {"number": number, "title": store.entries[number].title, "problem": problem}
            for number, problem in store.problems.items()
        ],
        "left_out": [asdict(one) for one in left_out],
        "importance": [asdict(one) for one in found],
        "search_s": round(store.spent_s, 3),
    }


def _counted(candidates: int) -> str:
    return f"{candidates} candidate{'' if candidates == 1 else 's'}"
