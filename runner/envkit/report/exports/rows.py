"""A run as rows: one per sample, or one per arm with its result. Times are in seconds, sizes in bytes."""

from __future__ import annotations

import json
import statistics as basic
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.analysis.gpu_readings import nccl_of
from envkit.analysis.learning_curves import target_of, time_to, training_s
from envkit.analysis.result import conclude
from envkit.analysis.scaling import exchanged
from envkit.bench.arms import Arm
from envkit.bench.events import ReferenceKernel, Sample
from envkit.bench.record import Event
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.checks.interference import interference_in
from envkit.rendering import text

Row = dict[str, object]
# What is exported of NCCL's log.
NCCL = ("version", "ranks", "network", "transports", "channels", "rings", "trees", "algorithms", "protocols")


def samples(folder: Path, events: Sequence[Event]) -> list[Row]:
    """One row per sample, in the order of the record. ``time`` is when it was recorded, in seconds since 1970.

    ``interference`` says what disturbed the sample from outside, and is empty where nothing did
    (``envkit.analysis.noise``).
    What was counted during the timed steps is in columns that begin with ``usage_``, whatever the worker counted. Those
    that begin with ``gpu_``, ``nccl_`` and ``all_reduce_`` are there where something is known of that.
    Of full trainings ``epoch_1_`` begins what is known after the first: ``training_s`` of all steps so far, without
    tests, ``loss``, the figures of the test, and ``test_s``, how long that took; ``time_to_target_s`` is the first with
    the target of ``--until``, and None where that was never reached.
    ``reference_kernel_s`` is the time of a fixed piece of work in the same block; ``ranks`` processes trained together,
    ``scaling`` says whether their batch grew with them (it is empty of a run without ranks), and ``communication_`` for
    how long, and what share of a step, one of several communicated or waited, under the profiler. None is what one
    process does not have.
    """
    run = Run.parse(events)
    study = run.study
    kernel_s = {reading.block: reading.seconds for reading in run.all(ReferenceKernel)}
    rows = []
    recorded = (event for event in events if event["event"] == "sample")
    for sample, event in zip(run.samples(), recorded, strict=True):
        arm = study.arm(sample.arm)
        rows.append(
            {
                **_about(folder, sample.time, run, arm),
                "block": sample.block,
                "seconds": sample.seconds,
                "mean_step_s": basic.fmean(sample.step_s),
                "median_step_s": basic.median(sample.step_s),
                "in_effect": all(check.holds for check in sample.checks),
                "interference": "; ".join(map(text, interference_in(sample.usage, sample.seconds))),
                "peak_memory_bytes": sample.peak_memory_bytes,
                "padding_bytes": sample.padding_bytes,
                "reference_kernel_s": kernel_s.get(sample.block),
                "communication_s": sample.communication.seconds if sample.communication else None,
                "communication_share": sample.communication.share if sample.communication else None,
                **_flat("usage", event["usage"]),
                **_flat("gpu", event.get("gpu") or {}),
                **_nccl(sample),
                **_learning(sample, study),
                **_exchanged(sample, study.ranks_of(arm)),
            }
        )
    return rows


def _nccl(sample: Sample) -> Row:
    """Return what NCCL chose, of a sample with a log of it."""
    log: Mapping[str, object] | None = nccl_of(sample)
    return {} if log is None else {f"nccl_{name}": log[name] for name in NCCL}


def _learning(sample: Sample, study: Study) -> Row:
    """Of a full training its epochs, from 1, and how long it trained until it reached the target, if there was one."""
    curve = sample.curve
    if not curve:
        return {}
    target = target_of(study.until)
    found: Row = {"time_to_target_s": time_to(target, curve)} if target else {}
    for number, (epoch, seconds) in enumerate(zip(curve, training_s(curve), strict=True), start=1):
        figures = {name.replace(" ", "_"): value for name, value in (epoch.quality or {}).items()}
        told = {"training_s": seconds, "loss": epoch.loss, **figures, "test_s": epoch.test_s}
        found |= {f"epoch_{number}_{name}": value for name, value in told.items()}
    return found


def _exchanged(sample: Sample, ranks: int) -> Row:
    """For each size of an all-reduce how long one took, and its bus bandwidth."""
    found: Row = {}
    for exchange in exchanged([sample], ranks):
        name = f"all_reduce_{exchange.size_bytes}"
        found |= {f"{name}_s": exchange.seconds, f"{name}_bus_bytes_per_s": exchange.bus_bytes_per_s}
    return found


def results(folder: Path, events: Sequence[Event]) -> list[Row]:
    """One row per arm that was measured. ``time`` is that of the last event.

    The reference has no ``ratio``, and one process no ``communication_s``. ``load`` is what disturbed most blocks
    (``envkit.analysis.load``), so that the result holds only beside that; ``load_cpus`` is how many CPUs it took.
    """
    run = Run.parse(events)
    result = conclude(run)
    compared = {one.arm: one for one in result.comparisons}
    scaling = {scaled.arm: scaled for scaled in result.scaling}
    rows = []
    for measured in result.measured:
        arm, comparison = result.study.arm(measured.arm), compared.get(measured.arm)
        found, ranked = comparison and comparison.speedup, scaling.get(measured.arm)
        load = comparison and comparison.load
        rows.append(
            {
                **_about(folder, run.events[-1].time, run, arm, of_result=True),
                "samples": measured.samples,
                "step_s": measured.step_s,
                "in_effect": measured.in_effect,
                **{name: getattr(found, name, None) for name in ("ratio", "low", "high")},
                "load": load.kind if load else None,
                "load_cpus": load.cpus if load else None,
                **{name: getattr(ranked, name, None) for name in ("communication_s", "communication_share")},
            }
        )
    return rows


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns of all rows, in the order in which they first come up."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _about(folder: Path, time: float, run: Run, arm: Arm, of_result: bool = False) -> Row:
    """What was measured where and when. A result also names its reference."""
    study = run.study
    return {
        "run": str(folder),
        "time": time,
        "cpu_model": run.beginning.inspection(arm.target)["fingerprint"]["cpu_model"],
        "engine": arm.engine,
        "arm": arm.name,
        "profile": arm.profile,
        **({"reference": study.reference_of(arm).name} if of_result else {}),
        "workload": study.workload_of(arm),
        "modes": study.options.text(),
        "ranks": study.ranks_of(arm),
        "scaling": study.scaling,
        "instances": arm.instances or 1,
    }


def _flat(name: str, value: object) -> Row:
    """Nested counters as columns, ``usage_disk_bytes`` for ``disk: {bytes: …}``; a list is kept as its JSON text."""
    if isinstance(value, dict):
        return {key: inner for part, one in value.items() for key, inner in _flat(f"{name}_{part}", one).items()}
    return {name: json.dumps(value) if isinstance(value, list) else value}
