"""The page of the map: how much faster each kind of training becomes on each machine, made from the atlas alone."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from envkit.bench.study import REFERENCE_PROFILE
from envkit.rendering import ratio as form_ratio
from envkit.report.certainty import CONFIDENCE

from benchmarks import gallery_heatmap, interleaved, page, recorded
from benchmarks.errors import ScriptError
from benchmarks.gallery_atlas import Chart, Gain, Measured, Session, charts, failures
from benchmarks.gallery_runs import LOSS_METRIC, METRIC, PROFILES, PYTHON, WARMUP_LINES, Model

KINDS = ("kind of training", "model", "best profile", "worth", "surely faster", "surely slower")
EFFORT = ("model", "ms/step", "system time", "peak memory", "blocks disturbed")
# A profile that is best elsewhere does not carry over if another is faster here by more than this share.
CARRIES = 0.05

Models = Mapping[str, Model]


def write(path: Path, sessions: Sequence[Session], models: Models) -> None:
    """Write the page of all sessions, and a picture of each machine. Raise ScriptError if there is no session."""
    known = [session for session in sessions if session.training in models]
    made = charts(known)
    if not made:
        raise ScriptError("the atlas has no session of the gallery yet; make some with: make gallery")
    page.write(path, parts(made, failures(known), models, path.stem))
    for chart in made:
        drawn = gallery_heatmap.drawn(ordered(chart, models), models, chart.profiles)
        recorded.save(path.with_name(picture(chart, made, path.stem)), drawn)


def parts(made: Sequence[Chart], failed: Sequence[Session], models: Models, stem: str) -> list[str]:
    """Return the parts of the page; ``stem`` begins the pictures' names."""
    sections = [part for chart in made for part in _of_machine(chart, made, models, stem)]
    return [
        *_opening(made),
        "## In short",
        *(part for chart in made for part in _in_short(chart, models)),
        "## Machines side by side",
        *_side_by_side(made, models),
        *sections,
        *_failed(failed, models),
        ADD,
    ]


def ordered(chart: Chart, models: Models) -> list[Measured]:
    """Return a machine's trainings, those first that gain most."""
    return sorted(
        chart.trainings.values(),
        key=lambda each: (-each.best_ratio if each.best else -1.0, models[each.training].title),
    )


def label(chart: Chart) -> str:
    """Return a machine's name on the page; a published chart has its day besides."""
    return f"{chart.machine.title}, {_days(chart.sessions)}" if chart.is_published else chart.machine.title


def picture(chart: Chart, made: Sequence[Chart], stem: str) -> str:
    """Return the name of a machine's picture, without the theme: the first machine's is the page's."""
    slug = re.sub(r"[^a-z0-9]+", "-", label(chart).lower()).strip("-")
    return stem if chart is made[0] else f"{stem}-{slug}"


def _days(sessions: Iterable[Session]) -> str:
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(session.began)) for session in sessions})
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _opening(made: Sequence[Chart]) -> list[str]:
    sessions = [session for chart in made for session in chart.sessions]
    systems = list(dict.fromkeys(f"{session.system}, torch {session.torch}" for session in sessions))
    command = f"{PYTHON} benchmarks/gallery/NAME.py --steps N"
    run = (
        f"envkit bench {' '.join(PROFILES)} \\\n    --metric '{METRIC}' "
        f"\\\n    --warmup-lines {WARMUP_LINES} --loss-metric '{LOSS_METRIC}' \\\n    -- {command}"
    )
    times = [{"time": session.began} for session in sessions]
    return [
        page.heading(TITLE, QUESTION, times, "; ".join(systems), "make gallery"),
        HOW.format(confidence=CONFIDENCE, warmup=WARMUP_LINES),
        f"```sh\n{run}\n```",
    ]


# --- in short ---


def _in_short(chart: Chart, models: Models) -> list[str]:
    """Return the findings on one machine, in sentences."""
    trainings = ordered(chart, models)
    sentences = [*_gains(trainings, models), *_costs(trainings, models)]
    if len(chart.common_profiles) > 1 and len(trainings) > 1:
        sentences.append(_for_all(chart))
    return [f"On {label(chart)}:", _list([*sentences, *_losses_in_short(trainings, models)])]


