"""How many small mutants do the quick tests kill?

A seed draws the mutants, as many of each package. Each is made in a copy of the project, never in the working tree.
The quick tests run once without a mutant, and note which of them run its lines. These alone then run on the mutant.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from pathlib import Path

from envkit.engines.base import PROJECT

from benchmarks import mutations, page, script
from benchmarks.errors import ScriptError
from benchmarks.mutations import Mutant
from benchmarks.results import Line, Results

PACKAGES = ("stats", "bench", "checks", "profiles", "analysis", "tuning", "advice")
QUESTION = f"How many small mutants of {', '.join(PACKAGES[:-1])} and {PACKAGES[-1]} do the quick tests kill?"
# Of the sample in benchmarks/mutants.jsonl.
SEED = 2
NOT_COPIED = (".git", ".venv*", "results", "build", ".*_cache", ".hypothesis")
# A mutant's tests are those of its folder, then the shortest others, as long as they take no more CPU seconds in all.
MOST_S = 10.0
# Seconds of CPU of a mutant's tests, beside three times what they need without it; and wall seconds for each of these.
PATIENCE_S, WALL = 20.0, 15
KILLED, SURVIVED, NOT_REACHED, TIMED_OUT = "killed", "survived", "not reached", "timed out"


@dataclass(frozen=True)
class Reach:
    """A test that passes without a mutant: the CPU seconds it takes, and the lines of interest that it runs."""

    test: str
    seconds: float
    lines: frozenset[tuple[str, int]]


class Copy:
    """A copy of the project in which mutants are made and tests run."""

    def __init__(self, folder: Path, project: Path = PROJECT, packages: Sequence[str] = PACKAGES) -> None:
        self.project, self.packages = project, packages
        self.folder, self.exchange = folder / "copy", folder / "exchange"
        shutil.rmtree(self.folder, ignore_errors=True)

        def at_the_top(path: str, names: list[str]) -> set[str]:
            left_out = shutil.ignore_patterns(*NOT_COPIED)(path, names) if Path(path) == project else set()
            return {*left_out, *(name for name in names if name == "__pycache__")}

        shutil.copytree(project, self.folder, ignore=at_the_top, symlinks=True)
        self.exchange.mkdir(exist_ok=True)

    def mutants(self) -> Iterator[tuple[Mutant, str]]:
        """Yield all mutants with the changed source of their module."""
        for package in self.packages:
            for path in sorted((self.folder / "runner/envkit" / package).rglob("*.py")):
                at = path.relative_to(self.folder)
                module = ".".join(at.with_suffix("").parts[1:]).removesuffix(".__init__")
                yield from mutations.mutants(module, str(at), path.read_text())

    def test(
        self, tests: Sequence[str] | None, lines: dict[str, list[int]], seconds: float, *options: str
    ) -> tuple[int, list[Line]]:
        """Run tests (None: all that ``options`` choose); return the exit status, and a line for each that has ended."""
        reply = self.exchange / "reply.jsonl"
        reply.unlink(missing_ok=True)
        (self.exchange / "request.json").write_text(json.dumps({"tests": tests, "lines": lines, "seconds": seconds}))
        paths = os.pathsep.join((str(self.folder / "runner"), str(self.folder), str(PROJECT)))
        variables = {**os.environ, "PYTHONPATH": paths, "ENVKIT_MUTANT": str(self.exchange)}
        variables.pop("PYTEST_ADDOPTS", None)  # these are for a session that this one may be a part of
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # each mutant would compile all modules anew
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "benchmarks.mutant_tests", *options],
            cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            status = process.wait(seconds * WALL)
        except subprocess.TimeoutExpired:
            status = -signal.SIGXCPU
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return status, [json.loads(line) for line in reply.read_text().splitlines()] if reply.exists() else []

    def reach(self, mutants: Sequence[Mutant], *options: str) -> list[Reach]:
        """Run the tests that ``options`` choose without a mutant; return those that pass, the shortest first."""
        wanted: dict[str, list[int]] = {}
        for mutant in mutants:
            wanted.setdefault(str(self.folder / mutant.path), []).extend(range(mutant.lines[0], mutant.lines[1] + 1))
        cached = self.exchange / f"reach-{self._key(wanted, *options)}.jsonl"
        if not cached.exists():
            status, _ = self.test(None, wanted, 3600, *options)
            if status not in {0, 1}:
                raise ScriptError(f"the tests ended with exit status {status} without a mutant")
            (self.exchange / "reply.jsonl").rename(cached)
        reached = [
            Reach(line["test"], line["seconds"], frozenset((path, number) for path, number in line["lines"]))
            for line in map(json.loads, cached.read_text().splitlines()) if line["passed"]
        ]  # fmt: skip
        return sorted(reached, key=lambda test_reach: test_reach.seconds)

    def _key(self, *about: object) -> str:
        """Return a digest of the copy's code, and of what else decides which tests run what."""
        digest = hashlib.sha256(repr(about).encode())
        for path in sorted(path for folder in ("runner", "tests") for path in (self.folder / folder).rglob("*.py")):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12]

    def judge(self, mutant: Mutant, source: str, reach: Sequence[Reach]) -> Line:
        """Make one mutant, run the tests that reach it until one fails, and restore the copy."""
        path = self.folder / mutant.path
        lines = {(str(path), number) for number in range(mutant.lines[0], mutant.lines[1] + 1)}
        survived, mirror = SURVIVED, f"{Path(mutant.path).parent}/".replace("runner/envkit/", "tests/")
        reaching = sorted(
            (test_reach for test_reach in reach if test_reach.lines & lines),
            key=lambda test_reach: not test_reach.test.startswith(mirror),
        )
        if not reaching:  # what is cached may have run while tests were collected
            nearest = f"{mirror}test_{path.stem}.py::"
            reaching, survived = (
                [test_reach for test_reach in reach if test_reach.test.startswith(nearest)],
                NOT_REACHED,
            )
        spent = accumulate(test_reach.seconds for test_reach in reaching)
        tests = [
            test_reach
            for test_reach, seconds in zip(reaching, spent, strict=True)
            if test_reach is reaching[0] or seconds <= MOST_S
        ]
        if not tests:
            return {"outcome": NOT_REACHED, "tests": 0, "of": 0, "test": None}
        before, limit = path.read_text(), PATIENCE_S + 3 * sum(test_reach.seconds for test_reach in tests)
        # what was compiled may be as long, and of the same second
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        path.write_text(source)
        try:
            files = dict.fromkeys(test_reach.test.partition("::")[0] for test_reach in tests)
            status, ended = self.test([test_reach.test for test_reach in tests], {}, limit, "-x", *files)
        finally:
            path.write_text(before)
            # the next mutant may be as long, and made in the same second
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        failed = [line["test"] for line in ended if not line["passed"]]
        outcome = survived if status == 0 else TIMED_OUT if status in {-signal.SIGXCPU, -signal.SIGKILL} else KILLED
        return {"outcome": outcome, "tests": len(tests), "of": len(reaching), "test": failed[0] if failed else None}


