"""Does the timed window of a short sample rank profiles as a long training does?

Each call measures blocks of fresh processes of 1,000 steps beside the usual short samples of the same profiles, and
adds one line to a file that only grows.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from envkit import engines
from envkit.analysis.engine_facts import cpu_name
from envkit.bench import record
from envkit.bench.run import read as read_run
from envkit.bench.study import MOST_PADDING
from envkit.cli.arguments import count
from envkit.common.machine_lock import machine_lock
from envkit.profiles import profile
from envkit.rendering import text
from envkit.worker.workloads import DEFAULT

from benchmarks import growing, interleaved, long_steps_page, page, script
from benchmarks.errors import ScriptError
from benchmarks.interleaved import Bench, Entry
from benchmarks.long_steps_page import PARTS, Block, LongProcess, Session, process_of, read, rounded
from benchmarks.recorded import session_of
from benchmarks.results import append_line

TIME_S = 600.0
BASELINE = "baseline"
PROFILES = (
    "mimalloc-retain-openblas", "mimalloc-retain-mkl", "mimalloc-retain", "jemalloc-retain", "glibc-retain",
    "tcmalloc-retain",
)  # fmt: skip
# As samples of ``envkit bench`` on the CNN: steps 6 to 17.
WARMUP_STEPS, SHORT_STEPS = 5, 12
LONG_STEPS = 1000


def main() -> int:
    parser = growing.parser("long-steps", __doc__, TIME_S)
    parser.add_argument("--profiles", metavar="NAME,…", type=lambda words: words.split(","), default=list(PROFILES),
                        help="what to measure beside the baseline (default: the six best on the CNN)")  # fmt: skip
    parser.add_argument("--steps", dest="long_steps", metavar="N", type=count, default=LONG_STEPS,
                        help=f"timed steps of a long process (default: {LONG_STEPS})")  # fmt: skip
    parser.add_argument("--short-steps", metavar="N", type=count, default=SHORT_STEPS,
                        help=f"timed steps of a short sample (default: {SHORT_STEPS})")  # fmt: skip
    parser.add_argument("--warmup-steps", metavar="N", type=count, default=WARMUP_STEPS,
                        help=f"untimed steps before them (default: {WARMUP_STEPS})")  # fmt: skip
    parser.add_argument("--short-samples", metavar="N", type=count, default=2,
                        help="short samples beside each long process (default: 2)")  # fmt: skip
    parser.add_argument("--workload", metavar="NAME", default=DEFAULT, help=f"what to train (default: {DEFAULT})")
    script.add_training_options(parser)
    arguments = growing.parse(parser)
    if arguments.long_steps % PARTS or arguments.long_steps < arguments.short_steps:
        raise ScriptError(f"--steps {arguments.long_steps}: is no multiple of {PARTS} with room for a short sample")
    if arguments.add is None:
        _measure(arguments)
    for folder in arguments.add or ():
        _add(session_of_record(folder, arguments.commit, arguments.short_steps), arguments.results)
    page.write(arguments.page, long_steps_page.parts(read(arguments.results)))
    return 0


def _measure(arguments: argparse.Namespace) -> None:
    """Measure one block or more until the time is used up. Add those of an interrupted call, too."""
    bench = Bench(arguments)
    profiles = [profile.load(name) for name in (BASELINE, *arguments.profiles)]
    inspection = bench.inspection(profiles)
    entries = [interleaved.of_profile(loaded, inspection) for loaded in profiles]
    began, commit = time.time(), page.commit()
    blocks: list[Block] = []
    try:
        with machine_lock():
            engines.remove_leftovers()
            for entry in entries:  # its files are then in the page cache as they are for all later samples
                _train(bench, arguments.workload, entry, 1)
            for block in _blocks(bench, arguments, entries, began):
                blocks.append(block)
                print(f"block {len(blocks)}: {time.time() - began:.0f} s", flush=True)
    finally:
        if blocks:
            facts = (cpu_name(inspection["fingerprint"]), inspection["facts"]["usable_cpus"])
            kernel, names = str(inspection["fingerprint"]["kernel"]), [entry.name for entry in entries]
            lengths = (arguments.warmup_steps, arguments.short_steps, arguments.long_steps)
            session = Session(round(began, 1), commit, *facts, kernel, arguments.workload, names, *lengths, blocks)
            append_line(arguments.results, asdict(session))


def _blocks(bench: Bench, arguments: argparse.Namespace, entries: Sequence[Entry], began: float) -> Iterator[Block]:
    """Measure blocks of random order, while there is time for one as long as the longest so far."""
    longest_s = 0.0
    while time.time() - began + longest_s <= arguments.time or not longest_s:
        start = time.time()
        yield _block(bench, arguments, entries)
        longest_s = max(longest_s, time.time() - start)


def _block(bench: Bench, arguments: argparse.Namespace, entries: Sequence[Entry]) -> Block:
    """Measure one block: each sample, short or long, at a random place of it."""
    samples = [(entry, is_long) for entry in entries for is_long in (True, *[False] * arguments.short_samples)]
    random.shuffle(samples)
    short: dict[str, list[float]] = {entry.name: [] for entry in entries}
    long: dict[str, LongProcess] = {}
    for entry, is_long in samples:
        steps = arguments.long_steps if is_long else arguments.short_steps
        seconds = _train(bench, arguments.workload, entry, steps)
        if is_long:
            long[entry.name] = process_of(seconds, arguments.short_steps)
        else:
            short[entry.name].append(rounded(seconds))
    return Block([short[entry.name] for entry in entries], [long[entry.name] for entry in entries])


def _train(bench: Bench, workload: str, entry: Entry, steps: int) -> list[float]:
    """Return the seconds of each step. Raise ScriptError if the worker fails, or the profile is not in effect."""
    launch = bench.launch(replace(entry, workload=workload), steps, random.randrange(MOST_PADDING + 1))
    outcome = bench.engine.run(launch)
    problems = [f"the worker {text(outcome.failure)}"] if outcome.failure else []
    document = {} if problems else json.loads(outcome.stdout)
    if steps > 1 and not problems:
        problems = entry.problems(document["evidence"], outcome.stderr_tail)
    if problems:
        raise ScriptError(f"{entry.name}: {'; '.join(problems)}")
    seconds: list[float] = document["step_s"]
    return seconds


def session_of_record(folder: Path, commit: str, short_steps: int) -> Session:
    """Return the samples of a run of ``envkit bench --steps N``, whose first steps stand for short samples.

    Raise ScriptError for a run without complete blocks, or with too few steps.
    """
    measured, run = session_of(folder, commit), read_run(folder)
    with record.reading(folder):
        timed = {
            arm.name: {
                sample.block: steps for sample, steps in zip(run.samples(arm), run.timed_steps(arm), strict=True)
            }
            for arm in run.study.arms
        }
        lengths = {len(steps) for blocks in timed.values() for steps in blocks.values()}
        complete = sorted(set.intersection(*(set(blocks) for blocks in timed.values())))
        command = run.study.user_command
        training = " ".join(command.argv) if command else run.study.workload_of(run.study.reference)
    least = max(short_steps, PARTS)
    if not complete or min(lengths) < least:
        raise ScriptError(f"{folder}: has no complete block of processes with {least} steps or more")
    return Session(
        began=measured.began,
        commit=commit,
        cpu=measured.cpu,
        usable_cpus=measured.usable_cpus,
        kernel=measured.kernel,
        training=training,
        names=measured.names,
        warmup_steps=run.study.training.warmup_steps + run.skipped_steps,
        short_steps=short_steps,
        long_steps=min(lengths) // PARTS * PARTS,
        blocks=[
            Block([], [process_of(timed[name][block], short_steps) for name in measured.names]) for block in complete
        ],
    )


def _add(session: Session, results: Path) -> None:
    """Add the blocks of a run, unless they are there."""
    if all(other.began != session.began for other in read(results)):
        append_line(results, asdict(session))


if __name__ == "__main__":
    sys.exit(script.run("long_steps", main))
