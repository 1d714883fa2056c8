"""Messages about what is in images: torch.compile's needs, GPUs and what tells two images apart."""

from __future__ import annotations

from envkit.messages import Message

# How a message names Python's headers among commands.
HEADERS = "Python's headers (Python.h)"


class NothingToCompile(Message):
    """An image lacks what torch.compile needs: ``missing`` are commands, ``headers`` is Python's."""

    template = "--compile: torch.compile needs {missing}, which {image} (engine {engine}) lacks; {fix}"

    missing: tuple[str, ...]
    image: str
    engine: str
    fix: Message


class InstallThere(Message):
    template = "install it there, or leave --compile out"


class TakeVariantCompile(Message):
    template = "use the image variant compile, or leave --compile out"


class NoPinnedMemory(Message):
    template = (
        "{workload}: pinned memory is for an accelerator, and torch {version} in {image} has none; leave -pin out"
    )

    workload: str
    version: str
    image: str


class NoGpuInImage(Message):
    """An image can't train on a GPU. ``problem`` is that of ``envkit.worker.gpus``, with its mend."""

    template = "--device cuda: {image} (engine {engine}) can't: {problem}"

    image: str
    engine: str
    problem: Message


class SameImage(Message):
    template = (
        "{image} and {other} are the same image ({identity}); name two different images, "
        "or measure one against itself: envkit plan"
    )

    image: str
    other: str
    identity: str  # the beginning of a digest, or which Python it is


class EmulatedImage(Message):
    template = (
        "{image} is for {architecture} and {other} for {others}: one of them is emulated here, and its times "
        "are meaningless; name two images for the same architecture"
    )

    image: str
    architecture: str
    other: str
    others: str