def drawn(mutants: Sequence[tuple[Mutant, str]], seed: int, count: int) -> list[tuple[Mutant, str]]:
    """Draw mutants, as many of each package in turn. A mutant's rank follows from the seed and its id alone."""
    packages: dict[str, list[tuple[Mutant, str]]] = {}
    for mutant, source in sorted(mutants, key=lambda pair: hashlib.sha256(f"{seed} {pair[0].id}".encode()).digest()):
        packages.setdefault(mutant.module.split(".")[1], []).append((mutant, source))
    turns = zip_longest(*(packages[name] for name in sorted(packages)))
    return [pair for turn in turns for pair in turn if pair is not None][:count]


def again(copy: Copy, earlier: Sequence[Line]) -> list[tuple[Mutant, str, Line]]:
    """Return those of an earlier sample whose functions are unchanged, though maybe in another module."""
    now: dict[tuple[str, str, int], dict[str, tuple[Mutant, str]]] = {}
    for mutant, source in copy.mutants():
        now.setdefault((mutant.function, mutant.digest, mutant.number), {})[mutant.module] = mutant, source
    pairs = ((now.get((line["function"], line["digest"], line["number"])), line) for line in earlier)
    return [
        (*candidates.get(line["module"], next(iter(candidates.values()))), line)
        for candidates, line in pairs
        if candidates
    ]


