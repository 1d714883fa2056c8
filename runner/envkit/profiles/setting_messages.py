"""Messages about variables of a profile: what would be in vain in an image, and how to mend it."""

from __future__ import annotations

from envkit.messages import Message, Severity

# What is wrong.


class BadValue(Message):
    """A library would not take a value. ``refused`` is a clause with the value as its subject."""

    code = "profiles.bad-value"
    template = "'{value}' {refused}"

    value: str
    refused: Message


class BadValueOfKey(Message):
    """A library would not take the value of a key."""

    code = "profiles.bad-value-of-key"
    template = "{key}'s value '{value}' {refused}"

    key: str
    value: str
    refused: Message


class NotAPair(Message):
    """A setting has no key or no value."""

    code = "profiles.not-a-pair"
    template = "'{entry}' is not key{assign}value"

    entry: str
    assign: str


class UnknownKey(Message):
    """A variable has no such key."""

    code = "profiles.unknown-key"
    template = "key '{key}' is not known[ (did you mean '{suggestion}'?)]"

    key: str
    suggestion: str | None = None


class NeedsVersion(Message):
    """The library in the image is too old for a key."""

    code = "profiles.needs-version"
    template = "{key} needs version {since} and the image has {version}"

    key: str
    since: str
    version: str


class MoreThanTaken(Message):
    """The library in the image takes smaller numbers alone."""

    code = "profiles.more-than-taken"
    template = (
        "{value} is more than {most:d}, the most that a version before {newer} takes, and the image has {version}"
    )

    value: str
    most: int
    newer: str
    version: str


class UnknownName(Message):
    """The catalogue does not have a variable."""

    code = "profiles.unknown-name"
    template = "no library is known to read it[ (did you mean '{suggestion}'?)]"

    suggestion: str | None = None


class NobodyReads(Message):
    """No library in the image reads a variable."""

    code = "profiles.nobody-reads"
    template = "nothing in this image reads it, only {readers} would"

    readers: tuple[str, ...]


class VersionDoesNotRead(Message):
    """The libraries in the image have versions that do not read a variable."""

    code = "profiles.version-does-not-read"
    template = "{present:list} does not read it"

    present: tuple[str, ...]  # as "mimalloc 2.0.9"


class InVain(Message):
    """A variable would be in vain. ``fix`` mends that."""

    code = "profiles.in-vain"
    template = "{variable}: {wrong}; {fix}"

    variable: str
    wrong: Message
    fix: Message


# Mends.


class Write(Message):
    """Write another value."""

    code = "profiles.write"
    severity = Severity.ADVICE
    template = "write {allowed}"

    allowed: Message


class WriteAtMost(Message):
    """Write a smaller number."""

    code = "profiles.write-at-most"
    severity = Severity.ADVICE
    template = "write {most:d} or less"

    most: int


class CorrectKey(Message):
    """Correct a key."""

    code = "profiles.correct-key"
    severity = Severity.ADVICE
    template = "correct the key"


class NoLongerRead(Message):
    """A library stopped reading a variable with this version."""

    code = "profiles.no-longer-read"
    template = "{library} does not read it since version {version}"

    library: str
    version: str


class UseProfileInstead(Message):
    """A profile has the effect that a variable once had."""

    code = "profiles.use-profile-instead"
    severity = Severity.ADVICE
    template = "remove it; the profile {profile} has its effect"

    profile: str


class CorrectName(Message):
    """Correct a name."""

    code = "profiles.correct-name"
    severity = Severity.ADVICE
    template = "correct the name"


class RemoveKey(Message):
    """Remove a key."""

    code = "profiles.remove-key"
    severity = Severity.ADVICE
    template = "remove {key}"

    key: str


class GetReader(Message):
    """A way to a library."""

    code = "profiles.get-reader"
    severity = Severity.ADVICE
    template = "{library}: {get}"

    library: str
    get: str


class RemoveOrGet(Message):
    """Remove a variable, or install a library that reads it."""

    code = "profiles.remove-or-get"
    severity = Severity.ADVICE
    template = "remove it, or get {ways:or}"

    ways: tuple[Message, ...]


class RemoveOrUpdate(Message):
    """Remove a variable, or install a version that reads it."""

    code = "profiles.remove-or-update"
    severity = Severity.ADVICE
    template = "remove it; it needs {wanted:list}"

    wanted: tuple[str, ...]  # as "mimalloc >=2.1"
