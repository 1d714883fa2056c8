"""Print what a tuning found, as a report of at most a screen, and as plain data."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.analysis.result import Comparison, Result
from envkit.bench.study import MARGIN, Study
from envkit.common.plain_table import plain_table
from envkit.messages import Message
from envkit.rendering import ratio, text
from envkit.report import cautions, lines, model, scaling, tables, terminal, verdict
from envkit.report.advice import quieter
from envkit.report.commands import from_folder, gpus, keep_options
from envkit.report.parts import Row, Rows
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, Speedup, speedup
from envkit.stats.verdict import Verdict
from envkit.tuning import conclusion_messages as messages
from envkit.tuning.confirm import BASELINE, SHIPPED, TUNED, Decision
from envkit.tuning.destination import Written
from envkit.tuning.events import Event, Trial, WarmUp
from envkit.tuning.importance import Importance, importance
from envkit.tuning.live import ranked
from envkit.tuning.narrow import LeftOut
from envkit.tuning.progress_messages import Busy, NoRoom, WayOn
from envkit.tuning.space import Space
from envkit.tuning.trial_store import TrialStore, disturbed
from envkit.worker.workloads import DEFAULT

# Rows of a table, and levels in a line.
RANKED, NAMED = 10, 3
LABEL = terminal.LABEL_WIDTH
# A share of the variance that rounds to 0%.
LITTLE = 0.005


def busy(events: Iterable[Event]) -> Message | None:
    """Return what disturbed trials from outside, to add to a message about too little time; None if nothing did."""
    disturbances = [reasons for event in events if isinstance(event, Trial | WarmUp) and (reasons := disturbed(event))]
    return Busy(tuple(disturbances[-1])) if disturbances else None


def no_room(least_budget_s: float, events: Iterable[Event]) -> Message:
    """Return what to say of a search that could try nothing."""
    return NoRoom(math.ceil(least_budget_s), busy(events))


def way_on(confirmation: Result, go_on: Message) -> Message:
    """Return how to go on, and what else to do if the arm that failed had failed before."""
    arms = [failure.arm for failure in confirmation.failures]
    again = arms[-1] if arms[-1:] == arms[-2:-1] and arms else None
    return WayOn(go_on, again)


def parameter_importance(space: Space, store: TrialStore) -> list[Importance]:
    """Return which parameters mattered, by the candidates of the space that had a trial."""
    scored = store.scored()
    return importance(space, [choice for choice, _ in scored], [score for _, score in scored])


def _rank(untried: Sequence[str]) -> str:
    """Return how to call the shipped profile in the confirmation, given those that were not tried."""
    return messages.BEST_TRIED if untried else messages.BEST_SHIPPED


def _over(speedup: Speedup | None, shipped: str | None, untried: Sequence[str]) -> Message | None:
    """Return how the tuned profile compares with the shipped one."""
    if speedup is None or shipped is None:
        return None
    return messages.OverShipped(speedup.ratio, speedup.low, speedup.high, shipped, _rank(untried), speedup.words)


def reason(decision: Decision, begun: float, machine: str, shipped: str | None, untried: Sequence[str] = ()) -> Message:
    """Return why the written profile is what it is.

    It says what was measured, when (``begun``, in seconds since 1970), and on which ``machine``.
    """
    day = time.strftime("%Y-%m-%d", time.localtime(begun))
    if decision.best == BASELINE:
        return messages.NothingFound(day, machine, messages.NoneFaster(decision.refused, decision.over_memory))
    best = _best(decision)
    assert best is not None, "only what was measured can win"
    assert best.speedup is not None, "only what has an interval can win"
    speedup, load = best.speedup, verdict.beside(decision.load)
    noise = messages.CloseToNoise(speedup.low) if speedup.may_be_overstated else None
    gain = messages.Gain(speedup.ratio, speedup.low, speedup.high, speedup.blocks, load, noise)
    over = _over(decision.versus, shipped, untried)
    if decision.best == TUNED:
        return messages.FoundBySearch(day, machine, gain, over)
    return messages.ShippedIsBest(
        shipped or "", _rank(untried), day, machine, gain, _better_but_refused(decision), over
    )


def _best(decision: Decision) -> Comparison | None:
    return {TUNED: decision.tuned, SHIPPED: decision.shipped}.get(decision.best)


def _better_but_refused(decision: Decision) -> tuple[str, ...]:
    """Return what is faster than the shipped profile, with other losses."""
    better = decision.versus is not None and decision.versus.verdict == Verdict.FASTER
    return decision.refused if better else ()


def show_confirmation(
    result: Result, decision: Decision, shipped: str | None, out: Console, untried: Sequence[str] = ()
) -> None:
    """Print the verdict, the figures, and what was verified and found."""
    comparison = _best(decision)
    if comparison is None:
        headline = verdict.headline(result)
    else:
        headline = Row("", verdict.of(result, comparison), "good" if decision.load is None else "plain")
    out.print(Text(text(headline.text), terminal.STYLES[headline.weight] or "bold"))
    terminal.items(out, cautions.rows(result))
    out.print()
    if result.not_in_effect:
        table = tables.not_in_effect(result)
    elif result.side_by_side:
        table = tables.speedups(result)
    else:
        table = tables.took(tables.columns(result), result.measured, result.failures, result.comparisons)
    terminal.show_parts([*([table] if table.rows else []), *_failures(result)], out)
    over = _over(decision.versus, shipped, untried)
    rows = [Row(messages.SHIPPED, over)] if over else []
    rows += [
        *lines.rows(result),
        *scaling.rows(result.scaling, result.study, {measured.arm: measured.unit for measured in result.measured}),
    ]
    rows += [Row(messages.NEXT, quieter(decision.load))] if decision.load else []
    terminal.items(out, rows)


def _failures(result: Result) -> list[Rows]:
    rows = model.failures(result.failures)
    return [Rows(rows, bold=True)] if rows else []


def show_search(
    store: TrialStore,
    left_out: Sequence[LeftOut],
    importances: Sequence[Importance],
    out: Console,
    untried: Sequence[str] = (),
    details: bool = False,
) -> None:
    """Print how much was tried and which levels mattered; with ``details`` also what was not tried, and why."""
    trials = sum(len(of_round) for of_round in store.step_s)
    searched = messages.Searched(
        candidates=len(store.entries),
        trials=trials,
        worker_s=store.spent_s,
        failed=len(store.problems) or None,
        untried=len(untried) or None,
        left_out=len(left_out) or None,
    )
    rows = [Row(messages.SEARCH, searched)]
    mattered = [effect for effect in importances if effect.share > LITTLE][:NAMED]
    if mattered:
        levels = [messages.LevelMatters(effect.parameter, effect.best, effect.share) for effect in mattered]
        rows.append(Row(messages.WHY, messages.Matter(tuple(levels))))
    terminal.items(out, [*rows, *(_not_tried(store, left_out, untried) if details else [])])
    if details and importances:
        out.print()
        out.print(_importance_table(importances))
        out.print(Text(messages.IMPORTANCE_NOTE, "dim"))
        out.print()


def _not_tried(store: TrialStore, left_out: Sequence[LeftOut], untried: Sequence[str]) -> list[Row]:
    """Return what failed, what there was no time for, and what was left out for which reason."""
    rows = []
    if store.problems:
        number, problem = next(iter(store.problems.items()))
        failed = messages.FirstFailure(len(store.problems), store.entries[number].title, problem)
        rows.append(Row(messages.FAILED, failed))
    if untried:
        rows.append(Row(messages.UNTRIED, messages.Untried(len(untried), tuple(untried))))
    alike: dict[Message, list[str]] = {}
    for omitted in left_out:
        alike.setdefault(omitted.why, []).append(omitted.what)
    reasons = [messages.LeftOutBecause(tuple(levels), why) for why, levels in alike.items()]
    return rows + [Row("" if number else messages.LEFT_OUT, sentence) for number, sentence in enumerate(reasons)]


def _importance_table(importances: Sequence[Importance]) -> Table:
    table = plain_table(messages.IMPORTANCE, fold=True)
    for effect in importances[:RANKED]:
        share = f"{effect.share:.0%} ({effect.low:.0%} to {effect.high:.0%})"
        if effect.share <= LITTLE:
            share = text(messages.AtMost(effect.high))
        interval = f"{ratio(effect.worth_low)} to {ratio(effect.worth_high)}"
        gain = "" if effect.best == effect.first else f"{ratio(effect.worth)}x {effect.first} ({interval})"
        table.add_row(effect.parameter, share, effect.best, gain)
    return table


def show_ranking(store: TrialStore, out: Console) -> None:
    """Print the best candidates of an exhaustive measurement, each with the interval that its own trials allow."""
    table = plain_table(messages.RANKING, right=("speedup", "trials"), fold=True)
    candidates = ranked(store)
    for rank in candidates[:RANKED]:
        interval = _alone(store, rank.number)
        shown = "" if interval is None else " to ".join(map(ratio, interval))
        table.add_row(f"{ratio(rank.speedup)}x", shown, str(rank.trials), rank.title)
    out.print(table)
    out.print(Text(text(messages.RankingNote(len(candidates))), "dim"))
    out.print()


def _alone(store: TrialStore, number: int) -> tuple[float, float] | None:
    """Return the interval of a candidate's speedup by its trials, as if it were the only one; None with too few."""
    ratios = store.ratios(number)
    interval = speedup(ratios, ERROR_RATE, MARGIN) if len(ratios) >= MIN_BLOCKS else None
    return None if interval is None else (interval.low, interval.high)


