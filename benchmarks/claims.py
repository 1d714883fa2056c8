"""Published claims about the environment of PyTorch on CPUs, measured again beside each other.

``claims.yaml`` has the claims with their sources. Each is a profile of the kit and its reference, measured in blocks of
random order, with evidence that the setting was in effect.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from envkit.checks.interference import OTHERS
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.messages import Printed
from envkit.profiles import profile
from envkit.rendering import text_of
from envkit.stats.interval import Speedup
from envkit.worker.libraries import search_folders
from envkit.worker.performance_variables import PRELOAD
from envkit.worker.workloads import DEFAULT

from benchmarks import conditions, interleaved, page, script
from benchmarks.errors import ScriptError
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Line, Results

BLOCKS, STEPS = 11, 40
PLAN = Path(__file__).with_name("claims.yaml")
HELD, NOT_HELD, NOT_CONTRADICTED, OPEN = "held", "not held", "not contradicted", "can't be told"
UNDER = {"": "", "quota": "under a quota of one CPU", "neighbour": "beside busy processes"}


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim, and how it is measured here. ``claims.yaml`` says what the fields hold."""

    name: str
    claim: str
    source: str
    least: float
    profile: str
    against: str
    shows: list[str]
    original: str
    workload: str = DEFAULT
    condition: str = ""  # one of UNDER
    library: str = ""  # a file to preload which is no library of the kit
    cpu_flag: str = ""  # the processor must have it, by the name that the kernel gives it
    interval: str = ""
    evidence: str = ""

    @property
    def arms(self) -> tuple[str, str]:
        """Return the names of the entries that are compared, the reference first."""
        measured = f"{self.profile} with {self.library}" if self.library else self.profile
        workload = "" if self.workload == DEFAULT else self.workload
        suffix = "".join(f", {part}" for part in (workload, UNDER[self.condition]) if part)
        return self.against + suffix, measured + suffix

    def verdict(self, ratio: Speedup) -> str:
        """Compare the interval with the smallest ratio that was published.

        An interval that holds both the claim and no gain at all can't tell. For a claim of "no slower", neither can one
        that holds a loss and a gain.
        """
        if ratio.low >= self.least:
            return HELD
        if ratio.high < self.least:
            return NOT_HELD
        if self.least > 1:
            return OPEN if ratio.low <= 1 else NOT_CONTRADICTED
        return OPEN if ratio.high > 1 else NOT_CONTRADICTED


class Untestable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim that no machine of this kind can test."""

    claim: str
    source: str
    why: str


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of ``claims.yaml``."""

    claims: list[Claim]
    untestable: list[Untestable]


def read(path: Path = PLAN) -> Plan:
    """Parse the claims. Raise InputError that names the file."""
    file = yamlfile.read(path)
    plan = script.parse(file, Plan)
    for claim in plan.claims:
        unknown = [name for name in claim.shows if name not in interleaved.SEEN]
        if unknown or claim.condition not in UNDER:
            raise file.error((), Printed(f"{claim.name}: '{[*unknown, claim.condition][0]}' is unknown"))
    return plan


def main() -> int:
    parser = script.parser("claims", __doc__)
    interleaved.add_options(parser, BLOCKS, STEPS)
    arguments = parser.parse_args()
    plan = read()
    loaded = {name: profile.load(name) for claim in plan.claims for name in (claim.against, claim.profile)}
    bench = Bench(arguments)
    inspection = bench.inspection(loaded.values())
    entries, missing = _entries(plan.claims, loaded, inspection, arguments.python or sys.executable)
    testable = [claim for claim in plan.claims if claim.name not in missing]
    claimed = {claim.name: [*claim.arms, claim.least] for claim in plan.claims}
    results = Results(arguments.results, {**bench.settings(entries, inspection), "claims": claimed})
    interleaved.run(bench, results, entries, [entries[0].name])
    return interleaved.write(arguments, results, _page(results, plan, testable, missing))


def _entries(
    claims: Sequence[Claim], loaded: Mapping[str, profile.Profile], inspection: Line, python: str
) -> tuple[list[Entry], dict[str, str]]:
    """Return what can be measured here, each entry once, and by the claims' names why the others can't."""
    entries: dict[str, Entry] = {}
    missing: dict[str, str] = {}
    for claim in claims:
        try:
            arms = _arms(claim, loaded, inspection, python)
        except InputError as error:
            missing[claim.name] = text_of(error)
        else:
            entries.update((entry.name, entry) for entry in arms)
    return list(entries.values()), missing


