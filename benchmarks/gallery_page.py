"""The page of the map: what the environment is worth to each model, and so to which kind of training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from envkit.analysis import messages, noise
from envkit.analysis.result import Comparison
from envkit.bench.study import REFERENCE_PROFILE
from envkit.rendering import ratio as form_ratio
from envkit.rendering import text
from envkit.report import certainty, lines
from envkit.report.certainty import CONFIDENCE
from envkit.report.judgement import losses_differ
from envkit.report.parts import together

from benchmarks import gallery_heatmap, interleaved, page, recorded
from benchmarks.gallery_runs import BLOCKS, LOSS_METRIC, METRIC, PROFILES, PYTHON, WARMUP_LINES, Model, Run, ratio

KINDS = ("kind of training", "model", "best profile", "worth", "surely faster", "surely slower")
EFFORT = ("model", "ms/step", "system time", "peak memory", "blocks disturbed")


def ordered(runs: Iterable[Run]) -> list[Run]:
    """Those first to which the environment is worth most."""
    return sorted(runs, key=lambda run: (-ratio(run.best) if run.best else -1.0, run.model.title))


def page_parts(
    runs: Sequence[Run], failed: Sequence[Run], unmeasured: Sequence[Model], profiles: Sequence[str], stem: str
) -> list[str]:
    """Of ``runs`` that are whole, by ``ordered``, and of what is missing; ``stem`` begins the pictures' names."""
    return [
        *_opening(runs, profiles),
        "## In short",
        _list(_in_short(runs, profiles)),
        recorded.shown(stem, gallery_heatmap.ALTERNATIVE),
        "## The map",
        MAP,
        page.table(("model", *profiles), [_cells(run, profiles) for run in runs], numbers_from=1),
        "## For which kinds of training is it worth what?",
        page.table(KINDS, [_of_kind(run) for run in runs]),
        BEST,
        "## What each takes",
        TAKES,
        page.table(EFFORT, [_effort(run) for run in runs], numbers_from=1),
        "Losses, held against the baseline's:",
        _list(f"{run.model.title}: {'; '.join(_losses(run))}" for run in runs),
        "## How quiet the host was",
        *_quiet(runs),
        *_missing(failed, unmeasured),
        ADD,
    ]


def _opening(runs: Sequence[Run], profiles: Sequence[str]) -> list[str]:
    every = [event for run in runs for event in run.events]
    machines = together({run.model.name: _machine(run) for run in runs})
    where = [text if len(machines) == 1 else f"{text} ({names})" for names, text in machines.items()]
    blocks = runs[0].result.study.stopping.blocks
    command = f"{PYTHON} benchmarks/gallery/NAME.py --steps N"
    run = (
        f"envkit bench {' '.join(profiles)} --blocks {blocks} \\\n    --metric '{METRIC}' "
        f"\\\n    --warmup-lines {WARMUP_LINES} --loss-metric '{LOSS_METRIC}' \\\n    -- {command}"
    )
    hold = f"the {len(profiles)} intervals of a model hold" if len(profiles) > 1 else "the interval of a model holds"
    return [
        page.heading(TITLE, QUESTION, every, "; ".join(where), _command(blocks, profiles)),
        HOW.format(hold=hold, confidence=CONFIDENCE, warmup=WARMUP_LINES),
        f"```sh\n{run}\n```",
    ]


def _machine(run: Run) -> str:
    inside = run.result.inspection(run.result.study.reference)
    where = page.described(inside["fingerprint"], inside["facts"], inside["python"]["version"])
    return f"{where}, torch {run.torch}"


def _command(blocks: int, profiles: Sequence[str]) -> str:
    """What measures the same, without where that was kept."""
    options = [] if tuple(profiles) == PROFILES else [f"--profile {name}" for name in profiles]
    options += [] if blocks == BLOCKS else [f"--blocks {blocks}"]
    return f'make gallery ARGS="{" ".join(options)}"' if options else "make gallery"


def _in_short(runs: Sequence[Run], profiles: Sequence[str]) -> list[str]:
    """What was found, in sentences."""
    sentences = [*_gains(runs), *_costs(runs)]
    if len(profiles) > 1 and len(runs) > 1:
        sentences.append(_for_all(runs, profiles))
    differ = [f"{comparison.arm} on {run.model.title}" for run in runs for comparison in _other_losses(run)]
    unknown = [
        run.model.title for run in runs if any(comparison.losses is None for comparison in run.result.comparisons)
    ]
    if differ:
        sentences.append(f"Losses differ where they should not: {', '.join(differ)}.")
    elif unknown:
        sentences.append(f"Losses were not compared for {_named(unknown)}.")
    else:
        sentences.append("No profile changes what is learnt: losses agree with the baseline's.")
    return sentences