def _gains(trainings: Sequence[Measured], models: Models) -> list[str]:
    helped = [(measured, measured.best) for measured in trainings if measured.best is not None]
    sentences = []
    if helped:
        ends = [f"{_times(each.best_ratio)} ({models[each.training].title}, {best})" for each, best in helped]
        gains = f"speedups reach from {ends[-1]} to {ends[0]}" if len(ends) > 1 else f"its speedup is {ends[0]}"
        sentences.append(f"For {len(helped)} of {_models(len(trainings))} a profile is surely faster; {gains}.")
        by_profile: dict[str, list[str]] = {}
        for measured, best in helped:
            by_profile.setdefault(best, []).append(models[measured.training].title)
        most_first = sorted(by_profile.items(), key=lambda pair: -len(pair[1]))
        sentences.append(f"The best is {'; '.join(f'{best} for {_named(titles)}' for best, titles in most_first)}.")
    unhelped = [f"{models[each.training].title}{_at_most(each)}" for each in trainings if each.best is None]
    return [*sentences, f"Nothing is surely faster for {_named(unhelped)}."] if unhelped else sentences


def _times(speedup: float) -> str:
    """Return a speedup as ``1.96x``."""
    return f"{form_ratio(speedup)}x"


def _at_most(measured: Measured) -> str:
    """Return how much faster a profile could still be by its interval."""
    intervals = [gain.speedup.high for gain in measured.gains.values() if gain.speedup]
    if not intervals:
        return f" (too few blocks: {measured.blocks})"
    return f" (at most {_times(max(intervals))})" if max(intervals) > 1 else ""


def _costs(trainings: Sequence[Measured], models: Models) -> list[str]:
    slower: dict[str, list[str]] = {}
    for measured in trainings:
        for profile in measured.slower:
            cost = f"{models[measured.training].title} ({_times(measured.gains[profile].ratio)})"
            slower.setdefault(profile, []).append(cost)
    if not slower:
        return ["No profile is surely slower for any model."]
    most_first = sorted(slower.items(), key=lambda pair: -len(pair[1]))
    return [f"{profile} costs time for {_named(titles)}." for profile, titles in most_first]


def mean_gain(chart: Chart, profile: str) -> float:
    """Return the geometric mean of a profile's speedups over the trainings that were measured with it."""
    gains = [measured.gains[profile].ratio for measured in chart.trainings.values() if profile in measured.gains]
    return math.exp(fmean(map(math.log, gains)))


def _for_all(chart: Chart) -> str:
    """Return which profile to take for all trainings, by the geometric mean."""
    best = max(chart.common_profiles, key=lambda profile: mean_gain(chart, profile))
    trainings = chart.trainings.values()
    faster = sum(best in measured.faster for measured in trainings)
    slower = sum(best in measured.slower for measured in trainings)
    return (
        f"One profile for all of them would be {best}: {_times(mean_gain(chart, best))} in the geometric mean. It is "
        f"surely faster for {faster} of {_models(len(trainings))} and surely slower for {slower}."
    )


def _losses_in_short(trainings: Sequence[Measured], models: Models) -> list[str]:
    pairs = [(measured, profile, gain) for measured in trainings for profile, gain in measured.gains.items()]
    differ = [f"{profile} on {models[each.training].title}" for each, profile, gain in pairs if gain.losses_differ]
    unknown = list(dict.fromkeys(models[each.training].title for each, _, gain in pairs if gain.losses is None))
    sentences = []
    if differ:
        sentences.append(f"Losses differ where they should not: {', '.join(differ)}.")
    if unknown:
        sentences.append(f"Losses were not compared for {_named(unknown)}.")
    return sentences or ["No profile changes what is learnt: losses agree with the baseline's."]


# --- several machines ---


