"""From one record to a node as plain data, or to why its times can't be used."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.analysis.engine_facts import cpu_name, engine_facts, gpu_names
from envkit.analysis.messages import KINDS
from envkit.analysis.noise import commonest
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.events import Lengths
from envkit.bench.measure import ENDED, FAILED, NOT_IN_EFFECT
from envkit.bench.problems import restored
from envkit.bench.record import FILE_NAME, Event
from envkit.bench.record_messages import UnusableRecord
from envkit.bench.run import INITIAL_WEIGHTS
from envkit.bench.study import Study
from envkit.checks.effect import shown
from envkit.checks.interference import disturbances
from envkit.checks.sample_effect import checks_of
from envkit.cluster.fleet.messages import (
    InvalidBeginning,
    NodeFailed,
    NoSample,
    NoTime,
    OtherProfiles,
    ProfileNotInEffect,
    SeveralProfiles,
    SeveralWorkloads,
)
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.cluster.fleet.parsing import shortened, whole
from envkit.common import codec, files
from envkit.common.errors import InputError
from envkit.common.file_messages import OtherType
from envkit.common.messages import OtherSchema, Unreadable
from envkit.common.printable import encoded
from envkit.engines.measurement import Usage
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.worker.modes import CUDA, FP32

SHOWN_OF_DIGEST = 12
# In seconds since 1970: a clock that says more can't be printed as a date.
LATEST = 2.0**37
MOST_BYTES = 2**63  # of a machine's memory


def name_of(folder: Path) -> str:
    """Return the name of a node: that of its folder, with escapes for bytes that are not UTF-8."""
    return encoded(folder.name).decode()


def read_node(folder: Path, profile: str | None = None) -> Node | LeftOut:
    """Return what is kept of the record in ``folder``, or why it can't be used."""
    try:
        events = record.read(folder, parse=shortened)
        with record.reading(folder):
            return _node(name_of(folder), events, profile)
    except InputError as error:
        return LeftOut(name_of(folder), _without_folder(error.message))
    except OSError as error:
        return LeftOut(name_of(folder), Unreadable(FILE_NAME, files.reason(error)))


def _without_folder(found: Message) -> Message:
    """Return why a record can't be read. It is named without its folder, which the reader knows by the node's name."""
    if isinstance(found, Unreadable | UnusableRecord | OtherSchema):
        return found.replace(file=Path(found.file).name)
    return found


def _node(name: str, events: Sequence[Event], profile: str | None) -> Node:
    run = events[0]
    study = Study.from_json(run["study"])
    if len(study.workloads) > 1:
        raise InputError(SeveralWorkloads())
    arm = _arm(study, profile)
    _require_success(events)
    samples = [event for event in events if event["event"] == "sample" and event["arm"] == arm.name]
    if not samples:
        raise InputError(NoSample(arm.name))
    environment = Environment.from_json(run["environments"][arm.name])
    kept = run["allowed_variables"]
    _require_effect(environment.profile, whole(samples[-1]))
    fixed = next((codec.parse(event, Lengths) for event in events if event["event"] == "lengths"), None)
    skipped = fixed.skipped_steps if fixed else 0
    step_s = tuple(statistics.fmean(event["step_s"][skipped:]) for event in samples)
    if not all(math.isfinite(second) and second > 0 for second in step_s):
        raise InputError(NoTime())
    began = float(run["time"])
    if not 0 <= began < LATEST:
        raise InputError(InvalidBeginning(began))
    seen = run["engines"][arm.target]
    memory_bytes = seen["inspection"]["fingerprint"]["memory_bytes"]
    if type(memory_bytes) is int and not 0 <= memory_bytes < MOST_BYTES:
        raise codec.Misfit(OtherType("memory_bytes"))
    driver = (seen["inspection"].get("accelerator") or {}).get("driver")
    known = {**engine_facts(seen), "GPU driver": driver}
    facts = {what: value for what, value in known.items() if value is not None}
    each = (disturbances(codec.parse(event["usage"], Usage), event["seconds"]) for event in samples)
    disturbed = {number: kinds for number, kinds in enumerate(each) if kinds}
    kernels = [event for event in events if event["event"] == "reference-kernel"]
    clocks = [mhz for event in samples if (mhz := event["usage"].get("frequency_mhz")) is not None]
    found = Node(
        name=name,
        profile=arm.profile,
        workload=f"{study.workload_of(arm)}{f' ({study.scaling})' if study.weak else ''}",
        kind=_kind(study, seen["inspection"]),
        must_agree=_must_agree(study, arm, environment, kept, seen, samples[0]["digests"]),
        facts=facts,
        memory_bytes=memory_bytes,
        began=began,
        finished=_last(events).get("reason") in ENDED,
        step_s=step_s,
        samples_with_interference=len(disturbed),
        interference=KINDS[commonest(disturbed.values())] if disturbed else "",
        reference_kernel_s=statistics.median(event["seconds"] for event in kernels) if kernels else None,
        reference_kernel_digest=kernels[0]["digest"] if kernels else None,
        clock_mhz=statistics.median(clocks) if clocks else None,
    )
    return codec.checked(found)  # what an image's inspection and an engine said has no form of its own