def _gains(runs: Sequence[Run]) -> list[str]:
    helped = {run.model.title: best for run in runs if (best := run.best) is not None}
    sentences = []
    if helped:
        ends = [f"{_times(ratio(comparison))} ({title}, {comparison.arm})" for title, comparison in helped.items()]
        gains = f"speedups reach from {ends[-1]} to {ends[0]}" if len(ends) > 1 else f"its speedup is {ends[0]}"
        sentences.append(f"For {len(helped)} of {_models(len(runs))} a profile is surely faster; {gains}.")
        best: dict[str, list[str]] = {}
        for title, best_comparison in helped.items():
            best.setdefault(best_comparison.arm, []).append(title)
        most_first = sorted(best.items(), key=lambda of: -len(of[1]))
        sentences.append(f"The best is {'; '.join(f'{arm} for {_named(titles)}' for arm, titles in most_first)}.")
    unhelped = [f"{run.model.title}{_at_most(run)}" for run in runs if run.best is None]
    return [*sentences, f"Nothing is surely faster for {_named(unhelped)}."] if unhelped else sentences


def _times(speedup: float) -> str:
    """Return a speedup as ``1.96x``."""
    return f"{form_ratio(speedup)}x"


def _at_most(run: Run) -> str:
    """How much faster a profile could still be by its interval."""
    most = max((comparison.speedup.high for comparison in run.result.comparisons if comparison.speedup), default=1.0)
    return f" (at most {_times(most)})" if most > 1 else ""


def _costs(runs: Sequence[Run]) -> list[str]:
    slower: dict[str, list[str]] = {}
    for run in runs:
        for comparison in run.slower:
            slower.setdefault(comparison.arm, []).append(f"{run.model.title} ({_times(ratio(comparison))})")
    if not slower:
        return ["No profile is surely slower for any model."]
    most_first = sorted(slower.items(), key=lambda of: -len(of[1]))
    return [f"{arm} costs time for {_named(titles)}." for arm, titles in most_first]


def _for_all(runs: Sequence[Run], profiles: Sequence[str]) -> str:
    """Which one to take where there is to be one, by the geometric mean."""
    comparisons = {name: [run.of(name) for run in runs] for name in profiles}
    mean = {name: math.exp(fmean(math.log(ratio(comparison)) for comparison in of)) for name, of in comparisons.items()}
    best = max(profiles, key=lambda name: mean[name])
    faster, slower = (
        sum(comparison in sure for comparison, sure in zip(comparisons[best], lists, strict=True))
        for lists in ([run.faster for run in runs], [run.slower for run in runs])
    )
    return (
        f"One profile for all of them would be {best}: {_times(mean[best])} in the geometric mean, surely "
        f"faster for {faster} of {_models(len(runs))} and surely slower for {slower}."
    )


def _other_losses(run: Run) -> list[Comparison]:
    return [comparison for comparison in run.result.comparisons if losses_differ(comparison)]


def _cells(run: Run, profiles: Sequence[str]) -> list[str]:
    return [run.model.title, *(_cell(run, run.of(name)) for name in profiles)]


def _cell(run: Run, comparison: Comparison) -> str:
    if comparison.speedup is None:
        return comparison.words
    text = page.interval(comparison.speedup.to_json())
    sure = f"**{text}**" if comparison in (*run.faster, *run.slower) else text
    return f"{sure} LOSSES DIFFER" if losses_differ(comparison) else sure


def _of_kind(run: Run) -> list[str]:
    counts = [str(len(run.faster)), str(len(run.slower))]
    best = run.best
    if best is None or best.speedup is None:
        return [run.model.kind, run.model.title, REFERENCE_PROFILE, f"nothing is surely faster{_at_most(run)}", *counts]
    low, high = (_times(end) for end in (best.speedup.low, best.speedup.high))
    worth = f"{_times(best.speedup.ratio)} ({low} to {high})"
    return [run.model.kind, run.model.title, best.arm, worth, *counts]


