"""Where a training step's time goes: the baseline's operators and phases beside other profiles', and why those differ.

Each table is one ``envkit breakdown``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from envkit.analysis.operator_times import OTHERS, short_name
from envkit.cli.arguments import count
from envkit.cli.commands.breakdown import PROCESSES, STEPS, TOP
from envkit.worker.workloads import get

from benchmarks import page, script
from benchmarks.results import Line, Results

PROFILES = ("mimalloc-retain-mkl", "intel-omp")
# Whose steps are taken apart by phases: one whose data is in memory, and one that waits for it.
PHASED = ("cnn", "loader")
KINDS = ("comparison", "phases", "forward")
# The book's forward pass: by what is in the names of operators, their share of its time.
BOOK = {"convolutions": ("conv", 0.44), "max pooling": ("max_pool", 0.30), "addmm": ("addmm", 0.14)}


def main() -> int:
    parser = script.parser("operators", __doc__)
    parser.add_argument("profiles", metavar="PROFILE", nargs="*", default=PROFILES,
                        help=f"each is compared with the baseline (default: {' '.join(PROFILES)})")  # fmt: skip
    parser.add_argument("--processes", metavar="N", type=count, default=PROCESSES, help=f"(default: {PROCESSES})")
    parser.add_argument("--steps", metavar="N", type=count, default=STEPS, help=f"(default: {STEPS})")
    script.add_training_options(parser)
    arguments = parser.parse_args()
    settings = {"machine": page.machine(), "processes": arguments.processes, "steps": arguments.steps}
    results = Results(arguments.results, settings)
    for profile in arguments.profiles:
        _measure(profile, arguments, results)
    measured = [line for profile in arguments.profiles for line in results.lines if line.get("profile") == profile]
    page.write(arguments.page, _page(measured, results))
    return 0


def _measure(profile: str, arguments: argparse.Namespace, results: Results) -> None:
    """What is not there yet."""
    fixed = script.option_words(arguments, "steps", "processes", "python")
    data = script.option_words(arguments, "data")
    if not results.of("comparison", profile=profile):
        document = script.runner("breakdown", profile, *fixed, *data, purpose=profile)
        results.append("comparison", profile=profile, found=document)
        print(f"{profile}: {' '.join(document['reasons'])}", flush=True)
    for workload in PHASED:
        if not results.of("phases", profile=profile, workload=workload):
            of_its = [] if get(workload).generated else data
            options = ("--phases", "--workload", workload, *fixed, *of_its)
            document = script.runner("breakdown", profile, *options, purpose=profile)
            results.append("phases", profile=profile, workload=workload, found=document)
            print(f"{profile}: phases of {workload}", flush=True)
    if not results.of("forward", profile=profile):
        document = script.runner("breakdown", profile, "--forward", *fixed, *data, purpose=profile)
        results.append("forward", profile=profile, found=document)
        print(f"{profile}: forward pass", flush=True)


def _page(measured: Sequence[Line], results: Results) -> list[str]:
    """``measured`` is all that there is of each profile, one after the other."""
    documents = {kind: [line["found"] for line in measured if line["kind"] == kind] for kind in KINDS}
    first = documents["comparison"][0]
    heading = page.heading("Where a step's time goes", QUESTION, measured, results.lines[0]["machine"])
    synthetic = "**SYNTHETIC DATA: this is not Fashion-MNIST.**" if first["synthetic_data"] else ""
    how = HOW.format(**first, data="synthetic" if first["synthetic_data"] else "Fashion-MNIST")
    return [
        heading, synthetic, how,
        *(part for document in documents["comparison"] for part in _comparison(document)),
        "## Phases of a step", PHASES,
        *(part for document in documents["phases"] for part in _phases(document)),
        "## The forward pass beside the book's", FORWARD, _forward(documents["forward"]),
    ]  # fmt: skip


def _phases(document: dict[str, Any]) -> Iterator[str]:
    reference, other = document["profiles"]
    yield f"### {document['workload']}: {other['arm']} beside {reference['arm']}"
    of_step = [{**side["phases"], "whole step": side["step_ms"]} for side in document["profiles"]]
    yield _phase_table("ms per step", document, of_step)
    if reference["loader"]:
        yield LOADER.format(workers=reference["loader"]["workers"])
        yield _phase_table("ms per batch", document, [side["loader"]["batch"] for side in document["profiles"]])


def _phase_table(quantity: str, document: dict[str, Any], sides: Sequence[dict[str, Any]]) -> str:
    arms = [side["arm"] for side in document["profiles"]]
    rows = []
    for name in sides[0]:
        saved = document["saved_ms"][name]
        saved_cells = (
            (f"{saved['estimate']:+.2f}", f"{saved['low']:+.2f} to {saved['high']:+.2f}") if saved else ("-", "-")
        )
        rows.append([name, *(f"{side[name]['median']:.2f}" for side in sides), *saved_cells])
    return page.table((quantity, *arms, "saved", "95% interval"), rows, numbers_from=1)


def _forward(documents: Sequence[dict[str, Any]]) -> str:
    """Shares of the forward pass: the baseline's, each profile's, and the book's."""
    sides = [documents[0]["profiles"][0], *(document["profiles"][1] for document in documents)]
    columns = [[*(_share(side, part) for part, _ in BOOK.values())] for side in sides]
    columns.append([share for _, share in BOOK.values()])
    rows = [[name, *(f"{column[number]:.0%}" for column in columns)] for number, name in enumerate(BOOK)]
    rows.append(["everything else", *(f"{1 - sum(column):.0%}" for column in columns)])
    rows.append(["all of it, ms", *(f"{side['forward_ms']['median']:.2f}" for side in sides), ""])
    return page.table(("forward pass", *(side["arm"] for side in sides), "the book"), rows, numbers_from=1)


