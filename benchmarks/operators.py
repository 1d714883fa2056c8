"""Where a training step's time goes: the baseline's operators beside other profiles', and why those take less or more.

Each comparison is one ``envkit profile-ops``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import page, script
from benchmarks.results import Line, Results
from runner.analysis.operator_times import OTHERS, short_name
from runner.cli.arguments import count
from runner.cli.commands.profile_ops import PROCESSES, STEPS, TOP

PROFILES = ("mimalloc-retain-mkl", "intel-omp")


def main() -> int:
    parser = script.parser("operators", __doc__)
    parser.add_argument("profiles", metavar="PROFILE", nargs="*", default=PROFILES,
                        help=f"each is compared with the baseline (default: {' '.join(PROFILES)})")  # fmt: skip
    parser.add_argument("--processes", metavar="N", type=count, default=PROCESSES, help=f"(default: {PROCESSES})")
    parser.add_argument("--steps", metavar="N", type=count, default=STEPS, help=f"(default: {STEPS})")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    parser.add_argument("--python", metavar="PATH", help="the workers' interpreter (default: this one)")
    arguments = parser.parse_args()
    settings = {"machine": page.machine(), "processes": arguments.processes, "steps": arguments.steps}
    results = Results(arguments.results, settings)
    for profile in arguments.profiles:
        if not results.of("comparison", profile=profile):
            results.append("comparison", profile=profile, found=_profile(profile, arguments))
            print(f"{profile}: {' '.join(results.lines[-1]['found']['reasons'])}", flush=True)
    measured = [results.of("comparison", profile=profile)[0] for profile in arguments.profiles]
    page.write(arguments.page, _page(measured, results))
    return 0


def _profile(profile: str, arguments: argparse.Namespace) -> dict[str, Any]:
    return script.runner(
        "profile-ops", profile, *script.given(arguments, "steps", "processes", "python", "data"), what=profile
    )


def _page(measured: Sequence[Line], results: Results) -> list[str]:
    first = measured[0]["found"]
    heading = page.heading("Where a step's time goes", QUESTION, measured, results.lines[0]["machine"])
    synthetic = "**SYNTHETIC DATA: this is not Fashion-MNIST.**" if first["synthetic_data"] else ""
    how = HOW.format(**first, data="synthetic" if first["synthetic_data"] else "Fashion-MNIST")
    return [heading, synthetic, how, *(part for line in measured for part in _comparison(line["found"]))]


def _comparison(found: dict[str, Any]) -> list[str]:
    reference, other = found["profiles"]
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
        " ".join(found["reasons"]),
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


if __name__ == "__main__":
    sys.exit(script.run("operators", main))
