"""Is the advice of ``envkit advise`` any good? Fits what profiles gain, and writes the fits and their page.

The gains and the symptoms are those of the atlas (``benchmarks/gallery_map.py``). Each training is judged by fits that
it taught nothing, and, as soon as there are two machines, by fits to other machines alone. ``--measure`` measures what
watching costs, and an example.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from envkit.advice.expected import FILE, LEAST_GAIN
from envkit.common import atomic
from envkit.engines.base import PROJECT, WORKER
from envkit.stats.interval import ERROR_RATE, log_ratios, speedup
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest

from benchmarks import fitting, gallery_atlas, gallery_runs, page, script
from benchmarks.errors import ScriptError
from benchmarks.fitting import KNOWN
from benchmarks.gallery_atlas import ATLAS, Chart
from benchmarks.judged import (
    FEWEST,
    NEAR,
    Judged,
    Training,
    fits_of,
    is_supported,
    judged,
    machines_of,
    profiles_of,
    regret,
    trainings_of,
)
from benchmarks.results import Line, append_line, complete_lines

PAGE = PROJECT / "docs/advise.md"
DATA = page.PAGES / "advice.jsonl"
# More steps than are watched.
ENDLESS = 1_000_000
# So many first candidates are what a race is run among.
RACED = 3
# The advisors to beat watch nothing.
CONSTANT = "nothing: always the same profile"
SUPPORTED = "nothing: always the same, no vendor's check overridden"
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
    arguments = parser.parse_args()
    charts = gallery_atlas.charts(gallery_atlas.read_sessions(arguments.atlas))
    trainings = trainings_of(charts)
    if len({training.name for training in trainings}) < FEWEST:
        raise ScriptError(f"{arguments.atlas}: has {len(trainings)} trainings of the gallery that were watched, and it "
                          f"takes {FEWEST} or more; make them with: make gallery")  # fmt: skip
    atomic.write(arguments.fit, fit := (json.dumps(_fitted(trainings, charts), indent=1) + "\n").encode())
    if arguments.measure:
        _measure(arguments.results, hashlib.sha256(fit).hexdigest())
    lines = [json.loads(line) for line in complete_lines(arguments.results)]
    page.write(arguments.page, _page(lines, trainings, charts))
    return 0


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


def _page(lines: Sequence[Line], trainings: Sequence[Training], charts: Sequence[Chart]) -> list[str]:
    by_known = {label: judged(trainings, choices) for label, choices in KNOWN.items()}
    full = next(iter(by_known.values()))
    policies = {
        "the first of the list": full,
        f"the best of the first {RACED}, as a race finds it": judged(
            trainings, next(iter(KNOWN.values())), raced=RACED
        ),
        "the first, known from outside": by_known["from outside"],
        CONSTANT: judged(trainings, [()]),  # a fit to no feature is the mean of the others
        SUPPORTED: judged(trainings, [()], is_supported),
    }
    by_known[CONSTANT] = policies[CONSTANT]
    sessions = [session for chart in charts for session in chart.sessions]
    systems = list(dict.fromkeys(session.system for session in sessions))
    began: list[dict[str, object]] = [{"time": session.began} for session in sessions]
    return [
        page.heading("Advice, and a race of what is advised", QUESTION, began, "; ".join(systems),
                     "python -m benchmarks.advice"),
        "## Use",
        USE,
        *_example_shown(lines),
        "## Is it right?",
        RIGHT,
        _machines_text(trainings),
        _aims(full, policies[CONSTANT]),
        "## How much slower than the best?",
        REGRET_TEXT.format(raced=RACED),
        page.table(POLICIES, [_policy(*pair) for pair in policies.items()], 1),
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
        *_watching(lines),
        "## How it is fitted",
        FITTED_TEXT,
    ]  # fmt: skip


def _example_shown(lines: Sequence[Line]) -> list[str]:
    """Return the latest output for the example."""
    example = next((line for line in reversed(lines) if line["kind"] == "example"), None)
    if example is None:
        return []
    typed = shlex.join(["envkit", *example["command"]])
    return [
        f"A training that is not in the gallery, with nothing left out:\n\n```sh\n{typed}\n```",
        f"```text\n{example['printed'].rstrip()}\n```",
    ]


def _machines_text(trainings: Sequence[Training]) -> str:
    machines = machines_of(trainings)
    if len(machines) == 1:
        return ONE_MACHINE.format(machine=machines[0])
    return SEVERAL_MACHINES.format(number=len(machines), machines="; ".join(machines))


def _aims(full: Sequence[Judged], constant: Sequence[Judged]) -> str:
    near, hopes = sum(judgement.near for judgement in full), sum(judgement.false_hope for judgement in full)
    within = [held for judgement in full for held in judgement.within]
    inside, slower = sum(within) / len(within), regret(full)
    of_regret = slower.mean <= 0.02 and slower.bound <= 0.05
    return "\n".join([
        f"- the profile that is advised first is within 3% of the best that was measured for {near} of {len(full)} "
        f"trainings (the aim: 10 of 12): {_met(near * 12 >= 10 * len(full))}",
        f"- the best is {slower.mean:.1%} faster than the first profile in the geometric mean, at most "
        f"{slower.bound:.1%} at 95% (the aim: 2%, at most 5%): {_met(of_regret)}",
        f"- for {hopes} of {len(full)} something is advised that is not surely faster (the aim: at most 1 of 20): "
        f"{_met(hopes * 20 <= len(full))}",
        f"- {sum(within)} of {len(within)} truths ({inside:.0%}) lie within their 70% range (the aim: "
        f"60% to 80%): {_met(0.6 <= inside <= 0.8)}",
        f"- the same profile for all, without watching, is within 3% for {sum(each.near for each in constant)} of "
        f"{len(constant)}; its mean gain is {_mean_gain(constant):.3f}, that of the advice {_mean_gain(full):.3f}",
    ])  # fmt: skip


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


def _mean_gain(judgements: Sequence[Judged]) -> float:
    """Return the geometric mean of the speedups of what is advised."""
    return statistics.geometric_mean(judgement.gained for judgement in judgements)


def _policy(label: str, judgements: Sequence[Judged]) -> list[str]:
    slower = regret(judgements)
    near = sum(judgement.near for judgement in judgements)
    return [
        label, f"{_mean_gain(judgements):.3f}", f"{slower.mean:.1%}", f"{slower.bound:.1%}",
        f"{near} of {len(judgements)}", str(sum(judgement.false_hope for judgement in judgements)),
    ]  # fmt: skip


def _row(judgement: Judged) -> list[str]:
    training = judgement.training
    names = sorted(training.gains, key=lambda name: -training.gains[name].ratio)
    best = f"{names[0]}: {training.gains[names[0]].ratio:.2f}" if training.best > 1 else "nothing set"
    near = "yes" if judgement.near else "no"
    if judgement.advised is None:
        top = judgement.expected[0]
        shown = f"{top.profile}: {top.gain:.2f} ({top.low:.2f} to {top.high:.2f})"
        return [training.name, "nothing", f"at most {shown}", "1", best, near]
    advised, truth = judgement.advised, training.gains[judgement.advised.profile]
    interval = truth.speedup
    measured = f"{truth.ratio:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f})" if interval else "")
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
        str(sum(judgement.false_hope for judgement in judgements)),
        f"{sum(within) / len(within):.0%}", f"{math.expm1(errors[len(errors) // 2]):.1%}",
        f"{_mean_gain(judgements):.3f}",
    ]  # fmt: skip


def _features(trainings: Sequence[Training]) -> list[str]:
    """Return the features that were seen of any training, in order."""
    names = dict.fromkeys(name for training in trainings for name in training.features)
    return [name for name in names if any(training.features[name] is not None for training in trainings)]


def _seen(training: Training, trainings: Sequence[Training]) -> list[str]:
    values = [training.features[name] for name in _features(trainings)]
    return [training.name, *("-" if value is None else f"{value:.3g}" for value in values)]


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
POLICIES = ("what is taken", "mean gain", "the best is faster by", "at most", "within 3% of it", "not surely faster")
ONE_MACHINE = """All figures are of one machine, {machine}. So trainings are left out, and machines are not. The figures
do not tell how good the advice is on another kind of machine."""
SEVERAL_MACHINES = """Figures are of {number} machines: {machines}. A training is judged by other trainings on other
machines: neither it nor its machine took part."""
REGRET_TEXT = """How much faster is the best profile that was measured than the one that is taken? The table has the
geometric mean over the trainings, and the upper end of its one-sided 95% interval. The interval is of the noise in the
measurements. Its draws find the best profile again, so a best that was lucky raises it. `envkit advise` races the first
profiles of its list: the best of the first {raced} is as good as such a race can be. If nothing is watched, the profile
is the same for all trainings: the one that gains most on the others. The `-mkl` profiles override a check of MKL's
vendor. Noise alone looks like regret."""
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

`small` and `outside` are offered to each fit. The gallery's trainings have not been watched for them yet, so no fit has
them, and no error with a training left out is known. Until then `advise` names the cause if `small` is 50% or more.
The limit comes from the one measured training. It then tries a mimalloc profile, and tells no gain."""
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
