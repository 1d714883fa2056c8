"""Messages on the GPUs of a training and the choices of NCCL. Sizes are in bytes."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING = Severity.NOTE, Severity.WARNING


class GpuState(Message):
    code = "report.gpu-state"
    severity = NOTE
    template = "{arm}: {readings:list}"

    arm: str
    readings: tuple[Message, ...]


class NoGpuReadings(Message):
    code = "report.no-gpu-readings"
    severity = NOTE
    template = "NVML reports nothing about it"


class Clock(Message):
    """The lowest clock rate, and the highest unless it is the same."""

    code = "report.clock"
    severity = NOTE
    template = "{low:d}[ to {high:d}] MHz"

    low: int
    high: int | None


class Temperature(Message):
    """The lowest temperature, and the highest unless it is the same."""

    code = "report.temperature"
    severity = NOTE
    template = "{low:d}[ to {high:d}] °C"

    low: int
    high: int | None


class Power(Message):
    code = "report.power"
    severity = NOTE
    template = "{watts:.0f} W while steps were timed"

    watts: float


class InTensors(Message):
    code = "report.in-tensors"
    severity = NOTE
    template = "at most {bytes:size} in tensors"

    bytes: float


class HeldBack(Message):
    code = "report.held-back"
    severity = WARNING
    template = "its clocks were held back ({reason}) around {samples} of {of} samples"

    reason: str
    samples: int
    of: int


class IdleGpu(Message):
    """By the profiler, under which steps take longer."""

    code = "report.idle-gpu"
    severity = NOTE
    template = "without work for {share:.1%} of a step[ between {kernels:,.0f} kernels and copies], under the profiler"

    share: float
    kernels: float | None


class NcclState(Message):
    code = "report.nccl-state"
    severity = NOTE
    template = "{arm}: {choices:lines}"

    arm: str
    choices: tuple[Message, ...]


class NcclVersion(Message):
    code = "report.nccl-version"
    severity = NOTE
    template = "NCCL[ {version}][, {ranks:count rank}]"

    version: str | None
    ranks: int | None


class NcclTopology(Message):
    """How many rings, trees and channels."""

    code = "report.nccl-topology"
    severity = NOTE
    template = "{numbers:list}"

    numbers: tuple[Message, ...]


class Count(Message):
    code = "report.count"
    severity = NOTE
    template = "{number} {things}"

    number: int
    things: str


class NcclTransports(Message):
    code = "report.nccl-transports"
    severity = NOTE
    template = "between ranks {transports}"

    transports: str


class NcclNetwork(Message):
    code = "report.nccl-network"
    severity = NOTE
    template = "network {network}"

    network: str


class NcclCollective(Message):
    code = "report.nccl-collective"
    severity = NOTE
    template = "{collective} by {algorithm}, protocol {protocol}, {calls:count time}"

    collective: str
    algorithm: str
    protocol: str
    calls: int


class NcclWarning(Message):
    code = "report.nccl-warning"
    severity = WARNING
    template = "NCCL warns: {warning}"

    warning: str
