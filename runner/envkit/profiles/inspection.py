"""The document of a worker that inspects an image, as ``envkit.worker.image`` prints it.

Documents are recorded as they are, so these types name the keys that later code reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from envkit.worker.gpus import Gpus
from envkit.worker.host import CpuFacts


class Facts(CpuFacts, total=False):
    """Counts of a machine, or of a rank's share of it."""

    gpus: int  # where they were looked for
    machine_numa_nodes: int  # in the facts of a rank: those of the whole machine


class Fingerprint(TypedDict, total=False):
    """The machine that a result is of (``envkit.worker.host.fingerprint``). A value that could not be read is None."""

    cpu_model: str
    cpu_numbers: str | None  # of the kernel, which tell the kind of processor
    architecture: str
    microcode: str | None
    caches: object
    memory_bytes: int | None
    kernel: str
    distribution: str | None
    libc: str | None
    thp_enabled: str | None  # transparent huge pages
    thp_defrag: str | None
    governor: str | None
    frequency_driver: str | None
    hypervisor: str | None
    isa: list[str]
    aslr: str | None


class Python(TypedDict):
    """The interpreter of the image."""

    version: str
    executable: str
    prefix: str


class LibraryFile(TypedDict):
    """A library of the registry that was found (``envkit.worker.libraries.locate``)."""

    path: str
    sha256: str
    others: list[str]  # files of the same name and other content
    version: str | None  # as far as its file tells


class Inspection(TypedDict, total=False):
    """The inside of an image. A key is missing where it was not asked for."""

    facts: Facts
    cpus: str  # which can be used, in the kernel's list format
    cores_measured: str  # the day (ISO 8601) if ``physical_cores`` was measured and is not the kernel's count
    measured_cores: list[str]  # the CPUs of each, if cores were measured
    kernel_cores: int  # the kernel's count, if cores were measured and it is another one
    whole: Facts  # in the inspection of a rank: the facts of the machine, of which ``facts`` are a share
    accelerator: Gpus
    memory_limit: int | None  # in bytes
    groups_seen: bool  # control groups could be read
    fingerprint: Fingerprint
    python: Python
    packages: dict[str, str | None]  # versions
    unverified_packages: str | None  # one that was installed without its digest being checked
    libraries: dict[str, LibraryFile]
    library_folders: list[str]
    providers: dict[str, str]  # of libraries, by their names
    package_folders: list[str]
    python_path: str | None
    commands: dict[str, str | None]  # the path of each that was looked for
    python_headers: bool
    contents: dict[str, dict[str, str]]  # all packages, by kind
    program: Mapping[str, str | None]  # which file the first word of a user's command is, by the PATH


class Surroundings(TypedDict):
    """An engine's description, and the inspection of its image."""

    engine: dict[str, str]
    inspection: Inspection