def advice(decision: Decision, shipped: str | None, path: Path, written: Written) -> Message:
    """Return what was written to ``path``, and what became of what was there."""
    none_faster, load = messages.NoneFaster(decision.refused, decision.over_memory), verdict.beside(decision.load)
    if written.stays:
        why: Message = none_faster if decision.best == BASELINE else messages.WrittenBefore()
        if load is not None:
            why = messages.HoldsUnderLoad(load)
        return messages.Kept(why, str(path))
    subject: Message = messages.TheTuned()
    if decision.best == BASELINE:
        subject = messages.SetsNothing(none_faster)
    elif decision.best == SHIPPED:
        alone = decision.tuned is None
        rank = messages.BEST_FOUND if alone else messages.UNBEATEN
        subject = messages.CopyOfShipped(shipped or "", rank, () if alone else _better_but_refused(decision))
    return messages.Written(str(path), subject, load, written.earlier.name if written.earlier else None)


def usage(study: Study, profile: str, ranks: int = 1, kept: Iterable[str] = ()) -> list[Row]:
    """Return how to use ``profile`` as it was measured, and for a workload of the kit how to measure it again.

    The commands have the same engine, its options, the training, the ``ranks``, and the caller's variables ``kept``.
    """
    engine = study.reference.engine
    options = ["--engine", engine] if engine != "local" else []
    for name, value in study.engine_options.to_json().items():
        options += [f"--{name.replace('_', '-')}", value]
    options += keep_options([*kept], engine)
    train = ["torchrun", "--nproc-per-node", str(ranks)] if ranks > 1 else ["python"]
    training = [*train, "train.py"] if study.user_command is None else study.user_command.argv
    use = ["envkit", "exec", profile, *options, *gpus(study.options.device, engine).split(), "--", *training]
    rows = [Row(messages.USE, messages.Command(f"{from_folder(study.user_command)}{shlex.join(use)}"), whole=True)]
    if study.user_command is None:
        workload = () if study.workload == DEFAULT else ("--workload", study.workload)
        bench = ["envkit", "bench", profile, *options, *workload, *study.options.arguments()]
        rows.append(Row(messages.BENCH, messages.Command(shlex.join(bench)), whole=True))
    return rows


def to_json(store: TrialStore, left_out: Sequence[LeftOut], importances: Sequence[Importance]) -> dict[str, object]:
    """Return what a script needs of the search."""
    return {
        "candidates": [
            {
                **{key: getattr(store.entries[rank.number], key) for key in ("number", "title", "choice", "shipped")},
                "speedup": rank.speedup,
                "trials": rank.trials,
                "interval": _alone(store, rank.number),
            }
            for rank in ranked(store)
        ],
        "failed": [
            {
                "number": number,
                "title": store.entries[number].title,
                "problem": problem.to_json(),
                "text": text(problem),
            }
            for number, problem in store.problems.items()
        ],
        "left_out": [{**omitted.to_json(), "text": text(omitted.why)} for omitted in left_out],
        "importance": [asdict(effect) for effect in importances],
        "search_s": round(store.spent_s, 3),
    }
