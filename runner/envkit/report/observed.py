"""Observations of each arm's workers: their settings, their GPUs, and NCCL's choices there."""

from __future__ import annotations

from collections.abc import Iterable

from envkit.analysis.gpu_readings import GpuReadings, NcclLog
from envkit.analysis.result import Measured, Result
from envkit.checks import effect
from envkit.checks.effect import NOT_SEEN, Check
from envkit.checks.effect_messages import Value
from envkit.checks.finding_messages import Unmet
from envkit.checks.process_messages import NotVerified
from envkit.common.messages import About
from envkit.messages import Message, from_json
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.report.messages import certainty as messages
from envkit.report.messages import gpus as of_gpus
from envkit.report.messages.lines import OfSubject
from envkit.report.parts import Fold, Listing, Note, Part, Row, Table, together


def rows(result: Result) -> list[Row]:
    """Return what was not measured, and of each arm how many of its settings were verified."""
    rows = [Row("left out", About(names, why)) for names, why in together(result.not_measured).items()]
    for measured in result.measured:
        rows += _of_arm(measured)
    for first in result.course.first_runs or ():
        if first.checks:
            rows.append(Row("settings", messages.ArmVerified(first.arm, len(first.checks), None, messages.FIRST)))
    return rows


def _of_arm(measured: Measured) -> list[Row]:
    rows, number = [], len(measured.checks) - len(measured.unverified)
    if not measured.in_effect:
        rows.append(Row("settings", messages.ArmNotInEffect(measured.arm, missed(measured.checks)), "bad"))
    elif number:
        rows.append(Row("settings", messages.ArmVerified(measured.arm, number, len(measured.checks), messages.EVERY)))
    rows += [
        Row("", About(measured.arm, NotVerified(check.key, effect.shown(check.seen)))) for check in measured.unverified
    ]
    return [
        *rows,
        *([Row("", About(measured.arm, from_json(measured.not_observed)))] if measured.not_observed else []),
    ]


def settings(measured: Measured, environment: Environment, unfolded: bool, page: bool) -> Part:
    """Return the settings of an arm, as expected and as observed; not ``unfolded`` unless one was not in effect."""
    variables = [f"{name}={value}" for name, value in environment.variables.items()]
    if not measured.checks and not variables:
        return Note(messages.ExpectsNothing(measured.arm, messages.SETS_NOTHING), "plain")
    if not measured.checks:
        return Fold(messages.ExpectsNothing(measured.arm), [Listing(variables)])
    rows, weights = [], []
    for check in measured.checks:
        state = ("ok" if check.holds else "NOT MET") if check.verified else "not verified"
        rows.append([check.key, shown(check.expected), shown(check.seen), state])
        weights.append("plain" if check.holds or not check.verified else "bad")
    state = "NOT IN EFFECT" if not measured.in_effect else "not verified" if measured.unverified else "in effect"
    weight = {"in effect": "good", "NOT IN EFFECT": "bad"}.get(state, "plain")
    table = Table(("check", "expected", "seen", "met") if page else ("", "expected", "seen", ""), rows, weights=weights)
    listed = [Listing(variables)] if variables else []
    return Fold(OfSubject(measured.arm, state), [table, *listed], unfolded or not measured.in_effect, weight)


def missed(checks: Iterable[Check]) -> tuple[Message, ...]:
    """Return those settings that were not observed as expected."""
    return tuple(_missed(check) for check in checks if not check.holds)


def _missed(check: Check) -> Message:
    if check.seen == NOT_SEEN:
        return messages.MissedUnseen(check.key, shown(check.expected))
    return Unmet(check.key, _value(check.expected), _value(check.seen))


def _value(value: object) -> Message:
    return Value("nothing") if value is None else effect.shown(value)


def shown(value: object) -> str:
    """Return a value of a setting, or ``nothing``."""
    return "nothing" if value is None else text(effect.shown(value))


def seen(value: object) -> str:
    """Return ``seen`` and the value, or that it was not seen."""
    return NOT_SEEN if value == NOT_SEEN else f"seen {shown(value)}"


# --- GPUs ---


def gpus(readings: Iterable[GpuReadings]) -> list[Row]:
    """Return for each arm clocks, heat, power and idle time of its GPU, and NCCL's choices if its log was read."""
    return [row for one in readings for row in _of_gpus(one)]


def _of_gpus(gpu: GpuReadings) -> list[Row]:
    rows = []
    if gpu.samples:
        readings = tuple(_readings(gpu)) or (of_gpus.NoGpuReadings(),)
        rows.append(Row("gpu", of_gpus.GpuState(gpu.arm, readings)))
        held_back = gpu.held_back.items()
        rows += [Row("", of_gpus.HeldBack(reason, samples, gpu.samples)) for reason, samples in held_back]
        if gpu.idle_share is not None:
            rows.append(Row("", of_gpus.IdleGpu(gpu.idle_share, gpu.kernels_per_step or None)))
    if gpu.nccl is not None:
        rows.append(Row("nccl", of_gpus.NcclState(gpu.arm, tuple(choices(gpu.nccl)))))
        rows += [Row("", of_gpus.NcclWarning(warning)) for warning in gpu.nccl["warnings"]]
    return rows


def _readings(readings: GpuReadings) -> list[Message]:
    lines: list[Message] = []
    if readings.sm_mhz:
        lines.append(of_gpus.GpuReading(*_ends(readings.sm_mhz), "MHz"))
    if readings.temperature_c:
        lines.append(of_gpus.GpuReading(*_ends(readings.temperature_c), "°C"))
    if readings.power_w is not None:
        lines.append(of_gpus.Power(readings.power_w))
    if readings.allocated_bytes is not None:
        lines.append(of_gpus.InTensors(readings.allocated_bytes))
    return lines


def _ends(ends: tuple[float, float]) -> tuple[int, int | None]:
    least, most = map(round, ends)
    return least, None if least == most else most


def choices(log: NcclLog) -> list[Message]:
    """Return NCCL's version, ranks, channels and so on, as far as its log has them."""
    lines: list[Message] = [of_gpus.NcclVersion(log["version"] or None, log["ranks"] or None)]
    counts = (("rings", log["rings"]), ("trees", log["trees"]), ("channels", log["channels"]))
    made = tuple(of_gpus.Count(count, name) for name, count in counts if count)
    lines += [of_gpus.NcclTopology(made)] if made else []
    lines += [of_gpus.NcclChoice(of_gpus.BETWEEN_RANKS, log["transports"])] if log["transports"] else []
    lines += [of_gpus.NcclChoice(of_gpus.NETWORK, log["network"])] if log["network"] else []
    for call in log["choices"]:
        lines.append(of_gpus.NcclCollective(call["collective"], call["algorithm"], call["protocol"], call["calls"]))
    return lines
