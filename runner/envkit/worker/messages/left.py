"""Messages on documents that processes left and that can't be used: each is a clause that follows a file's name."""

from __future__ import annotations

from envkit.messages import Message


class Unreadable(Message):
    """The system does not let a document be read."""

    code = "worker.left-unreadable"
    template = "can't be read: {reason}"

    reason: str


class LinkLeft(Message):
    """A document's path is a symbolic link."""

    code = "worker.left-link"
    template = "is a link"


class NotAFile(Message):
    """A document's path names a FIFO, a device or a socket."""

    code = "worker.left-no-file"
    template = "is not a regular file"


class TooLarge(Message):
    """A document is larger than any that the hook leaves."""

    code = "worker.left-too-large"
    template = "is larger than {most:size}"

    most: int


class TooMuch(Message):
    """The documents of a command are larger, together, than what is read of them."""

    code = "worker.left-too-much"
    template = "would be more than {most:size} with the others"

    most: int


class BadJson(Message):
    """A document is no JSON, or not in UTF-8."""

    code = "worker.left-no-json"
    template = "is not valid JSON"


class TooDeep(Message):
    """Brackets of a document are nested too deep."""

    code = "worker.left-too-deep"
    template = "has more than {levels} levels of brackets"

    levels: int


class OtherForm(Message):
    """A document lacks keys that the hook writes, or has values of other types."""

    code = "worker.left-other-form"
    template = "has another form than the evidence hook writes"


class SomeUnread(Message):
    """Evidence that processes left can't be used. ``name`` is the first file, and ``reason`` a clause about it."""

    template = "evidence of {count:count process|processes} can't be used: {name} {reason}"

    count: int
    name: str
    reason: Message
