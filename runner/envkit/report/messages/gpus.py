"""Messages on the GPUs of a training and the choices of NCCL. Sizes are in bytes."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

BETWEEN_RANKS, NETWORK = "between ranks", "network"


class GpuState(Note):
    template = "{arm}: {readings:list}"

    arm: str
    readings: tuple[Message, ...]


class NoGpuReadings(Note):
    template = "NVML reports nothing about it"


class GpuReading(Note):
    """The lowest and the highest reading of a GPU's clock or temperature."""

    template = "{low:d}[ to {high:d}] {unit}"

    low: int
    high: int | None
    unit: str


class Power(Note):
    template = "{watts:.0f} W while steps were timed"

    watts: float


class InTensors(Note):
    template = "at most {bytes:size} in tensors"

    bytes: float


class HeldBack(Caution):
    template = "its clocks were held back ({reason}) around {samples} of {of} samples"

    reason: str
    samples: int
    of: int


class IdleGpu(Note):
    """By the profiler, under which steps take longer."""

    template = "without work for {share:.1%} of a step[ between {kernels:,.0f} kernels and copies], under the profiler"

    share: float
    kernels: float | None


class NcclState(Note):
    template = "{arm}: {choices:lines}"

    arm: str
    choices: tuple[Message, ...]


class NcclVersion(Note):
    template = "NCCL[ {version}][, {ranks:count rank}]"

    version: str | None
    ranks: int | None


class NcclTopology(Note):
    """How many rings, trees and channels."""

    template = "{numbers:list}"

    numbers: tuple[Message, ...]


class Count(Note):
    template = "{number} {things}"

    number: int
    things: str


class NcclChoice(Note):
    """NCCL chose transports between ranks, or a network."""

    template = "{place} {choice}"

    place: str  # BETWEEN_RANKS or NETWORK
    choice: str


class NcclCollective(Note):
    template = "{collective} by {algorithm}, protocol {protocol}, {calls:count time}"

    collective: str
    algorithm: str
    protocol: str
    calls: int


class NcclWarning(Caution):
    template = "NCCL warns: {warning}"

    warning: str
