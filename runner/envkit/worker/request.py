"""The worker's request: one JSON document that says what to do, the same under every engine.

The worker is started as ``python -m envkit.worker FILE``, or with ``-`` for standard input, where the document is one
line. It must be read in Python 3.8, by the standard library alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from envkit.worker.distributed import BACKENDS
from envkit.worker.errors import WorkerError
from envkit.worker.messages import InvalidRequest
from envkit.worker.modes import DEVICES, PRECISIONS, USUAL, Options

STDIN = "-"
# What a message calls all of it.
DOCUMENT = "document"
# A request is no larger: the arguments of a user's command, which the kernel limits to 2 MiB, are the most of it.
MOST_BYTES = 2**23
READ_BYTES = 2**16


@dataclass(frozen=True)
class HostFolder:
    """A folder of the host that the worker reads. An engine that mounts it gives the request the path inside."""

    path: str


@dataclass(frozen=True)
class Inspect:
    """Describe the machine, the packages and the libraries, and where these ``commands`` are."""

    kind: ClassVar[str] = "inspect"
    commands: tuple[str, ...] = ()
    contents: bool = False  # name all packages, of all kinds
    gpus: bool = False  # look for GPUs too


@dataclass(frozen=True)
class ReferenceKernel:
    """Time a fixed piece of work that no profile touches."""

    kind: ClassVar[str] = "reference-kernel"


@dataclass(frozen=True)
class FullTraining:
    """Train whole epochs, and test after each. End after the first that reached ``until``, a METRIC=NUMBER."""

    epochs: int
    until: str | None = None


@dataclass(frozen=True)
class Train:
    """Train a workload, and report what was measured and observed."""

    kind: ClassVar[str] = "train"
    workload: str
    data: HostFolder | str  # or the name of data that the worker makes
    warmup_steps: int = 0  # untimed steps before the timed ones
    steps: int = 0  # timed steps
    options: Options = USUAL
    full: FullTraining | None = None  # instead of a number of steps
    tests: bool = False  # test at the end what was learnt, after steps too
    least_s: float = 0.0  # take more steps until so many seconds have passed
    profiles_ranks: bool = True  # profile what several ranks say to each other


@dataclass(frozen=True)
class Operators:
    """Train under PyTorch's profiler; with ``forward`` profile the forward pass alone."""

    kind: ClassVar[str] = "operators"
    training: Train
    forward: bool = False


@dataclass(frozen=True)
class Phases:
    """Train, and time the phases of steps."""

    kind: ClassVar[str] = "phases"
    training: Train


@dataclass(frozen=True)
class UserCommand:
    """A user's training command, which is measured instead of a workload.

    ``metric`` says which lines of its output end a step, or hold a step's time or rate in ``unit`` (see
    ``envkit.worker.user_command.metric``). Without one the steps of its optimizer are timed: ``optimizer_steps`` of
    them, or for 0 as many as the machine's pace allows. With neither the whole command is one step. ``loss_metric``
    says which lines hold a loss; without one losses are not compared.
    """

    argv: tuple[str, ...]
    folder: str  # where it runs
    metric: str | None = None
    unit: str = "s"
    warmup_lines: int = 0  # the first readings or steps, which don't count; by pace 0 is found out
    loss_metric: str | None = None
    optimizer_steps: int | None = None
    in_place: bool = False  # start it in its folder; otherwise each start gets a fresh copy of the folder
    links: tuple[str, ...] = ()  # what copies of the folder link to: the command only reads it

    @property
    def is_one_step(self) -> bool:
        """Tell whether the command is a single step."""
        return self.metric is None and self.optimizer_steps is None

    @property
    def is_paced(self) -> bool:
        """Tell whether steps of its optimizer are timed, as many as the machine's pace allows."""
        return self.optimizer_steps == 0

    @staticmethod
    def from_json(document: Mapping[str, object] | None) -> UserCommand | None:
        """None for none."""
        if not document:
            return None
        # a dataclass's own document has tuples
        lists = {name: [*value] if isinstance(value, tuple) else value for name, value in document.items()}
        return _made(UserCommand, lists, "")


