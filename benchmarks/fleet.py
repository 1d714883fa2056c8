"""A report on 10,000 nodes: how long it takes, how much memory, and what it finds of what was planted."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.bench import record
from envkit.bench.record import FILE_NAME, Event
from envkit.bench.study import MARGIN
from envkit.cli.arguments import count
from envkit.cluster.fleet.findings import NodeVerdict
from envkit.cluster.fleet.slow import ERROR_RATE
from envkit.common.errors import FAILED
from envkit.engines.base import PROJECT
from envkit.worker.readings import text_of

from benchmarks import fleet_records, page, script
from benchmarks.errors import ScriptError
from benchmarks.fleet_alarms import LINES, NODES, NOISES, ONE_OF, SIZES, SPREADS, rates
from benchmarks.fleet_records import PLANTED, Simulated

SIMULATED_NODES, SAMPLES, SEED = 10_000, 20, 1
CPUS = 2
LIMIT_S, LIMIT_BYTES = 60.0, 2**30
POLL_S = 0.05


@dataclass(frozen=True)
class Reported:
    """One start of the report: seconds from before it to after its end, and CPU time and memory of all its processes.

    The memory is the sum of what each process had resident at most, whenever that was: it counts what they share
    several times, and is never too small.
    """

    seconds: float
    cpu_s: float
    peak_bytes: int
    document: dict[str, Any]


def main() -> int:
    arguments = _options()
    with _two_cpus() as cpus, _folder(arguments.folder) as folder:
        template = _template(arguments.template, folder)
        fleet = fleet_records.simulated(arguments.nodes, arguments.samples, SEED)
        records = folder / "fleet"
        size = _write(records, template, fleet)
        print(f"written: {size / 2**20:,.0f} MiB in {records}", file=sys.stderr, flush=True)
        _forget(records)
        cold = _report(records, folder)
        warm = _report(records, folder)
    print(f"cold {cold.seconds:.1f} s, warm {warm.seconds:.1f} s, {warm.peak_bytes / 2**20:,.0f} MiB", file=sys.stderr)
    page_parts = [
        page.heading("A report on a fleet", QUESTION),
        _cost(cold, warm, cpus, fleet, size),
        "## What it found",
        FOUND.format(
            healthy=fleet_records.HEALTHY, noise=fleet_records.NOISE, neighbour=fleet_records.WITH_NEIGHBOUR,
            stays=fleet_records.STAYS, slows=fleet_records.SLOWS,
        ),
        _found(fleet, warm.document),
        "## What slow nodes share",
        SHARED,
        _shared(warm.document),
        "## False alarms, under other noise and in other fleets",
        ALARMS.format(nodes=arguments.alarm_nodes, one_of=ONE_OF, margin=f"{MARGIN:.0%}"),
        _alarms(arguments.alarm_nodes),
        METHOD.format(rate=f"{ERROR_RATE:.0%}"),
    ]  # fmt: skip
    page.write(arguments.page, page_parts)
    return 0


def _options() -> argparse.Namespace:
    parser = script.page_parser("fleet", __doc__)
    parser.add_argument("--nodes", metavar="N", type=count, default=SIMULATED_NODES, help="default: 10000")
    parser.add_argument("--samples", metavar="N", type=count, default=SAMPLES, help="of each node (default: 20)")
    parser.add_argument(
        "--folder", metavar="DIR", type=Path, help="where to write the records (default: a temporary one)"
    )
    parser.add_argument("--template", metavar="DIR", type=Path,
                        help="a real run to make the records from (default: one that is measured first)")  # fmt: skip
    parser.add_argument("--alarm-nodes", metavar="N", type=count, default=NODES,
                        help=f"nodes for each line about false alarms (default: {NODES})")  # fmt: skip
    return parser.parse_args()


@contextmanager
def _two_cpus() -> Iterator[int]:
    """How many CPUs this process and those it starts may use meanwhile: CPUS of a larger machine."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[:CPUS]
    os.sched_setaffinity(0, chosen)
    try:
        yield len(chosen)
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _folder(requested: Path | None) -> Iterator[Path]:
    """A folder for the records, gone afterwards."""
    if requested is not None:
        requested.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="envkit-fleet-", dir=requested) as folder:
        yield Path(folder)