def _kind(study: Study, inspection: Inspection) -> str:
    """The type of machine; GPUs belong to it where they are trained on, as a command of the user's own may do."""
    host, usable = inspection["fingerprint"], inspection["facts"]["usable_cpus"]
    gpus = gpu_names(inspection) if study.options.device == CUDA or study.user_command is not None else ""
    return f"{cpu_name(host)}, {usable} usable CPUs ({host['architecture']}){gpus and f', {gpus}'}"


def _arm(study: Study, profile: str | None) -> Arm:
    """Return the arm by which the fleet is judged: that of ``profile``, or the only one that was compared or alone."""
    subjects = study.subjects
    if profile is None:
        if len(subjects) > 1:
            raise InputError(SeveralProfiles(tuple(arm.profile for arm in subjects)))
        return subjects[0]
    found = next((arm for arm in study.arms if arm.profile == profile), None)
    if found is None:
        raise InputError(OtherProfiles(profile, tuple(arm.profile for arm in study.arms)))
    return found


def _last(events: Sequence[Event]) -> Event:
    """Return the event in which the run ended or went on last, or else the one that began it."""
    return next((event for event in reversed(events) if event["event"] in ("end", "resume")), events[0])


def _require_success(events: Sequence[Event]) -> None:
    """Raise InputError for a run that a failure ended, or a profile that was not in effect."""
    reason = _last(events).get("reason")
    if reason == FAILED:
        failure = next(event for event in reversed(events) if event["event"] == "failure")
        printed = str(failure["stderr"]).strip().splitlines()
        raise InputError(NodeFailed(restored(failure["problem"]), printed[-1] if printed else None))
    if reason == NOT_IN_EFFECT:
        run, sample = events[0], next(event for event in reversed(events) if event["event"] == "sample")
        profile = run["environments"][sample["arm"]]["profile"]
        _require_effect(profile, whole(sample))
        raise InputError(ProfileNotInEffect(profile))


def _require_effect(profile: str, sample: Event) -> None:
    """Raise InputError for a sample in which ``profile`` was not in effect.

    A run ends with the first such sample, so looking at the last one is enough.
    """
    missed = next((one for one in checks_of(sample) if not one.holds), None)
    if missed is not None:
        raise InputError(ProfileNotInEffect(profile, missed.key, shown(missed.expected), shown(missed.seen)))


def _must_agree(
    study: Study,
    arm: Arm,
    environment: Environment,
    kept: Mapping[str, Any],
    seen: dict[str, Any],
    digests: dict[str, str],
) -> dict[str, str]:
    """Return what was measured, by names that a message can use."""
    found = {
        "profile": arm.profile,
        "workload": study.workload_of(arm),
        "mode": study.options.text() or FP32,
        "steps": str(study.training.steps),
        "warm-up steps": str(study.training.warmup_steps),
        "epochs": str(study.epochs),
        "engine": arm.engine,
        "image digest": seen["engine"].get("digest") or "",
        "PyTorch": seen["inspection"]["packages"].get("torch") or "",
        "prefix": " ".join(environment.prefix),
    }
    if arm.instances:
        found["instances"] = str(arm.instances)
    if study.distributed:
        found |= {"ranks": str(study.ranks_of(arm)), "scaling": study.scaling}
    found |= {f"variable {name}": value for name, value in sorted(environment.variables.items())}
    if kept:
        found["kept variables"] = ", ".join(sorted(kept))
    if study.user_command is not None:  # what its folder holds may change as it runs
        return {**found, "command": " ".join(study.user_command.argv)}
    for what, digest in sorted(digests.items()):
        if what != INITIAL_WEIGHTS:  # they follow from the code and PyTorch
            found[f"{what.replace('_', ' ')} digest"] = f"{digest[:SHOWN_OF_DIGEST]}…"
    return found