@dataclass(frozen=True)
class RunCommand:
    """Run a user's command once, and report what was measured and observed. Times are in seconds.

    The first ``warmup`` steps are not among those that count. ``steps`` of its optimizer are timed, and more until
    ``least_s`` have passed; 0 of them times what the command's metric says. If no step ends within ``first_step_s``,
    the command is ended. With ``watch_s`` its optimizer is watched for so long, for ``watch_limit_s`` at most.
    """

    kind: ClassVar[str] = "command"
    command: UserCommand
    warmup: int = 0
    steps: int = 0
    least_s: float = 0.0
    first_step_s: float = 0.0
    watch_s: float = 0.0
    watch_limit_s: float = 45.0


@dataclass(frozen=True)
class Processes:
    """Train in so many processes, each on CPUs of its own.

    ``cores`` are measured ones, in the kernel's list format; without them the kernel's count.
    """

    number: int
    training: Train
    cores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranks(Processes):
    """Train on ``number`` ranks of each of ``nodes``, each on CPUs of its own. One is on the first of ``cpu_shares``.

    The launcher's environment says where several nodes meet, and which of them this is.
    """

    kind: ClassVar[str] = "ranks"
    cpu_shares: int = 1
    nodes: int = 1


@dataclass(frozen=True)
class Rank:
    """Be one of several ranks, as the variables of torchrun say."""

    kind: ClassVar[str] = "rank"
    training: Train


@dataclass(frozen=True)
class Instances(Processes):
    """Train ``number`` times at once, in processes that know nothing of each other, each on CPUs of its own."""

    kind: ClassVar[str] = "instances"


@dataclass(frozen=True)
class Instance:
    """Be one of ``number`` that meet in ``folder``, and leave the sample there."""

    kind: ClassVar[str] = "instance"
    number: int
    training: Train
    folder: str


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Work = Inspect | ReferenceKernel | Train | Operators | Phases | RunCommand | Ranks | Rank | Instances | Instance
KINDS: dict[str, type[Work]] = {
    kind.kind: kind
    for kind in (Inspect, ReferenceKernel, Train, Operators, Phases, RunCommand, Ranks, Rank, Instances, Instance)
}


@dataclass(frozen=True)
class WorkerRequest:
    """Say what the worker does, and how it starts."""

    work: Work
    waits: bool = False  # import everything, then wait at standard input for a turn to train
    parent: int | None = None  # be killed when this process, which is the parent, ends

    def to_json(self) -> dict[str, object]:
        return {"work": _plain(self.work), "waits": self.waits, "parent": self.parent}

    def line(self) -> str:
        """Return the document as the worker reads it."""
        return json.dumps(self.to_json()) + "\n"

    @staticmethod
    def from_json(document: object) -> WorkerRequest:
        """Parse a document. Raise Invalid if it is not valid."""
        return _made(WorkerRequest, document, "")


class Invalid(ValueError):
    """Raised for an invalid request. ``key`` must be one of ``wanted``: JSON's names of types, or values."""

    def __init__(self, key: str, *wanted: str) -> None:
        super().__init__(key, wanted)
        self.key, self.wanted = key, wanted


def location(data: HostFolder | str) -> str:
    """Return where data are, or the name of what the worker makes."""
    return data.path if isinstance(data, HostFolder) else data


def host_folder(work: Work | None) -> str | None:
    """Return the host's folder with the worker's data, or None."""
    training = getattr(work, "training", work)
    data = training.data if isinstance(training, Train) else None
    return data.path if isinstance(data, HostFolder) else None


def relocated(work: Work, folder: str) -> Work:
    """Return the work with its data in ``folder``, if an engine mounts the host's folder there."""
    if host_folder(work) is None or isinstance(work, (Inspect, ReferenceKernel, RunCommand)):
        return work
    if isinstance(work, Train):
        return replace(work, data=HostFolder(folder))
    return replace(work, training=replace(work.training, data=HostFolder(folder)))