def _side_by_side(made: Sequence[Chart], models: Models) -> list[str]:
    if len({chart.machine.title for chart in made}) == 1:
        lead = ONE_MACHINE.format(machine=made[0].machine.title)
    else:
        lead = SIDE_BY_SIDE
    names = [name for name in models if any(name in chart.trainings for chart in made)]
    best = [[models[name].title, *(_best_cell(chart.trainings.get(name)) for chart in made)] for name in names]
    profiles = list(dict.fromkeys(name for chart in made for name in chart.profiles))
    means = [[profile, *(_mean_cell(chart, profile) for chart in made)] for profile in profiles]
    header = [label(chart) for chart in made]
    return [
        lead,
        page.table(("best profile for", *header), best),
        MEANS,
        page.table(("mean of profile", *header), means, numbers_from=1),
        *_machine_facts(made),
        *_not_carried(made, models),
    ]


def _best_cell(measured: Measured | None) -> str:
    if measured is None:
        return "-"
    if measured.best is None:
        return f"{REFERENCE_PROFILE}{_at_most(measured)}"
    return f"{measured.best} {_times(measured.best_ratio)}"


def _mean_cell(chart: Chart, profile: str) -> str:
    number = sum(profile in measured.gains for measured in chart.trainings.values())
    return f"{mean_gain(chart, profile):.3f} ({number})" if number else "-"


def _machine_facts(made: Sequence[Chart]) -> list[str]:
    facts = []
    for chart in made:
        codes = {each.watched.symptoms.generic_matrix_code for each in chart.sessions if each.watched}
        path = "generic code" if True in codes else "the processor's code" if False in codes else "unknown code"
        if chart.fault_s is not None:
            facts.append(f"{label(chart)}: a page fault costs {1e6 * chart.fault_s:.2f} µs; MKL takes {path}.")
    return [_list(facts)] if facts else []


def _not_carried(made: Sequence[Chart], models: Models) -> list[str]:
    """Return what holds on one machine and not on another."""
    sentences = [
        sentence
        for here in made
        for there in made
        if here.machine.title != there.machine.title
        for name in here.trainings.keys() & there.trainings.keys()
        for sentence in _of_pair(here, there, name, models[name].title)
    ]
    return ["Not to be carried over:", _list(sorted(sentences))] if sentences else []


def _of_pair(here: Chart, there: Chart, name: str, title: str) -> list[str]:
    """Return what does not carry over from ``here`` to ``there`` of one training."""
    first, second = here.trainings[name], there.trainings[name]
    sentences = [
        f"{title}: {profile} is faster on {label(here)} and slower on {label(there)} "
        f"({_times(first.gains[profile].ratio)}, {_times(second.gains[profile].ratio)})."
        for profile in first.faster
        if profile in second.slower
    ]
    if first.best is None or second.best is None or first.best == second.best:
        return sentences
    carried = second.gains.get(first.best)
    if carried is None:
        lost = "was not measured there"
    elif (better := second.best_ratio / carried.ratio) > 1 + CARRIES:
        lost = f"{second.best} is {_times(better)} its speed there"
    else:
        return sentences
    return [*sentences, f"{title}: {first.best} is the best on {label(here)}; on {label(there)}: {lost}."]


# --- one machine ---


def _of_machine(chart: Chart, made: Sequence[Chart], models: Models, stem: str) -> list[str]:
    trainings = ordered(chart, models)
    unmeasured = [f"{model.title} (`{name}`)" for name, model in models.items() if name not in chart.trainings]
    return [
        f"## {label(chart)}",
        PUBLISHED if chart.is_published else _sessions(chart),
        recorded.shown(picture(chart, made, stem), gallery_heatmap.ALTERNATIVE),
        "### The map",
        MAP,
        page.table(("model", *chart.profiles), [_cells(each, chart, models) for each in trainings], numbers_from=1),
        "### For which kinds of training is it worth what?",
        page.table(KINDS, [_of_kind(each, models[each.training]) for each in trainings]),
        BEST,
        "### What each takes",
        TAKES,
        page.table(EFFORT, [_effort(each, models) for each in trainings], numbers_from=1),
        "Losses, beside the baseline's:",
        _list(f"{models[each.training].title}: {_losses(each)}" for each in trainings),
        "### How quiet the host was",
        *_quiet(trainings, models),
        *(["### Not measured yet", f"{', '.join(unmeasured)}."] if unmeasured else []),
    ]


