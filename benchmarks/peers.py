"""PyTorch's own launcher, plain python and this kit's profiles: the same training, in one interleaved run.

The launcher is ``python -m torch.backends.xeon.run_cpu``. It preloads libraries that it finds in a few folders, and
warns where it finds none. What it says is not taken for what happened: each worker's own evidence is looked at.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import interleaved, page, script
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Results
from runner.bench.plan import REFERENCE_PROFILE
from runner.common.errors import FAILED, MEASURED, InputError
from runner.profiles import profile
from runner.profiles.resolve import GET

BLOCKS = 18
PROFILES = ("mimalloc-retain-mkl", "mimalloc-retain")
LAUNCHER = "torch.backends.xeon.run_cpu"
# What the launcher looks for, by the names of the kit: it takes no other file names than these.
WANTED = {"intel-openmp": "libiomp5.so", "jemalloc": "libjemalloc.so", "tcmalloc": "libtcmalloc.so"}
# Variables in which it looks for folders with libraries. A caller's own would give each machine another launcher.
PLACES = ("VIRTUAL_ENV", "CONDA_PREFIX")


@dataclass(frozen=True)
class Peer:
    """One way to use the launcher. ``found`` is whether it is given its libraries where it looks for them.

    ``seen`` is what must be observed for it to be what its name says.
    """

    name: str
    options: tuple[str, ...]
    found: bool
    seen: dict[str, str]


PEERS = (
    Peer("run_cpu", (), True, {"runtime": "intel", "allocator": "tcmalloc"}),
    Peer("run_cpu --enable-jemalloc", ("--enable-jemalloc",), True, {"runtime": "intel", "allocator": "jemalloc"}),
    Peer("run_cpu --enable-tcmalloc", ("--enable-tcmalloc",), True, {"runtime": "intel", "allocator": "tcmalloc"}),
    Peer("run_cpu, libraries not found", (), False, {"runtime": "gnu", "allocator": "glibc"}),
)
# The aims, as the lowest ratio that the whole interval must be above.
OVER_BASELINE = OVER_JEMALLOC = 1.20
OVER_BEST, AHEAD = 0.98, 1.03


def launched(peer: Peer, python: str, libraries: Path) -> Entry:
    """The worker as the launcher starts it; ``libraries`` is a folder whose ``lib`` it searches.

    ``--no-python`` makes it run what follows as it is. All else is as it has it by default: one instance on all
    physical cores, bound with numactl, or taskset where that is missing.
    """
    prefix = (python, "-m", LAUNCHER, *peer.options, "--no-python")
    variables = {"VIRTUAL_ENV": str(libraries)} if peer.found else {}

    def problems(evidence: Mapping[str, Any], printed: str) -> list[str]:
        found = {
            name: (evidence.get(interleaved.SEEN[name][0]) or {}).get(interleaved.SEEN[name][1]) for name in peer.seen
        }
        return [
            f"its {name} is {found[name]}, not {wanted}" for name, wanted in peer.seen.items() if found[name] != wanted
        ]

    return Entry(peer.name, variables, prefix, problems, without=PLACES)


def lay_out(libraries: Path, inspection: Mapping[str, Any]) -> None:
    """Give the launcher its libraries by the names that it knows. Raises InputError for one that is missing."""
    (libraries / "lib").mkdir(parents=True, exist_ok=True)
    for library, name in WANTED.items():
        found = inspection["libraries"].get(library)
        if found is None:
            raise InputError(
                f"{library} is not installed, and the launcher is to be given it; get it with: {GET[library]}"
            )
        link = libraries / "lib" / name
        link.unlink(missing_ok=True)
        link.symlink_to(found["path"])


def main() -> int:
    parser = script.parser("peers", __doc__ or "")
    interleaved.add_options(parser, BLOCKS)
    said = f"of the kit; the first is held against the aims (default: {', '.join(PROFILES)})"
    parser.add_argument("profiles", metavar="PROFILE", nargs="*", default=list(PROFILES), help=said)
    arguments = parser.parse_args()
    bench = Bench(arguments)
    loaded = [profile.load(name) for name in dict.fromkeys([REFERENCE_PROFILE, *arguments.profiles])]
    inspection = bench.inspection([one.prefix[0] for one in loaded if one.prefix])
    libraries = arguments.results.resolve().with_suffix("") / "libraries"
    lay_out(libraries, inspection)
    ours = [interleaved.of_profile(one, inspection) for one in loaded]
    python = arguments.python or sys.executable
    peers = [launched(peer, python, libraries) for peer in PEERS]
    results = Results(arguments.results, bench.settings([*ours, *peers], inspection))
    interleaved.measure(bench, results, [*ours, *peers])
    interleaved.require_samples(results, REFERENCE_PROFILE)
    page.write(arguments.page, _page(results, [one.name for one in ours[1:]]))
    return FAILED if results.of("failure") else MEASURED


QUESTION = """PyTorch brings a launcher of its own, which sets an environment for training on CPUs:
`python -m torch.backends.xeon.run_cpu`. How does it compare with plain `python` and with this kit's profiles?"""
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


