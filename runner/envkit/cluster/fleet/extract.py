"""From one record to a node as plain data, or to why its times can't be used.

Two thirds of what there is to parse in a record say nothing of speed: losses, warm-up and evidence. They can be found
in a line without parsing it. Within a JSON text every quotation mark has a backslash before it, so what is looked for
here stands nowhere but where a key does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from envkit.analysis.engine_facts import cpu_name, engine_facts, gpu_names
from envkit.analysis.messages import KINDS
from envkit.analysis.noise import commonest
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.decide import ENDED, FAILED, NOT_IN_EFFECT
from envkit.bench.events import EVENTS, Beginning, End, Failure, Lengths, ReferenceKernel, Resume, Sample, Timed
from envkit.bench.problems import restored
from envkit.bench.record import FILE_NAME
from envkit.bench.record import Event as RecordEvent
from envkit.bench.record_messages import UnusableRecord
from envkit.bench.run import INITIAL_WEIGHTS
from envkit.bench.study import Study
from envkit.checks.effect import shown
from envkit.checks.interference import disturbances
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
from envkit.cluster.fleet.node import LATEST, LeftOut, Node
from envkit.common import codec, documents, files
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema, Unreadable
from envkit.common.printable import encoded
from envkit.engines.measurement import Usage
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.worker.modes import CUDA, FP32

SHOWN_OF_DIGEST = 12
# How lines begin as the runner writes them.
SAMPLE, ANY = b'{"event": "sample", ', b'{"event": '
# Lists of numbers, and the last part of a sample but for what its worker printed.
LISTS = (b', "warmup_step_s": [', b', "losses": [')
EVIDENCE = b', "evidence": {'


class ShortSample(Struct, frozen=True, kw_only=True, tag_field="event", tag="sample"):
    """The event ``sample`` as far as its speed needs it, and the ``line`` that has all of it."""

    arm: str
    block: int
    seconds: float
    step_s: list[float]
    digests: dict[str, str]
    usage: Usage
    line: bytes

    def complete(self) -> Sample:
        """Return the sample with all that its line has. Raise KeyError or ValueError if it is damaged."""
        return codec.parse(documents.parse(self.line), Sample)


class Host(Struct, frozen=True, kw_only=True):
    """The machine as its worker identified it, as far as a fleet needs it."""

    architecture: str
    memory_bytes: int | None


# What a sample must have after it was shortened. Where it has not, its keys are in an order of somebody else's.
NEEDED = {*codec.required(ShortSample)} - {"line"}
KINDS_OF_EVENTS: dict[str, type[Timed | Sample | ShortSample]] = {**EVENTS, "sample": ShortSample}
Event = Timed | Sample | ShortSample
Kind = TypeVar("Kind", bound=Struct)


def shortened(line: bytes) -> object:
    """Return the event in a line of a record; of a sample what its speed needs, and its ``line``.

    Raise ValueError for a damaged line, though not for damage within what is left out.
    """
    event = _short_sample(line)
    if event is None:
        event = documents.parse(line)
    return {**event, "line": line} if isinstance(event, dict) and event.get("event") == "sample" else event


def _short_sample(line: bytes) -> RecordEvent | None:
    """Return the sample of a line that the runner wrote, without most of what speed does not need; else None."""
    if not line.startswith(SAMPLE) or line.count(ANY) != 1 or not line.endswith(b"}"):
        return None
    short = line
    for start in LISTS:
        before, has_list, after = short.partition(start)
        if has_list:
            short = before + after.partition(b"]")[2]
    before, has_list, _ = short.partition(EVIDENCE)
    try:
        event: RecordEvent = documents.parse(before + b"}" if has_list else short)
    except ValueError:
        return None
    return event if event.keys() >= NEEDED else None


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


def _without_folder(problem: Message) -> Message:
    """Return why a record can't be read. It is named without its folder, which the reader knows by the node's name."""
    if isinstance(problem, Unreadable | UnusableRecord | OtherSchema):
        return problem.replace(file=Path(problem.file).name)
    return problem


def _node(name: str, documents: Sequence[RecordEvent], profile: str | None) -> Node:
    events = [
        codec.parse(event, KINDS_OF_EVENTS[event["event"]]) for event in documents if event["event"] in KINDS_OF_EVENTS
    ]
    run = events[0]
    assert isinstance(run, Beginning), "a run's record begins with it"
    study = Study.from_json(run.study)
    if len(study.workloads) > 1:
        raise InputError(SeveralWorkloads())
    arm = _arm(study, profile)
    _require_success(run, events)
    samples = [sample for sample in _of(events, ShortSample) if sample.arm == arm.name]
    if not samples:
        raise InputError(NoSample(arm.name))
    environment = Environment.from_json(run.environments[arm.name])
    _require_effect(environment.profile, samples[-1])
    if not 0 <= run.time < LATEST:
        raise InputError(InvalidBeginning(run.time))
    surroundings = run.surroundings(arm.target)
    inspection = surroundings["inspection"]
    host = codec.parse(inspection["fingerprint"], Host)
    facts = {**engine_facts(surroundings), "GPU driver": (inspection.get("accelerator") or {}).get("driver")}
    each = (disturbances(sample.usage, sample.seconds) for sample in samples)
    disturbed = {number: kinds for number, kinds in enumerate(each) if kinds}
    kernels = _of(events, ReferenceKernel)
    clocks = [mhz for sample in samples if (mhz := sample.usage.frequency_mhz)]
    node = Node(
        name=name,
        profile=arm.profile,
        workload=f"{study.workload_of(arm)}{f' ({study.scaling})' if study.weak else ''}",
        kind=_kind(study, inspection, host),
        must_agree=_must_agree(study, arm, environment, run, samples[0].digests),
        facts={name: value for name, value in facts.items() if value is not None},
        memory_bytes=host.memory_bytes,
        began=run.time,
        finished=_reason(events) in ENDED,
        step_s=_step_s(samples, events),
        samples_with_interference=len(disturbed),
        interference=KINDS[commonest(disturbed.values())] if disturbed else "",
        reference_kernel_s=statistics.median(kernel.seconds for kernel in kernels) if kernels else None,
        reference_kernel_digest=kernels[0].digest if kernels else None,
        clock_mhz=statistics.median(clocks) if clocks else None,
    )
    return codec.checked(node)  # what an image's inspection and an engine said has no form of its own


def _of(events: Sequence[Event], kind: type[Kind]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def _step_s(samples: Sequence[ShortSample], events: Sequence[Event]) -> tuple[float, ...]:
    """Return the mean time of a step in each sample, without steps in which the training warmed up."""
    lengths = _of(events, Lengths)
    skipped = lengths[0].skipped_steps if lengths else 0
    step_s = tuple(statistics.fmean(sample.step_s[skipped:]) for sample in samples)
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in step_s):
        raise InputError(NoTime())
    return step_s


def _kind(study: Study, inspection: Inspection, host: Host) -> str:
    """Return the type of machine; GPUs belong to it where they are trained on, as a user's own command may do."""
    gpus = gpu_names(inspection) if study.options.device == CUDA or study.user_command is not None else ""
    usable = inspection["facts"]["usable_cpus"]
    return f"{cpu_name(inspection['fingerprint'])}, {usable} usable CPUs ({host.architecture}){gpus and f', {gpus}'}"


