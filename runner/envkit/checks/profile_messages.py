"""Messages of doctor's findings about settings of a profile, before anything runs."""

from __future__ import annotations

from envkit.messages import Message, Severity


class HugePagesOff(Message):
    """A profile wants huge pages, and the system has them switched off."""

    code = "checks.huge-pages-off"
    template = "the profile wants transparent huge pages, and the system's mode is never"


class HugePagesRefused(Message):
    """A profile wants huge pages, and the process may have none: what started it called prctl(PR_SET_THP_DISABLE)."""

    code = "checks.huge-pages-refused"
    template = (
        "the profile wants transparent huge pages, and a program that started this one has switched them off "
        "(prctl PR_SET_THP_DISABLE)"
    )


class StartElsewhere(Message):
    """A program passes a restriction on to all that it starts."""

    code = "checks.start-elsewhere"
    severity = Severity.ADVICE
    template = "start it from another shell, service or container runtime, or measure a profile without huge pages"


class NoGpu(Message):
    """Variables are for GPUs, and the machine has none."""

    code = "checks.no-gpu"
    severity = Severity.WARNING
    template = "{variables:list}: set, and there is no GPU here"

    variables: tuple[str, ...]


class CpuLacks(Message):
    """A variable chooses instructions that the CPU does not have: all of ``missing``."""

    code = "checks.cpu-lacks"
    severity = Severity.WARNING
    template = "{variable}={value}, and this CPU has no {missing:or}"

    variable: str
    value: str
    missing: tuple[str, ...]  # as /proc/cpuinfo names them


class OtherArchitecture(Message):
    """A setting is for x86, and the CPU is no x86."""

    code = "checks.other-architecture"
    severity = Severity.WARNING
    template = "{setting}, and this CPU is {architecture}"

    setting: str  # as NAME=VALUE
    architecture: str


class NumaNodeMissing(Message):
    """numactl is to use a NUMA node that the machine does not have."""

    code = "checks.numa-node-missing"
    template = "numactl {option}: this machine has no NUMA node {node:d}"

    option: str
    node: int


class NameNodes(Message):
    """Name NUMA nodes that the machine has."""

    code = "checks.name-nodes"
    severity = Severity.ADVICE
    template = "name nodes from 0 to {last:d}"

    last: int


class GpuMissing(Message):
    """CUDA_VISIBLE_DEVICES names a GPU that the machine does not have."""

    code = "checks.gpu-missing"
    template = "{problem}"

    problem: Message


class InterfaceMissing(Message):
    """NCCL_SOCKET_IFNAME leaves no network interface of the machine."""

    code = "checks.interface-missing"
    template = "NCCL_SOCKET_IFNAME={value}: the machine has only {interfaces:list}"

    value: str
    interfaces: tuple[str, ...]


class NoInterface(Message):
    """NCCL_SOCKET_IFNAME names a network interface, and the machine has none."""

    code = "checks.no-interface"
    template = "NCCL_SOCKET_IFNAME={value}: the machine has no network interface"

    value: str


class LeaveFewerOut(Message):
    """Leave fewer network interfaces out."""

    code = "checks.leave-fewer-out"
    severity = Severity.ADVICE
    template = "leave fewer out, or name one of these, or its beginning"


class OtherVersion(Message):
    """The machine has other versions of a library that a profile preloads."""

    code = "checks.other-version"
    severity = Severity.NOTE
    template = "{preloaded} is preloaded, and the machine has other versions of it: {others:list}"

    preloaded: str
    others: tuple[str, ...]


class HiddenTopology(Message):
    """A virtual machine does not show which of its CPUs share a core."""

    code = "checks.hidden-topology"
    severity = Severity.NOTE
    template = "this virtual machine shows no hardware threads that share a core"
