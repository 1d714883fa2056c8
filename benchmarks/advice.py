"""Is the advice of ``envkit advise`` any good? Fits what profiles gain, and writes the fits and their page.

The gains and the symptoms are those of the atlas (``benchmarks/gallery_map.py``). Each training is judged by fits that
it taught nothing, and, as soon as there are two machines, by fits to other machines alone. ``--measure`` measures what
watching costs, and an example.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from envkit.advice.expected import FILE, LEAST_GAIN
from envkit.cli.arguments import count
from envkit.common import atomic
from envkit.engines.base import PROJECT, WORKER
from envkit.stats.interval import ERROR_RATE, log_ratios, speedup
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest

from benchmarks import advise_runs, fitting, gallery_atlas, gallery_runs, page, policies, script
from benchmarks.advise_runs import Replayed
from benchmarks.errors import ScriptError
from benchmarks.fitting import KNOWN
from benchmarks.gallery_atlas import ATLAS, Chart
from benchmarks.judged import (
    FEWEST,
    NEAR,
    Judged,
    Training,
    fits_of,
    judged,
    machines_of,
    profiles_of,
    trainings_of,
)
from benchmarks.policies import met
from benchmarks.results import Line, append_line, complete_lines

PAGE = PROJECT / "docs/advise.md"
DATA = page.PAGES / "advice.jsonl"
# More steps than are watched.
ENDLESS = 1_000_000
# The advisor to beat watches nothing.
CONSTANT = "nothing: always the same profile"
# The features that may tell a training with many small blocks, and fits that have none of them.
SMALL, WITHOUT_SMALL = ("small", "outside"), "by its steps, without `small` and `outside`"
# Simulated runs of `envkit advise` on each training.
RUNS = 100
# What watching costs is measured with these, in so many pairs of processes, each of so many steps.
SLOWED, PAIRS, STEPS, WARMUP, WATCHED_S = ("lstm", "tabular"), 8, 12, 3, 4.0
STEP = re.compile(r"^step \d+: ([0-9.]+) s", re.MULTILINE)
# One that is not in the gallery.
EXAMPLE = ("advise", "--", ".venv/bin/python", "tests/scripts/plain_loop.py", "--steps", "1000000")


def main() -> int:
    parser = script.parser("advice", __doc__, PAGE, DATA)
    parser.add_argument("--atlas", metavar="FILE", type=Path, default=ATLAS,
                        help=f"the sessions of the gallery (default: {ATLAS.relative_to(PROJECT)})")  # fmt: skip
    parser.add_argument("--fit", metavar="FILE", type=Path, default=FILE,
                        help=f"the coefficients to write (default: {FILE.relative_to(PROJECT)})")  # fmt: skip
    parser.add_argument("--measure", action="store_true", help="measure what watching costs, and the example")
    parser.add_argument("--runs", metavar="N", type=count, default=RUNS,
                        help=f"simulated runs on each training (default: {RUNS})")  # fmt: skip
    parser.add_argument("--example", metavar="FILE", type=Path,
                        help="show this output of `envkit advise`, which begins with '$ ' and its command")  # fmt: skip
    arguments = parser.parse_args()
    if arguments.example is not None:
        _add_example(arguments.results, arguments.example, _digest(arguments.fit))
    charts = gallery_atlas.charts(gallery_atlas.read_sessions(arguments.atlas))
    trainings = trainings_of(charts)
    if len({training.name for training in trainings}) < FEWEST:
        raise ScriptError(f"{arguments.atlas}: has {len(trainings)} trainings of the gallery that were watched, and it "
                          f"takes {FEWEST} or more; make them with: make gallery")  # fmt: skip
    atomic.write(arguments.fit, (json.dumps(_fitted(trainings, charts), indent=1) + "\n").encode())
    fit = _digest(arguments.fit)
    if arguments.measure:
        _measure(arguments.results, fit)
    lines = [json.loads(line) for line in complete_lines(arguments.results)]
    by_known = {label: judged(trainings, choices) for label, choices in KNOWN.items()}
    replays = _replays(next(iter(by_known.values())), arguments.runs)
    by_known[WITHOUT_SMALL] = judged(trainings, [names for names in fitting.WATCHED if not {*names} & {*SMALL}])
    by_known[CONSTANT] = judged(trainings, [()])  # a fit to no feature is the mean of the others
    page.write(arguments.page, _page(lines, fit, trainings, charts, by_known, replays))
    return 0


def _digest(fit: Path) -> str:
    """Return the digest of fits; "none" without the file."""
    return hashlib.sha256(fit.read_bytes()).hexdigest() if fit.exists() else "none"


def _add_example(data: Path, printed: Path, fit: str) -> None:
    """Add the output of a run, which was made by the fits with this digest. Raise ScriptError without its command."""
    first, _, output = printed.read_text().partition("\n")
    words = shlex.split(first.removeprefix("$ ")) if first.startswith("$ envkit advise ") else []
    if not words or not output.strip():
        raise ScriptError(f"{printed}: its first line is not '$ envkit advise …' with output below it")
    _append(data, {"kind": "example", "fit": fit, "command": words[1:], "printed": output.strip("\n") + "\n"})


def _replays(judgements: Sequence[Judged], runs: int) -> list[Replayed]:
    """Simulate so many runs of ``envkit advise`` on each training whose samples were kept."""
    sampled = [judgement for judgement in judgements if advise_runs.is_sampled(judgement)]
    with script.processes(len(os.sched_getaffinity(0))) as processes:
        futures = [processes.submit(advise_runs.replayed, judgement, runs) for judgement in sampled]
        return [future.result() for future in futures]


def _measure(data: Path, fit: str) -> None:
    """Add what watching costs, and the advice on the example by the fits with this digest."""
    gallery_runs.require_python(gallery_runs.PYTHON)
    for name in SLOWED:
        pairs = [_pair(name, number) for number in range(PAIRS)]
        alone, watched = ([pair[way] for pair in pairs] for way in ("alone_s", "watched_s"))
        _append(data, {"kind": "watching", "training": name, "alone_s": alone, "watched_s": watched})
    _append(data, {"kind": "example", "fit": fit, "command": EXAMPLE, "printed": _example()})


def _append(data: Path, line: Line) -> None:
    append_line(data, {**line, "time": round(time.time(), 1), "machine": page.machine()})


def _command(name: str, steps: int) -> list[str]:
    return [gallery_runs.PYTHON, f"benchmarks/gallery/{name}.py", "--steps", str(steps)]


def _example() -> str:
    """Return the output of `envkit advise` for a training that is not in the gallery."""
    command = [sys.executable, "-m", "envkit", *EXAMPLE]
    return subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout  # fmt: skip


def _pair(name: str, number: int) -> Line:
    """Seconds per step of a process that is left alone and of one that is watched, in turns."""
    command = UserCommand(tuple(_command(name, ENDLESS)), str(PROJECT), in_place=True)
    watching = RunCommand(command, WARMUP, watch_s=WATCHED_S, watch_limit_s=120.0)
    commands = {
        "alone_s": (_command(name, WARMUP + STEPS), ""),
        "watched_s": ([sys.executable, str(WORKER), "-"], WorkerRequest(watching).line()),
    }
    step_s = {}
    for way in sorted(commands, reverse=bool(number % 2)):
        argv, stdin = commands[way]
        printed = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True, input=stdin)
        times = [float(time) for time in STEP.findall(printed.stdout + printed.stderr)][WARMUP : WARMUP + STEPS]
        if len(times) < STEPS:
            raise ScriptError(f"{name}: only {len(times)} steps were seen in {WATCHED_S} s; this machine is too slow")
        step_s[way] = sum(times) / STEPS
    return step_s


def _fitted(trainings: Sequence[Training], charts: Sequence[Chart]) -> Line:
    """Return what the kit is given: of each profile the fits, the best first."""
    fits = {
        name: [asdict(fitting.as_fit(*fits_of(trainings, name, choices))) for choices in KNOWN.values()]
        for name in profiles_of(trainings)
    }
    titles = set(machines_of(trainings))
    machines = [f"{chart.machine.name}, {chart.machine.usable_cpus} usable CPUs" for chart in charts
                if chart.machine.title in titles]  # fmt: skip
    latest = max(session.began for chart in charts for session in chart.sessions)
    return {
        "machines": list(dict.fromkeys(machines)),
        "measured": time.strftime("%Y-%m-%d", time.gmtime(latest)),
        "trainings": list(dict.fromkeys(training.name for training in trainings)),
        "fits": fits,
    }


# --- the page ---


def _page(
    lines: Sequence[Line],
    fit: str,
    trainings: Sequence[Training],
    charts: Sequence[Chart],
    by_known: Mapping[str, Sequence[Judged]],
    replays: Sequence[Replayed],
) -> list[str]:
    full = next(iter(by_known.values()))
    sessions = [session for chart in charts for session in chart.sessions]
    systems = list(dict.fromkeys(session.system for session in sessions))
    began: list[dict[str, object]] = [{"time": session.began} for session in sessions]
    return [
        page.heading("Advice, and a race of what is advised", QUESTION, began, "; ".join(systems),
                     "python -m benchmarks.advice"),
        "## Use",
        USE,
        *_example_shown(lines, fit),
        "## Is it right?",
        RIGHT,
        _machines_text(trainings),
        *_aims(full, replays),
        *_outcomes(replays),
        *_for_all(trainings),
        "## Each training, by fits that it taught nothing",
        page.table(("training", "advised first", "expected", "measured", "the best that was measured", "within 3%"),
                   [_row(judgement) for judgement in full]),
        "## By what is known of a training",
        KNOWN_TEXT,
        page.table(("known", "advice within 3% of the best", "not surely faster", "truths within the range",
                    "error, median", "mean gain"), [_known(*pair) for pair in by_known.items()], 1),
        "## What was seen",
        SEEN_TEXT,
        page.table(("training", *_features(trainings)), [_seen(each, trainings) for each in trainings], 1),
        "## Many small blocks",
        SMALL_TEXT,
        _small_in_fits(trainings),
        *_watching(lines),
        "## How it is fitted",
        FITTED_TEXT,
    ]  # fmt: skip


def _example_shown(lines: Sequence[Line], fit: str) -> list[str]:
    """Return the latest output for the example. ``fit`` is the digest of the fits on the page."""
    example = next((line for line in reversed(lines) if line["kind"] == "example"), None)
    if example is None:
        return []
    typed = shlex.join(["envkit", *example["command"]])
    day = time.strftime("%Y-%m-%d", time.gmtime(example["time"]))
    return [
        f"The output of a run on {day}, with nothing left out:\n\n```sh\n{typed}\n```",
        f"```text\n{example['printed'].rstrip()}\n```",
        "" if example["fit"] == fit else EARLIER_FIT,
    ]


def _machines_text(trainings: Sequence[Training]) -> str:
    machines = machines_of(trainings)
    if len(machines) == 1:
        return ONE_MACHINE.format(machine=machines[0])
    return SEVERAL_MACHINES.format(number=len(machines), machines="; ".join(machines))


def _aims(full: Sequence[Judged], replays: Sequence[Replayed]) -> list[str]:
    near = sum(judgement.near for judgement in full)
    hopes = [judgement.false_hope for judgement in full if judgement.false_hope is not None]
    within = [held for judgement in full for held in judgement.within]
    inside = sum(within) / len(within)
    of_model = [
        f"the profile that the model advises first is within 3% of the best that was measured for {near} of "
        f"{len(full)} trainings (the aim: 10 of 12): {met(near * 12 >= 10 * len(full))}",
        f"for {sum(hopes)} of the {len(hopes)} with enough blocks for intervals it advises something that is not "
        f"surely faster (the aim: at most 1 of 20): {met(20 * sum(hopes) <= len(hopes))}",
        f"{sum(within)} of {len(within)} truths ({inside:.0%}) lie within their 70% range (the aim: 60% to 80%): "
        f"{met(0.6 <= inside <= 0.8)}",
    ]
    of_runs = [
        part for group, each in _groups(replays).items() for part in (f"On {group}:", _list(policies.aims(each)))
    ]
    return [*(of_runs or [NOT_SIMULATED]), "The model alone, without a race:", _list(of_model)]


def _groups(replays: Sequence[Replayed]) -> dict[str, list[Replayed]]:
    """Return the trainings of each machine, and of these those whose samples were kept, if some were not."""
    groups: dict[str, list[Replayed]] = {}
    for machine in dict.fromkeys(replayed.training.machine for replayed in replays):
        here = [replayed for replayed in replays if replayed.training.machine == machine]
        sampled = [replayed for replayed in here if not replayed.training.is_published]
        published = len(here) - len(sampled)
        by_intervals = f", {published} of them by published intervals" if published else ""
        groups[f"{machine}, {len(here)} trainings{by_intervals}"] = here
        if 0 < len(sampled) < len(here):
            groups[f"{machine}, the {len(sampled)} whose samples were kept"] = sampled
    return groups


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _outcomes(replays: Sequence[Replayed]) -> list[str]:
    """Return what simulated runs of ``envkit advise`` end with, for each group of trainings."""
    if not replays:
        return []
    of_groups = [part for group, each in _groups(replays).items() for part in (f"### {group}", *policies.parts(each))]
    text = OUTCOMES_TEXT.format(runs=replays[0].runs, raced=policies.RACED, start=gallery_runs.START_S)
    return ["## What does it end with?", text, *of_groups]


def _for_all(trainings: Sequence[Training]) -> list[str]:
    """Return what one profile gains on all trainings of a machine; samples that were kept go before published ones."""
    sections = []
    for machine in machines_of(trainings):
        here = [each for each in trainings if each.machine == machine]
        here = [each for each in here if not each.is_published] or here
        rows = [policies.profile_row(here, name) for name in policies.for_all(here)]
        title = f"### {machine}, {len(here)} trainings" + (", published" if here[0].is_published else "")
        sections += [title, _list([policies.aim_of_one_profile(here)]), page.table(policies.PROFILES, rows, 1)]
    return ["## One profile for all", FOR_ALL_TEXT, *sections]


def _row(judgement: Judged) -> list[str]:
    training = judgement.training
    first = max(training.usable, key=lambda name: training.usable[name], default="")
    best = f"{first}: {training.best:.2f}" if training.best > 1 else "nothing set"
    near = "yes" if judgement.near else "no"
    if judgement.advised is None:
        top = judgement.expected[0]
        shown = f"{top.profile}: {top.gain:.2f} ({top.low:.2f} to {top.high:.2f})"
        return [training.name, "nothing", f"at most {shown}", "1", best, near]
    advised, truth = judgement.advised, training.gains[judgement.advised.profile]
    interval = truth.speedup
    measured = f"{truth.ratio:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f})" if interval else "")
    measured += " LOSSES DIFFER" if truth.losses_differ else ""
    return [
        training.name, advised.profile, f"{advised.gain:.2f} ({advised.low:.2f} to {advised.high:.2f})",
        measured, best, near,
    ]  # fmt: skip


def _known(label: str, judgements: Sequence[Judged]) -> list[str]:
    within = [inside for judgement in judgements for inside in judgement.within]
    errors = sorted(
        abs(math.log(each.gain / judgement.training.gains[each.profile].ratio))
        for judgement in judgements
        for each in judgement.expected
    )
    return [
        label, f"{sum(judgement.near for judgement in judgements)} of {len(judgements)}",
        str(sum(judgement.false_hope or False for judgement in judgements)),
        f"{sum(within) / len(within):.0%}", f"{math.expm1(errors[len(errors) // 2]):.1%}",
        f"{statistics.geometric_mean(judgement.gained for judgement in judgements):.3f}",
    ]  # fmt: skip


def _features(trainings: Sequence[Training]) -> list[str]:
    """Return the features that were seen of any training, in order."""
    names = dict.fromkeys(name for training in trainings for name in training.features)
    return [name for name in names if any(training.features[name] is not None for training in trainings)]


def _seen(training: Training, trainings: Sequence[Training]) -> list[str]:
    values = [training.features[name] for name in _features(trainings)]
    return [training.name, *("-" if value is None else f"{value:.3g}" for value in values)]


def _small_in_fits(trainings: Sequence[Training]) -> str:
    """Return how many trainings were watched for small blocks, and which fits use what was seen."""
    watched = sum(training.features.get(SMALL[0]) is not None for training in trainings)
    if not watched:
        return SMALL_UNSEEN
    names = {name: fits_of(trainings, name, fitting.WATCHED)[0].names for name in profiles_of(trainings)}
    use = [
        f"{name} ({', '.join(used)})"
        for name, of_fit in names.items()
        if (used := [each for each in SMALL if each in of_fit])
    ]
    named = ": " + ", ".join(use) if use else ""
    return (
        f"{watched} of {len(trainings)} trainings were watched for them. They are used by {len(use)} of {len(names)} "
        f"fits{named}. The table by what is known of a training has the errors without them."
    )


def _watching(lines: Sequence[Line]) -> list[str]:
    """Return what watching costs, by the latest measurement of each training."""
    latest = {line["training"]: line for line in lines if line["kind"] == "watching"}
    if not latest:
        return []
    return [
        "## What watching costs",
        SLOWED_TEXT.format(pairs=PAIRS, steps=STEPS, warmup=WARMUP),
        page.table(("training", "alone over watched", "interval"), [_slowed(line) for line in latest.values()], 1),
    ]


def _slowed(line: Line) -> list[str]:
    """Return the cells of one training: by its pairs, or as it was published if these were not kept."""
    if "published" in line:
        ratio, low, high = line["published"]
    else:
        slowdown = speedup(log_ratios(line["alone_s"], line["watched_s"]), ERROR_RATE, NEAR)
        assert slowdown is not None, "there are enough pairs"
        ratio, low, high = slowdown.ratio, slowdown.low, slowdown.high
    return [line["training"], f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"]


QUESTION = """`envkit advise -- python train.py` watches a training for some seconds and says which profiles to try,
how much they are expected to gain, and why. The best of them race then, and the winner is compared with the
baseline."""
USE = """```sh
envkit advise -- python train.py                 # as you would start it; nothing of it is changed
envkit advise --watch-only -- python train.py    # what is expected, and no measurement
envkit advise --budget 10m -- python train.py    # a longer race and a narrower interval
envkit advise --max-memory 10% -- python train.py # no winner that needs more memory than that
envkit advise --pid 4711                         # a training that runs already, from outside
envkit advise --engine docker -- python train.py # in the image
```

