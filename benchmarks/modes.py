"""Does the environment still pay beside other means: bfloat16, torch.compile, another layout of memory?

Each mode does the same training with nothing set and under profiles, in fresh processes, all in one interleaved run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envkit.bench import requirements
from envkit.bench.study import REFERENCE_PROFILE
from envkit.profiles import profile
from envkit.profiles.profile import Profile
from envkit.stats.verdict import Verdict
from envkit.worker.modes import BF16, FP32, USUAL, Options

from benchmarks import interleaved, page, script
from benchmarks.errors import ScriptError
from benchmarks.grouped import Grouped, Pair, pairs
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Results

BLOCKS, STEPS = 12, 40
PROFILES = ("glibc-retain", "mimalloc-retain-mkl")
COMPILED = "compiled"
# The first is the reference of the others.
MODES = {
    FP32: USUAL,
    "bf16": Options(precision=BF16),
    COMPILED: Options(compile=True),
    "channels-last": Options(channels_last=True),
}
DIFFERENCE = "largest difference of a loss"


def main() -> int:
    arguments = _parser().parse_args()
    loaded = _profiles(arguments.profile or PROFILES)
    names = [loaded_profile.name for loaded_profile in loaded]
    interleaved.require_blocks(arguments.blocks, len([*pairs(list(MODES), names, _in), *_instead_of_modes(names)]))
    bench = Bench(arguments)
    inspection = bench.inspection(loaded, requirements.tools(MODES[COMPILED]))
    _require_compiler(bench.engine.describe()["image"], inspection)
    entries = [_entry(mode, loaded_profile, inspection) for mode in MODES for loaded_profile in loaded]
    results = Results(arguments.results, bench.settings(entries, inspection))
    with tempfile.TemporaryDirectory(prefix="envkit-modes-") as empty:
        bench.inherited["TMPDIR"] = empty  # where torch.compile keeps its results, so that no earlier ones are found
        interleaved.run(bench, results, entries, [_in(REFERENCE_PROFILE, FP32)])
    return interleaved.write(arguments, results, _page(results, names))


def _parser() -> argparse.ArgumentParser:
    parser = script.parser("modes", __doc__)
    interleaved.add_options(parser, BLOCKS, STEPS)
    parser.add_argument("--profile", metavar="NAME", action="append",
                        help=f"a profile to measure beside the {REFERENCE_PROFILE}, once for each "
                        f"(default: {', '.join(PROFILES)})")  # fmt: skip
    return parser


def _profiles(names: Sequence[str]) -> list[Profile]:
    """The baseline and those called ``names``."""
    loaded = [profile.load(name) for name in (REFERENCE_PROFILE, *names)]
    loaded_names = [loaded_profile.name for loaded_profile in loaded]
    if REFERENCE_PROFILE in loaded_names[1:]:
        raise ScriptError(f"--profile {REFERENCE_PROFILE}: is measured anyway; name another profile, or leave it out")
    if twice := [name for name in loaded_names if loaded_names.count(name) > 1]:
        raise ScriptError(f"--profile {twice[0]}: was given twice; leave one of them out")
    return loaded


def _require_compiler(python: str, inspection: Mapping[str, Any]) -> None:
    """Raise InputError where torch.compile lacks what it needs."""
    missing = [command for command in requirements.tools(MODES[COMPILED]) if inspection["commands"][command] is None]
    if not inspection["python_headers"]:
        missing.append("Python's headers (Python.h)")
    if missing:
        raise ScriptError(f"torch.compile needs {' and '.join(missing)}, and {python} has none here; install it first")


def _in(name: str, mode: str) -> str:
    return f"{name}, {mode}"


def _entry(mode: str, loaded: Profile, inspection: Mapping[str, Any]) -> Entry:
    made = interleaved.of_profile(loaded, inspection)
    return replace(made, name=_in(loaded.name, mode), options=MODES[mode])


HOW = """\
Compiling takes place in the steps that warm up: what it takes is not in these figures, and told below. Losses are
compared within a mode only: bfloat16, compiled code and another layout round otherwise than fp32 does, whatever the
profile is."""
FIRST_STEP = """\
Seconds that a process's first step takes, which is one of those that warm up. The first process of a mode is started
before all samples, and finds nothing on disk that torch.compile kept; samples find what it kept. What loading PyTorch
and its compiler takes before this step is not in it."""


def _page(results: Results, settings: Sequence[str]) -> list[str]:
    profiles = settings[1:]
    grouped = Grouped(results, list(MODES), settings, _in, _instead_of_modes(settings))
    rows = [[*row, _loss(grouped, row[0], row[1])] for row in grouped.rows_within()]
    options = [[mode, " ".join(how.arguments())] for mode, how in MODES.items()]
    return [
        *grouped.opening("Beside bfloat16, torch.compile and channels-last", (__doc__ or "").strip()),
        HOW,
        "## In short",
        _in_short(grouped),
        "## The modes",
        page.table(("mode", "options"), [[mode, f"`{flags}`" if flags else "none"] for mode, flags in options]),
        "## What profiles give in each mode",
        page.table(("mode", "profile", "samples", "ms/step", f"against {REFERENCE_PROFILE} there", "interval",
                    DIFFERENCE), rows, 2),
        f"## What a mode gives against {FP32} with the same profile",
        page.table(("profile", "mode", "ratio", "interval"), grouped.rows_across(), 2),
        f"## What a profile gives in {FP32}, against a mode with nothing set",
        page.table(("mode", "profile", "ratio", "interval"),
                   [[mode, name, *grouped.cells(_instead(mode, name))]
                    for mode in grouped.groups[1:] for name in profiles],
                   2),
        "## What compiling costs before the first step is done",
        FIRST_STEP,
        page.table(("mode", "first process", "samples, median"), [_first_step(grouped, mode) for mode in MODES], 1),
        *grouped.closing(),
    ]  # fmt: skip


def _instead(mode: str, name: str) -> Pair:
    """A mode with nothing set, and a profile in fp32."""
    return _in(REFERENCE_PROFILE, mode), _in(name, FP32)


def _instead_of_modes(settings: Sequence[str]) -> list[Pair]:
    """The same for each mode and each profile, of which the first sets nothing."""
    return [_instead(mode, name) for mode in list(MODES)[1:] for name in settings[1:]]


def _loss(grouped: Grouped, mode: str, name: str) -> str:
    return "" if name == REFERENCE_PROFILE else grouped.losses(grouped.within(name, mode))


def _in_short(grouped: Grouped) -> str:
    fp32, *others = grouped.groups
    baseline, *profiles = grouped.settings
    best = {mode: _best(grouped, {name: grouped.within(name, mode) for name in profiles}) for mode in grouped.groups}
    gains = {mode: grouped.within(best[mode], mode) for mode in grouped.groups}
    best_gains = [f"{mode} {grouped.times(gains[mode])} with {best[mode]}" for mode in grouped.groups]
    alone = {mode: grouped.across(baseline, mode) for mode in others}
    of_modes = [f"{mode} is {grouped.times(pair)}" for mode, pair in alone.items()]
    return (
        f"{_paying(grouped, {mode: gains[mode] for mode in others})} Against the {baseline} in the same mode, the best "
        f"profile makes {_listed(best_gains)}. With nothing set, against {fp32}, {_listed(of_modes)}. "
        f"{_worth_more(grouped, _best(grouped, alone), best[fp32])}"
    )


def _best(grouped: Grouped, pairs: Mapping[str, Pair]) -> str:
    """Which of these has the highest ratio; what is not known comes last."""
    ratios = {name: effect.ratio if (effect := grouped.compared(pair)) else 0.0 for name, pair in pairs.items()}
    return max(ratios, key=lambda name: ratios[name])


def _paying(grouped: Grouped, gains: Mapping[str, Pair]) -> str:
    paying = [
        mode for mode, pair in gains.items() if (effect := grouped.compared(pair)) and effect.verdict == Verdict.FASTER
    ]
    unpaid = [mode for mode in gains if mode not in paying]
    if not paying:
        return f"That a profile still pays was not found beside {_listed(unpaid)}."
    sentence = f"Beside {_listed(paying)} a profile still pays"
    return f"{sentence}; beside {_listed(unpaid)} that was not found." if unpaid else f"{sentence}."


def _worth_more(grouped: Grouped, mode: str, name: str) -> str:
    """The best mode alone, against the best profile alone."""
    pair = _instead(mode, name)
    effect = grouped.compared(pair)
    if effect is None:
        return "Whether a mode or a profile is worth more here is not known."
    words = {Verdict.FASTER: "The profile is worth more here", Verdict.SLOWER: "The mode is worth more here"}
    return (
        f"{words.get(effect.verdict, 'That one of the two is worth more was not found')}: {FP32} with {name} is "
        f"{grouped.times(pair)} as {mode} with nothing set, the fastest of the other modes."
    )


def _listed(words: Sequence[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def _first_step(grouped: Grouped, mode: str) -> list[str]:
    names = {grouped.entry(name, mode) for name in grouped.settings}
    first, later = (
        [line["first_step_s"] for line in grouped.results.of(kind) if line["entry"] in names and line["first_step_s"]]
        for kind in ("start", "sample")
    )
    return [mode, f"{first[0]:.2f}" if first else "-", f"{statistics.median(later):.2f}" if later else "-"]


if __name__ == "__main__":
    sys.exit(script.run("modes", main))
