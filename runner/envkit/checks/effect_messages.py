"""Messages that a check keeps, as JSON, instead of a value that was expected or observed."""

from __future__ import annotations

from envkit.messages import Message, Note

GLIBC_MALLOC = "glibc's malloc"


class Value(Note):
    """A value of a setting, as a profile expects it or a worker observed it."""

    template = "{value}"

    value: str


class SeenFromOutside(Note):
    """A program left no evidence of its own, so that only the kernel's view of it is known."""

    template = "it was seen from outside only"


class NotAskedFor(Message):
    """A process was not asked to preload a library."""

    template = "not asked for"


class NoComplaint(Note):
    """Libraries are expected to print no complaint."""

    template = "no complaint of a library"


class SetByProgram(Message):
    """A program set a variable of the profile's itself, and a check failed by that."""

    template = "{seen}, as the program itself set {variable}={value}"

    seen: Message
    variable: str
    value: str


class RemovedByProgram(Message):
    """A program removed a variable of the profile's itself, and a check failed by that."""

    template = "{seen}, as the program itself removed {variable}"

    seen: Message
    variable: str


class SetBeforeTorch(Message):
    """A program gave a variable of the profile's another value before torch read it."""

    template = "{value}, as the program itself set it before it imported torch"

    value: str


class ChangedByProgram(Message):
    """A program changed a variable of the profile's, and nothing tells which value was read."""

    template = "the program itself changed it to {value}, and nothing tells which value was read"

    value: str


class ReadBy(Note):
    """One of these libraries is expected to read a variable."""

    template = "read by {libraries:or}"

    libraries: tuple[str, ...]


class Ignored(Message):
    """No library that runs reads a variable."""

    template = "ignored by {running:and}"

    running: tuple[str, ...]


class IgnoredByUnknown(Message):
    """Nothing reads a variable, as far as is known."""

    template = "ignored: no known library runs"


class TensorsFrom(Note):
    """Tensors are expected to come from the allocator of the process."""

    template = "tensors from {allocator}"

    allocator: str


class TensorsBuiltIn(Message):
    """PyTorch was built with an allocator of its own, so that no other one serves tensors."""

    template = "tensors come from the allocator that PyTorch has built in, and malloc does not serve them"


class CompiledNothing(Message):
    """No process has compiled anything by Inductor, which alone reads a variable."""

    template = "not read: torch.compile compiled nothing with Inductor"


class NoSuchSetting(Message):
    """This version of a library does not have a setting."""

    template = "no setting of this version"


class Cpus(Note):
    """A process is expected to have so many CPUs."""

    template = "{cpus:count CPU}"

    cpus: int


class InheritedCpus(Message):
    """A process has fewer CPUs, because a runtime had bound the thread that started it."""

    template = "{cpus}, inherited from a thread that was bound"

    cpus: int


class OwnCpus(Note):
    """Threads are expected to have CPUs of their own."""

    template = "CPUs of their own"


class ThreadsOnOneCpu(Message):
    """All threads of a process are bound to one CPU."""

    template = "{threads} threads on CPU {cpu}"

    threads: int
    cpu: str  # as the kernel lists it


class Together(Message):
    """Two ranks, or instances, of a node share a device."""

    template = "{kind}s {first:d} and {second:d} on {device} {number} of {node}"

    kind: str  # rank or instance
    first: int
    second: int
    device: str  # CPU or GPU
    number: str  # of a GPU its UUID
    node: str


class WrittenByHook(Note):
    """Evidence of a process is expected to be what the evidence hook writes."""

    template = "evidence of the kit's own hook"