def rerun(copy: Copy, earlier: Path, options: Sequence[str]) -> int:
    """Judge an earlier sample again; return 1 if a mutant survives that was killed."""
    try:
        lines = [json.loads(line) for line in earlier.read_text().splitlines()]
    except (OSError, ValueError):
        raise ScriptError(f"{earlier}: is not what this script writes; give the file of --results") from None
    before = [line for line in lines if line["kind"] == "mutant"]
    pairs = again(copy, before)
    reach, lost, killed = copy.reach([mutant for mutant, _, _ in pairs], *options), [], Counter[str]()
    for mutant, source, line in pairs:
        result = copy.judge(mutant, source, reach)
        was, now = is_killed(line), is_killed(result)
        killed.update(before=was, now=now)
        lost += [mutant.id] if was and not now else []
        print(f"{line['outcome']} -> {result['outcome']}: {mutant.id} {result['test'] or ''}", flush=True)
    print(f"unchanged: {len(pairs)} of {len(before)}; killed before: {killed['before']}, now: {killed['now']}")
    return 1 if lost else 0


def is_killed(line: Line) -> bool:
    return line["outcome"] in {KILLED, TIMED_OUT}


def write_page(path: Path, results: Results) -> None:
    """Write the survivors with their explanations, then all mutants."""
    lines = results.of("mutant")
    explained = {line["id"]: line["text"] for line in results.of("explanation")}
    survivors = [line for line in lines if not is_killed(line)]
    commits, late = {line["commit"] for line in lines}, sum(line["outcome"] == TIMED_OUT for line in lines)
    about = f"\n- commit: {', '.join(sorted(commits))}; seed: {results.lines[0]['seed']}"
    killed = page.share(len(lines) - len(survivors), len(lines))
    page.write(path, [
        page.heading("Mutants", QUESTION, lines, page.machine(), "make mutants") + about,
        *(line["text"] for line in results.of("note")),
        f"The quick tests kill {killed} of the mutants. {late} of these ran into the time limit.",
        f"Tests of a mutant's folder that reach it run first, then the shortest others: {MOST_S:g} s of CPU.",
        "## Survivors",
        page.table(["mutant", "before", "after", "tests", "explanation"], [
            [f"`{line['id']}`", f"`{line['before']}`", f"`{line['after']}`", f"{line['tests']} of {line['of']}",
             explained.get(line["id"], "not explained yet")] for line in survivors
        ]),
        "## All mutants",
        page.table(["mutant", "change", "outcome", "first test that fails"], [
            [f"`{line['id']}`", line["change"], line["outcome"], f"`{line['test']}`" if line["test"] else ""]
            for line in lines
        ]),
    ])  # fmt: skip


def main() -> int:
    parser = script.parser("mutants", __doc__, results=PROJECT / "benchmarks" / "mutants.jsonl")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N")
    parser.add_argument("--mutants", type=int, default=100, metavar="N", help="how many to draw (default: 100)")
    parser.add_argument(
        "--minutes", type=float, default=60, metavar="N", help="start no mutant after so long (default: 60)"
    )
    parser.add_argument("--scratch", type=Path, default=PROJECT / "build/mutants", metavar="FOLDER")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="the quick tests of these paths only")
    parser.add_argument(
        "--only-unchanged", type=Path, metavar="EARLIER", help="judge the mutants of an earlier file again"
    )
    parser.add_argument(
        "--explain", nargs=2, metavar=("ID", "TEXT"), help="say why a mutant survives, and write the page"
    )
    arguments = parser.parse_args()
    options = ["-m", "not slow", *arguments.tests]
    if arguments.only_unchanged:
        return rerun(Copy(arguments.scratch), arguments.only_unchanged, options)
    results = Results(arguments.results, {"seed": arguments.seed})
    if arguments.explain:
        results.append("explanation", id=arguments.explain[0], text=arguments.explain[1])
    else:
        measure(results, arguments.mutants, Copy(arguments.scratch), arguments.minutes, options)
    write_page(arguments.page, results)
    return 0


def measure(results: Results, count: int, copy: Copy, minutes: float, options: Sequence[str]) -> None:
    """Judge the mutants of a sample that have no result yet, as long as there is time."""
    end = time.monotonic() + minutes * 60
    version, done = page.commit(), {line["id"] for line in results.of("mutant")}
    sample = [pair for pair in drawn(list(copy.mutants()), results.lines[0]["seed"], count) if pair[0].id not in done]
    reach = copy.reach([mutant for mutant, _ in sample], *options)
    for mutant, source in sample:
        if time.monotonic() > end:
            break
        results.append("mutant", **mutant.to_json(), commit=version, **copy.judge(mutant, source, reach))
        print(f"{results.lines[-1]['outcome']}: {mutant.id} {results.lines[-1]['test'] or ''}", flush=True)


if __name__ == "__main__":
    sys.exit(script.run("mutants", main))