def _arms(claim: Claim, loaded: Mapping[str, profile.Profile], inspection: Line, python: str) -> tuple[Entry, Entry]:
    """Return the reference of a claim and its setting. Raise InputError if this machine can't run them."""
    if claim.cpu_flag and claim.cpu_flag not in _cpu_flags():
        raise ScriptError(f"this processor has no {claim.cpu_flag}")
    if claim.condition == "quota":  # profiles follow it
        facts = {**inspection["facts"], "usable_cpus": conditions.QUOTA_CPUS, "physical_cores": conditions.QUOTA_CPUS}
        inspection = {**inspection, "facts": facts}
    preloaded = _system_library(claim.library) if claim.library else ""
    variables = {PRELOAD: preloaded} if preloaded else {}
    reference = interleaved.of_profile(loaded[claim.against], inspection)
    setting = interleaved.of_profile(loaded[claim.profile], inspection, variables=variables)
    reference_name, setting_name = claim.arms
    return (
        replace(_under(claim, reference, python, ""), name=reference_name),
        replace(_under(claim, setting, python, preloaded), name=setting_name),
    )


def _cpu_flags(path: Path = Path("/proc/cpuinfo")) -> set[str]:
    """Return the features of the first processor, as the kernel names them."""
    lines = (line for line in path.read_text().splitlines() if line.startswith(("flags", "Features")))
    return set(next(lines, "").partition(":")[2].split())


def _system_library(file: str) -> str:
    """Return the path of the system's ``file``. Raise ScriptError if it is missing."""
    paths = [folder / file for folder in search_folders() if folder.joinpath(file).is_file()]
    if not paths:
        raise ScriptError(f"{file} is not installed")
    return str(paths[0])


def _under(claim: Claim, entry: Entry, python: str, preloaded: str) -> Entry:
    """Return the entry with the workload and the condition of a claim, and the checks of both.

    ``preloaded`` is the OpenMP library that must run, if it is not left to PyTorch.
    """
    of_profile = entry.problems

    def problems(evidence: Line, printed: str) -> list[str]:
        library = (evidence.get("openmp") or {}).get("library")
        quota = (evidence.get("limits") or {}).get("cpu_quota")
        other_library = [f"its OpenMP library is {library}"] if preloaded and library != preloaded else []
        held_back = claim.condition != "quota" or quota == conditions.QUOTA_CPUS
        return [*of_profile(evidence, printed), *other_library, *([] if held_back else [f"its CPU quota is {quota}"])]

    condition = (python, str(Path(conditions.__file__)), claim.condition) if claim.condition else ()
    return replace(entry, workload=claim.workload, prefix=(*condition, *entry.prefix), problems=problems)


QUESTION = """Which published figures about the environment of PyTorch on CPUs come out again on this machine? Each
claim has its source. Its setting is measured beside its reference, with an interval, and each process shows by evidence
whether the setting was in effect."""
HOW = """## How

Fresh processes train the CNN, or the Transformer of the workload `translation`: {steps} steps after {warmup} to warm
up. Data of the CNN: {data}. A block has each entry once, in random order; there are {blocks} blocks. A ratio is the
reference's time over the setting's: above 1 the setting is faster. All {comparisons} intervals of the page hold
together at 95% (Bonferroni). Processes beside busy ones do not count among the disturbed ones below.

| verdict | when |
| --- | --- |
| held | the whole interval is at or above the smallest ratio that was published |
| not held | the whole interval is below it |
| not contradicted | the interval includes it and excludes no gain |
| can't be told | the interval includes both, or the setting was not in effect |

A claim without a figure counts as 1.02, because differences up to 2% count as none, and "no slower" as 0.98. Most
sources measured inference, other processors or more cores. A verdict says how the claim does here, and not whether its
source was wrong there."""
GIVES_NONE = "In its text, no source gives an interval."
SHOWS_NONE = "No source shows that its setting was in effect."
OTHERS_GIVE_NONE = "The other sources give no interval in their text."
OTHERS_SHOW_NONE = "The other sources do not show that their setting was in effect."


def _page(results: Results, plan: Plan, testable: Sequence[Claim], missing: Mapping[str, str]) -> list[str]:
    settings, comparisons = results.lines[0], len(testable)
    ratios = {claim.name: interleaved.compared(results, *claim.arms, comparisons) for claim in testable}
    verdicts = {claim.name: _verdict(results, claim, ratios[claim.name]) for claim in testable}
    blocks = len({line["block"] for line in results.of("sample")})
    quiet = [claim.arms for claim in testable if claim.condition != "neighbour"]
    how = {**settings, "blocks": blocks, "warmup": settings["warmup_steps"], "comparisons": comparisons}
    return [
        page.heading("Published claims, rerun", QUESTION, results.of("sample"), settings["machine"]),
        "## In short",
        _in_short(verdicts, plan, missing),
        _table(results, testable, ratios, verdicts),
        HOW.format(**how),
        "## Not testable here",
        _not_testable(plan, missing),
        "## The sources",
        _originals(plan.claims, testable),
        *interleaved.interference(results, quiet, comparisons),
        *interleaved.failures(results, [*settings["entries"]]),
        f"Every sample is a line of `{results.path.name}`, which the command writes.",
    ]


