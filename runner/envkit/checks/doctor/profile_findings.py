"""Checks of what a profile sets, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

from envkit.checks.doctor.finding import Finder, Finding, Situation, found
from envkit.checks.finding_messages import ThreadsAsked
from envkit.checks.profile_messages import (
    CoresDiffer,
    CpuLacks,
    GpuMissing,
    HiddenTopology,
    HugePagesOff,
    InterfaceMissing,
    LeaveFewerOut,
    NameNodes,
    NoGpu,
    NumaNodeMissing,
    OtherArchitecture,
    OtherVersion,
)
from envkit.worker import gpus
from envkit.worker.host import expand_cpu_list
from envkit.worker.libraries import LIBRARIES, setting

GPU_VARIABLES = ("NCCL_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_")
# What must be in /proc/cpuinfo for a part of an instruction set's name, and for a floating-point mode one of these, to
# change anything (oneDNN developer guide, "CPU Dispatcher Control" and "Floating-point Math Mode"). What the kernel
# keeps to itself can't be asked for: AMX's fp16 and tf32 are in no /proc/cpuinfo (arch/x86/include/asm/cpufeatures.h).
ISA_NEEDS = {"avx2": "avx2", "avx512": "avx512f", "bf16": "avx512_bf16", "fp16": "avx512_fp16", "avx10": "avx512_fp16",
             "amx": "amx_bf16"}  # fmt: skip
FPMATH_NEEDS = {"bf16": ("avx512_bf16", "amx_bf16"), "f16": ("avx512_fp16",)}
# Settings of x86 alone: oneDNN's hints are read by its code for x86 only, and glibc has these tunables where it is
# built for x86 ("Hardware Capability Tunables" in its manual).
X86_TUNABLES = ("glibc.cpu.x86_", "glibc.cpu.plt_rewrite", "glibc.cpu.prefer_map_32bit_exec")
X86_ISA = re.compile("sse|avx|amx")
# numactl(8): the options that take nodes, where they are numbers
NUMA_NODES = re.compile(
    r"(?:--(?:cpunodebind|membind|interleave|weighted-interleave|preferred|preferred-many)=|-[NmiwpP])([\d,-]+)"
)
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))


def asks_for_too_many_threads(situation: Situation) -> Finding | None:
    # a list has a number for each level of nesting
    threads = (situation.variable("OMP_NUM_THREADS") or "").partition(",")[0]
    usable = situation.facts["usable_cpus"]
    if situation.evidence is not None or not threads.isdigit() or int(threads) <= usable:
        return None
    return found("too-many-threads", ThreadsAsked(int(threads), usable))


def huge_pages_off(situation: Situation) -> Finding | None:
    expected = situation.environment.expect if situation.environment else {}
    wanted = expected.get("memory.huge_pages") is not None or expected.get("torch.huge_page_tensors") is True
    settings = [pair for library in LIBRARIES.values() for pair in library.huge_pages.items()]
    wanted = wanted or any(re.search(value, situation.variable(name) or "") for name, value in settings)
    if not wanted or situation.fingerprint["thp_enabled"] != "never":
        return None
    return found("huge-pages-off", HugePagesOff())


def no_gpu(situation: Situation) -> Finding | None:
    variables = situation.environment.variables if situation.environment else {}
    names = [name for name in variables if name.startswith(GPU_VARIABLES)]
    if not names or situation.accelerator.get("devices") or any(device.exists() for device in GPU_DEVICES):
        return None
    return found("no-gpu", NoGpu(tuple(names)))


def isa_above_cpu(situation: Situation) -> Finding | None:
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        value = (situation.variable(name) or "").lower()
        needed = dict.fromkeys(flag for word, flag in ISA_NEEDS.items() if word in value)
        missing = [flag for flag in needed if flag not in situation.fingerprint["isa"]]
        if missing and situation.fingerprint["architecture"] == "x86_64":
            return found("isa-above-cpu", CpuLacks(name, value, tuple(missing[:1])))
    return None


def aten_above_cpu(situation: Situation) -> Finding | None:
    """PyTorch takes the variable's word before it asks the CPU (compute_cpu_capability in ATen's DispatchStub.cpp)."""
    value = situation.variable("ATEN_CPU_CAPABILITY") or ""
    needed = {"avx2": "avx2", "avx512": "avx512f"}.get(value)
    if needed is None or needed in situation.fingerprint["isa"] or situation.fingerprint["architecture"] != "x86_64":
        return None
    return found("aten-above-cpu", CpuLacks("ATEN_CPU_CAPABILITY", value, (needed,)), severity="stop")


def isa_already_the_best(situation: Situation) -> Finding | None:
    """oneDNN's float32 code for 256-bit registers is AVX2's: later instruction sets concern smaller types."""
    if situation.fingerprint["architecture"] != "x86_64" or "avx512f" in situation.fingerprint["isa"]:
        return None
    for name, value in (("ONEDNN_MAX_CPU_ISA", "avx2"), ("ONEDNN_CPU_ISA_HINTS", "prefer_ymm")):
        if (situation.variable(name) or "").lower() == value:
            return found("isa-already-the-best", CpuLacks(name, value, ("avx512f",)))
    return None


def of_x86_alone(situation: Situation) -> Finding | None:
    architecture = situation.fingerprint["architecture"]
    if architecture == "x86_64":
        return None
    isa = {name: situation.variable(name) or "" for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")}
    hints, tunables = situation.variable("ONEDNN_CPU_ISA_HINTS"), situation.variable("GLIBC_TUNABLES") or ""
    setting_of_x86 = next(
        (f"{name}={value.lower()}" for name, value in isa.items() if X86_ISA.search(value.lower())), None
    )
    setting_of_x86 = setting_of_x86 or (f"ONEDNN_CPU_ISA_HINTS={hints}" if hints else None)
    of_glibc = (tunable for tunable in tunables.split(":") if tunable.startswith(X86_TUNABLES))
    setting_of_x86 = setting_of_x86 or next(of_glibc, None)
    if setting_of_x86 is None:
        return None
    return found("of-x86-alone", OtherArchitecture(setting_of_x86, architecture))


def fpmath_above_cpu(situation: Situation) -> Finding | None:
    for name in ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"):
        value = (situation.variable(name) or "").lower()
        needed = FPMATH_NEEDS.get(value, ())
        if not needed or situation.fingerprint["architecture"] != "x86_64":
            continue
        if not any(flag in situation.fingerprint["isa"] for flag in needed):
            return found("fpmath-above-cpu", CpuLacks(name, value, needed))
    return None


def numa_node_missing(situation: Situation) -> Finding | None:
    """Nodes are numbered from 0 on all but a few machines; there numactl itself ends with an error."""
    prefix = situation.environment.prefix if situation.environment else ()
    if not prefix or Path(prefix[0]).name != "numactl":
        return None
    there = situation.facts.get("memory_nodes", situation.numa_nodes)
    for option in prefix[1:]:
        match = NUMA_NODES.fullmatch(option)
        missing = [node for node in expand_cpu_list(match[1]) if node >= there] if match else []
        if missing:
            return found("numa-node-missing", NumaNodeMissing(option, missing[0]), NameNodes(there - 1))
    return None


def gpu_missing(situation: Situation) -> Finding | None:
    """CUDA takes a number that is not there for the end of the list, and says nothing."""
    if not situation.accelerator.get("devices"):
        return None
    uuids = [str(device["uuid"] or "") for device in situation.accelerator["devices"]]
    hidden = gpus.hidden(situation.variable(gpus.VISIBLE), uuids)
    if hidden is None:
        return None
    return found("gpu-missing", GpuMissing(hidden))


def interface_missing(situation: Situation) -> Finding | None:
    """Names are beginnings of names, unless = stands before them; with ^ before all, what they match is left out."""
    named = situation.variable("NCCL_SOCKET_IFNAME") or ""
    there = situation.accelerator.get("interfaces")
    if not named or there is None:
        return None
    excluding, listed = named.startswith("^"), named.removeprefix("^")
    exact = listed.startswith("=")
    entries = [entry.partition(":")[0] for entry in listed.removeprefix("=").split(",")]
    matching = {name for name in there for entry in entries if (name == entry if exact else name.startswith(entry))}
    if set(there) - matching if excluding else matching:
        return None
    return found(
        "interface-missing",
        InterfaceMissing(named, tuple(there)),
        LeaveFewerOut() if excluding else None,
    )


def mixed_versions(situation: Situation) -> Finding | None:
    for name in situation.environment.preload if situation.environment else ():
        library = situation.libraries.get(name)
        if library and library.get("others"):
            return found("mixed-versions", OtherVersion(library["path"], tuple(library["others"])))
    return None


def hidden_topology(situation: Situation) -> Finding | None:
    if not _binds(situation) or situation.cores_measured or situation.facts["smt"]:
        return None
    return None if situation.fingerprint["hypervisor"] is None else found("hidden-topology", HiddenTopology())


def cores_differ(situation: Situation) -> Finding | None:
    if not _binds(situation) or situation.kernel_cores is None:
        return None
    return found("cores-differ", CoresDiffer(situation.kernel_cores))


def _binds(situation: Situation) -> bool:
    return any(situation.variable(name) for name in setting("binding"))


PROFILE_CHECKS: tuple[Finder, ...] = (
    asks_for_too_many_threads, huge_pages_off, no_gpu, aten_above_cpu, isa_above_cpu, isa_already_the_best,
    of_x86_alone, fpmath_above_cpu, numa_node_missing, gpu_missing, interface_missing, mixed_versions, hidden_topology,
    cores_differ,
)  # fmt: skip