The command is started as it is, in a fresh copy of the current folder: your files stay as they are
([own-script.md](own-script.md#files-that-it-writes)). `--in-place` starts it in the folder itself. Three steps of its
optimizer are left out and the next ones watched for about ten seconds. A few more run under PyTorch's profiler. Then
envkit stops it. Steps are those of the `torch.optim` optimizer that steps first, so no pattern for its log is needed.
A script that replaces PYTHONPATH hides them: the command then ends within seconds, and names the process and the mend
([own-script.md](own-script.md)). With `--pid` the
training is left alone: only the kernel's counters are read, and less is known. It must be yours. Nothing races then.

Losses: MKL's other code, which the profiles that end in `-mkl` have it take, rounds otherwise in the last digit. In
some trainings that grows until losses differ; [the map](gallery.md) says in which. Compare yours before you use one of
them (`--loss-metric` of `envkit bench`).

These profiles do not apply to Intel processors, where MKL takes its fastest code by itself. `advise` leaves them out
there and names the profiles that they extend in their place. One that the gallery has not measured has no number.

### The race

The best profiles then race, with one of each allocator that is installed. Each sample is a short fresh process, in
random order with the others of its block. After prespecified blocks the slower half leaves (sequential halving). The
table shows each profile's speed as a share of the winner's, in how many blocks it was, and when it left. A profile
whose process fails, or whose settings are not in effect, leaves at once. With `--max-memory`, a profile whose peak
memory is above that of the watched process by more leaves first. The watched process also runs the profiler, so the
limit is exact only when the winner is compared with the baseline
([reference.md](reference.md#the-limit-on-memory)).

The race chooses, and claims nothing. The winner is then compared with the baseline on fresh samples, as by
`envkit bench`. So a gain that is not there is claimed as rarely as by one run of `envkit bench`
([results/race.md](results/race.md) has both, simulated). Beside other programs that keep the CPUs busy the report says
so, and recommends nothing.

All this takes about three minutes if the training starts within five seconds. It takes longer if each start does:
envkit says how long before the race. `--budget` sets the time. A confirmation takes at least six blocks of two
processes. If all this takes more than three times the budget, envkit ends with the time to give, and with the advice.

Ctrl-C shows what the race has so far. `envkit advise --resume DIR` goes on with it, and then confirms the winner. The
report's last lines start your training under the winner (`envkit exec`), and keep the result as a file
(`envkit baseline save NAME`), against which `envkit baseline check NAME` holds later runs.

### What the lines mean

A training that has few threads or CPUs needs these first. `advise` then begins with `Fix this first`, says who decided
that and what helps ([troubleshooting.md](troubleshooting.md)), and nothing races. It tells no gains to a training with
too few threads: others were measured with all of theirs.

If other programs use the training's CPUs while it is watched, or a hypervisor withholds CPU time, the first lines say
so. The limits are those of `envkit bench` ([statistics.md](statistics.md)). Then the order of profiles is shown, and no
gain. On a machine that is not among the measured ones, the second line says that only the order is of use.

Profiles whose library is not installed share one line. Two commands below it install all these libraries: one as
root on Debian, and one without root. The second may need conda.

The report shows the evidence for each cause. 7 of 10 trainings lay within their range; yours may not. The figures
come from the gallery's trainings; the race measures yours. `envkit doctor` and reports name the same causes, and
`envkit tune` begins with what is expected to gain most."""
ONE_MACHINE = """All figures are of one machine, {machine}. So trainings are left out, and machines are not. The figures
do not tell how good the advice is on another kind of machine."""
SEVERAL_MACHINES = """Figures are of {number} machines: {machines}. A training is judged by other trainings on other
machines: neither it nor its machine took part."""
NOT_SIMULATED = """No training was measured in blocks, so that no run of `envkit advise` can be simulated."""
OUTCOMES_TEXT = """{runs} runs of `envkit advise` are simulated on each training, by fits that it taught nothing. The
kit's own code chooses what races, plans, drops profiles, ends the race, confirms the winner and gives the verdict. The
seconds of samples are drawn from the blocks that were recorded of the training
([how](../benchmarks/advise_runs.py)). Each run has its own truth, drawn from the same blocks, which the race does not
see. So the error of the recorded gains is part of all figures. Drawn truths differ more than true ones: equal profiles
make the regret too large, by up to 2 points. The lower figure is rather too small. A random half of the blocks then
feeds the race and names the best, and the other half tells what both gain.

The regret is how much faster the best profile is than the one that a run ends with: the geometric mean over runs and
trainings. A run whose winner is not called faster ends with the baseline. A profile whose losses differ is never the
best. A run that ends with one gains nothing, as it can't be used. `envkit advise` compares no losses: compare them
before you use a `-mkl` profile. The bounds are the upper ends of one-sided 95% intervals over trainings
(bootstrap-t). They hold for trainings like these.

The samples of trainings that are marked *published* were not kept. Their blocks are made up, as wide as the published
intervals, and a process is taken to start in {start:.0f} s. Their profiles preloaded older libraries.

A race samples for a shorter time than the gallery did, so that its samples may be noisier than these. Allocators that
the gallery has not measured do not race here.

The best of the model's first {raced} is what a race without errors takes. A constant *in hindsight* was the best on
these trainings, among profiles that were measured with all of them. In runs without a gain, each profile has samples of
the baseline."""
FOR_ALL_TEXT = """The geometric mean of a profile's speedups over these trainings, with 1 where its losses differ. The
`-mkl` profiles override a check of MKL's vendor. Intervals of eight profiles take nine blocks: with fewer, none is
surely faster or slower."""
RIGHT = """Each training of the gallery is judged by fits to the others. Its own gains took no part in these."""
KNOWN_TEXT = """From outside (`--pid`) only the kernel's counters are known. A command that is started is watched by
the steps of its optimizer, and a few of them run under PyTorch's profiler. The last row watches
nothing. It ranks profiles by their mean gain on the other trainings. "Mean gain" is the geometric mean of the speedups
of what was advised."""
SEEN_TEXT = """The features that a fit may use, of each training with nothing set, and of its machine.
`kernel` is the kernel's share of the CPU time. `matrix` is the share of a step in matrix products if MKL's code for
them is generic, else 0. `small` is the share in short operators, and `outside` the share outside of operators.
`fault_us` is the cost of a page fault in microseconds. `shared_cores` is the share of CPUs that share a core with
another, and `intel` is 1 for a processor of Intel. There is a column for what was seen of any training. With one
machine, a fit uses none of the machine's features."""
SMALL_TEXT = """A small recurrent network over long sequences gained 1.28 and 1.47 by `mimalloc-retain` in two
measurements (each +-0.18). `advise` called that nothing. 54% of its step was in small operators, and 23% outside of
operators. Four symptoms could tell such a training from others:

- `small`: the share of a step in operators that take less than 20 us each. The profiler counts it after the watched
  steps, so it slows none of these. The profiler's own time adds to each operator.
  Load hides it: beside programs that used 1.7 of 2 CPUs, it was 1% for `tests/scripts/small_lstm.py`. The report
  of such a watching says that it was disturbed.
- Operators of this kind a second: the same count, told beside the share.
- `outside`: the share of a step that no operator took.
- Allocations a second by size class, from jemalloc's `stats_print` or mimalloc's `MIMALLOC_SHOW_STATS` in an extra
  process: not tried. Both print when a process ends by itself, and a watched training is stopped.

`small` and `outside` are offered to each fit. `advise` names the cause if `small` is 50% or more. The limit comes from
one measured training. It then also tries a mimalloc profile that has no number here."""
SMALL_UNSEEN = """The gallery's trainings have not been watched for them yet, so no fit has them, and no error with a
training left out is known."""
EARLIER_FIT = """Its expected gains are of an earlier fit than those below."""
SLOWED_TEXT = """{pairs} pairs of processes for each of these, in turns: one alone, one with its optimizer's steps
watched; the mean of {steps} steps after {warmup}. Below 1, watching slows a training. The profiler, which does slow
it, comes after what is timed."""
FITTED_TEXT = f"""For each profile the logarithm of the gain is fitted by ridge regression to some of the features;
which, and how far coefficients are held back, is chosen by what predicts best when each training in turn is left out. A
training on this page is left out of that choice as well. The range around an expected gain is as wide as 70% of the
errors that are made so. Profiles are in the order of the geometric mean of what is expected and the range's lower end:
of many noisy ones the first was lucky too. Which features there are to choose from, and that order, were settled by the
first twelve trainings of the gallery, so that of these the page is a little too good. A profile is advised where it
is expected to gain {LEAST_GAIN:.0%} or more. The coefficients are in
`runner/envkit/advice/expected.json`, which this script writes."""


if __name__ == "__main__":
    sys.exit(script.run("advice", main))