def _share(side: dict[str, Any], part: str) -> float:
    took = sum(operator["ms"]["median"] for operator in side["operators"] if part in operator["name"])
    return float(took / side["forward_ms"]["median"])


def _comparison(document: dict[str, Any]) -> list[str]:
    reference, other = document["profiles"]
    header = ("", "ms/step", "user, ms", "system, ms", "page faults", "under the profiler, ms")
    rows = [
        [
            side["arm"],
            *(f"{side[name]['median']:.2f}" for name in ("step_ms", "user_ms", "system_ms")),
            f"{side['faults']['median']:,.0f}",
            f"{side['profiled_ms']['median']:.2f} ({side['profiler_overhead']:+.0%})",
        ]
        for side in (reference, other)
    ]
    operators = ("operator", "calls", reference["arm"], "share", other["arm"], "share", "ratio", "change", "allocates")
    return [
        f"## {other['arm']} beside {reference['arm']}",
        " ".join(document["reasons"]),
        "Per step, CPU time over all threads:",
        page.table(header, rows, numbers_from=1),
        "Milliseconds per step in each operator itself, under the profiler:",
        page.table(operators, _operators(reference, other), numbers_from=1),
    ]


def _operators(reference: dict[str, Any], other: dict[str, Any]) -> list[list[str]]:
    """The operators that take longest in either, and the others together."""
    sides = [{one["name"]: one for one in side["operators"]} for side in (reference, other)]
    took = [{name: one["ms"]["median"] for name, one in side.items()} for side in sides]
    names = sorted(took[0].keys() | took[1].keys(), key=lambda name: -max(of.get(name, 0.0) for of in took))
    rows = []
    for name in names[:TOP]:
        either = sides[0].get(name) or sides[1][name]
        allocates = f"{either['allocated_bytes'] / 2**20:.1f} MiB" if either["allocated_bytes"] >= 2**19 else ""
        calls = f"{either['calls']:g}" if either["calls"] else ""
        rows.append(
            [short_name(name), calls, *_cells([of.get(name, 0.0) for of in took], (reference, other)), allocates]
        )
    rest = [sum(of.get(name, 0.0) for name in names[TOP:]) for of in took]
    return [*rows, [OTHERS, "", *_cells(rest, (reference, other)), ""]]


def _cells(took: Sequence[float], sides: Sequence[dict[str, Any]]) -> list[str]:
    shares = [f"{ms / side['profiled_ms']['median']:.1%}" for ms, side in zip(took, sides, strict=True)]
    ratio = f"{took[0] / took[1]:.2f}" if min(took) > 0 else "-"
    return [f"{took[0]:.2f}", shares[0], f"{took[1]:.2f}", shares[1], ratio, f"{took[1] - took[0]:+.2f}"]


QUESTION = """A profile changes no line of the training. Where, then, does the time go that it saves or costs? PyTorch's
profiler tells for each operator, and the kernel's counters for page faults and CPU time."""
HOW = """## How

For each profile {processes} fresh processes of it and of the baseline, taking turns. Each trains {steps} steps of
{workload} after {warmup_steps} without the profiler, for the clock, the faults and the CPU time, and then as many with
it, for the operators; data: {data}. Numbers are medians over processes. A ratio is the baseline's time over the
profile's, above 1 faster; a change is in milliseconds per step. A reason is given only where the numbers of all
processes support it; what a profile is worth is for `envkit bench` to say, with an interval. An operator's time is that
of the thread that trains, without what the operator calls; what it allocates is with that."""
PHASES = """Milliseconds per step in each phase, by the clock and without the profiler: medians over processes, too.
`other` is what lies between phases. What a profile saves is the median of all differences between its processes and the
baseline's (Hodges and Lehmann), with a 95% interval for each phase by itself."""
LOADER = """What DataLoader does for each of these batches, in {workers} worker processes: their times overlap with the
step and with each other, and are no parts of it; `wait for input` is by how much batches come too late."""
FORWARD = """Of the cnn's forward pass alone, under the profiler: what all operators of a kind take themselves, and the
shares that the book gives for the same network."""


if __name__ == "__main__":
    sys.exit(script.run("operators", main))