def _verdict(results: Results, claim: Claim, ratio: Speedup | None) -> str:
    """Return the verdict of a claim, or why it has none."""
    failed = next((why for name in claim.arms if (why := interleaved.failure(results, name))), None)
    if failed is not None or ratio is None:
        return f"{OPEN}: {failed or 'too few blocks'}"
    verdict = claim.verdict(ratio)
    return f"{verdict}: {ratio.words}" if verdict == NOT_HELD else verdict


def _in_short(verdicts: Mapping[str, str], plan: Plan, missing: Mapping[str, str]) -> str:
    counts = {
        verdict: sum(each.partition(":")[0] == verdict for each in verdicts.values())
        for verdict in (HELD, NOT_CONTRADICTED, NOT_HELD, OPEN)
    }
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    untestable = len(plan.untestable) + len(missing)
    return f"{len(verdicts)} claims were measured: {listed}. {untestable} can't be tested on this machine."


def _table(
    results: Results, claims: Sequence[Claim], ratios: Mapping[str, Speedup | None], verdicts: Mapping[str, str]
) -> str:
    rows = []
    for claim in claims:
        ratio = ratios[claim.name]
        measured = f"{ratio.ratio:.3f} ({interleaved.interval(ratio)})" if ratio else "-"
        losses = interleaved.losses_shown(results, *claim.arms) if ratio else "-"
        linked = f"{claim.claim} ([source]({claim.source}))"
        rows.append([linked, measured, _in_effect(results, claim), losses, f"**{verdicts[claim.name]}**"])
    return page.table(("claim", "ratio here (95% interval)", "in effect", "losses", "verdict"), rows)


def _in_effect(results: Results, claim: Claim) -> str:
    """Return whether the setting was in effect, and the readings of all samples that say so."""
    reference, setting = (results.of("sample", entry=name) for name in claim.arms)
    if not setting or any(interleaved.failure(results, name) for name in claim.arms):
        return "no"
    readings = [
        f"{name.replace('_', ' ')} {_reading(setting, name)} (reference: {_reading(reference, name)})"
        for name in claim.shows
    ]
    if claim.condition == "neighbour":
        disturbed = sum(OTHERS in line["interference"] for line in setting)
        readings.append(f"other programs used its CPUs in {disturbed}")
    return f"yes, in {len(setting)} of {len(setting)} processes: {'; '.join(readings)}"


def _reading(samples: Sequence[Line], name: str) -> str:
    """Return the different values of a reading in ``samples``, and of a path its end."""
    values = dict.fromkeys(str(line["seen"].get(name)) for line in samples)
    return ", ".join("/".join(value.split("/")[-3:]) for value in values)


def _not_testable(plan: Plan, missing: Mapping[str, str]) -> str:
    absent = [(claim, missing[claim.name]) for claim in plan.claims if claim.name in missing]
    lines = [f"- {claim.claim} ([source]({claim.source})): {why}" for claim, why in absent]
    lines += [f"- {claim.claim} ([source]({claim.source})): {claim.why}" for claim in plan.untestable]
    return "\n".join(lines) or "None."


def _originals(claims: Sequence[Claim], testable: Sequence[Claim]) -> str:
    """Return what each source measured and gives as proof, and what of it was measured here."""
    lines = []
    for claim in claims:
        reference, setting = claim.arms
        parts = [
            f"- [{claim.name}]({claim.source}): {claim.original}",
            f"Measured here: `{setting}` against `{reference}`." if claim in testable else "",
            f"Its interval: {claim.interval}." if claim.interval else "",
            f"Its evidence: {claim.evidence}." if claim.evidence else "",
        ]
        lines.append(" ".join(part for part in parts if part))
    intervals = OTHERS_GIVE_NONE if any(claim.interval for claim in claims) else GIVES_NONE
    evidence = OTHERS_SHOW_NONE if any(claim.evidence for claim in claims) else SHOWS_NONE
    return "\n\n".join(["\n".join(lines), f"{intervals} {evidence}"])


if __name__ == "__main__":
    sys.exit(script.run("claims", main))
