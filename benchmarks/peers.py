"""PyTorch's own launcher, plain python and this kit's profiles: the same training, in one interleaved run.

Each trains in one process on all cores, and in two at once on half of them each.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

from envkit.bench.study import REFERENCE_PROFILE
from envkit.profiles import profile

from benchmarks import interleaved, launched, page, script
from benchmarks.errors import ScriptError
from benchmarks.grouped import Pair
from benchmarks.interleaved import Bench
from benchmarks.launched import AT_ONCE, PEERS, SEVERAL
from benchmarks.results import Results

BLOCKS, STEPS = 14, 50
PROFILES = ("mimalloc-retain-openblas", "mimalloc-retain", "mimalloc-retain-mkl")
# The aims, as the lowest ratio that the whole interval must be above.
OVER_BASELINE, OVER_LAUNCHER = 1.60, 1.10


def main() -> int:
    parser = script.parser("peers", __doc__)
    interleaved.add_options(parser, BLOCKS, STEPS)
    help_text = f"profiles to compare; the first must reach the aims (default: {', '.join(PROFILES)})"
    parser.add_argument("profiles", metavar="PROFILE", nargs="*", default=list(PROFILES), help=help_text)
    arguments = parser.parse_args()
    loaded = [profile.load(name) for name in dict.fromkeys([REFERENCE_PROFILE, *arguments.profiles])]
    names = [loaded_profile.name for loaded_profile in loaded[1:]]
    interleaved.require_blocks(arguments.blocks, len(_pairs(names, _all_peers())))
    bench = Bench(arguments)
    inspection = bench.inspection(loaded)
    if inspection["facts"]["physical_cores"] < SEVERAL:
        raise ScriptError(f"{SEVERAL} trainings at once take {SEVERAL} cores, and here 1 is usable")
    libraries = arguments.results.resolve().with_suffix("") / "libraries"
    launched.lay_out(libraries, inspection)
    ours = [
        interleaved.of_profile(loaded_profile, inspection, number)
        for number in (1, SEVERAL)
        for loaded_profile in loaded
    ]
    python = arguments.python or sys.executable
    entries = [*ours, *(launched.entry(peer, python, libraries) for peer in (*PEERS, AT_ONCE))]
    results = Results(arguments.results, bench.settings(entries, inspection))
    interleaved.run(bench, results, entries, [REFERENCE_PROFILE])
    return interleaved.write(arguments, results, _page(results, names))


QUESTION = """PyTorch brings a launcher of its own, which sets an environment for training on CPUs:
`python -m torch.backends.xeon.run_cpu`. How does it compare with plain `python` and with this kit's profiles, in one
process and with two trainings at once?"""
HOW = """## How

The CNN in fresh processes, {steps} steps after {warmup} to warm up; data: {data}; blocks with each way once, in random
order: {blocks}. The launcher is started as a user would start it, with `--no-python` so that it runs the same command
as the others. It looks for `libiomp5.so`, `libtcmalloc.so` and `libjemalloc.so` in `$CONDA_PREFIX/lib`,
`$VIRTUAL_ENV/lib` and the system's `lib` folders, under these names only: Debian's files, which have a version in their
names and lie a folder deeper, are not found. So it is given a `$VIRTUAL_ENV` with links to the libraries that the kit
preloads. With them its defaults take Intel OpenMP and tcmalloc; without, it warns and only sets the number of threads.
What a worker really ran with is its own evidence.

