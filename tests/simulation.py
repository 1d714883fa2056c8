"""Tells simulated workers what to do, and what they were started with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from envkit.worker.performance_variables import PREFIXES

from tests.simulated_worker import is_measured, launched, training_of

PROJECT = Path(__file__).resolve().parent.parent
# As a module and not as a script, which Python would compile anew at each start.
WORKER = (
    f"import sys; sys.path[:0] = ['{PROJECT}', '{PROJECT}/runner']; from tests.simulated_worker import main; main()"
)
# The work of workers that train a workload, in one process.
TRAIN = ("train", "operators", "phases")
# Seconds of a worker whose speed is that of the reference: a little noise, the same in every test.
STEADY = (1.00, 1.01, 0.99, 1.02, 0.98, 1.005, 0.995)


def times(factor: float) -> list[float]:
    """Seconds of a worker that takes ``factor`` times as long as the reference; its noise is another one."""
    return [second * factor for second in reversed(STEADY)]


class Simulation:
    """``python`` is what to give to ``--python``; what workers do is kept in a file beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "python"
        # -I: nothing of the surroundings' Python settings; -S: no site packages, which starts much faster
        self._script = f'#!/bin/sh\nexec {sys.executable} -IS -c "{WORKER}" {folder}/config.json "$@"\n'
        self.python.write_text(self._script)
        self.python.chmod(0o755)
        # workers are told how performance variables begin: to import the registry takes as long as all else they do
        self._config: dict[str, Any] = {"workers": {"baseline": {"seconds": STEADY}}, "prefixes": PREFIXES}
        self._save()

    def _save(self) -> None:
        unfinished = self.folder / "config.json.new"
        unfinished.write_text(json.dumps(self._config))
        unfinished.replace(self.folder / "config.json")  # workers that start meanwhile read all of one or the other

    def worker(self, name: str, **behaviour: Any) -> None:
        """Workers that a profile starts with SIMULATED=``name`` behave so.

        ``name`` may also be "reference-kernel", or "mine warming": the unmeasured starts of that profile.

        ``seconds``: what they measure, in turn; ``delay``: how long they really take. ``does`` (hang, signal with
        ``signal``, exit with ``status``, print with ``text``) counts ``from`` the nth start, the first being 0.
        ``evidence``, ``digests``, ``losses``, ``throttled_s``, ``usage``, ``unit``, ``modes``, ``gpu``, ``backend``,
        ``exchange`` and ``peak_memory_bytes`` replace what they would print, ``losses_in_turn`` has other losses for
        each sample, and ``quality`` is what a test finds where one is asked for.
        Their first ``slow_steps`` take three times as long, and those that begin an epoch ``begin_s`` seconds
        more; ``loader`` is what they saw of who loads. ``communication`` is what several ranks say of theirs, and
        ``of_rank`` what one of them does otherwise; ``of_instance`` is that of several at once. ``operators``,
        ``phases`` and ``batch`` are what ``operators`` and ``phases`` say of a step, as shares of it.
        """
        self._config["workers"][name] = {"seconds": STEADY, **behaviour}
        self._save()

    def named(self, name: str, setting: str) -> None:
        """Workers with this ``setting``, as ``OMP_DYNAMIC=true``, behave as if SIMULATED were ``name``."""
        self._config.setdefault("named", {})[setting] = name
        self._save()

    def inspection(self, **fields: Any) -> None:
        """Replace fields of what ``inspect`` prints."""
        self._config["inspect"] = fields
        self._save()

    def config(self, worker: str) -> dict[str, Any] | None:
        """What workers are told, if ``worker`` just answers; None if a process must be started to see what it does."""
        behaviour = self._config["workers"].get(worker, {})
        is_usual = self.python.is_file() and self.python.read_text() == self._script and os.access(self.python, os.X_OK)
        return self._config if is_usual and not {"does", "delay"} & behaviour.keys() else None

    def starts(self, all: bool = False) -> list[dict[str, Any]]:
        """The workers that were started to be measured, in order: name, pid, work, environment, and if they train a
        workload how (``training``).

        With ``all`` also those that inspect, warm up ("mine warming") or are the reference kernel ("reference-kernel").
        """
        log = self.folder / "starts.jsonl"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        starts = [_with_training(json.loads(line)) for line in lines if line.endswith("\n")]  # one may be half written
        return [start for start in starts if all or is_sample(start["work"])]


def _with_training(start: dict[str, Any]) -> dict[str, Any]:
    work = launched(start["work"])[0]
    return {**start, "training": training_of(work)} if work["kind"] in TRAIN else start


def is_sample(work: dict[str, Any]) -> bool:
    """Whether a worker that does this is started to measure how a workload is trained."""
    return is_measured(work) and launched(work)[0]["kind"] in TRAIN