def _sessions(chart: Chart) -> str:
    libraries = sorted({brought for session in chart.sessions for brought in session.libraries.values()})
    commits = sorted({session.commit for session in chart.sessions})
    brought = f" Libraries: {', '.join(libraries)}." if libraries else ""
    return SESSIONS.format(
        sessions=len(chart.sessions), blocks=chart.blocks, days=_days(chart.sessions), commits=", ".join(commits)
    ) + brought  # fmt: skip


def _cells(measured: Measured, chart: Chart, models: Models) -> list[str]:
    return [models[measured.training].title, *(_cell(measured.gains.get(name)) for name in chart.profiles)]


def _cell(gain: Gain | None) -> str:
    if gain is None:
        return "-"
    if gain.speedup is None:
        return f"{gain.ratio:.3f} ({gain.blocks} blocks)"
    interval = page.interval(gain.speedup.to_json())
    sure = f"**{interval}**" if gain.is_faster or gain.is_slower else interval
    return f"{sure} LOSSES DIFFER" if gain.losses_differ else sure


def _of_kind(measured: Measured, model: Model) -> list[str]:
    counts = [str(len(measured.faster)), str(len(measured.slower))]
    best = measured.gains[measured.best] if measured.best else None
    if best is None or best.speedup is None:
        unsure = f"nothing is surely faster{_at_most(measured)}"
        return [model.kind, model.title, REFERENCE_PROFILE, unsure, *counts]
    low, high = (_times(end) for end in (best.speedup.low, best.speedup.high))
    worth = f"{_times(best.ratio)} ({low} to {high})"
    return [model.kind, model.title, str(measured.best), worth, *counts]


def _effort(measured: Measured, models: Models) -> list[str]:
    """Return the baseline's figures, and how many of all blocks were disturbed."""
    shares = [session.system_share[0] for session in measured.sessions if session.system_share]
    peaks = [session.peak_mib[0] for session in measured.sessions if session.peak_mib]
    return [
        models[measured.training].title,
        f"{measured.step_s * 1000:.1f}",
        f"{median(shares):.1%}" if shares else "-",
        f"{median(peaks):,.0f} MiB" if peaks else "-",
        f"{measured.disturbed} of {measured.blocks}",
    ]


def _losses(measured: Measured) -> str:
    known = {profile: gain.losses for profile, gain in measured.gains.items() if gain.losses is not None}
    equal = [profile for profile, losses in known.items() if losses.agrees and losses.difference == 0]
    near = [profile for profile, losses in known.items() if losses.agrees and losses.difference != 0]
    differ = [profile for profile, losses in known.items() if not losses.agrees]

    def of(profiles: Sequence[str]) -> str:
        return f"all {len(profiles)} profiles" if len(profiles) == len(measured.gains) else ", ".join(profiles)

    sentences = [f"equal within the last printed digit: {of(equal)}"] if equal else []
    if near:
        largest = max(known[profile].difference or 0.0 for profile in near)
        sentences.append(f"differ by rounding, at most {largest:.1e} of their value: {of(near)}")
    for profile in differ:
        share = known[profile].difference
        amount = "are no finite numbers" if share is None else f"by up to {share:.1%}"
        sentences.append(f"LOSSES DIFFER {amount}: {profile}")
    return "; ".join(sentences) or "not compared"


def _quiet(trainings: Sequence[Measured], models: Models) -> list[str]:
    blocks = sum(measured.blocks for measured in trainings)
    disturbed = sum(measured.disturbed for measured in trainings)
    if disturbed:
        summary = f"{disturbed} of {blocks} blocks were disturbed from outside."
    else:
        summary = f"no interference was detected in {blocks} blocks."
    hit = [f"{models[each.training].title}: {each.disturbed} of {each.blocks}" for each in trainings if each.disturbed]
    return [
        f"By the rule of `envkit bench`, {summary} A block has a process of each profile and of the baseline.",
        interleaved.MOST_DISTURBED if 2 * disturbed > blocks else "",
        _list(hit),
        _pace(trainings, models),
    ]


