"""The protocol of an engine: requests and answers. An engine knows nothing of profiles or statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from envkit.messages import Message
from envkit.worker.libraries import COMPLAINT
from envkit.worker.request import RunCommand, WorkerRequest, host_folder

if TYPE_CHECKING:
    from envkit.worker.request import Work

PACKAGE = Path(__file__).resolve().parent.parent
# The folder from which Python imports the package: runner/ of a checkout, or site-packages.
SOURCES = PACKAGE.parent
# A checkout, or else site-packages.
PROJECT = SOURCES.parent if (SOURCES.parent / "pyproject.toml").is_file() else SOURCES
# Started by its path, which puts no folder on sys.path: an interpreter that has its own torch imports that.
WORKER = PACKAGE / "worker/__main__.py"
# The options that name an image's file, and which is meant without one.
IMAGE_FILES = {name: PROJECT / "build" / f"envkit-cpu.{name}" for name in ("sif", "sqsh")}
STDERR_TAIL_CHARACTERS = 2000
# Of libraries' complaints before that, so many are kept with it.
MOST_COMPLAINTS = 20


def tail(stderr: str) -> str:
    """The end of what a worker printed, after the complaints of libraries that are not in it."""
    end = stderr[-STDERR_TAIL_CHARACTERS:]
    before = stderr[: len(stderr) - len(end)]
    lost = dict.fromkeys(match.group() for match in COMPLAINT.finditer(before))
    return "\n".join([*list(lost)[:MOST_COMPLAINTS], end])


@dataclass(frozen=True)
class EngineOptions:
    """The user's options for engines; each takes some of these (``Engine.options``)."""

    python: str | None = None  # an existing interpreter to measure
    image: str | None = None  # name of an OCI image
    sif: str | None = None  # file of an Apptainer image
    sqsh: str | None = None  # file of an Enroot image
    cpus: str | None = None  # CPU time, in CPUs
    cpuset_cpus: str | None = None  # CPU list, as in 0-3,8
    memory: str | None = None  # bytes, or with a unit (b, k, m, g)

    @staticmethod
    def names() -> list[str]:
        return [field.name for field in fields(EngineOptions)]

    @property
    def image_file(self) -> str | None:
        """Where the image is a file, as it was named."""
        return next(filter(None, (getattr(self, name) for name in IMAGE_FILES)), None)

    def to_json(self) -> dict[str, str]:
        """Return those that were given, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Launch:
    """One start of the worker, or of a command in its place."""

    work: Work | None = None  # what the worker is to do; None for a program in its place
    variables: dict[str, str] = field(default_factory=dict)  # the profile's
    # the caller's own that the worker may have: the local engine passes them on, a container starts without them
    inherited: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    program: tuple[str, ...] = ()  # a command for the worker's place
    program_folder: str | None = None  # the host's folder in which containers run ``program``
    # more of the caller's, for containers too; their values, which may be secrets, are on no command line
    passed_on: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 120.0
    nodes: int = 1  # it is started on so many, the first of the Slurm job that the runner is in; their texts are one
    gpus: bool = False  # a container is given the machine's GPUs, which a worker on the machine itself has anyway
    ahead: bool = False  # the worker is to wait for its turn at its stdin

    @property
    def folder(self) -> str | None:
        """The host's folder where a user's command runs: it has this name inside, and can be written to."""
        return self.work.command.folder if isinstance(self.work, RunCommand) else self.program_folder

    @property
    def data(self) -> str | None:
        """The host's folder that the worker reads, if any."""
        return host_folder(self.work)

    @property
    def request(self) -> WorkerRequest | None:
        """The document for the worker's stdin; None for a program in its place."""
        return WorkerRequest(self.work, self.ahead) if self.work is not None else None


@dataclass(frozen=True)
class Outcome:
    """How a worker ended."""

    stdout: str
    stderr_tail: str
    seconds: float
    failure: Message | None  # how it failed, as a clause with the worker as its subject; None if it ended well
    # of the worker and of what the engine ran beside it, where an engine runs something: a server of the image's files
    cpu_s: float | None = None


class Worker(Protocol):
    """A worker that was started. Nothing of it is left behind once ``end`` was called."""

    def has_ended(self) -> bool:
        """Return whether it has ended by itself."""

    def is_ready(self, wait_s: float) -> bool:
        """Return whether one that was started ahead waits for its turn. Wait for ``wait_s`` seconds at most to know."""

    def give_turn(self) -> None:
        """Have one that waits for its turn train. One that has ended is left alone."""

    def wait(self) -> Outcome:
        """Wait for it, for ``Launch.timeout_s`` seconds at most from now, and return how it ended."""

    def end(self) -> None:
        """End it where it still runs, and remove what was made for it."""


class Engine(Protocol):
    """Starts workers, and leaves nothing behind when they have ended, in whatever way that is."""

    name: str
    options: frozenset[str]  # the fields of EngineOptions that mean something to it
    given: EngineOptions  # what the user asked of it

    def describe(self) -> dict[str, str]:
        """Name, version and image of the engine, for the record."""

    def start(self, launch: Launch) -> Worker:
        """Start the worker, on this node alone."""

    def run(self, launch: Launch) -> Outcome:
        """Start the worker, wait for it (``launch.timeout_s`` seconds at most) and return how it ended."""

    def command(self, launch: Launch) -> list[str]:
        """The same start as one command that can be typed in a shell, where it reads ``request``."""

    def request(self, launch: Launch) -> WorkerRequest | None:
        """Return the document for the worker's stdin, with paths as the worker has them; None for a program."""


def ended(worker: Worker) -> Outcome:
    """Wait for a worker and return how it ended; an interrupt ends it."""
    try:
        return worker.wait()
    finally:
        worker.end()
