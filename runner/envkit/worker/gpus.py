"""Which GPUs a training started here could use, and why there is none: looked at without importing torch."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from envkit.messages import Message
from envkit.worker import nvml
from envkit.worker.messages.gpus import (
    AllHidden,
    BuiltWithoutCuda,
    DriverTooOld,
    DriverUnusable,
    HiddenBySetting,
    NamesGpuTwice,
    NamesMissingGpu,
    NoGpu,
)

VISIBLE = "CUDA_VISIBLE_DEVICES"
# The variables that say which GPUs are meant: workers that train on one keep the caller's.
CHOOSING = (VISIBLE, "CUDA_DEVICE_ORDER")
# How torch/version.py names the CUDA that a build of torch is for; None in a build for CPUs.
BUILT_FOR = re.compile(r"^cuda(?:: [^=\n]+)? = (?:'([0-9.]+)'|None)", re.MULTILINE)
INTERFACES = Path("/sys/class/net")


class Gpus(TypedDict, total=False):
    """The GPUs of this machine, and those that a training could use (``look``)."""

    torch_cuda: str | None  # the CUDA that torch was built for; None for CPUs alone
    driver: str | None  # its version
    driver_cuda: str | None  # the newest CUDA that the driver is for
    devices: list[dict[str, str | None]]
    usable: int
    problem: dict[str, object] | None  # a message as JSON, where no GPU is usable
    by_setting: bool  # CUDA_VISIBLE_DEVICES is the reason
    interfaces: list[str]  # of the network


def look() -> Gpus:
    """Return the GPUs, as this process sees them.

    ``torch_cuda`` is the CUDA that torch was built for, None for a build without; ``driver`` and ``driver_cuda`` are
    the driver's version and the newest CUDA it is for, and ``devices`` the machine's GPUs. ``usable`` counts those that
    torch could use and CUDA_VISIBLE_DEVICES leaves to it; if there is none, ``problem`` is a message (JSON) that says
    why, and what to do. ``by_setting`` says that the reason is CUDA_VISIBLE_DEVICES, whose value the problem quotes.
    ``interfaces`` are the network's, from which NCCL chooses.
    """
    built_for, setting = torch_cuda(), os.environ.get(VISIBLE)
    gpus: Gpus = {"torch_cuda": built_for, "driver": None, "driver_cuda": None, "devices": []}
    silent: Message | None = None
    try:
        library = nvml.start()
        gpus.update({"driver": library.driver(), "driver_cuda": library.cuda(), "devices": library.devices()})
    except nvml.Unavailable as error:
        silent = error.message
    uuids = [device["uuid"] or "" for device in gpus["devices"]]
    unusable = why_none(gpus, silent)
    hides = None if unusable else hidden(setting, uuids)
    problem = unusable or (HiddenBySetting(hides, VISIBLE) if hides else None)
    usable = 0 if problem else visible(setting, uuids)
    interfaces = sorted(entry.name for entry in INTERFACES.iterdir()) if INTERFACES.is_dir() else []
    return {
        **gpus,
        "usable": usable,
        "problem": problem.to_json() if problem else None,
        "by_setting": hides is not None,
        "interfaces": interfaces,
    }


def why_none(gpus: Gpus, silent: Message | None) -> Message | None:
    """Return why torch can use no GPU, by what is known of the ``gpus``; None if it can.

    ``silent`` is why the driver says nothing, if it does not.
    """
    built_for, driver = gpus["torch_cuda"], gpus["driver"]
    if built_for is None:
        return BuiltWithoutCuda()
    if silent is not None:
        return DriverUnusable(silent)
    if too_old(gpus["driver_cuda"], built_for):
        return DriverTooOld(driver, gpus["driver_cuda"], built_for)
    return None if gpus["devices"] else NoGpu(driver)


def torch_cuda() -> str | None:
    """The CUDA that torch was built for, from its version.py; None where it is a build without, or there is none."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder, "version.py")
        if path.is_file():
            return built_for(path.read_text(errors="replace"))
    return None


def built_for(text: str) -> str | None:
    """``12.8`` from the text of torch/version.py."""
    match = BUILT_FOR.search(text)
    return match.group(1) if match else None


def too_old(driver_cuda: str | None, built_for: str) -> bool:
    """Return whether a driver is for an older major version of CUDA than torch was built for.

    Within one major version a program also runs on the driver of an earlier minor one (CUDA Compatibility, "Minor
    Version Compatibility": https://docs.nvidia.com/deploy/cuda-compatibility/).
    """
    return driver_cuda is not None and int(driver_cuda.split(".", maxsplit=1)[0]) < int(
        built_for.split(".", maxsplit=1)[0]
    )


def hidden(setting: str | None, uuids: Sequence[str]) -> Message | None:
    """Return what is wrong if CUDA_VISIBLE_DEVICES hides every GPU, or names one that is not there; else None."""
    if setting is None:
        return None
    entries = [entry.strip() for entry in setting.split(",")]
    if not setting.strip() or entries[0] == "-1":
        return AllHidden(VISIBLE, setting)
    named = entries[: entries.index("-1")] if "-1" in entries else entries
    for number, entry in enumerate(named):
        if _index(entry, uuids) is None:
            return NamesMissingGpu(VISIBLE, setting, entry, len(uuids))
        if entry in named[:number]:
            return NamesGpuTwice(VISIBLE, setting, entry)
    return None


def visible(setting: str | None, uuids: Sequence[str]) -> int:
    """How many GPUs a process sees: those named before the first that is not there (CUDA programming guide, 5.2.1).

    None where one is named twice (torch.cuda's _parse_visible_devices).
    """
    if setting is None:
        return len(uuids)
    indices: dict[str, int] = {}
    for entry in map(str.strip, setting.split(",")):
        index = _index(entry, uuids)
        if index is None:
            break
        if entry in indices:
            return 0
        indices[entry] = index
    return len({*indices.values()})


def _index(entry: str, uuids: Sequence[str]) -> int | None:
    """A GPU's number from its number, or from the beginning of its UUID; a part of one (MIG) stands for the first."""
    if re.fullmatch(r"[0-9]+", entry):
        return int(entry) if int(entry) < len(uuids) else None
    if entry.startswith("MIG-"):
        return 0 if uuids else None
    named = [number for number, uuid in enumerate(uuids) if entry.startswith("GPU-") and uuid.startswith(entry)]
    return named[0] if len(named) == 1 else None
