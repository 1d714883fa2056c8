"""Messages about variables of a profile: what would be in vain in an image, and how to mend it."""

from __future__ import annotations

from envkit.messages import Advice, Message

# What is wrong.


class BadValue(Message):
    """A library would not take a value. ``refused`` is a clause with the value as its subject."""

    template = "'{value}' {refused}"

    value: str
    refused: Message


class BadValueOfKey(Message):
    """A library would not take the value of a key."""

    template = "{key}'s value '{value}' {refused}"

    key: str
    value: str
    refused: Message


class NotAPair(Message):
    """A setting has no key or no value."""

    template = "'{entry}' is not key{assign}value"

    entry: str
    assign: str


class UnknownKey(Message):
    """A variable has no such key."""

    template = "key '{key}' is not known[ (did you mean '{suggestion}'?)]"

    key: str
    suggestion: str | None = None


class NeedsVersion(Message):
    """The library in the image is too old for a key."""

    template = "{key} needs version {since} and the image has {version}"

    key: str
    since: str
    version: str


class RemovedInVersion(Message):
    """The library in the image is too new for a key."""

    template = "version {before} removed {key}, and the image has {version}"

    key: str
    before: str
    version: str


class MoreThanTaken(Message):
    """The library in the image takes smaller numbers alone."""

    template = (
        "{value} is more than {most:d}, the most that a version before {newer} takes, and the image has {version}"
    )

    value: str
    most: int
    newer: str
    version: str


class UnknownName(Message):
    """The catalogue does not have a variable."""

    template = "no library is known to read it[ (did you mean '{suggestion}'?)]"

    suggestion: str | None = None


class NobodyReads(Message):
    """No library in the image reads a variable."""

    template = "nothing in this image reads it, only {readers} would"

    readers: tuple[str, ...]


class VersionDoesNotRead(Message):
    """The libraries in the image have versions that do not read a variable."""

    template = "{present:list} does not read it"

    present: tuple[str, ...]  # as "mimalloc 2.0.9"


class InVain(Message):
    """A variable would be in vain. ``fix`` mends that."""

    template = "{variable}: {wrong}; {fix}"

    variable: str
    wrong: Message
    fix: Message


# Mends.


class Write(Advice):
    """Write another value."""

    template = "write {allowed}"

    allowed: Message


class WriteAtMost(Advice):
    """Write a smaller number."""

    template = "write {most:d} or less"

    most: int


class Correct(Advice):
    """A name or a key is misspelled."""

    template = "correct the {what}"

    what: str


class NoLongerRead(Message):
    """A library stopped reading a variable with this version."""

    template = "{library} does not read it since version {version}"

    library: str
    version: str


class UseProfileInstead(Advice):
    """A profile has the effect that a variable once had."""

    template = "remove it; the profile {profile} has its effect"

    profile: str


class RemoveKey(Advice):
    """Remove a key."""

    template = "remove {key}"

    key: str


class GetReader(Advice):
    """A way to a library."""

    template = "{library}: {get}"

    library: str
    get: str


class RemoveOrGet(Advice):
    """Remove a variable, or install a library that reads it."""

    template = "remove it, or get {ways:or}"

    ways: tuple[Message, ...]


class RemoveOrUpdate(Advice):
    """Remove a variable, or install a version that reads it."""

    template = "remove it; it needs {wanted:list}"

    wanted: tuple[str, ...]  # as "mimalloc >=2.1"
