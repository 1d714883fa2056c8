"""What was tried beyond the profiles: predictions that were written down first, beside what came out.

``experiments.yaml`` has the predictions; the settings are profiles in ``experiment_profiles``. Each is compared with
the profile that it adds to, so that what is seen is its own worth, in one interleaved run.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from envkit.bench.study import REFERENCE_PROFILE
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.profiles import catalogue, profile
from envkit.rendering import text_of
from envkit.stats.interval import Speedup
from envkit.stats.verdict import Verdict
from msgspec.structs import replace

from benchmarks import interleaved, page, script
from benchmarks.errors import ScriptError
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Results

BLOCKS = 16
HERE = Path(__file__).resolve().parent
PLAN = HERE / "experiments.yaml"
PROFILES = HERE / "experiment_profiles"


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change, named after its profile. ``expect`` is the ratio to ``against`` that was predicted, from and to."""

    against: str
    prediction: str
    expect: tuple[float, float]
    name: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.expect[0] <= self.expect[1]:
            raise ValueError("'expect' is a range of ratios, for example [0.99, 1.02]")

    def hit(self, measured: Speedup) -> str:
        """What became of the prediction: it is right or wrong where the whole interval says so."""
        low, high = self.expect
        if measured.high < low or measured.low > high:
            return "no"
        return "yes" if low <= measured.low and measured.high <= high else "not contradicted"


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that was not measured in this way."""

    what: str
    why: str


def read(path: Path = PLAN) -> tuple[list[Experiment], list[LeftOut]]:
    """The experiments and what was left out. Raises InputError naming file and line."""
    file = yamlfile.read(path)
    names = script.parse(file, dict[str, object], "experiments")
    experiments = [replace(script.parse(file, Experiment, "experiments", name), name=name) for name in names]
    return experiments, script.parse(file, list[LeftOut], "left_out")


def load(name: str) -> profile.Profile:
    """An experiment's profile, or one that is shipped."""
    path = PROFILES / f"{name}.yaml"
    return profile.load(str(path) if path.is_file() else name)


def chosen(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in {experiment.name for experiment in experiments}]
    if unknown:
        raise ScriptError(
            f"no experiment '{unknown[0]}'; there are: {', '.join(experiment.name for experiment in experiments)}"
        )
    return [experiment for experiment in experiments if not names or experiment.name in names]


def main() -> int:
    parser = script.parser("experiments", __doc__)
    interleaved.add_options(parser, BLOCKS)
    parser.add_argument("names", metavar="EXPERIMENT", nargs="*", help="(default: all)")
    arguments = parser.parse_args()
    experiments, left_out = read()
    experiments = chosen(experiments, arguments.names)
    names = list(
        dict.fromkeys(
            [REFERENCE_PROFILE, *(name for experiment in experiments for name in (experiment.against, experiment.name))]
        )
    )
    loaded = {name: load(name) for name in names}
    bench = Bench(arguments)
    inspection = bench.inspection(loaded.values())
    entries, missing = _entries(loaded, inspection)
    planned = {
        experiment.name: [experiment.against, experiment.prediction, *experiment.expect] for experiment in experiments
    }
    results = Results(arguments.results, {**bench.settings(entries, inspection), "experiments": planned})
    interleaved.run(bench, results, entries, [REFERENCE_PROFILE])
    return interleaved.write(arguments, results, _page(results, experiments, left_out, loaded, missing))


def _entries(
    loaded: Mapping[str, profile.Profile], inspection: Mapping[str, Any]
) -> tuple[list[Entry], dict[str, str]]:
    """What can be measured here, and by name why the rest can't."""
    catalogue.load()  # what is wrong with it is not an experiment's fault
    entries, missing = [], {}
    for name, loaded_profile in loaded.items():
        try:
            entries.append(interleaved.of_profile(loaded_profile, inspection))
        except InputError as error:
            missing[name] = text_of(error)
    return entries, missing


QUESTION = """Beyond the profiles: what else could the environment do for the CNN? Each idea is one change to a profile
that is shipped. What was expected of it was written down before this run; it is held against what came out."""
HOW = """## How

The CNN in fresh processes, {steps} steps after {warmup} to warm up; data: {data}; blocks with each setting once, in
random order: {blocks}. A ratio is the time of the profile that is changed over the time with the change, above 1
faster, with the interval of `envkit bench`; all {pairs} intervals hold together at 95% (Bonferroni). An idea is kept
where the whole interval is above 1 and, unless it says that numerics may differ, the losses agree. Each worker's
evidence must show that the change was in effect. The settings are profiles in `benchmarks/experiment_profiles`, the
predictions are in `benchmarks/experiments.yaml`. Those about MKL come from a look by hand at single matrix products and
at CPU time on a busy machine."""


