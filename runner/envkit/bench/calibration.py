"""The noise floor: what earlier runs of the baseline against itself showed of this machine and engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envkit.bench import record
from envkit.bench.arms import View
from envkit.bench.context import same_gpus
from envkit.bench.decide import ENDED
from envkit.bench.events import Calibration
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.common.errors import InputError
from envkit.engines import ENGINES
from envkit.profiles.inspection import Surroundings
from envkit.stats.interval import MIN_BLOCKS
from envkit.stats.power import interval_scale

# The options that name what workers run in, which its engine says besides, and may be an arm's own.
IMAGES = {entry.image_option for entry in ENGINES.values()}


def find(
    results: Path, study: Study, engines: Mapping[str, Surroundings], kept: Mapping[str, str | None]
) -> Calibration | None:
    """The latest calibration in the folder ``results`` that holds for a run of ``study``, or None.

    It must have been made on this machine (by its fingerprint and facts) with the same engine, image, workload, modes
    and length of samples, with the same variables ``kept`` of the caller's, and have ended.
    """
    if len(study.workloads) > 1 or study.distributed:
        return None  # one of a single workload says nothing of several, nor one process of ranks
    if None in kept.values():
        return None  # nobody can tell whether their values were the same
    calibrations: list[Calibration] = []
    for path in results.glob(f"*/{record.FILE_NAME}"):
        try:
            with record.reading(path.parent):
                first = record.first(path.parent)
                of = Study.from_json(first["study"])
                conditions = _conditions(of, first["engines"], first["allowed_variables"])
                if (
                    of.view is not View.CALIBRATION
                    or not of.compared
                    or conditions != _conditions(study, engines, kept)
                ):
                    continue
                run = Run.parse(record.read(path.parent))
                if run.ended not in ENDED:
                    continue
                ratios = run.block_ratios(of.compared[0])
        except InputError:
            continue  # a record that can't be read is not this run's affair
        scale = interval_scale(ratios)
        if scale is not None and len(ratios) >= MIN_BLOCKS:
            calibrations.append(
                {
                    "scale": scale,
                    "blocks": len(ratios),
                    "folder": str(path.parent),
                    "time": first["time"],
                }
            )
    return max(calibrations, key=lambda calibration: calibration["time"], default=None)


def _conditions(
    study: Study, engines: Mapping[str, Surroundings], kept: Mapping[str, str | None]
) -> tuple[object, ...]:
    surroundings = engines[study.reference.target]
    inside = surroundings["inspection"]
    steps = (study.training.steps, study.training.warmup_steps, study.epochs)
    # how losses are read changes no time
    command = study.user_command and replace(study.user_command, loss_metric=None)
    length = (study.workload_of(study.reference), study.options, command, steps)
    limits = {name: value for name, value in study.engine_options.to_json().items() if name not in IMAGES}
    image = (surroundings["engine"], inside["packages"], limits)
    return length, image, inside["facts"], inside["fingerprint"], same_gpus(inside), kept
