"""NVIDIA's management library (NVML), which is a part of the driver: what it says of the GPUs of this machine.

It is asked through ctypes, as a user's own Python, or an image's, need not have a package for it. Function names,
units and numbers are those of the NVML API reference (https://docs.nvidia.com/deploy/nvml-api/).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from envkit.messages import Message
from envkit.worker.errors import WorkerError
from envkit.worker.messages.captions import HELD_BACK
from envkit.worker.messages.gpus import (
    DriverNotLoaded,
    DriverNotPermitted,
    DriverSilent,
    DriverVersionsDiffer,
    NoDriverSeen,
)
from envkit.worker.sample import GpuReading, GpuUse

if TYPE_CHECKING:
    Integer = ctypes.c_int | ctypes.c_uint | ctypes.c_ulonglong

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
# nvmlReturn_t, of nvmlInit_v2.
PROBLEMS: Mapping[int, type[Message]] = {4: DriverNotPermitted, 9: DriverNotLoaded, 18: DriverVersionsDiffer}
# nvmlClockType_t and nvmlTemperatureSensors_t.
CLOCK_SM, CLOCK_MEMORY, TEMPERATURE_GPU = 1, 2, 0
NAME_BYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE, the longest of the texts that are asked for
# Which of several GPUs tells most of a reading: the one with the lowest, or all of them; of others, the highest.
LOWEST = ("sm_mhz", "memory_mhz")
SUMMED = ("power_w", "mean_power_w", "energy_j", "allocated_bytes", "reserved_bytes")


class Unavailable(WorkerError):
    """No GPU can be asked here."""


class Nvml:
    """The library, ready to be asked; what a GPU or an older driver does not tell is None."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises Unavailable."""
        self._library = library
        status = library.nvmlInit_v2()
        if status != SUCCESS:
            raise Unavailable(PROBLEMS[status]() if status in PROBLEMS else DriverSilent(status))

    def driver(self) -> str | None:
        """Its version, as ``580.95.05``."""
        return self._text("nvmlSystemGetDriverVersion")

    def cuda(self) -> str | None:
        """The newest CUDA that the driver is for, as ``13.0``."""
        number = self._number("nvmlSystemGetCudaDriverVersion_v2", ctypes.c_int())
        return None if number is None else f"{number // 1000}.{number % 1000 // 10}"

    def devices(self) -> list[dict[str, str | None]]:
        """``name`` and ``uuid`` of each GPU, in NVML's order, which is that of the PCI bus."""
        devices = []
        for index in range(self._number("nvmlDeviceGetCount_v2", ctypes.c_uint()) or 0):
            handle = self._handle("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index))
            if handle is not None:
                texts = {"name": "nvmlDeviceGetName", "uuid": "nvmlDeviceGetUUID"}
                devices.append({key: self._text(function, handle) for key, function in texts.items()})
        return devices

    def numbers(self, uuid: str) -> dict[str, int | None] | None:
        """Return what NVML counts and measures of one GPU now, in NVML's own units; None if it has no such GPU."""
        handle = self._handle("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(uuid.encode()))
        if handle is None:
            return None
        reasons = self._number("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong(), handle)
        if reasons is None:  # what drivers before 535 call it
            reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong(), handle)
        return {
            "sm_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(), handle, ctypes.c_int(CLOCK_SM)),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(), handle, ctypes.c_int(CLOCK_MEMORY)),
            "temperature_c": self._number(
                "nvmlDeviceGetTemperature", ctypes.c_uint(), handle, ctypes.c_int(TEMPERATURE_GPU)
            ),
            "power_mw": self._number("nvmlDeviceGetPowerUsage", ctypes.c_uint(), handle),
            "energy_mj": self._number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong(), handle),
            "reasons": reasons,
        }

    def _call(self, function: str, *arguments: object) -> bool:
        call = getattr(self._library, function, None)
        return call is not None and call(*arguments) == SUCCESS

    def _number(self, function: str, result: Integer, *arguments: object) -> int | None:
        """``result`` is the C variable that the function writes to."""
        return int(result.value) if self._call(function, *arguments, ctypes.byref(result)) else None

    def _text(self, function: str, *arguments: object) -> str | None:
        buffer = ctypes.create_string_buffer(NAME_BYTES)
        is_known = self._call(function, *arguments, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode(errors="replace") if is_known else None

    def _handle(self, function: str, key: ctypes.c_uint | ctypes.c_char_p) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        return handle if self._call(function, key, ctypes.byref(handle)) else None


def start() -> Nvml:
    """Raises Unavailable where there is no driver, or none that answers."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise Unavailable(NoDriverSeen(LIBRARY)) from None
    return Nvml(library)


def reading(numbers: Mapping[str, int | None]) -> GpuReading:
    """A GPU's state in the units of a record: MHz, degrees Celsius, watts, joules since the driver was loaded.

    ``held_back`` names why clocks are below the highest; None where that is not told, [] where nothing holds them back.
    """
    power, energy, reasons = numbers["power_mw"], numbers["energy_mj"], numbers["reasons"]
    return {
        "sm_mhz": numbers["sm_mhz"],
        "memory_mhz": numbers["memory_mhz"],
        "temperature_c": numbers["temperature_c"],
        "power_w": None if power is None else power / 1e3,
        "energy_j": None if energy is None else energy / 1e3,
        "held_back": None if reasons is None else held_back(reasons),
    }


def held_back(reasons: int) -> list[str]:
    """Return the words for a mask of NvmlClocksEventReasons; an unknown bit becomes a number."""
    unknown = reasons & ~sum(HELD_BACK)
    return [*(word for bit, word in HELD_BACK.items() if reasons & bit), *([hex(unknown)] if unknown else [])]


def around(before: GpuReading, after: GpuReading, seconds: float) -> GpuUse:
    """Two readings of one GPU and what was used between them, ``seconds`` apart by the host's clock.

    ``energy_j`` is from the GPU's own counter, and ``mean_power_w`` follows from it; None where it has no such counter.
    """
    used = None
    if before["energy_j"] is not None and after["energy_j"] is not None and after["energy_j"] >= before["energy_j"]:
        used = round(after["energy_j"] - before["energy_j"], 3)
    return {
        "before": {key: value for key, value in before.items() if key != "energy_j"},
        "after": {key: value for key, value in after.items() if key != "energy_j"},
        "energy_j": used,
        "mean_power_w": round(used / seconds, 1) if used is not None and seconds > 0 else None,
    }


def together(gpus: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return several GPUs that train together as one, each in the shape of the first.

    The lowest clocks, the highest temperature, idle share and number of kernels, and all their power, energy and
    memory; what held back any of them. None is what one of them does not tell.
    """
    return {name: _together(name, [gpu.get(name) for gpu in gpus]) for name in gpus[0]}


def _together(name: str, values: Sequence[object]) -> object:
    if None in values:
        return None
    readings = [value for value in values if isinstance(value, Mapping)]
    if readings:
        return together(readings)
    lists = [value for value in values if isinstance(value, list)]
    if lists:
        return list(dict.fromkeys(reason for reasons in lists for reason in reasons))
    numbers = [value for value in values if isinstance(value, (int, float))]
    if name in LOWEST:
        return min(numbers)
    return sum(numbers) if name in SUMMED else max(numbers)
