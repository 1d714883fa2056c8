"""What profiles tell their users."""

from __future__ import annotations

from envkit.messages import Message, Severity


class UnknownProfile(Message):
    """No place has a profile of this name."""

    code = "profile.unknown"
    template = "no profile '{name}' in {folders}[; did you mean {suggestions:or}?]; envkit profiles lists all"

    name: str
    folders: tuple[str, ...]
    suggestions: tuple[str, ...] = ()


class NoProfileFile(Message):
    """A file was named, and is not there."""

    code = "profile.no-file"
    template = "{file}: no such profile file"

    file: str


class NotTuned(Message):
    """``tuned`` was named, and this machine has no such profile."""

    code = "profile.not-tuned"
    template = "{file}: this machine has no tuned profile yet; make one with: envkit tune"

    file: str


class ProjectProfile(Message):
    """A name stands for a file of the project where the user stands. Others may have written it."""

    code = "profile.of-project"
    severity = Severity.NOTE
    template = "{name} is the project's own: {file}[, in the place of {hidden}]"

    name: str
    file: str
    hidden: str | None = None


class HiddenProfile(Message):
    """Two places have a profile of one name, and the first one counts."""

    code = "profile.hidden"
    severity = Severity.NOTE
    template = "{name}: {file} is hidden by {first}"

    name: str
    file: str
    first: str


class OthersFolder(Message):
    """The project's folder of profiles belongs to another user, who could have this user run anything."""

    code = "profile.others-folder"
    severity = Severity.WARNING
    template = "{folder} is passed over: another user owns it, or all users can write to it"

    folder: str
