"""Messages about the secret key of a user."""

from __future__ import annotations

from envkit.messages import Message

# Why a file can't be a key; and of OPEN its mode, of UNREADABLE the reason.
IS_LINK = "is a link"
NO_FILE = "is not a regular file"
UNREADABLE = "can't be read"
OF_OTHER = "belongs to another user"
OPEN = "is open to other users by its mode"
OTHER_LENGTH = "does not hold as many bytes as a key"


class NoHome(Message):
    """The user has no home folder for a key."""

    template = "this user has no home folder; set XDG_CONFIG_HOME"


class KeyRemoved(Message):
    """Another process removed a key while this one made it."""

    template = "{file}: another process removed it at once"

    file: str


class ForeignFolder(Message):
    """The folder for a key belongs to another user, as with sudo."""

    template = "{folder} belongs to another user; set XDG_CONFIG_HOME to a folder of your own"

    folder: str


class WritableByOthers(Message):
    """Other users could replace the key."""

    template = "{folder}: other users can write to this folder, which holds your key; run {fix:command}"

    folder: str
    fix: tuple[str, ...]


class BadKey(Message):
    """The file of the key can't be the user's key. ``fault`` is one of those above."""

    template = "{file}: {fault}[ ({detail})], so it can't be your key; run {fix:command}, and envkit makes a new one"

    file: str
    fault: str
    fix: tuple[str, ...]
    detail: str | None = None