def read(source: str) -> WorkerRequest:
    """Return the request in a file; STDIN stands for the next line of standard input. Raise WorkerError."""
    try:
        text = _next_line() if source == STDIN else Path(source).read_bytes()
        return WorkerRequest.from_json(json.loads(text))
    except OSError as error:
        raise WorkerError(InvalidRequest(source, reason=str(error.strerror))) from None
    except Invalid as error:
        raise WorkerError(InvalidRequest(source, error.key, error.wanted)) from None
    except (ValueError, RecursionError):
        raise WorkerError(InvalidRequest(source, DOCUMENT, ("JSON",))) from None


def _next_line() -> bytes:
    """Read up to the end of a line, and nothing of what comes later: a byte that gives the worker its turn."""
    text = b""
    while not text.endswith(b"\n") and len(text) < MOST_BYTES and (part := os.read(0, READ_BYTES)):
        text += part
    return text


def _plain(value: object) -> object:
    if isinstance(value, HostFolder):
        return asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return {**kind, **{field.name: _plain(getattr(value, field.name)) for field in fields(value)}}
    return [*value] if isinstance(value, tuple) else value


Made = TypeVar("Made", bound="DataclassInstance")


def _made(kind: type[Made], document: object, where: str) -> Made:
    """Return an instance of a dataclass of this module, each of whose fields has the type of its annotation."""
    if not isinstance(document, dict):
        raise Invalid(where or DOCUMENT, "object")
    prefix = f"{where}." if where else ""
    by_name = {field.name: field for field in fields(kind)}
    unknown = next((name for name in document if name not in by_name), None)
    if unknown is not None:
        raise Invalid(f"{prefix}{unknown}", "absent")
    values = {}
    for name, field in by_name.items():
        if name in document or (field.default is MISSING and field.default_factory is MISSING):
            values[name] = READERS[str(field.type)](document.get(name), f"{prefix}{name}")
    return kind(**values)


def _of(**kinds: type) -> Callable[[object, str], object]:
    """Return what reads a value of exactly one of these types, by JSON's names: true is no number."""

    def reads(value: object, where: str) -> object:
        if type(value) not in kinds.values():
            raise Invalid(where, *kinds)
        return value

    return reads


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or any(type(text) is not str for text in value):
        raise Invalid(where, "strings")
    return tuple(value)


def _data(value: object, where: str) -> HostFolder | str:
    return value if isinstance(value, str) else _made(HostFolder, value, where)


def _options(value: object, where: str) -> Options:
    options = _made(Options, value, where)
    for name, choices in (("precision", PRECISIONS), ("device", DEVICES), ("backend", ("", *BACKENDS))):
        if getattr(options, name) not in choices:
            raise Invalid(f"{where}.{name}", *filter(None, choices))
    return options


def _work(value: object, where: str) -> Work:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise Invalid(f"{where}.kind", *KINDS)
    return _made(KINDS[kind], {name: inner for name, inner in value.items() if name != "kind"}, where)


def _training(value: object, where: str) -> Train:
    work = _work(value, where)
    if not isinstance(work, Train):
        raise Invalid(f"{where}.kind", Train.kind)
    return work


# What reads a value, by the annotation of its field.
READERS: dict[str, Callable[[object, str], object]] = {
    "str": _of(string=str),
    "str | None": _of(string=str, null=type(None)),
    "int": _of(integer=int),
    "int | None": _of(integer=int, null=type(None)),
    "float": _of(number=float, integer=int),
    "bool": _of(boolean=bool),
    "tuple[str, ...]": _texts,
    "HostFolder | str": _data,
    "Options": _options,
    "FullTraining | None": lambda value, where: None if value is None else _made(FullTraining, value, where),
    "Train": _training,
    "UserCommand": lambda value, where: _made(UserCommand, value, where),
    "Work": _work,
}