A ratio is the time of one over the time of the other, above 1 faster, with the interval of `envkit bench`. Only the
first profile is held against the aims, which like it are chosen before anything is measured: those {aims} intervals
hold together at 95%. All {pairs} others of this page hold together at 95% too (Bonferroni)."""
TWO = f"""Two processes train the same at once, each on half of the cores with a thread for each of these, as
`envkit bench --instances {SEVERAL}` starts them (`{SEVERAL} x`), or the launcher's `--ninstances {SEVERAL}`. They wait
for each other before the timed steps, and none stops before both have taken theirs. What counts is what both do
together: a step is one of each."""


def _page(results: Results, ours: Sequence[str]) -> list[str]:
    settings = results.lines[0]
    peers = [name for name in _all_peers() if results.of("sample", entry=name)]
    single, pairs = [name for name in peers if name != AT_ONCE.name], _pairs(ours, peers)
    several, at_once = [_several(name) for name in ours], [name for name in peers if name == AT_ONCE.name]
    many = len(pairs)
    page_parts = [
        page.heading("Beside PyTorch's launcher", QUESTION, results.of("sample"), settings["machine"]),
        HOW.format(**settings, warmup=settings["warmup_steps"], pairs=many, aims=1 + len(single)),
        "## Against plain python",
        _against(results, REFERENCE_PROFILE, [*ours, *single], many),
        "## This kit's profiles against the launcher",
        _against_peers(results, ours, single, many),
        "## The aims",
        "\n".join(f"- {line}" for line in _aims(results, ours[0], single)) if ours else "",
        "## Two at once",
        TWO,
        _against(results, _several(REFERENCE_PROFILE), [*several, *at_once], many),
        _against_peers(results, several, at_once, many) if at_once else "",
        *interleaved.interference(results, pairs, many),
        "## What the workers saw",
        _seen(results, [REFERENCE_PROFILE, *ours, *single, _several(REFERENCE_PROFILE), *several, *at_once]),
        *interleaved.failures(results, [*settings["entries"]]),
    ]
    return [*page_parts, f"Every sample is a line of `{results.path.name}`, which the command writes."]


def _all_peers() -> list[str]:
    return [peer.name for peer in (*PEERS, AT_ONCE)]


def _several(name: str) -> str:
    """What two at once under the profile ``name`` are called."""
    return f"{SEVERAL} x {name}"


def _pairs(ours: Sequence[str], peers: Sequence[str]) -> list[Pair]:
    """All that the page compares, the reference first."""
    compared_pairs = list[Pair]()
    for of_kit in ([REFERENCE_PROFILE, *ours], [_several(REFERENCE_PROFILE), *map(_several, ours)]):
        launchers = [name for name in peers if (name == AT_ONCE.name) == (of_kit[0] != REFERENCE_PROFILE)]
        compared_pairs += ((of_kit[0], name) for name in (*of_kit[1:], *launchers))
        compared_pairs += ((launcher, name) for name in of_kit[1:] for launcher in launchers)
    return compared_pairs


def _against(results: Results, reference: str, names: Sequence[str], pairs: int) -> str:
    """What plain python does, and each of ``names`` beside it."""
    rows = []
    for name in (reference, *names):
        lines = results.of("sample", entry=name)
        if not lines:
            continue
        step_s = statistics.median(line["seconds"] for line in lines) / results.lines[0]["steps"]
        faults = statistics.median(line["faults_per_step"] for line in lines)
        if name == reference:
            ratio = ["1", ""]
        else:
            effect = interleaved.compared(results, reference, name, pairs)
            ratio = [f"{effect.ratio:.3f}", interleaved.interval(effect)] if effect else ["", ""]
        losses = interleaved.losses_shown(results, reference, name)
        shown = name.replace(REFERENCE_PROFILE, "plain python") if name == reference else name
        speed = f"{lines[0]['images_per_step'] / step_s:,.0f}"
        rows.append([shown, str(len(lines)), f"{1000 * step_s:.2f}", speed, *ratio, f"{faults:,.0f}", losses])
    header = ("way", "blocks", "median ms/step", "images/s", "ratio", "interval", "page faults per step", "losses")
    return page.table(header, rows, numbers_from=1)


def _against_peers(results: Results, ours: Sequence[str], peers: Sequence[str], pairs: int) -> str:
    rows = []
    for name in ours:
        effects = [interleaved.compared(results, peer, name, pairs) for peer in peers]
        rows.append(
            [name, *(f"{effect.ratio:.3f} ({interleaved.interval(effect)})" if effect else "-" for effect in effects)]
        )
    return page.table(("profile", *peers), rows, numbers_from=1)


def _aims(results: Results, best: str, peers: Sequence[str]) -> list[str]:
    """What was asked for, and whether the interval of the profile that is held against it is all above."""
    wanted = [(REFERENCE_PROFILE, "plain python", OVER_BASELINE)]
    wanted += [(peer, peer, OVER_LAUNCHER) for peer in peers]
    sentences = []
    for reference, shown, least in wanted:
        effect = interleaved.compared(results, reference, best, len(wanted))
        if effect is None:
            sentences.append(f"{best} against {shown}: too few blocks")
            continue
        verdict = "reached" if effect.low > least else "missed" if effect.high < least else "open"
        measured = f"{effect.ratio:.3f} ({interleaved.interval(effect)})"
        sentences.append(f"{best} against {shown}: {measured}, above {least:g}: **{verdict}**")
    return sentences


def _seen(results: Results, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        lines = results.of("sample", entry=name)
        if lines:
            observed, variables = lines[-1]["seen"], lines[-1]["variables"]
            shown = " ".join(f"{key}={value}" for key, value in variables.items() if key != "LD_PRELOAD")
            rows.append([name, str(observed["runtime"]), str(observed["allocator"]), f"`{shown}`" if shown else ""])
    return page.table(("way", "OpenMP runtime", "allocator", "variables that it was given"), rows)


if __name__ == "__main__":
    sys.exit(script.run("peers", main))
