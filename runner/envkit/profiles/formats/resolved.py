"""The input of every format, and the comments that all formats share. Plain data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from envkit import rendering
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.profiles.environment import Environment, capabilities
from envkit.profiles.formats.messages import (
    PYTHON_UNDER,
    AllowPlacement,
    EachRank,
    Heading,
    MayDiffer,
    MountLibrary,
    StartWith,
    StartWithGpus,
)
from envkit.profiles.messages import NotExpressible

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # the characters of Unicode's category Cc


@dataclass(frozen=True)
class Resolved:
    """An Environment, and what it was resolved for."""

    environment: Environment
    host: str
    place: str  # for people: where its libraries are
    image: str | None  # the name of an OCI image; None for the file of one, or a local interpreter
    usable_cpus: int
    physical_cores: int
    smt: bool
    cores_measured: str | None = None  # the day, if the cores were measured
    limits: tuple[str, ...] = ()  # the user's, as options of ``docker run``
    mount: str | None = None  # HOST:INSIDE, which the kit mounts, of a library that is not in the image
    asking: tuple[str, ...] = ()  # the options of ``docker run`` for the machine's GPUs, where the profile is for some
    python: str = "python"  # its interpreter, by its path where that is on this machine
    package_folders: tuple[str, ...] = ()  # where that looks for packages, if it is on this machine
    sqsh: str | None = None  # the file of an Enroot image
    stray: tuple[str, ...] = ()  # variables of the shell it is printed in that could change the outcome, not its own
    # How many CPUs one process has there, where its threads are not all that runs on them: others are for DataLoader's
    # workers, for other processes, or on other NUMA nodes.
    beside: int = 0

    def heading(self) -> str:
        """One line: the profile, and the machine and image that its numbers and paths are for."""
        environment = self.environment
        heading = Heading(
            environment.profile, self.usable_cpus, self.physical_cores, self.host, self.place, self.cores_measured
        )
        return one_line(rendering.text(heading))

    def notes(self, starts: bool, asking: str = "", allowing: str = "") -> list[str]:
        """Return what the user has to know or to do, one line each.

        ``starts``: the format puts the prefix before commands. ``asking`` is how what is pasted gets the machine's
        GPUs, where it does not ask for them itself, and ``allowing`` how it gets capabilities.
        """
        environment = self.environment
        notes: list[Message] = []
        if environment.prefix and not starts:
            notes.append(StartWith(environment.prefix))
        if self.mount:
            notes.append(MountLibrary(self.mount))
        if environment.ranks > 1:
            notes.append(EachRank(environment.ranks))
        if environment.gpus and asking:
            notes.append(StartWithGpus(asking))
        if allowing and (needed := capabilities(environment.prefix)):
            notes.append(AllowPlacement(environment.prefix[0], " ".join(f"{allowing} {name}" for name in needed)))
        if environment.numerics == "may-differ":
            notes.append(MayDiffer())
        return [one_line(rendering.text(note)) for note in notes]

    def start(self) -> str:
        """The prefix as it is typed in a shell."""
        return shlex.join(self.environment.prefix)

    def comments(self, indent: str = "", starts: bool = False, asking: str = "", allowing: str = "") -> str:
        """The heading and the notes as lines that begin with ``#``."""
        return "".join(f"{indent}# {line}\n" for line in (self.heading(), *self.notes(starts, asking, allowing)))


def kernel_name(profile: str) -> str:
    """Return what a notebook or an editor calls a Python that runs under a profile."""
    return f"{PYTHON_UNDER} {profile}"


def one_line(text: str) -> str:
    """``text`` without line breaks and other control characters, which would end a comment."""
    return CONTROL.sub(" ", text)


def refuse(
    resolved: Resolved,
    form: str,
    texts: Iterable[tuple[str, str]],
    pattern: re.Pattern[str],
    problem: Message,
    fix: Message,
) -> None:
    """Raise InputError if ``pattern`` is found in one of ``texts``, which are pairs of name and value."""
    for name, text in texts:
        if pattern.search(text):
            profile = resolved.environment.profile
            raise InputError(NotExpressible(profile, form, name, problem, fix))
