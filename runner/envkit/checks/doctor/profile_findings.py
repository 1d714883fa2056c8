"""Checks of what a profile sets, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

from envkit.checks.doctor.finding import Finder, Finding, Situation
from envkit.rendering import text
from envkit.worker import gpus
from envkit.worker.host import expand_cpu_list

GPU_VARIABLES = ("NCCL_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_")
# What must be in /proc/cpuinfo for a part of an instruction set's name, and for a floating-point mode one of these, to
# change anything (oneDNN developer guide, "CPU Dispatcher Control" and "Floating-point Math Mode"). What the kernel
# keeps to itself can't be asked for: AMX's fp16 and tf32 are in no /proc/cpuinfo (arch/x86/include/asm/cpufeatures.h).
ISA_NEEDS = {"avx2": "avx2", "avx512": "avx512f", "bf16": "avx512_bf16", "fp16": "avx512_fp16", "avx10": "avx512_fp16",
             "amx": "amx_bf16"}  # fmt: skip
FPMATH_NEEDS = {"bf16": ("avx512_bf16", "amx_bf16"), "f16": ("avx512_fp16",)}
# Settings of x86 alone: oneDNN's hints are read by its code for x86 only, and glibc has these tunables where it is
# built for x86 ("Hardware Capability Tunables" in its manual).
X86_TUNABLES = "glibc.cpu.x86_"
X86_ISA = re.compile("sse|avx|amx")
# What asks for huge pages in so many words (jemalloc's and glibc's manuals).
HUGE_SETTINGS = {"MALLOC_CONF": re.compile(r"\bthp:always"), "GLIBC_TUNABLES": re.compile(r"malloc\.hugetlb=1\b")}
# numactl(8): the options that take nodes, where they are numbers
NUMA_NODES = re.compile(
    r"(?:--(?:cpunodebind|membind|interleave|weighted-interleave|preferred|preferred-many)=|-[NmiwpP])([\d,-]+)"
)
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
BINDING = ("KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY")


def asks_for_too_many_threads(situation: Situation) -> Finding | None:
    # a list has a number for each level of nesting
    asked = (situation.variable("OMP_NUM_THREADS") or "").partition(",")[0]
    usable = situation.facts["usable_cpus"]
    if situation.evidence is not None or not asked.isdigit() or int(asked) <= usable:
        return None
    return Finding(
        "too-many-threads", "stop",
        f"OMP_NUM_THREADS={asked} for {usable} usable CPUs",
        "threads that spin take the cores from those they wait for: training can get tens of times slower",
        "OMP_NUM_THREADS: ${usable_cpus}",
    )  # fmt: skip


def huge_pages_off(situation: Situation) -> Finding | None:
    expected = situation.environment.expect if situation.environment else {}
    wanted = expected.get("memory.huge_pages") is not None or expected.get("torch.huge_page_tensors") is True
    wanted = wanted or any(asks.search(situation.variable(name) or "") for name, asks in HUGE_SETTINGS.items())
    if not wanted or situation.fingerprint["thp_enabled"] != "never":
        return None
    return Finding(
        "huge-pages-off", "stop",
        "the profile wants transparent huge pages, and the system's mode is never",
        "memory comes in pages of 4 KiB, each with a fault of its own",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )  # fmt: skip


def no_gpu(situation: Situation) -> Finding | None:
    variables = situation.environment.variables if situation.environment else {}
    names = [name for name in variables if name.startswith(GPU_VARIABLES)]
    if not names or situation.accelerator.get("devices") or any(device.exists() for device in GPU_DEVICES):
        return None
    return Finding(
        "no-gpu", "warn",
        f"{', '.join(names)}: set, and there is no GPU here",
        "nothing reads them, so the profile measures nothing",
        "choose a profile for CPUs",
    )  # fmt: skip


def isa_above_cpu(situation: Situation) -> Finding | None:
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        value = (situation.variable(name) or "").lower()
        needed = dict.fromkeys(flag for word, flag in ISA_NEEDS.items() if word in value)
        missing = [flag for flag in needed if flag not in situation.fingerprint["isa"]]
        if missing and situation.fingerprint["architecture"] == "x86_64":
            return Finding(
                "isa-above-cpu", "warn",
                f"{name}={value}, and this CPU has no {missing[0]}",
                "oneDNN takes the best that the CPU has, as it would without the variable",
                "remove it, or name an instruction set below the CPU's best",
            )  # fmt: skip
    return None


def isa_already_the_best(situation: Situation) -> Finding | None:
    """Of 256-bit instruction sets oneDNN's code for float32 is AVX2's: what came after it is about smaller types."""
    if situation.fingerprint["architecture"] != "x86_64" or "avx512f" in situation.fingerprint["isa"]:
        return None
    for name, value in (("ONEDNN_MAX_CPU_ISA", "avx2"), ("ONEDNN_CPU_ISA_HINTS", "prefer_ymm")):
        if (situation.variable(name) or "").lower() == value:
            return Finding(
                "isa-already-the-best", "warn",
                f"{name}={value}, and this CPU has no registers of 512 bits",
                "oneDNN uses AVX2 and its registers of 256 bits here, as it would without the variable",
                "remove it",
            )  # fmt: skip
    return None


def of_x86_alone(situation: Situation) -> Finding | None:
    architecture = situation.fingerprint["architecture"]
    if architecture == "x86_64":
        return None
    isa = {name: situation.variable(name) or "" for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")}
    hints, tunables = situation.variable("ONEDNN_CPU_ISA_HINTS"), situation.variable("GLIBC_TUNABLES") or ""
    said = next((f"{name}={value.lower()}" for name, value in isa.items() if X86_ISA.search(value.lower())), None)
    said = said or (f"ONEDNN_CPU_ISA_HINTS={hints}" if hints else None)
    said = said or next((one for one in tunables.split(":") if one.startswith(X86_TUNABLES)), None)
    if said is None:
        return None
    return Finding(
        "of-x86-alone", "warn", f"{said}, and this CPU is {architecture}",
        "nothing reads that here", "remove it, or choose a profile for this architecture",
    )  # fmt: skip


def fpmath_above_cpu(situation: Situation) -> Finding | None:
    for name in ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"):
        value = (situation.variable(name) or "").lower()
        needed = FPMATH_NEEDS.get(value, ())
        if not needed or situation.fingerprint["architecture"] != "x86_64":
            continue
        if not any(flag in situation.fingerprint["isa"] for flag in needed):
            lacks = f"neither {' nor '.join(needed)}" if len(needed) > 1 else f"no {needed[0]}"
            return Finding(
                "fpmath-above-cpu", "warn",
                f"{name}={value}, and this CPU has {lacks}",
                "oneDNN goes on computing in float32, as it would without the variable",
                "remove it, or choose a mode that the CPU computes in",
            )  # fmt: skip
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
            return Finding(
                "numa-node-missing", "stop",
                f"numactl {option}: this machine has no NUMA node {missing[0]}",
                "numactl refuses to start training",
                f"name nodes from 0 to {there - 1}",
            )  # fmt: skip
    return None


def gpu_missing(situation: Situation) -> Finding | None:
    """CUDA takes a number that is not there for the end of the list, and says nothing."""
    if not situation.accelerator.get("devices"):
        return None
    uuids = [one["uuid"] or "" for one in situation.accelerator["devices"]]
    wrong = gpus.hidden(situation.variable(gpus.VISIBLE), uuids)
    if wrong is None:
        return None
    return Finding(
        "gpu-missing", "stop", text(wrong), "training would run on fewer GPUs than were named, or find none",
        "name GPUs that nvidia-smi lists",
    )  # fmt: skip


def interface_missing(situation: Situation) -> Finding | None:
    """Names are beginnings of names, unless = stands before them; with ^ before all, what they match is left out."""
    named = situation.variable("NCCL_SOCKET_IFNAME") or ""
    there = situation.accelerator.get("interfaces")
    if not named or there is None:
        return None
    excluding, listed = named.startswith("^"), named.removeprefix("^")
    whole = listed.startswith("=")
    entries = [entry.partition(":")[0] for entry in listed.removeprefix("=").split(",")]
    matching = {name for name in there for entry in entries if (name == entry if whole else name.startswith(entry))}
    if set(there) - matching if excluding else matching:
        return None
    return Finding(
        "interface-missing", "stop",
        f"NCCL_SOCKET_IFNAME={named}: the machine has only {', '.join(there) or 'no interface at all'}",
        "NCCL ends with an error when ranks begin to connect",
        f"{'leave fewer out, or ' if excluding else ''}name one of these, or its beginning",
    )  # fmt: skip


def mixed_versions(situation: Situation) -> Finding | None:
    for name in situation.environment.preload if situation.environment else ():
        library = situation.libraries.get(name)
        if library and library.get("others"):
            return Finding(
                "mixed-versions", "note",
                f"{library['path']} is preloaded, and {', '.join(library['others'])} is another version of it",
                "a program that finds the other one runs with other code than what was measured",
                "remove one of them",
            )  # fmt: skip
    return None


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


PROFILE_CHECKS: tuple[Finder, ...] = (
    asks_for_too_many_threads, huge_pages_off, no_gpu, isa_above_cpu, isa_already_the_best, of_x86_alone,
    fpmath_above_cpu, numa_node_missing, gpu_missing, interface_missing, mixed_versions, hidden_topology,
)  # fmt: skip
