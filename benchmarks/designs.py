"""How to spend a run's time: how much of a pair's noise comes with the process, with the moment and with the step?

A nested experiment: pairs of processes, a profile beside the baseline, train in chunks. In half of the pairs two live
processes take turns chunk by chunk (ABBA), and in the other half one trains after the other, as the kit's samples do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envkit.bench.job import PADDING
from envkit.bench.study import MOST_PADDING
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import PROJECT
from envkit.profiles import profile
from envkit.worker.modes import USUAL  # noqa: F401

from benchmarks import interleaved
from benchmarks.interleaved import Bench, Entry

BASELINE, FAST = "baseline", "mimalloc-retain"
SPINNING = "intel-omp"
# The six best of docs/results/matrix.md, one of each kind of allocator, and one that gives memory back after 10 s.
LATE = ("baseline", "mimalloc-2-retain-mkl", "mimalloc-retain-mkl", "glibc-retain-mkl", "jemalloc-retain-mkl",
        "mimalloc-retain", "tcmalloc-retain", "jemalloc")  # fmt: skip
WARM_UP, CHUNKS, CHUNK_STEPS, LATE_STEPS = 5, 12, 12, 1100


class Process:
    """A live ``chunk_worker`` of an entry."""

    def __init__(self, bench: Bench, entry: Entry) -> None:
        inherited = {name: value for name, value in bench.inherited.items() if name not in entry.without}
        padding = {PADDING: "x" * random.randrange(MOST_PADDING + 1)}
        self.entry = entry
        self.began = time.perf_counter()
        self.errors = ""
        self.process = subprocess.Popen(
            [*entry.prefix, sys.executable, "-m", "benchmarks.chunk_worker", bench.data],
            env={**inherited, **entry.variables, **padding}, cwd=PROJECT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(f"{self.entry.name}: {self.process.stderr.read()[-2000:]}")
        return line

    def ready(self) -> float:
        while self.line().strip() != "ready":
            pass
        return time.perf_counter() - self.began

    def do(self, what: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        at = time.time()
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.line())
        return {"arm": self.entry.name, "at": at, **answer}

    def end(self) -> list[str]:
        """End it, and return what of its profile was not in effect."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        evidence = json.loads(self.line())
        problems = self.entry.problems(evidence, self.process.stderr.read())
        self.process.wait()
        return problems


def pair(bench: Bench, entries: Sequence[Entry], turns: bool, first: int) -> dict[str, Any]:
    """Measure a pair of fresh processes; ``first`` is the one that begins."""
    began = time.perf_counter()
    two = [Process(bench, entry) for entry in entries]
    imported = [process.ready() for process in two]
    chunks, problems = [], []
    order = [two[first], two[1 - first]]
    if turns:
        chunks += [process.do(f"prepare {WARM_UP}") for process in order]
        for number in range(CHUNKS):
            chunks += [process.do(str(CHUNK_STEPS)) for process in (order if number % 2 == 0 else order[::-1])]
        problems += [process.end() for process in order]
    else:
        for process in order:
            chunks.append(process.do(f"prepare {WARM_UP}"))
            chunks += [process.do(str(CHUNK_STEPS)) for _ in range(CHUNKS)]
            problems.append(process.end())
    return {"turns": turns, "first": entries[first].name, "imported_s": imported, "chunks": chunks,
            "problems": problems, "seconds": time.perf_counter() - began}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("measure", "smoke"))
    parser.add_argument("results", type=Path)
    parser.add_argument("--minutes", type=float, default=22.0)
    parser.add_argument("--data")
    parser.add_argument("--python")
    arguments = parser.parse_args()
    began = time.perf_counter()
    smoke = arguments.what == "smoke"
    bench = Bench(arguments)
    folder = arguments.results
    folder.mkdir(parents=True, exist_ok=True)
    loaded = {name: profile.load(name) for name in {*LATE, BASELINE, FAST, SPINNING}}
    inspection = bench.inspection([one.prefix[0] for one in loaded.values() if one.prefix])
    entries: dict[str, Entry] = {}
    for name, one in loaded.items():
        try:
            entries[name] = interleaved.of_profile(one, inspection)
        except Exception as error:  # noqa: BLE001
            print(name, "not here:", type(error), error)
    out = (folder / "lines.jsonl").open("a")

    def put(kind: str, **fields: Any) -> None:
        out.write(json.dumps({"kind": kind, "time": time.time(), **fields}) + "\n")
        out.flush()
        print(f"{time.perf_counter() - began:6.0f} s", kind, fields.get("turns"), fields.get("seconds"),
              fields.get("problems"), os.getloadavg()[0], flush=True)  # fmt: skip

    with machine_lock():
        for name in (BASELINE, FAST, SPINNING):  # into the page cache
            process = Process(bench, entries[name])
            process.ready()
            process.do("prepare 2")
            put("cache", arm=name, problems=process.end())
        until = time.perf_counter() + (1 if smoke else 405 * arguments.minutes / 22)
        number = 0
        while time.perf_counter() < until and number < 30:
            for turns in random.sample([True, False], 2):
                put(
                    "pair", number=number, **pair(bench, [entries[BASELINE], entries[FAST]], turns, random.randrange(2))
                )
            number += 1
        for number in range(1 if smoke else 5):
            put("spin", number=number, **pair(bench, [entries[BASELINE], entries[SPINNING]], True, number % 2))
        names = [name for name in LATE if name in entries]
        until = time.perf_counter() + (1 if smoke else 345 * arguments.minutes / 22)
        for block in range(2):
            for name in random.sample(names, len(names)):
                if time.perf_counter() > until:
                    break
                try:
                    process = Process(bench, entries[name])
                    process.ready()
                    warm, late = process.do(f"prepare {WARM_UP}"), process.do(str(30 if smoke else LATE_STEPS))
                    put("late", block=block, warm=warm, **late, problems=process.end())
                except RuntimeError as error:
                    print(error)
    shares = {"quarter": 0.25, "half": 0.5, "all": 1.0}
    for turn in range(2):
        for share in random.sample(list(shares), 3):
            left = arguments.minutes * 60 - (time.perf_counter() - began)
            if left < 60 and not smoke:
                break
            at = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", "import sys, envkit.bench.pace as pace; from envkit.cli import main; "
                 f"pace.SHARE = {shares[share]}; sys.exit(main())", "bench", FAST, "--json", "--half-width", "0.1%",
                 "--budget", "20s" if smoke else "66s", "--output", str(folder / f"{share}-{turn}")],
                capture_output=True, text=True, check=False, cwd=PROJECT,
            )  # fmt: skip
            (folder / f"{share}-{turn}.json").write_text(done.stdout)
            (folder / f"{share}-{turn}.err").write_text(done.stderr)
            put("bench", share=share, turn=turn, status=done.returncode, seconds=time.perf_counter() - at)
    return 0


if __name__ == "__main__":
    sys.exit(main())