def _page(
    results: Results,
    experiments: Sequence[Experiment],
    left_out: Sequence[LeftOut],
    loaded: Mapping[str, profile.Profile],
    not_here: Mapping[str, str],
) -> list[str]:
    changed = list(
        dict.fromkeys(experiment.against for experiment in experiments if experiment.against != REFERENCE_PROFILE)
    )
    settings, pairs = results.lines[0], len(experiments) + len(changed)
    speedups = {
        experiment.name: interleaved.compared(results, experiment.against, experiment.name, pairs)
        for experiment in experiments
    }
    measured = [experiment for experiment in experiments if speedups[experiment.name]]
    missing = [experiment for experiment in experiments if not speedups[experiment.name]]
    verdicts = {
        experiment.name: _verdict(results, experiment, speedups[experiment.name], loaded[experiment.name])
        for experiment in experiments
    }
    blocks = len(results.of("sample", entry=REFERENCE_PROFILE))
    how = HOW.format(**{**settings, "blocks": blocks}, warmup=settings["warmup_steps"], pairs=pairs)
    kept = [
        f"- **{experiment.name}**: {loaded[experiment.name].title}"
        for experiment in measured
        if verdicts[experiment.name].startswith("kept")
    ]
    page_parts = [
        page.heading("Experiments", QUESTION, results.of("sample"), settings["machine"]),
        how,
        "## Kept",
        "\n".join(kept) or "Nothing.",
        "## All",
        _table(measured, speedups, verdicts),
        *interleaved.interference(results, [(experiment.against, experiment.name) for experiment in measured], pairs),
        "## What was expected",
        *(
            _told(experiment, loaded[experiment.name], speedups[experiment.name], verdicts[experiment.name])
            for experiment in measured
        ),
        "## The profiles that are changed",
        _references(results, [REFERENCE_PROFILE, *changed], pairs),
        *interleaved.failures(results, [REFERENCE_PROFILE, *changed, *(experiment.name for experiment in experiments)]),
    ]
    if missing:
        why = [f"- **{experiment.name}**: {_why_missing(results, not_here, experiment)}" for experiment in missing]
        page_parts += ["## Without a result here", "\n".join(why)]
    page_parts += [
        "## Not measured in this way",
        "\n".join(f"- **{omitted.what}**: {omitted.why}" for omitted in left_out),
    ]
    return [*page_parts, f"Every sample is a line of `{results.path.name}`, which the command writes."]


def _why_missing(results: Results, not_here: Mapping[str, str], experiment: Experiment) -> str:
    reasons = (
        not_here.get(name) or interleaved.failure(results, name) for name in (experiment.name, experiment.against)
    )
    return next((reason for reason in reasons if reason), "too few blocks")


def _verdict(results: Results, experiment: Experiment, effect: Speedup | None, loaded: profile.Profile) -> str:
    if effect is None:
        return ""
    if effect.verdict != Verdict.FASTER:
        return f"dropped: {effect.words}"
    difference = interleaved.loss_difference(results, experiment.against, experiment.name)
    if loaded.numerics == "same" and not interleaved.losses_agree(difference):
        return f"dropped: losses differ by {difference:.1%}" if difference is not None else "dropped: no losses"
    return "kept" if loaded.numerics == "same" else "kept, numerics may differ"


def _table(
    experiments: Sequence[Experiment], speedups: Mapping[str, Speedup | None], verdicts: Mapping[str, str]
) -> str:
    rows = []
    for experiment in experiments:
        ratio = speedups[experiment.name]
        if ratio is not None:
            expected = "{:g} to {:g}".format(*experiment.expect)
            measured = [f"{ratio.ratio:.3f}", interleaved.interval(ratio), str(ratio.blocks), experiment.hit(ratio)]
            rows.append([experiment.name, experiment.against, expected, *measured, verdicts[experiment.name]])
    header = ("experiment", "changes", "expected", "ratio", "interval", "blocks", "as expected", "verdict")
    return page.table(header, rows)


def _told(experiment: Experiment, loaded: profile.Profile, effect: Speedup | None, verdict: str) -> str:
    sets = ", ".join(f"`{part}`" for part in _settings(loaded, load(experiment.against)))
    came = f"{effect.ratio:.3f} ({interleaved.interval(effect)})" if effect else ""
    low, high = experiment.expect
    return (
        f"### {experiment.name}\n\n{loaded.title}: {sets}.\n\n"
        f"- expected: {low:g} to {high:g}. {experiment.prediction}\n- came out: {came}, {verdict}"
    )


def _settings(loaded: profile.Profile, reference: profile.Profile) -> list[str]:
    """What a profile changes, as one would write it."""
    made = [f"{name}={value}" for name, value in loaded.env.items() if reference.env.get(name) != value]
    made += [f"{name} not set" for name in reference.env if name not in loaded.env]
    made += [f"preload {library}" for library in loaded.preload if library not in reference.preload]
    return [*made, *([" ".join(loaded.prefix)] if loaded.prefix != reference.prefix else [])]


def _references(results: Results, names: Sequence[str], pairs: int) -> str:
    rows = []
    for name in names:
        seconds = [line["seconds"] for line in results.of("sample", entry=name)]
        if seconds:
            effect = interleaved.compared(results, REFERENCE_PROFILE, name, pairs)
            ratio = (
                [f"{effect.ratio:.3f}", interleaved.interval(effect)]
                if effect and name != REFERENCE_PROFILE
                else ["", ""]
            )
            rows.append([name, f"{1000 * statistics.median(seconds) / results.lines[0]['steps']:.2f}", *ratio])
    return page.table(("profile", "median ms/step", "ratio to baseline", "interval"), rows, numbers_from=1)


if __name__ == "__main__":
    sys.exit(script.run("experiments", main))
