"""Messages of ``envkit env``: why a format can't hold a value, and what the comments of a printed profile say."""

from __future__ import annotations

from envkit.messages import Message, Severity

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


class ControlCharacter(Message):
    """A value has a character that a definition file can't hold."""

    code = "profiles.control-character"
    template = "it has a control character"


class LineBreak(Message):
    """A value has a character that ends a line."""

    code = "profiles.line-break"
    template = "it has a line break or another control character"


class OuterBlank(Message):
    """A value begins or ends with a blank."""

    code = "profiles.outer-blank"
    template = "it begins or ends with a space"


class LeadingQuote(Message):
    """A value begins with a quote."""

    code = "profiles.leading-quote"
    template = "it begins with a quote"


class Dollar(Message):
    """A value has a dollar sign."""

    code = "profiles.dollar"
    template = "it has a '$'"


class NumberSign(Message):
    """A value has what some readers take for a comment."""

    code = "profiles.number-sign"
    template = "it has a '#' after a blank or at its beginning"


class Replaced(Message):
    """A program replaces a part of a value."""

    code = "profiles.replaced"
    template = "{program} may replace {what}"

    program: str
    what: str  # as "'${'"


class TakeOut(Message):
    """Leave a value out."""

    code = "profiles.take-out"
    severity = Severity.ADVICE
    template = "take it out"


class OtherFormats(Message):
    """Print the profile in another format."""

    code = "profiles.other-formats"
    severity = Severity.ADVICE
    template = "use --format {formats:or}"

    formats: tuple[str, ...]


class NotReadAlike(Message):
    """Programs that read .env files read a value differently."""

    code = "profiles.not-read-alike"
    severity = Severity.ADVICE
    template = "readers of such files don't agree on it; use --format docker or shell"


class JupyterFromShell(Message):
    """Set a variable in the shell that starts Jupyter."""

    code = "profiles.jupyter-from-shell"
    severity = Severity.ADVICE
    template = "start Jupyter from a shell that has it (--format shell), or take it out"


# What the comments say.


class Heading(Message):
    """The profile, and the machine and image that its numbers and paths are for."""

    code = "profiles.heading"
    severity = Severity.NOTE
    template = (
        "profile {profile}, resolved for {usable_cpus:count usable CPU} on {physical_cores:count core} of {host}; "
        "{place}"
    )

    profile: str
    usable_cpus: int
    physical_cores: int
    host: str
    place: str


class StartWith(Message):
    """The profile has a prefix that the format can't set."""

    code = "profiles.start-with"
    severity = Severity.NOTE
    template = "start your commands with: {prefix:command}"

    prefix: tuple[str, ...]


class MountLibrary(Message):
    """The image lacks a library, which this machine has."""

    code = "profiles.mount-library"
    severity = Severity.NOTE
    template = "a library of it is not in the image: mount it, read-only ({mount})"

    mount: str


class EachRank(Message):
    """The profile is for several ranks."""

    code = "profiles.each-rank"
    severity = Severity.NOTE
    template = (
        "these are the settings of each of {ranks:d} ranks: start them together with torchrun "
        "--nproc-per-node {ranks:d}"
    )

    ranks: int


class StartWithGpus(Message):
    """The container needs the machine's GPUs."""

    code = "profiles.start-with-gpus"
    severity = Severity.NOTE
    template = "start the container with the machine's GPUs: {how}"

    how: str


class AllowPlacement(Message):
    """The container needs capabilities for the command that starts the profile's processes."""

    code = "profiles.allow-placement"
    severity = Severity.NOTE
    template = "start the container so that {program} may place memory: {how}"

    program: str
    how: str


class MayDiffer(Message):
    """The profile may change results."""

    code = "profiles.may-differ"
    severity = Severity.NOTE
    template = "numerics may differ from those without this profile"


class StartCleanly(Message):
    """Apptainer hands the shell's variables on."""

    code = "profiles.start-cleanly"
    severity = Severity.NOTE
    template = "start it with apptainer run --cleanenv, or other variables of your shell are set inside too"


class ReadAtStart(Message):
    """A running process can't set some variables of the profile for itself."""

    code = "profiles.read-at-start"
    severity = Severity.WARNING
    template = (
        "not set, as it is read when a process starts: {names:list}; "
        "start the process with it (--format jupyter, or shell)"
    )

    names: tuple[str, ...]


class NoKernel(Message):
    """The interpreter lacks what starts a kernel."""

    code = "profiles.no-kernel"
    severity = Severity.WARNING
    template = "{python} has no ipykernel, which starts kernels: install it there, or give --python"

    python: str


class AllowIn(Message):
    """The Pod allows capabilities."""

    code = "profiles.allow-in"
    severity = Severity.NOTE
    template = "for {program}, where Pods have a seccomp filter; else, or where it is refused, take it out"

    program: str


class RepeatCommand(Message):
    """An image loses its default command."""

    code = "profiles.repeat-command"
    severity = Severity.NOTE
    template = "an ENTRYPOINT clears the CMD of the base image: repeat it after this line"


class FolderInside(Message):
    """A job's container has one folder of this machine."""

    code = "profiles.folder-inside"
    severity = Severity.NOTE
    template = "the folder that the job starts in is inside under its own name, and no home; add others after a comma"


class OtherPath(Message):
    """Why the script turns login shells off."""

    code = "profiles.other-path"
    severity = Severity.NOTE
    template = "else a login shell inside may set another PATH than the image's"
