"""Messages of all commands that measure: their folders, and options that don't go together."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note


class OutputElsewhere(Message):
    """--output names another folder than --resume."""

    template = "--output {output}: the run continues in {resume} (--resume); leave one of them out"

    output: str
    resume: str


class NoRoom(Message):
    """The record of a run can't be written. ``again`` is the command that goes on."""

    template = "{problem}; what was recorded is safe: make room[, then {again}]"

    problem: Message
    again: str | None = None


class NoRoomToStart(Message):
    """The record can't be written, and nothing goes on with it."""

    template = "{problem}; make room, then start it again"

    problem: Message


class NoVerdictOfRun(Caution):
    """So few blocks as were asked for can give no verdict."""

    template = (
        "--blocks {blocks:d}: {comparisons:count comparison} can have no verdict with fewer than {fewest}; "
        "whether settings take effect is still checked"
    )

    blocks: int
    comparisons: int
    fewest: int


class NoVerdictOfNode(Caution):
    """A node with so few blocks does not count towards the verdict of a submission."""

    template = (
        "--blocks {blocks:d}: a node counts towards a verdict with {fewest} or more; whether settings take "
        "effect is still checked"
    )

    blocks: int
    fewest: int


class OptionBesideResume(Message):
    """--resume alone was given beside another option."""

    template = (
        "{option} can be given with --resume only if the whole command is given again; add the PROFILE and "
        "its options, or give --resume alone"
    )

    option: str


class RecordReplaced(Message):
    """A record was replaced between reading and locking it."""

    template = "--resume {folder}: the record was replaced just now; try again"

    folder: str


class NameTaken(Message):
    """Two profiles have one name."""

    template = "{profile}: two profiles are called '{name}'; rename it"

    profile: str
    name: str


class NameOfReference(Message):
    """A profile of the user's has the name of the baseline."""

    template = "{profile}: a profile of your own can't be called '{name}'; rename it"

    profile: str
    name: str


class NotATarget(Message):
    """--until has no target that a training could reach."""

    template = "'{given}' {problem}"

    given: str
    problem: Message


class NotADevice(Message):
    """--device names none."""

    template = "'{given}' is not a device; give {known:or}; CUDA_VISIBLE_DEVICES says which GPU is the first"

    given: str
    known: tuple[str, ...]


class NotAFormat(Message):
    """--precision names no number format."""

    template = (
        "'{given}' is not a number format; choose one of: {known:list} (the width of the interval is --half-width)"
    )

    given: str
    known: tuple[str, ...]


class ScaleTooLarge(Message):
    """--scale is larger than the kit makes data for."""

    template = "{scale:d} is more than {most}, the largest scale"

    scale: int
    most: int


class TrainsOne(Message):
    """--workload all was given to a command, or beside an option, that trains one workload."""

    template = "--workload all: {subject} trains one workload; name one of: {known:list}"

    subject: str
    known: tuple[str, ...]


class BudgetPerArm(Note):
    """The default of --budget for a training on several ranks."""

    template = "{seconds:g}s per arm with --nproc"

    seconds: float


class NotAllShared(Message):
    """Ranks were asked for beside --workload all. ``option`` has its value."""

    template = "{option}: not all workloads can share their batches; name one of: {known:list}"

    option: str
    known: tuple[str, ...]


class RanksAreSearched(Message):
    """--nproc was given, and the space chooses the number of ranks."""

    template = "--nproc {ranks:d}: the space '{space}' chooses the number of ranks; leave --nproc out"

    ranks: int
    space: str


class OneProfileInImages(Message):
    """Two images were to be compared under several profiles."""

    template = "{option} compares two images under one profile; choose one of: {profiles:list}"

    option: str
    profiles: tuple[str, ...]


class PythonOfCommand(Message):
    """Two Pythons were to be compared, and a user's own command names its Python itself."""

    template = "{option}: your own command names its Python itself; measure each Python by its own command"

    option: str


class SameImage(Message):
    """An image was to be compared with itself. ``own`` is the option that names the other image."""

    template = (
        "{option} {image}: is also the image of {own}; name two images, or measure one against itself: "
        "{instead:command}"
    )

    option: str
    image: str
    own: str
    instead: tuple[str, ...]
