"""Lines of ``envkit doctor --for-issue``: what a bug report needs to know of a machine."""

from __future__ import annotations

from typing import Any

from envkit.messages import Message, Severity

NOTE = Severity.NOTE
NOT_SEEN = "not seen"
HIDDEN = "(set, not shown)"
SMT = {True: "on", False: "off"}


class Versions(Message):
    code = "report.issue-versions"
    severity = NOTE
    template = "{torch}, Python {python}, numpy {numpy}"

    torch: Any
    python: Any
    numpy: Any


class Processor(Message):
    code = "report.issue-processor"
    severity = NOTE
    template = "{model} ({numbers}), {isa:list}"

    model: Any
    numbers: Any
    isa: tuple[str, ...]


class Cpus(Message):
    code = "report.issue-cpus"
    severity = NOTE
    template = "{usable} usable of {online} online, {quota}, {cores} cores, SMT {smt}, NUMA nodes {nodes}"

    usable: Any
    online: Any
    quota: Message
    cores: Any
    smt: str
    nodes: Any


class NoQuota(Message):
    code = "report.issue-no-quota"
    severity = NOTE
    template = "no quota"


class Quota(Message):
    code = "report.issue-quota"
    severity = NOTE
    template = "quota {cpus} CPUs"

    cpus: Any


class Memory(Message):
    code = "report.issue-memory"
    severity = NOTE
    template = "{gib:.1f} GiB[, limit {limit_gib:.1f} GiB], huge pages {huge_pages}, defrag {defrag}"

    gib: float
    huge_pages: Any
    defrag: Any
    limit_gib: float | None = None


class OperatingSystem(Message):
    code = "report.issue-system"
    severity = NOTE
    template = "{distribution}, kernel {kernel}, {libc}, {architecture}"

    distribution: Any
    kernel: Any
    libc: Any
    architecture: Any


class Frequency(Message):
    code = "report.issue-frequency"
    severity = NOTE
    template = "governor {governor}, hypervisor {hypervisor}"

    governor: str
    hypervisor: str


class Gpus(Message):
    code = "report.issue-gpus"
    severity = NOTE
    template = "{names:list}; driver {driver}, CUDA {cuda}"

    names: tuple[str, ...]
    driver: Any
    cuda: Any


class Threads(Message):
    code = "report.issue-threads"
    severity = NOTE
    template = "torch {torch}, interop {interop}, all {all}"

    torch: Any
    interop: Any
    all: Any


class Mask(Message):
    code = "report.issue-mask"
    severity = NOTE
    template = "{threads} on CPUs {cpus}"

    threads: Any
    cpus: str


class Masks(Message):
    code = "report.issue-masks"
    severity = NOTE
    template = "[{masks:lines}; ]started on CPUs {started}"

    masks: tuple[Mask, ...]
    started: Any


class Limits(Message):
    code = "report.issue-limits"
    severity = NOTE
    template = "throttled {throttled_s} s, seccomp {seccomp}"

    throttled_s: Any
    seccomp: Any


class OpenMP(Message):
    code = "report.issue-openmp"
    severity = NOTE
    template = (
        "{runtime} ({libraries}), {threads} threads, proc_bind {proc_bind}, places {places}, wait {wait_policy}"
    )  # fmt: skip

    runtime: Any
    libraries: str
    threads: Any
    proc_bind: Any
    places: Any
    wait_policy: Any


class Allocator(Message):
    code = "report.issue-allocator"
    severity = NOTE
    template = "{allocator} ({library})"

    allocator: Any
    library: str


class Mkl(Message):
    code = "report.issue-mkl"
    severity = NOTE
    template = "{version}, {threads} threads, {isa}, dispatch {dispatch}"

    version: Any
    threads: Any
    isa: Any
    dispatch: Any


class OneDnn(Message):
    code = "report.issue-onednn"
    severity = NOTE
    template = "{isa}, fpmath {fpmath}"

    isa: Any
    fpmath: Any
