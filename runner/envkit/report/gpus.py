"""What reports say of the GPUs that were trained on, and of what NCCL chose there."""

from __future__ import annotations

from typing import Any

from envkit.analysis.gpu_readings import GpuReadings
from envkit.analysis.summary import Summary
from envkit.report.parts import Row

MIB = 2**20


def rows(summary: Summary) -> list[Row]:
    """For each arm clocks, heat, power and idle time of its GPU, and NCCL's choices where its log was asked for."""
    return [row for one in summary.gpus for row in _rows(one)]


def _rows(one: GpuReadings) -> list[Row]:
    found = []
    if one.samples:
        found.append(Row("gpu", f"{one.arm}: {', '.join(_state(one)) or 'NVML tells nothing of it'}"))
        for reason, samples in one.held_back.items():
            found.append(Row("", f"Its clocks were held back ({reason}) around {samples} of {one.samples} samples."))
        if work := _work(one):
            found.append(Row("", work))
    if one.nccl is not None:
        found.append(Row("nccl", f"{one.arm}: {'; '.join(choices(one.nccl))}"))
        found += [Row("", f"NCCL warns: {warning}") for warning in one.nccl["warnings"]]
    return found


def _state(one: GpuReadings) -> list[str]:
    said = []
    if one.sm_mhz:
        said.append(f"{_between(one.sm_mhz)} MHz")
    if one.temperature_c:
        said.append(f"{_between(one.temperature_c)} °C")
    if one.power_w is not None:
        said.append(f"{one.power_w:.0f} W while steps were timed")
    if one.allocated_bytes is not None:
        said.append(f"{one.allocated_bytes / MIB:,.0f} MiB in tensors at most")
    return said


def _between(ends: tuple[int, int]) -> str:
    least, most = ends
    return str(least) if least == most else f"{least} to {most}"


def _work(one: GpuReadings) -> str | None:
    """How much of the time it had something to do; None where the profiler saw nothing run there."""
    if one.idle_share is None:
        return None
    kernels = f" between {one.kernels_per_step:,.0f} kernels and copies" if one.kernels_per_step else ""
    return f"Nothing ran on it for {one.idle_share:.1%} of a step{kernels}, under the profiler."


def choices(log: dict[str, Any]) -> list[str]:
    """``NCCL 2.28.3, 2 ranks``, ``8 channels``, …: what a log says, and nothing of what it does not."""
    ranks = f", {log['ranks']} ranks" if log["ranks"] else ""
    said = [f"NCCL {log['version'] or 'of an unknown version'}{ranks}"]
    made = [f"{log[name]} {name}" for name in ("rings", "trees", "channels") if log[name]]
    said += [", ".join(made)] if made else []
    said += [f"between ranks {log['transports']}"] if log["transports"] else []
    said += [f"network {log['network']}"] if log["network"] else []
    for one in log["choices"]:
        calls = f"{one['calls']} time{'s' * (one['calls'] != 1)}"
        said.append(f"{one['collective']} by {one['algorithm']}, protocol {one['protocol']}, {calls}")
    return said
