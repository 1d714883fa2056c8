"""Lines of ``envkit doctor --for-issue``: what a bug report needs to know of a machine."""

from __future__ import annotations

from envkit.messages import Message, Note

NOT_SEEN = "not seen"
HIDDEN = "(set, not shown)"
SMT = {True: "on", False: "off"}


class Versions(Note):
    template = "{torch}, Python {python}, numpy {numpy}"

    torch: object
    python: object
    numpy: object


class Processor(Note):
    template = "{model} ({numbers}), {isa:list}"

    model: object
    numbers: object
    isa: tuple[str, ...]


class Cpus(Note):
    template = (
        "{usable} usable of {online} online, {quota}, {cores} cores[ (measured {measured})], "
        "SMT {smt}, NUMA nodes {nodes}"
    )

    usable: object
    online: object
    quota: Message
    cores: object
    smt: str
    nodes: object
    measured: str | None = None


class NoQuota(Note):
    template = "no quota"


class Quota(Note):
    template = "quota {cpus} CPUs"

    cpus: object


class MachineMemory(Note):
    template = "{gib:.1f} GiB[, limit {limit_gib:.1f} GiB], huge pages {huge_pages}, defrag {defrag}"

    gib: float
    huge_pages: object
    defrag: object
    limit_gib: float | None = None


class MachineSystem(Note):
    template = "{distribution}, kernel {kernel}, {libc}, {architecture}"

    distribution: object
    kernel: object
    libc: object
    architecture: object


class Frequency(Note):
    template = "governor {governor}, hypervisor {hypervisor}"

    governor: str
    hypervisor: str


class Gpus(Note):
    template = "{names:list}; driver {driver}, CUDA {cuda}"

    names: tuple[str, ...]
    driver: object
    cuda: object


class Threads(Note):
    template = "torch {torch}, interop {interop}, all {all}"

    torch: object
    interop: object
    all: object


class Mask(Note):
    template = "{threads} on CPUs {cpus}"

    threads: object
    cpus: str


class Masks(Note):
    template = "[{masks:lines}; ]started on CPUs {started}"

    masks: tuple[Mask, ...]
    started: object


class Limits(Note):
    template = "throttled {throttled_s} s, seccomp {seccomp}"

    throttled_s: object
    seccomp: object


class Openmp(Note):
    template = (
        "{runtime} ({libraries}), {threads} threads, proc_bind {proc_bind}, places {places}, wait {wait_policy}"
    )  # fmt: skip

    runtime: object
    libraries: str
    threads: object
    proc_bind: object
    places: object
    wait_policy: object


class Allocator(Note):
    template = "{allocator} ({library})"

    allocator: object
    library: str


class Mkl(Note):
    template = "{version}, {threads} threads, {isa}, dispatch {dispatch}"

    version: object
    threads: object
    isa: object
    dispatch: object


class Onednn(Note):
    template = "{isa}, fpmath {fpmath}"

    isa: object
    fpmath: object