def _template(template: Path | None, folder: Path) -> list[Event]:
    """The record of a real run of the baseline alone: the given one, or a short one that is measured now."""
    if template is None:
        template = folder / "template"
        options = ("--data", "synthetic", "--blocks", 2, "--output", template)
        script.runner("bench", "baseline", *options, purpose="the run to make records from")
    events = fleet_records.quiet(record.read(template))
    if len(events[0]["study"]["arms"]) != 1 or not {"sample", "end"} <= {event["event"] for event in events}:
        raise ScriptError(f"--template {template}: must be a run of one profile that ended, with a sample")
    return events


def _write(records: Path, template: Sequence[Event], fleet: Simulated) -> int:
    line = max(len(json.dumps(event)) for event in template)
    need = 2 * line * fleet.step_s.size
    records.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(records.parent).free
    if free < need:
        raise ScriptError(f"{records.parent}: needs {need / 2**30:.1f} GiB, has {free / 2**30:.1f}; give --folder")
    return fleet_records.write(records, template, fleet, SEED)


def _forget(records: Path) -> None:
    """Have the kernel drop the records from its page cache, as if written elsewhere (posix_fadvise(2))."""
    os.sync()
    for path in records.glob(f"*/{FILE_NAME}"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _report(records: Path, folder: Path) -> Reported:
    """Run the report as a user would, with all its outputs."""
    argv = [sys.executable, "-m", "envkit", "fleet", "report", str(records), "--json",
            "--html", str(folder / "fleet.html"), "--prometheus", str(folder / "fleet.prom")]  # fmt: skip
    printed = folder / "fleet.json"
    before = _cpu_s()
    with printed.open("wb") as out, (folder / "stderr").open("wb") as err:
        begin = time.perf_counter()
        process = subprocess.Popen(argv, cwd=PROJECT, stdout=out, stderr=err)
        peaks: dict[int, int] = {}
        while process.poll() is None:
            for pid in (process.pid, *_children(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0), _resident_peak(pid))
            time.sleep(POLL_S)
        seconds = time.perf_counter() - begin
    if process.returncode != FAILED:  # some nodes are slow
        last_lines = (folder / "stderr").read_text().strip().splitlines()[-1:] or ["nothing"]
        raise ScriptError(f"the report ended with status {process.returncode} and not {FAILED}: {last_lines[0]}")
    return Reported(seconds, _cpu_s() - before, sum(peaks.values()), json.loads(printed.read_bytes()))


def _cpu_s() -> float:
    """The CPU time of all processes that this one has started and that have ended, and of those that they started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _children(pid: int) -> list[int]:
    """The process's children (proc(5); the kernel has them with CONFIG_PROC_CHILDREN)."""
    return [int(child) for child in text_of(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def _resident_peak(pid: int) -> int:
    """The most bytes that a process has had resident; 0 if it has just ended."""
    lines = text_of(Path(f"/proc/{pid}/status")).splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _cost(cold: Reported, warm: Reported, cpus: int, fleet: Simulated, size: int) -> str:
    nodes, samples = fleet.step_s.shape
    rows = []
    for name, report in (("dropped from the page cache first", cold), ("in the page cache", warm)):
        within = "yes" if report.seconds < LIMIT_S and report.peak_bytes < LIMIT_BYTES else "no"
        memory = [f"{amount / 2**20:,.0f}" for amount in (report.peak_bytes, LIMIT_BYTES)]
        rows.append([name, f"{report.seconds:.1f}", f"{LIMIT_S:g}", f"{report.cpu_s:.1f}", *memory, within])
    text = COST.format(nodes=nodes, samples=samples, cpus=cpus, gib=size / 2**30)
    header = ("records", "seconds", "limit", "CPU seconds", "peak memory, MiB", "limit", "within")
    return f"{text}\n\n{page.table(header, rows, 1)}"


def called_slow(document: dict[str, Any]) -> set[str]:
    return {node["node"] for kind in document["kinds"] for node in kind["nodes"] if node["verdict"] == NodeVerdict.SLOW}


def _found(fleet: Simulated, document: dict[str, Any]) -> str:
    slow = called_slow(document)
    rows = []
    for size in (*(group.slower for group in PLANTED), 0.0):
        names = [name for name, slower in zip(fleet.names, fleet.slower, strict=True) if slower == size]
        called = len(slow & set(names))
        low, high = page.proportion(called, len(names))
        share = [f"{called / len(names):.2%}", f"{low:.2%} to {high:.2%}"]
        rows.append([f"{size:.0%}" if size else "healthy", f"{len(names):,}", f"{called:,}", *share])
    return page.table(("planted", "nodes", "called slow", "share", "95% interval"), rows, 1)


def _shared(document: dict[str, Any]) -> str:
    rows = [
        [fact["fact"], value["text"], f"{value['nodes']:,}", str(value["slow"]),
         "-" if value["chance"] is None else f"{value['chance']:.1g}", "yes" if value["shared"] else "no"]
        for kind in document["kinds"]
        for fact in kind["differences"]
        for value in fact["values"]
    ]  # fmt: skip
    return page.table(("fact", "value", "nodes", "slow", "by chance", "marked"), rows, 2)


def _alarms(at_least: int) -> str:
    rows = []
    for noise, spread, nodes, samples in LINES:
        alarm_rates = rates(NOISES[noise], SPREADS[spread], nodes, samples, at_least)
        print(f"{noise}, {spread}, {nodes} x {samples}: {alarm_rates}", file=sys.stderr, flush=True)
        share = alarm_rates.false_alarms / alarm_rates.nodes
        cells = [
            f"{nodes:,} x {samples}",
            f"{alarm_rates.allowance:.1%}",
            f"{alarm_rates.false_alarms} of {alarm_rates.nodes:,}",
            f"{share:.2%}",
        ]
        rows.append([noise, spread, *cells, *(f"{alarm_rates.found[size]:.0%}" for size in SIZES)])
    header = ("noise", "healthy spread", "nodes x samples", "allowed", "false alarms", "share",
              *(f"+{size:.0%} found" for size in SIZES))  # fmt: skip
    return page.table(header, rows, 2)


QUESTION = """`envkit fleet report` reads one record per node. Is it quick enough for 10,000 nodes, does it find those
that are slow, and how often does it call a healthy one slow?"""
COST = """{nodes:,} records of {samples} samples each, {gib:.2f} GiB, made from one real run on this machine with
simulated times in it. The report runs as a process of its own on {cpus} CPUs and writes the JSON document, the page
and Prometheus' text. Memory is the sum of the peaks of all its processes. Seconds grow with
whatever else runs on the machine; CPU seconds hardly do."""
FOUND = """Healthy nodes differ by {healthy:.1%} (standard deviation); every sample has noise with heavy tails
(Student's t with 3 degrees of freedom, times {noise:.0%}); on {neighbour:.0%} of all nodes a neighbour slowed {stays}
samples in a row by {slows:.0%}."""
SHARED = """Four planted groups have a fact in common on most of their nodes; one healthy node of a hundred has each of
these too. "By chance" is for all values together."""
ALARMS = """Each line has {nodes:,} simulated nodes or more, in as many fleets as that takes. One node of {one_of} is
slow. A false alarm is any other node that is called slow, though what is allowed (the margin of {margin}, or the reach
of healthy nodes) may lie below the time of healthy nodes that are far out. Small fleets and few samples leave room for
large differences only."""
METHOD = """## How a node is judged

A node's time is the mean of the logarithms of its samples' times without the outermost fifth at either end (trimmed
mean with its error from winsorized values: Tukey and McLaughlin 1963; Yuen 1974). Errors of few samples are uncertain,
so each is steadied by those of all nodes (empirical Bayes: Smyth 2004; robust after Phipson et al. 2016), and all are
widened where neighbouring samples are alike (Bayley and Hammersley 1946). It is compared with the middle node of its
kind, by a test against an allowance and not against zero (McCarthy and Smyth 2009). The allowance is `--margin`, or
the reach of healthy nodes where that is more: three robust standard deviations of what nodes differ beyond their noise
(Hampel 1974), more in small fleets, and up to twice that where the fast side of the fleet, on which no slow node
hides, shows heavier tails without its noise (after Arias-Castro and Chen 2017; Louis 1984). False alarms are limited
over all nodes together: at most {rate} of the nodes called slow are expected to be within the allowance (Benjamini and
Hochberg 1995); intervals have the level that agrees with it (Benjamini and Yekutieli 2005). What slow nodes share is
tested by Fisher's exact test with Bonferroni's correction. The modules `runner/envkit/cluster/fleet/slow.py` and
`runner/envkit/stats/` name the sources in full.

A node is *slow* where its whole interval is beyond the allowance, *not certain* where only the interval's middle is,
*ok* otherwise, and *not judged* where fewer than 6 nodes are of its kind. Slow nodes, and those that were not measured
or can't be compared, make the exit status 1."""


if __name__ == "__main__":
    sys.exit(script.run("fleet", main))
