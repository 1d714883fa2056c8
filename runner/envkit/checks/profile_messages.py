"""Messages of doctor's findings about settings of a profile, before anything runs."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note


class HugePagesOff(Message):
    """A profile wants huge pages, and the system has them switched off."""

    template = "the profile wants transparent huge pages, and the system's mode is never"


class HugePagesRefused(Message):
    """A profile wants huge pages, and the process may have none: what started it called prctl(PR_SET_THP_DISABLE)."""

    template = (
        "the profile wants transparent huge pages, and a program that started this one has switched them off "
        "(prctl PR_SET_THP_DISABLE)"
    )


class StartElsewhere(Advice):
    """A program passes a restriction on to all that it starts."""

    template = "start it from another shell, service or container runtime, or measure a profile without huge pages"


class NoGpu(Caution):
    """Variables are for GPUs, and the machine has none."""

    template = "{variables:list}: set, and there is no GPU here"

    variables: tuple[str, ...]


class CpuLacks(Caution):
    """A variable chooses instructions that the CPU does not have: all of ``missing``."""

    template = "{variable}={value}, and this CPU has no {missing:or}"

    variable: str
    value: str
    missing: tuple[str, ...]  # as /proc/cpuinfo names them


class OtherArchitecture(Caution):
    """A setting is for x86, and the CPU is no x86."""

    template = "{setting}, and this CPU is {architecture}"

    setting: str  # as NAME=VALUE
    architecture: str


class NumaNodeMissing(Message):
    """numactl is to use a NUMA node that the machine does not have."""

    template = "numactl {option}: this machine has no NUMA node {node:d}"

    option: str
    node: int


class NameNodes(Advice):
    """Name NUMA nodes that the machine has."""

    template = "name nodes from 0 to {last:d}"

    last: int


class GpuMissing(Message):
    """CUDA_VISIBLE_DEVICES names a GPU that the machine does not have."""

    template = "{problem}"

    problem: Message


class InterfaceMissing(Message):
    """NCCL is to use network interfaces that the machine does not have."""

    template = "NCCL_SOCKET_IFNAME={value}: no network interface of the machine fits[; it has {interfaces:list}]"

    value: str
    interfaces: tuple[str, ...] = ()


class LeaveFewerOut(Advice):
    """Leave fewer network interfaces out."""

    template = "leave fewer out, or name one of these, or its beginning"


class OtherVersion(Note):
    """The machine has other versions of a library that a profile preloads."""

    template = "{preloaded} is preloaded, and the machine has other versions of it: {others:list}"

    preloaded: str
    others: tuple[str, ...]


class CoresDiffer(Note):
    """The kernel counts other cores than were measured, and runtimes bind threads by the kernel's."""

    template = (
        "the kernel counts {kernel:count core} here, and another number was measured; runtimes bind by the kernel's"
    )

    kernel: int


class HiddenTopology(Note):
    """A virtual machine does not show which of its CPUs share a core."""

    template = "this virtual machine shows no hardware threads that share a core"
