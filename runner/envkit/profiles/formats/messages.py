"""Messages of ``envkit env``: why a format can't hold a value, and what the comments of a printed profile say."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

# What a value may not have.
CONTROL_CHARACTER = "a control character"
LINE_BREAK = "a line break or another control character"
OUTER_BLANK = "a space at its beginning or end"
LEADING_QUOTE = "a quote at its beginning"
DOLLAR = "a '$'"
NUMBER_SIGN = "a '#' after a blank or at its beginning"

# What a notebook or an editor calls a Python that runs under a profile; the name follows.
PYTHON_UNDER = "Python under"
# What each format is for, in the list of formats.
USES = {
    "shell": 'eval "$(envkit env PROFILE)" in bash, zsh or dash',
    "dotenv": "a .env file",
    "docker": "options of docker run",
    "dockerfile": "ENV instructions",
    "apptainer": "%environment of a definition file",
    "sbatch": "a Slurm batch script that runs the command it is given",
    "pyxis": "a batch script that runs it in an image, by Slurm's plugin Pyxis",
    "kubernetes": "a Pod",
    "vscode": ".vscode/settings.json",
    "jupyter": "a kernel for Jupyter, kernel.json",
    "python": "a notebook's first cell, or the top of a script",
}
# A printed cell raises RuntimeError with it.
TOO_LATE = "too late: torch is imported already; restart the kernel, and run this before anything imports torch"
# A printed cell says it of a variable.
FOR_CHECK = "for: from envkit import check"
# A printed batch script says it of a call without a command.
USE = "use: sbatch THIS_FILE python train.py"


# Why a format can't hold a value: clauses.


class Has(Message):
    """A value has what a format can't hold, or what its readers don't agree on: one of those above."""

    template = "it has {what}"

    what: str


class Replaced(Message):
    """A program replaces a part of a value."""

    template = "{program} may replace {what}"

    program: str
    what: str  # as "'${'"


class TakeOut(Advice):
    """Leave a value out."""

    template = "take it out"


class OtherFormats(Advice):
    """Print the profile in another format."""

    template = "use --format {formats:or}"

    formats: tuple[str, ...]


class NotReadAlike(Advice):
    """Programs that read .env files read a value differently."""

    template = "readers of such files don't agree on it; use --format docker or shell"


class JupyterFromShell(Advice):
    """Set a variable in the shell that starts Jupyter."""

    template = "start Jupyter from a shell that has it (--format shell), or take it out"


# What the comments say.


class Heading(Note):
    """The profile, and the machine and image that its numbers and paths are for."""

    template = (
        "profile {profile}, resolved for {usable_cpus:count usable CPU} on {physical_cores:count core}[ (measured "
        "{cores_measured})] of {host}; {place}"
    )

    profile: str
    usable_cpus: int
    physical_cores: int
    host: str
    place: str
    cores_measured: str | None = None  # the day, if the cores were measured


class StartWith(Note):
    """The profile has a prefix that the format can't set."""

    template = "start your commands with: {prefix:command}"

    prefix: tuple[str, ...]


class MountLibrary(Note):
    """The image lacks a library, which this machine has."""

    template = "a library of it is not in the image: mount it, read-only ({mount})"

    mount: str


class EachRank(Note):
    """The profile is for several ranks."""

    template = (
        "these are the settings of each of {ranks:d} ranks: start them together with torchrun "
        "--nproc-per-node {ranks:d}"
    )

    ranks: int


class StartWithGpus(Note):
    """The container needs the machine's GPUs."""

    template = "start the container with the machine's GPUs: {how}"

    how: str


class AllowPlacement(Note):
    """The container needs capabilities for the command that starts the profile's processes."""

    template = "start the container so that {program} may place memory: {how}"

    program: str
    how: str


class MayDiffer(Note):
    """The profile may change results."""

    template = "numerics may differ from those without this profile"


class StartCleanly(Note):
    """Apptainer hands the shell's variables on."""

    template = "start it with apptainer run --cleanenv, or other variables of your shell are set inside too"


class ReadAtStart(Caution):
    """A running process can't set some variables of the profile for itself."""

    template = (
        "not set, as it is read when a process starts: {names:list}; "
        "start the process with it (--format jupyter, or shell)"
    )

    names: tuple[str, ...]


class NoKernel(Caution):
    """The interpreter lacks what starts a kernel."""

    template = "{python} has no ipykernel, which starts kernels: install it there, or give --python"

    python: str


class AllowIn(Note):
    """The Pod allows capabilities."""

    template = "for {program}, where Pods have a seccomp filter; else, or where it is refused, take it out"

    program: str


class RepeatCommand(Note):
    """An image loses its default command."""

    template = "an ENTRYPOINT clears the CMD of the base image: repeat it after this line"


class FolderInside(Note):
    """A job's container has one folder of this machine."""

    template = "the folder that the job starts in is inside under its own name, and no home; add others after a comma"


class OtherPath(Note):
    """Why the script turns login shells off."""

    template = "else a login shell inside may set another PATH than the image's"
