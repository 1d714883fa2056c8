"""What every format is given, and what they all say in their comments. Plain data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from envkit.common.errors import InputError
from envkit.profiles.environment import Environment, capabilities
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
        cpus = f"{_counted(self.usable_cpus, 'usable CPU')} on {_counted(self.physical_cores, 'core')} of {self.host}"
        return one_line(f"profile {self.environment.profile}, resolved for {cpus}; {self.place}")

    def notes(self, starts: bool, asking: str = "", allowing: str = "") -> list[str]:
        """What the user has to know or to do, one line each. ``starts``: the format puts the prefix before commands.

        ``asking`` is how what is pasted gets the machine's GPUs, where it does not ask for them itself, and
        ``allowing`` how it gets capabilities.
        """
        notes = []
        if self.environment.prefix and not starts:
            notes.append(f"start your commands with: {self.start()}")
        if self.mount:
            notes.append(f"a library of it is not in the image: mount it, read-only ({self.mount})")
        if (ranks := self.environment.ranks) > 1:
            start = f"torchrun --nproc-per-node {ranks}"
            notes.append(f"this is what each of {ranks} ranks is to have: start them together, with {start}")
        if self.environment.gpus and asking:
            notes.append(f"start the container with the machine's GPUs: {asking}")
        if allowing and (needed := capabilities(self.environment.prefix)):
            how = " ".join(f"{allowing} {name}" for name in needed)
            notes.append(f"start the container so that {self.environment.prefix[0]} may place memory: {how}")
        if self.environment.numerics == "may-differ":
            notes.append("numerics may differ from those without this profile")
        return [one_line(note) for note in notes]

    def start(self) -> str:
        """The prefix as it is typed in a shell."""
        return shlex.join(self.environment.prefix)

    def comments(self, indent: str = "", starts: bool = False, asking: str = "", allowing: str = "") -> str:
        """The heading and the notes as lines that begin with ``#``."""
        return "".join(f"{indent}# {line}\n" for line in (self.heading(), *self.notes(starts, asking, allowing)))


def one_line(text: str) -> str:
    """``text`` without line breaks and other control characters, which would end a comment."""
    return CONTROL.sub(" ", text)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def refuse(
    resolved: Resolved, form: str, texts: Iterable[tuple[str, str]], pattern: re.Pattern[str], what: str, fix: str
) -> None:
    """Raise InputError if ``pattern`` is found in one of ``texts``, which are pairs of name and value."""
    for name, text in texts:
        if pattern.search(text):
            profile = resolved.environment.profile
            raise InputError(NotExpressible(profile, form, name, what, fix))