def _page(results: Results, ours: Sequence[str]) -> list[str]:
    settings = results.lines[0]
    peers = [peer.name for peer in PEERS if results.of("sample", entry=peer.name)]
    pairs = len(ours) + len(peers) + len(ours) * len(peers)
    parts = [
        page.heading("Beside PyTorch's launcher", QUESTION, results.of("sample"), settings["machine"]),
        HOW.format(**settings, warmup=settings["warmup_steps"], pairs=pairs, aims=1 + len(peers)),
        "## Against plain python",
        _against_baseline(results, [*ours, *peers], pairs),
        "## This kit's profiles against the launcher",
        _against_peers(results, ours, peers, pairs),
        "## The aims",
        "\n".join(f"- {line}" for line in _aims(results, ours[0], peers)) if ours else "",
        *interleaved.interference(results, _pairs(ours, peers), pairs),
        "## What the workers saw",
        _seen(results, [REFERENCE_PROFILE, *ours, *peers]),
        *interleaved.failures(results, [REFERENCE_PROFILE, *ours, *(peer.name for peer in PEERS)]),
    ]
    return [*parts, f"Every sample is a line of `{results.path.name}`, which the command writes."]


def _pairs(ours: Sequence[str], peers: Sequence[str]) -> list[tuple[str, str]]:
    """All that the page compares, the reference first."""
    return [
        *((REFERENCE_PROFILE, name) for name in (*ours, *peers)),
        *((peer, name) for name in ours for peer in peers),
    ]


def _against_baseline(results: Results, names: Sequence[str], pairs: int) -> str:
    rows = []
    for name in (REFERENCE_PROFILE, *names):
        lines = results.of("sample", entry=name)
        if not lines:
            continue
        step_ms = 1000 * statistics.median(line["seconds"] for line in lines) / results.lines[0]["steps"]
        faults = statistics.median(line["faults_per_step"] for line in lines)
        found = interleaved.compared(results, REFERENCE_PROFILE, name, pairs) if name != REFERENCE_PROFILE else None
        ratio = (
            [f"{found.ratio:.3f}", interleaved.interval(found)]
            if found
            else ["1" if name == REFERENCE_PROFILE else "", ""]
        )
        difference = interleaved.loss_difference(results, REFERENCE_PROFILE, name)
        losses = "equal" if difference == 0 else "differ" if difference is None else f"within {difference:.0e}"
        shown = "plain python" if name == REFERENCE_PROFILE else name
        rows.append([shown, str(len(lines)), f"{step_ms:.2f}", *ratio, f"{faults:,.0f}", losses])
    header = ("way", "blocks", "median ms/step", "ratio", "interval", "page faults per step", "losses")
    return page.table(header, rows, numbers_from=1)


def _against_peers(results: Results, ours: Sequence[str], peers: Sequence[str], pairs: int) -> str:
    rows = []
    for name in ours:
        found = [interleaved.compared(results, peer, name, pairs) for peer in peers]
        rows.append([name, *(f"{one.ratio:.3f} ({interleaved.interval(one)})" if one else "-" for one in found)])
    return page.table(("profile", *peers), rows, numbers_from=1)


def _aims(results: Results, best: str, peers: Sequence[str]) -> list[str]:
    """What was asked for, and whether the interval of the profile that is held against it is all above."""
    wanted = [(REFERENCE_PROFILE, "plain python", OVER_BASELINE)]
    wanted += [(peer, peer, OVER_JEMALLOC if "jemalloc" in peer else OVER_BEST) for peer in peers]
    said = []
    for reference, shown, least in wanted:
        found = interleaved.compared(results, reference, best, len(wanted))
        if found is None:
            said.append(f"{best} against {shown}: too few blocks")
            continue
        verdict = "reached" if found.low > least else "missed" if found.high < least else "open"
        ahead = f"; ahead of it by {AHEAD - 1:.0%} and more" if least == OVER_BEST and found.low > AHEAD else ""
        measured = f"{found.ratio:.3f} ({interleaved.interval(found)})"
        said.append(f"{best} against {shown}: {measured}, above {least:g}: **{verdict}**{ahead}")
    return said


def _seen(results: Results, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        lines = results.of("sample", entry=name)
        if lines:
            seen, variables = lines[-1]["seen"], lines[-1]["variables"]
            shown = " ".join(f"{key}={value}" for key, value in variables.items() if key != "LD_PRELOAD")
            rows.append([name, str(seen["runtime"]), str(seen["allocator"]), f"`{shown}`" if shown else ""])
    return page.table(("way", "OpenMP runtime", "allocator", "variables that it was given"), rows)


if __name__ == "__main__":
    sys.exit(script.run("peers", main))
