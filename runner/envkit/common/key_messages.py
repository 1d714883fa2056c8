"""Messages about the secret key of a user."""

from __future__ import annotations

from envkit.messages import Message


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
    """A key can't be trusted. A new one is the only mend, because a key that others know proves nothing."""

    template = "{file}: {fault}, so it can't be your key; run {fix:command}, and envkit makes a new one"

    file: str
    fault: Message
    fix: tuple[str, ...]


class KeyIsLink(Message):
    """The fault of a key: a symbolic link."""

    template = "is a link"


class KeyIsNoFile(Message):
    """The fault of a key: a folder, a pipe or a device."""

    template = "is not a regular file"


class KeyUnreadable(Message):
    """The fault of a key: the system does not let this user read it."""

    template = "can't be read ({reason})"

    reason: str


class KeyOfOther(Message):
    """The fault of a key: another user owns it."""

    template = "belongs to another user"


class KeyOpen(Message):
    """The fault of a key: other users may have read it."""

    template = "is open to other users (its mode is {mode}), who may have read it"

    mode: str  # octal


class KeyLength(Message):
    """The fault of a key: a wrong length."""

    template = "does not hold the {length} bytes of a key"

    length: int
