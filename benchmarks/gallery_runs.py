"""The gallery's list (``benchmarks/gallery/models.yaml``), and the run of each of its trainings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.analysis.result import Comparison, Result, conclude
from envkit.bench import record
from envkit.bench.decide import ENDED, FAILED, NOT_IN_EFFECT
from envkit.bench.problems import problem_of
from envkit.bench.record import Event
from envkit.bench.run import Run as Recorded
from envkit.common import yamlfile
from envkit.engines.base import PROJECT
from envkit.messages import Printed
from envkit.rendering import text
from envkit.report import verdict
from envkit.report.judgement import losses_differ
from envkit.stats.verdict import Verdict
from envkit.worker.request import UserCommand

from benchmarks.errors import ScriptError

LIST = PROJECT / "benchmarks" / "gallery" / "models.yaml"
PYTHON = ".venv-gallery/bin/python"
METRIC, LOSS_METRIC = r"step \d+: ([0-9.]+) s", r"loss (\S+)"
# The first steps of a process, which are slower and don't count.
WARMUP_LINES = 3
# What is compared with the baseline, and in so many blocks, where nothing else is asked for.
PROFILES = (
    "intel-omp", "glibc-retain", "mkl-native", "glibc-retain-mkl", "jemalloc-retain-mkl", "mimalloc-retain-mkl",
)  # fmt: skip
BLOCKS = 8
# What this needs of a line of the list.
WANTED = {"title": (str, "a text"), "kind": (str, "a text"), "steps": (int, "a whole number above 0")}
# The folders of an absolute path, but for the file's name: a page is read elsewhere.
FOLDERS = re.compile(r"(?<![\w.…])/(?:[\w.+@-]+/)+")


@dataclass(frozen=True)
class Model:
    """A line of the list; ``steps`` of a sample count."""

    name: str
    title: str
    kind: str
    steps: int

    @property
    def command(self) -> UserCommand:
        """What is measured."""
        argv = (PYTHON, f"benchmarks/gallery/{self.name}.py", "--steps", str(WARMUP_LINES + self.steps))
        return UserCommand(argv, str(PROJECT), METRIC, "s", WARMUP_LINES, LOSS_METRIC, in_place=True)


def models(path: Path = LIST) -> dict[str, Model]:
    """The gallery, by name. Raises InputError for a line that can't be used."""
    file = yamlfile.read(path, "the list of the gallery")
    gallery = {}
    for name, line in file.data.items():
        fields = line if isinstance(line, dict) else {}
        for key, (kind, description) in WANTED.items():
            value = fields.get(key)
            if not isinstance(value, kind) or not value or (kind is int and value < 1):
                raise file.error(
                    (name,), Printed(f"'{name}' needs '{key}', {description}; add it, as the others have it")
                )
        gallery[name] = Model(name, *(fields[key] for key in WANTED))
    return gallery


@dataclass(frozen=True)
class Run:
    """A model's record."""

    model: Model
    folder: Path
    events: list[Event]
    result: Result

    @property
    def is_whole(self) -> bool:
        return self.result.ended in ENDED

    @property
    def failure(self) -> str | None:
        """Why it ended early, but for an interrupt, after which it is gone on with."""
        if self.result.ended not in (FAILED, NOT_IN_EFFECT):
            return None
        comparisons = self.result.comparisons
        culprit = next(
            (comparison for comparison in comparisons if comparison.verdict == Verdict.NOT_IN_EFFECT), comparisons[0]
        )
        sentences = [text(verdict.without_speedup(self.result, culprit))]
        for failed_worker in self.result.failures[-1:]:
            last = "".join(f": {line}" for line in failed_worker.stderr.strip().splitlines()[-1:])
            sentences.append(f"the worker of {failed_worker.arm} {text(problem_of(failed_worker))}{last}")
        checks = [check for missed in self.result.not_in_effect for check in missed.checks if not check.holds]
        sentences += [f"{check.key}: expected {check.expected}, observed {check.seen}" for check in checks]
        return FOLDERS.sub("…/", "; ".join(sentences))

    @property
    def best(self) -> Comparison | None:
        """The fastest of the profiles that are surely faster and learn the same."""
        return max(self.faster, key=ratio, default=None)

    @property
    def faster(self) -> list[Comparison]:
        comparisons = (comparison for comparison in self.result.comparisons if comparison.verdict == Verdict.FASTER)
        return [comparison for comparison in comparisons if not losses_differ(comparison)]

    @property
    def slower(self) -> list[Comparison]:
        return [comparison for comparison in self.result.comparisons if comparison.verdict == Verdict.SLOWER]

    @property
    def torch(self) -> str:
        """The versions of PyTorch that its processes imported: of a user's command only they know."""
        versions = {
            (event["evidence"].get("torch") or {}).get("version") or "?"
            for event in self.events
            if event["event"] == "sample"
        }
        return ", ".join(sorted(versions))

    def of(self, profile: str) -> Comparison:
        return next(comparison for comparison in self.result.comparisons if comparison.arm == profile)


def ratio(comparison: Comparison) -> float:
    """The speedup; 1 where there is none."""
    return comparison.speedup.ratio if comparison.speedup else 1.0


def runs(results: Path, gallery: Mapping[str, Model]) -> dict[str, Run]:
    """Those that were begun, by the model's name. Raises InputError for a record that can't be used."""
    begun = {}
    for name, model in gallery.items():
        folder = results / name
        if record.is_begun(folder):
            events = record.read(folder)
            with record.reading(folder):
                begun[name] = Run(model, folder, events, conclude(Recorded.parse(events)))
    return begun


def require_python() -> None:
    """Raise InputError where there is nothing that has what the gallery needs."""
    if not (PROJECT / PYTHON).exists():
        raise ScriptError(f"there is no {PYTHON} yet, which the trainings run in; make it with: make gallery-setup")