def _effort(run: Run) -> list[str]:
    """Of the baseline, and how many blocks of all were disturbed."""
    baseline = next(
        measurement for measurement in run.result.measured if measurement.arm == run.result.study.reference.name
    )
    hit = f"{len(run.result.interference)} of {_blocks(run)}"
    memory = f"{baseline.peak_memory_bytes / 2**20:,.0f} MiB"
    return [run.model.title, f"{baseline.step_s * 1000:.1f}", f"{baseline.system_share:.1%}", memory, hit]


def _blocks(run: Run) -> int:
    return len({sample.block for sample in run.result.samples})


def _losses(run: Run) -> list[str]:
    """What a report says of them."""
    return [text(message) for message in lines.losses(run.result)] or ["not compared"]


def _quiet(runs: Sequence[Run]) -> list[str]:
    total = sum(_blocks(run) for run in runs)
    disturbed = [
        (number, sample) for number, run in enumerate(runs) for sample in run.result.samples if sample.interference
    ]
    hit: dict[tuple[int, int], set[str]] = {}
    for number, sample in disturbed:
        hit.setdefault((number, sample.block), set()).update(sample.interference)
    if hit:
        often = messages.KINDS[noise.commonest(hit.values())]
        summary = f"{len(hit)} of {total} blocks were disturbed from outside (most often: {often})."
    else:
        summary = f"no interference was detected in {total} blocks."
    by_model = []
    for result, model in ((run.result, run.model) for run in runs if run.result.interference):
        blocks = len({sample.block for sample in result.samples})
        rows = certainty.interference(result.interference, blocks, result.comparisons)
        by_model.append(f"{model.title}: {'; '.join(text(row.text) for row in rows)}")
    return [
        f"By the rule of `envkit bench`, {summary} A block has a process of each profile and of the baseline.",
        interleaved.MOST_DISTURBED if 2 * len(hit) > total else "",
        _list(by_model),
        _pace(runs),
    ]


def _pace(runs: Sequence[Run]) -> str:
    """During which runs others must have shared the machine unseen."""
    took = [
        f"{run.model.title} ({range_s[0] * 1000:.0f} to {range_s[1] * 1000:.0f} ms)"
        for run in runs
        if (range_s := run.result.reference_kernel_range_s)
    ]
    return UNSEEN.format(names=_named(took)) if took else ""


def _missing(failed: Sequence[Run], unmeasured: Sequence[Model]) -> list[str]:
    section = []
    if failed:
        section += ["## Failed", _list(f"{run.model.title} (`{run.model.name}`): {run.failure}" for run in failed)]
    if unmeasured:
        names = ", ".join(f"{model.title} (`{model.name}`)" for model in unmeasured)
        section += ["## Not measured yet", f"{names}."]
    return section


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _models(number: int) -> str:
    return f"{number} model{'' if number == 1 else 's'}"


def _named(titles: Sequence[str]) -> str:
    """``2 models: A, B``; one by its name alone."""
    return titles[0] if len(titles) == 1 else f"{_models(len(titles))}: {', '.join(titles)}"


TITLE = "The map: which training gains what"
QUESTION = """What is the environment worth to which kind of training? Each model of the gallery
([own-script.md](own-script.md#a-gallery-of-trainings-to-try-it-on)) is measured under several profiles and with nothing
set, which is the baseline. The scripts are not changed and know nothing of it."""
HOW = """Each model is one interleaved run: fresh processes, blocks in random order. A speedup is the baseline's time
for a step divided by the profile's: above 1 the profile is faster. There is one error rate for each model: {hold}
together at {confidence}. The command of each, of which N
is its number in `benchmarks/gallery/models.yaml` and {warmup} more, is"""
MAP = """Speedups with their intervals, the model first to which the environment is worth most. **Bold**: the whole
interval is above 1, or below it. What the profiles set: `envkit show NAME`."""
BEST = """The best is the fastest of those that are surely faster; where intervals overlap, another may be as good. What
holds for a model on this machine need not hold for yours: `envkit bench` measures it in minutes."""
UNSEEN = """The same fixed work took longer in some blocks than in others where no counter shows why, for {names}.
Others may have shared its cores, caches or memory unseen; intervals are as wide as that made them."""
TAKES = "Of the baseline, medians over its samples."
ADD = """## Add a model

A model is one file and one line: a script in `benchmarks/gallery/`, and what it is in `benchmarks/gallery/models.yaml`
([how](../CONTRIBUTING.md#add-a-training-to-the-gallery)). `make gallery` then measures it alone, since the others have
their records, and writes this page anew. Stopped at any time, it goes on when it is started again, with what failed
too."""
