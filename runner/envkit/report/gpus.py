"""The report's lines on GPUs and on NCCL's choices there."""

from __future__ import annotations

from envkit.analysis.gpu_readings import GpuReadings, NcclLog
from envkit.analysis.result import Result
from envkit.messages import Message
from envkit.report.messages import gpus as messages
from envkit.report.parts import Row


def rows(result: Result) -> list[Row]:
    """Return for each arm clocks, heat, power and idle time of its GPU, and NCCL's choices if its log was read."""
    return [row for one in result.gpus for row in _rows(one)]


def _rows(one: GpuReadings) -> list[Row]:
    found = []
    if one.samples:
        readings = tuple(_readings(one)) or (messages.NoGpuReadings(),)
        found.append(Row("gpu", messages.GpuState(one.arm, readings)))
        held_back = one.held_back.items()
        found += [Row("", messages.HeldBack(reason, samples, one.samples)) for reason, samples in held_back]
        if one.idle_share is not None:
            found.append(Row("", messages.IdleGpu(one.idle_share, one.kernels_per_step or None)))
    if one.nccl is not None:
        found.append(Row("nccl", messages.NcclState(one.arm, tuple(choices(one.nccl)))))
        found += [Row("", messages.NcclWarning(warning)) for warning in one.nccl["warnings"]]
    return found


def _readings(one: GpuReadings) -> list[Message]:
    found: list[Message] = []
    if one.sm_mhz:
        found.append(messages.GpuReading(*_ends(one.sm_mhz), "MHz"))
    if one.temperature_c:
        found.append(messages.GpuReading(*_ends(one.temperature_c), "°C"))
    if one.power_w is not None:
        found.append(messages.Power(one.power_w))
    if one.allocated_bytes is not None:
        found.append(messages.InTensors(one.allocated_bytes))
    return found


def _ends(ends: tuple[float, float]) -> tuple[int, int | None]:
    least, most = map(round, ends)
    return least, None if least == most else most


def choices(log: NcclLog) -> list[Message]:
    """Return NCCL's version, ranks, channels and so on, as far as its log has them."""
    found: list[Message] = [messages.NcclVersion(log["version"] or None, log["ranks"] or None)]
    counts = (("rings", log["rings"]), ("trees", log["trees"]), ("channels", log["channels"]))
    made = tuple(messages.Count(count, name) for name, count in counts if count)
    found += [messages.NcclTopology(made)] if made else []
    found += [messages.NcclChoice(messages.BETWEEN_RANKS, log["transports"])] if log["transports"] else []
    found += [messages.NcclChoice(messages.NETWORK, log["network"])] if log["network"] else []
    for one in log["choices"]:
        found.append(messages.NcclCollective(one["collective"], one["algorithm"], one["protocol"], one["calls"]))
    return found