def _pace(trainings: Sequence[Measured], models: Models) -> str:
    """Return during which sessions others must have shared the machine unseen."""
    took = [
        f"{models[each.training].title} ({low * 1000:.0f} to {high * 1000:.0f} ms)"
        for each in trainings
        for low, high in [session.kernel_range_s for session in each.sessions if session.kernel_range_s][:1]
    ]
    return UNSEEN.format(names=_named(took)) if took else ""


def _failed(failed: Sequence[Session], models: Models) -> list[str]:
    lines = [
        f"{models[session.training].title} (`{session.training}`) on {session.machine.title}: {session.failure}"
        for session in failed
    ]
    return ["## Failed", _list(lines)] if lines else []


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _models(number: int) -> str:
    return f"{number} model{'' if number == 1 else 's'}"


def _named(titles: Sequence[str]) -> str:
    """Return ``2 models: A, B``; one title alone."""
    return titles[0] if len(titles) == 1 else f"{_models(len(titles))}: {', '.join(titles)}"


TITLE = "The map: which training gains what"
QUESTION = """How much faster does the environment make which kind of training, on which kind of machine? Each model of
the gallery ([own-script.md](own-script.md#a-gallery-of-trainings-to-try-it-on)) is measured under several profiles and
with nothing set, which is the baseline. The scripts are not changed and know nothing of it."""
HOW = """`make gallery` measures for half an hour, or as long as `ARGS="--for 2h"` says. It begins with the models that
this machine has the fewest blocks of. Each session is a line of [gallery.jsonl](results/gallery.jsonl), which only
grows, and this page is made from that file alone. It has the seconds per step of each sample, and the machine.

A session measures one model: fresh processes, in blocks of random order. A speedup is the baseline's time for a step
divided by the profile's: above 1 the profile is faster. Its interval is the signed-rank interval of all blocks of the
machine, from all sessions. There is one error rate for each model and machine: the intervals of a row hold together at
{confidence}. Sessions differ, too ([sessions.md](results/sessions.md)): an interval of many blocks from a few sessions
is rather too narrow.

This command measures what new sessions do. N is the model's number in `benchmarks/gallery/models.yaml` and {warmup}
more:"""
ONE_MACHINE = """All sessions are of one machine, {machine}. Until there is a second one, nothing here says what carries
over to others. Run `make gallery` on yours, and the file and the page have both."""
SIDE_BY_SIDE = """The best profile of each model is the fastest of those that are surely faster."""
MEANS = """Geometric means of a profile's speedups, each over the number of models in brackets. Means over different
models do not compare."""
SESSIONS = "{sessions} sessions with {blocks} blocks, {days}, at commits {commits}."
PUBLISHED = """These figures were published before the samples were kept, so they are not pooled with others. The
profiles that begin with `mimalloc-2` preloaded Debian's mimalloc 2.0.9."""
MAP = """Speedups with their intervals, the model first that gains most. **Bold**: the whole interval is above 1, or
below it. `envkit show NAME` prints a profile's settings."""
BEST = """The best is the fastest of those that are surely faster; where intervals overlap, another may be as good. A
speedup on this machine need not hold on yours: `envkit bench` measures it in minutes."""
UNSEEN = """The same fixed work took longer in some blocks than in others, and no counter shows the cause, for {names}.
Others may have shared its cores, caches or memory unseen; intervals are as wide as that made them."""
TAKES = "The baseline's figures, medians over its samples."
ADD = """## Add a model or a machine

A model is one file and one line: a script in `benchmarks/gallery/`, and its description in
`benchmarks/gallery/models.yaml` ([how](../CONTRIBUTING.md#add-a-training-to-the-gallery)). `make gallery` then measures
it first. A machine needs no more than `make gallery` on it: its lines are added to the file. Stop it at any time: the
blocks of an interrupted session are added, too."""
