"""Lines of ``envkit doctor --for-issue``: what a bug report needs to know of a machine."""

from __future__ import annotations

from typing import Any

from envkit.messages import Message, Note

NOT_SEEN = "not seen"
HIDDEN = "(set, not shown)"
SMT = {True: "on", False: "off"}


class Versions(Note):
    template = "{torch}, Python {python}, numpy {numpy}"

    torch: Any
    python: Any
    numpy: Any


class Processor(Note):
    template = "{model} ({numbers}), {isa:list}"

    model: Any
    numbers: Any
    isa: tuple[str, ...]


class Cpus(Note):
    template = "{usable} usable of {online} online, {quota}, {cores} cores, SMT {smt}, NUMA nodes {nodes}"

    usable: Any
    online: Any
    quota: Message
    cores: Any
    smt: str
    nodes: Any


class NoQuota(Note):
    template = "no quota"


class Quota(Note):
    template = "quota {cpus} CPUs"

    cpus: Any


class MachineMemory(Note):
    template = "{gib:.1f} GiB[, limit {limit_gib:.1f} GiB], huge pages {huge_pages}, defrag {defrag}"

    gib: float
    huge_pages: Any
    defrag: Any
    limit_gib: float | None = None


class MachineSystem(Note):
    template = "{distribution}, kernel {kernel}, {libc}, {architecture}"

    distribution: Any
    kernel: Any
    libc: Any
    architecture: Any


class Frequency(Note):
    template = "governor {governor}, hypervisor {hypervisor}"

    governor: str
    hypervisor: str


class Gpus(Note):
    template = "{names:list}; driver {driver}, CUDA {cuda}"

    names: tuple[str, ...]
    driver: Any
    cuda: Any


class Threads(Note):
    template = "torch {torch}, interop {interop}, all {all}"

    torch: Any
    interop: Any
    all: Any


class Mask(Note):
    template = "{threads} on CPUs {cpus}"

    threads: Any
    cpus: str


class Masks(Note):
    template = "[{masks:lines}; ]started on CPUs {started}"

    masks: tuple[Mask, ...]
    started: Any


class Limits(Note):
    template = "throttled {throttled_s} s, seccomp {seccomp}"

    throttled_s: Any
    seccomp: Any


class Openmp(Note):
    template = (
        "{runtime} ({libraries}), {threads} threads, proc_bind {proc_bind}, places {places}, wait {wait_policy}"
    )  # fmt: skip

    runtime: Any
    libraries: str
    threads: Any
    proc_bind: Any
    places: Any
    wait_policy: Any


class Allocator(Note):
    template = "{allocator} ({library})"

    allocator: Any
    library: str


class Mkl(Note):
    template = "{version}, {threads} threads, {isa}, dispatch {dispatch}"

    version: Any
    threads: Any
    isa: Any
    dispatch: Any


class Onednn(Note):
    template = "{isa}, fpmath {fpmath}"

    isa: Any
    fpmath: Any
