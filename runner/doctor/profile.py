"""Checks of what a profile sets, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.doctor.finding import Finding, Situation

GPU_VARIABLES = ("NCCL_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_")
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
BINDING = ("KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY")


def asks_for_too_many_threads(situation: Situation) -> Finding | None:
    asked, usable = situation.variable("OMP_NUM_THREADS"), situation.facts["usable_cpus"]
    if situation.evidence is not None or asked is None or not asked.isdigit() or int(asked) <= usable:
        return None
    return Finding(
        "too-many-threads", "stop",
        f"OMP_NUM_THREADS={asked} for {usable} usable CPUs",
        "threads that spin take the cores from those they wait for: training can get tens of times slower",
        "OMP_NUM_THREADS: ${usable_cpus}",
    )  # fmt: skip


def huge_pages_off(situation: Situation) -> Finding | None:
    wanted = situation.environment is not None and situation.environment.expect.get("memory.huge_pages") is not None
    if not wanted or situation.fingerprint["thp_enabled"] != "never":
        return None
    return Finding(
        "huge-pages-off", "stop",
        "the profile wants transparent huge pages, and the system's mode is never",
        "memory comes in pages of 4 KiB, each with a fault of its own",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )  # fmt: skip


def no_gpu(situation: Situation) -> Finding | None:
    names = (
        [name for name in situation.environment.variables if name.startswith(GPU_VARIABLES)]
        if situation.environment
        else []
    )
    if not names or any(device.exists() for device in GPU_DEVICES):
        return None
    return Finding(
        "no-gpu", "warn",
        f"{', '.join(names)}: set, and there is no GPU here",
        "nothing reads them, so the profile measures nothing",
        "choose a profile for CPUs",
    )  # fmt: skip


def hidden_topology(situation: Situation) -> Finding | None:
    binds = any(situation.variable(name) for name in BINDING)
    if not binds or situation.fingerprint["hypervisor"] is None or situation.facts["smt"]:
        return None
    return Finding(
        "hidden-topology", "note",
        "this virtual machine shows no hardware threads that share a core",
        "what it calls two cores may be one: a binding to cores can put two threads on one of them",
        "compare with a profile that does not bind",
    )  # fmt: skip


PROFILE_CHECKS: tuple[Callable[[Situation], Finding | None], ...] = (
    asks_for_too_many_threads, huge_pages_off, no_gpu, hidden_topology,
)  # fmt: skip