def _arm(study: Study, profile: str | None) -> Arm:
    """Return the arm by which the fleet is judged: that of ``profile``, or the only one that was compared or alone."""
    subjects = study.subjects
    if profile is None:
        if len(subjects) > 1:
            raise InputError(SeveralProfiles(tuple(arm.profile for arm in subjects)))
        return subjects[0]
    measured = next((arm for arm in study.arms if arm.profile == profile), None)
    if measured is None:
        raise InputError(OtherProfiles(profile, tuple(arm.profile for arm in study.arms)))
    return measured


def _reason(events: Sequence[Event]) -> str | None:
    """Return why the run ended; None if it did not, or went on since."""
    last = next((event for event in reversed(events) if isinstance(event, End | Resume)), None)
    return last.reason if isinstance(last, End) else None


def _require_success(run: Beginning, events: Sequence[Event]) -> None:
    """Raise InputError for a run that a failure ended, or a profile that was not in effect."""
    reason = _reason(events)
    if reason == FAILED:
        *_, failure = _of(events, Failure)
        printed = failure.stderr.strip().splitlines()
        raise InputError(NodeFailed(restored(failure.problem), printed[-1] if printed else None))
    if reason == NOT_IN_EFFECT:
        *_, sample = _of(events, ShortSample)
        profile = str(run.environments[sample.arm]["profile"])
        _require_effect(profile, sample)
        raise InputError(ProfileNotInEffect(profile))


def _require_effect(profile: str, sample: ShortSample) -> None:
    """Raise InputError for a sample in which ``profile`` was not in effect.

    A run ends with the first such sample, so looking at the last one is enough.
    """
    failed = next((check for check in sample.complete().checks if not check.holds), None)
    if failed is not None:
        raise InputError(ProfileNotInEffect(profile, failed.key, shown(failed.expected), shown(failed.seen)))


def _must_agree(
    study: Study, arm: Arm, environment: Environment, run: Beginning, digests: Mapping[str, str]
) -> dict[str, str]:
    """Return what was measured, by names that a message can use."""
    surroundings = run.surroundings(arm.target)
    intent = {
        "profile": arm.profile,
        "workload": study.workload_of(arm),
        "mode": study.options.text() or FP32,
        "steps": str(study.training.steps),
        "warm-up steps": str(study.training.warmup_steps),
        "epochs": str(study.epochs),
        "engine": arm.engine,
        "image digest": surroundings["engine"].get("digest") or "",
        "PyTorch": surroundings["inspection"]["packages"].get("torch") or "",
        "prefix": " ".join(environment.prefix),
    }
    if arm.instances:
        intent["instances"] = str(arm.instances)
    if study.distributed:
        intent |= {"ranks": str(study.ranks_of(arm)), "scaling": study.scaling}
    intent |= {f"variable {name}": value for name, value in sorted(environment.variables.items())}
    if run.allowed_variables:
        intent["kept variables"] = ", ".join(sorted(run.allowed_variables))
    if study.user_command is not None:  # what its folder holds may change as it runs
        return {**intent, "command": " ".join(study.user_command.argv)}
    for name, digest in sorted(digests.items()):
        if name != INITIAL_WEIGHTS:  # they follow from the code and PyTorch
            intent[f"{name.replace('_', ' ')} digest"] = f"{digest[:SHOWN_OF_DIGEST]}…"
    return intent
