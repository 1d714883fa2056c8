"""Is the advice of ``envkit advise`` any good? Watches the gallery's trainings, fits what profiles gain, writes both.

The gains are those of the map (``benchmarks/gallery_map.py``). Each training is judged by fits that it taught nothing.
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.advice.expected import FILE, LEAST_GAIN, Expected, features
from envkit.advice.symptoms import FEATURES, Symptoms
from envkit.common import atomic
from envkit.engines.base import PROJECT, WORKER
from envkit.report import advised
from envkit.stats.interval import Speedup, log_ratios, speedup
from envkit.stats.verdict import Verdict
from envkit.worker.host import cpu_facts, fingerprint
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest

from benchmarks import fitting, gallery_runs, page, script
from benchmarks.errors import ScriptError
from benchmarks.fitting import KNOWN, Features
from benchmarks.gallery_runs import Run
from benchmarks.results import Line, Results

PAGE = PROJECT / "docs/advise.md"
MAP = PROJECT / "results/gallery"
# More steps than are watched.
ENDLESS = 1_000_000
NEAR = 0.03
# With fewer trainings there is nothing to learn, and less to judge.
FEWEST = 6
# The advisor to beat watches nothing.
CONSTANT = "nothing: always the same profile"
# What watching costs is measured with these, in so many pairs of processes, each of so many steps.
SLOWED, PAIRS, STEPS, WARMUP, WATCHED_S = ("lstm", "tabular"), 8, 12, 3, 4.0
STEP = re.compile(r"^step \d+: ([0-9.]+) s", re.MULTILINE)
# One that is not in the gallery.
EXAMPLE = ("advise", "--", ".venv/bin/python", "tests/scripts/plain_loop.py", "--steps", "1000000")


@dataclass(frozen=True)
class Training:
    """One of the gallery: what was seen of it, and what profiles gained, by name."""

    name: str
    features: Features
    gains: Mapping[str, Speedup]

    @property
    def best(self) -> float:
        """The most that any profile gains; 1 where none does."""
        return max(1.0, *(gain.ratio for gain in self.gains.values()))


@dataclass(frozen=True)
class Judged:
    """What fits that a training taught nothing say of it: all profiles, the most first."""

    training: Training
    expected: Sequence[Expected]

    @property
    def advised(self) -> Expected | None:
        first = self.expected[0]
        return first if first.is_worth_trying else None

    @property
    def gained(self) -> float:
        """What following the advice gains."""
        return self.training.gains[self.advised.profile].ratio if self.advised else 1.0

    @property
    def near(self) -> bool:
        return self.gained * (1 + NEAR) >= self.training.best

    @property
    def false_hope(self) -> bool:
        """Whether something is advised that is not surely faster."""
        return self.advised is not None and self.training.gains[self.advised.profile].verdict != Verdict.FASTER

    @property
    def within(self) -> list[bool]:
        """Of each profile, whether what it gains lies in the range."""
        return [
            expected.low <= self.training.gains[expected.profile].ratio <= expected.high for expected in self.expected
        ]


def main() -> int:
    parser = script.parser("advice", str(__doc__).splitlines()[0])
    parser.set_defaults(page=PAGE)
    parser.add_argument("--map", metavar="DIR", type=Path, default=MAP,
                        help=f"the folder with the map's runs (default: {MAP.relative_to(PROJECT)})")  # fmt: skip
    parser.add_argument("--fit", metavar="FILE", type=Path, default=FILE,
                        help=f"the coefficients to write (default: {FILE.relative_to(PROJECT)})")  # fmt: skip
    arguments = parser.parse_args()
    runs = {name: run for name, run in gallery_runs.runs(arguments.map, gallery_runs.models()).items() if run.is_whole}
    if len(runs) < FEWEST:
        raise ScriptError(f"{arguments.map}: has {len(runs)} whole runs of the gallery, and it takes {FEWEST} or more; "
                         "make them with: make gallery")  # fmt: skip
    gallery_runs.require_python()
    results = Results(arguments.results, {"machine": page.machine()})
    for name in runs:
        if not results.of("watched", model=name):
            results.append("watched", model=name, **_watch(name))
    for name in SLOWED:
        for number in range(len(results.of("pair", model=name)), PAIRS):
            results.append("pair", model=name, **_pair(name, number))
    trainings = [_training(run, results) for run in runs.values()]
    fit = (json.dumps(_fitted(trainings, results), indent=1) + "\n").encode()
    atomic.write(arguments.fit, fit)
    digest = hashlib.sha256(fit).hexdigest()
    if not results.of("example", fit=digest):
        results.append("example", fit=digest, printed=_example())
    page.write(arguments.page, _page(results, trainings, results.of("example", fit=digest)[0]["printed"]))
    return 0


def _command(name: str, steps: int) -> list[str]:
    return [gallery_runs.PYTHON, f"benchmarks/gallery/{name}.py", "--steps", str(steps)]


def _watch(name: str) -> Line:
    """What ``envkit advise`` saw of a model, and how long it took (seconds)."""
    begin = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "envkit", "advise", "--watch-only", "--json", "--", *_command(name, ENDLESS)],
        cwd=PROJECT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if result.returncode != 0:
        last_line = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ScriptError(f"{name}: envkit advise ended with exit status {result.returncode}: {last_line}")
    took = time.perf_counter() - begin
    print(f"{name}: watched, {took:.0f} s", flush=True)
    return {"seconds": round(took, 1), "symptoms": json.loads(result.stdout)["symptoms"]}


def _example() -> str:
    """What `envkit advise` prints for a training that is not in the gallery."""
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


def _training(run: Run, results: Results) -> Training:
    symptoms = Symptoms.from_json(results.of("watched", model=run.model.name)[0]["symptoms"])
    gains = {
        comparison.arm: comparison.speedup for comparison in run.concluded.comparisons if comparison.speedup is not None
    }
    return Training(run.model.name, features(symptoms), gains)


def _profiles(trainings: Sequence[Training]) -> list[str]:
    """Those that were measured with all trainings."""
    return [name for name in trainings[0].gains if all(name in training.gains for training in trainings)]


def _fits(
    trainings: Sequence[Training], profile: str, choices: Sequence[tuple[str, ...]]
) -> tuple[fitting.Ridge, float]:
    gains = [math.log(training.gains[profile].ratio) for training in trainings]
    return fitting.best(choices, [training.features for training in trainings], gains)


def _fitted(trainings: Sequence[Training], results: Results) -> Line:
    """What the kit is given: of each profile the fits, the best first."""
    fits = {
        profile: [asdict(fitting.as_fit(*_fits(trainings, profile, choices))) for choices in KNOWN.values()]
        for profile in _profiles(trainings)
    }
    return {
        "machine": advised.machine({"fingerprint": fingerprint(), "facts": cpu_facts()}),
        "measured": time.strftime("%Y-%m-%d", time.localtime(results.of("watched")[-1]["time"])),
        "trainings": [training.name for training in trainings],
        "fits": fits,
    }


def judged(trainings: Sequence[Training], choices: Sequence[tuple[str, ...]]) -> list[Judged]:
    """Each training by fits to the others."""
    judgements = []
    for training in trainings:
        others = [other for other in trainings if other is not training]
        expected = []
        for profile in _profiles(trainings):
            made, half = _fits(others, profile, choices)
            value = made.predict(training.features)
            expected.append(Expected(profile, *map(math.exp, (value, value - half, value + half))))
        judgements.append(Judged(training, sorted(expected, key=lambda each: -each.cautious)))
    return judgements


def _page(results: Results, trainings: Sequence[Training], example: str) -> list[str]:
    by_known = {known_kinds: judged(trainings, choices) for known_kinds, choices in KNOWN.items()}
    full = next(iter(by_known.values()))
    by_known[CONSTANT] = judged(trainings, [()])  # a fit to no feature is the mean of the others
    return [
        page.heading("Advice, and a race of what is advised", QUESTION, results.lines, results.lines[0]["machine"]),
        "## Use",
        USE,
        f"A training that is not in the gallery, with nothing left out:\n\n```sh\nenvkit {shlex.join(EXAMPLE)}\n```",
        f"```text\n{example.rstrip()}\n```",
        "## Is it right?",
        RIGHT,
        _aims(full, results, by_known[CONSTANT]),
        "## Each training, by fits that it taught nothing",
        page.table(("training", "advised first", "expected", "measured", "the best that was measured", "within 3%"),
                   [_row(judged_training) for judged_training in full]),
        "## By what is known of a training",
        KNOWN_TEXT,
        page.table(("known", "advice within 3% of the best", "not surely faster", "truths within the range",
                    "error, median", "mean gain"), [_known(*pair) for pair in by_known.items()], 1),
        "## What was seen",
        SEEN_TEXT,
        page.table(("training", "s a step", *(feature.name for feature in FEATURES), "advise took"),
                   [_seen(training, results) for training in trainings], 1),
        "\n".join(f"- {feature.name}: {feature.what}" for feature in FEATURES),
        "## What watching costs",
        SLOWED_TEXT.format(pairs=PAIRS, steps=STEPS, warmup=WARMUP),
        page.table(("training", "alone over watched", "interval"), [_slowed(name, results) for name in SLOWED], 1),
        "## How it is fitted",
        FITTED_TEXT,
    ]  # fmt: skip


def _aims(full: Sequence[Judged], results: Results, constant: Sequence[Judged]) -> str:
    near, hopes = sum(judgement.near for judgement in full), sum(judgement.false_hope for judgement in full)
    within = [held for judgement in full for held in judgement.within]
    inside = sum(within) / len(within)
    longest = max(line["seconds"] for line in results.of("watched"))
    return "\n".join([
        f"- the profile that is advised first is within 3% of the best that was measured for {near} of {len(full)} "
        f"trainings (the aim: 10 of 12): {'met' if near * 12 >= 10 * len(full) else 'missed'}",
        f"- for {hopes} of {len(full)} something is advised that is not surely faster (the aim: at most 1 of 12): "
        f"{'met' if hopes * 12 <= len(full) else 'missed'}",
        f"- {sum(within)} of {len(within)} truths ({inside:.0%}) lie within their 70% range (the aim: "
        f"60% to 80%): {'met' if 0.6 <= inside <= 0.8 else 'missed'}",
        f"- `envkit advise --watch-only` took {longest:.0f} s at most (the aim: 60 s): {'met' if longest <= 60 else 'missed'}",
        f"- the same profile for all, without watching, is within 3% for {sum(each.near for each in constant)} of "
        f"{len(constant)}; its mean gain is {_mean_gain(constant):.3f}, that of the advice {_mean_gain(full):.3f}",
    ])  # fmt: skip


def _mean_gain(judgements: Sequence[Judged]) -> float:
    """Return the geometric mean of the speedups of what is advised."""
    return statistics.geometric_mean(judgement.gained for judgement in judgements)


def _row(judgement: Judged) -> list[str]:
    names = sorted(judgement.training.gains, key=lambda name: -judgement.training.gains[name].ratio)
    best = (
        f"{names[0]}: {judgement.training.gains[names[0]].ratio:.2f}" if judgement.training.best > 1 else "nothing set"
    )
    if judgement.advised is None:
        top = judgement.expected[0]
        shown = f"{top.profile}: {top.gain:.2f} ({top.low:.2f} to {top.high:.2f})"
        return [judgement.training.name, "nothing", f"at most {shown}", "1", best, "yes" if judgement.near else "no"]
    advised, truth = judgement.advised, judgement.training.gains[judgement.advised.profile]
    return [
        judgement.training.name, advised.profile, f"{advised.gain:.2f} ({advised.low:.2f} to {advised.high:.2f})",
        f"{truth.ratio:.2f} ({truth.low:.2f} to {truth.high:.2f})", best, "yes" if judgement.near else "no",
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


def _seen(training: Training, results: Results) -> list[str]:
    line = results.of("watched", model=training.name)[0]
    values = [
        "-" if training.features[each.name] is None else f"{training.features[each.name]:.3g}" for each in FEATURES
    ]
    return [training.name, f"{line['symptoms']['step_s']:.3f}", *values, f"{line['seconds']:.0f} s"]


def _slowed(name: str, results: Results) -> list[str]:
    pairs = results.of("pair", model=name)
    ratios = log_ratios([pair["alone_s"] for pair in pairs], [pair["watched_s"] for pair in pairs])
    slowdown = speedup(ratios, 0.05, NEAR)
    assert slowdown is not None, "there are enough pairs"
    return [name, f"{slowdown.ratio:.3f}", f"{slowdown.low:.3f} to {slowdown.high:.3f}"]


QUESTION = """`envkit advise -- python train.py` watches a training for some seconds and says which profiles to try,
how much they are expected to gain, and why. The best of them race then, and the winner is compared with the
baseline."""
USE = """```sh
envkit advise -- python train.py                 # as you would start it; nothing of it is changed
envkit advise --watch-only -- python train.py    # what is expected, and no measurement
envkit advise --budget 10m -- python train.py    # a longer race and a narrower interval
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
whose process fails, or whose settings are not in effect, leaves at once.

The race chooses, and claims nothing. The winner is then compared with the baseline on fresh samples, as by
`envkit bench`. So a gain that is not there is claimed as rarely as by one run of `envkit bench`
([results/race.md](results/race.md) has both, simulated). Beside other programs that keep the CPUs busy the report says
so, and recommends nothing.

All this takes about three minutes if the training starts within five seconds. It takes longer if each start does:
envkit says how long before the race. `--budget` sets the time. A confirmation takes at least six blocks of two
processes. If that takes more than three times the budget, envkit ends with the time to give, and with the advice.

Ctrl-C shows what the race has so far. `envkit advise --resume DIR` goes on with it, and then confirms the winner. The
report's last lines start your training under the winner (`envkit exec`), and keep the result as a file
(`envkit baseline save NAME`), against which `envkit baseline check NAME` holds later runs.

### What the lines mean

A training that has few threads or CPUs needs these first. `advise` then begins with `Fix this first`, says who decided
that and what helps ([troubleshooting.md](troubleshooting.md)), and nothing races. It tells no gains to a training with
too few threads: others were measured with all of theirs.

Each cause is told with what was seen of it. A range is where 7 of 10 trainings came out: a promise of nothing. What is
known comes from the gallery's trainings on one machine; on another kind of machine the order alone is of use, and the
race measures. `envkit doctor` and reports name the same causes, and `envkit tune` begins with what is expected to gain
most."""
RIGHT = """Each training of the gallery is judged by what the others taught: its own gains, which the map has measured,
took no part in what is said of it here."""
KNOWN_TEXT = """From outside (`--pid`) only the kernel's counters are known. A command that is started is watched by
the steps of its optimizer, and a few of them run under PyTorch's profiler. The last row watches
nothing. It ranks profiles by their mean gain on the other trainings. "Mean gain" is the geometric mean of the speedups
of what was advised."""
SEEN_TEXT = """The features that a fit may use, of each training with nothing set. The last column is how long the
whole command took."""
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
