"""Messages about files from outside that must not be read, and about documents that can't be."""

from __future__ import annotations

from envkit.messages import Message


class NotRegular(Message):
    """A path names no regular file. ``kind`` is as "a FIFO"."""

    template = "it is {kind}, not a regular file"

    kind: str


class LinkOfOther(Message):
    """Neither this user nor the owner of a file made the link to it. Both fields are user numbers."""

    template = "user {maker:d} made this link to a file of user {owner:d}; copy that file, or name it"

    maker: int
    owner: int


class LargerThan(Message):
    """A file is larger than any that the kit writes."""

    template = "it has {size:size}, and at most {most:size} are read"

    size: int
    most: int


class NotJson(Message):
    """A JSON parser refused a document, with ``reason``: a clause that follows "not valid JSON"."""

    template = "{reason}"

    reason: str


class LongNumber(Message):
    """A JSON document has a number of more digits than Python converts."""

    template = "a number has thousands of digits"


class NotUtf8Json(Message):
    """A JSON document has bytes of another encoding."""

    template = "not UTF-8 (byte {position:d} is {byte})"

    position: int
    byte: str  # as 0xe9


class JsonTooDeep(Message):
    """Brackets of a JSON document are nested too deep."""

    template = "more than {levels} levels of brackets"

    levels: int


class ManyValues(Message):
    """A JSON document has more values than fit into memory."""

    template = "more than {most} values"

    most: int


class TwiceInJson(Message):
    """A key stands twice in one object of a JSON document."""

    template = "the key '{key}' stands twice"

    key: str


class NoFiniteNumber(Message):
    """A JSON document has NaN or an infinity where it must not."""

    template = "{found}"

    found: str


class OtherType(Message):
    """A value of a document has another type than the kit writes there."""

    template = "'{key}' has another type than the kit writes"

    key: str


class ManyEntries(Message):
    """A list, or a mapping, of a document has more entries than any run has."""

    template = "'{key}' has more than {most} entries"

    key: str
    most: int


class ForeignLink(Message):
    """Another user made a link on the way to a file that the kit is to write. ``owner`` is the number of that user."""

    template = "{file}: user {owner:d} made the link '{name}', which may lead anywhere; write to another folder"

    file: str
    name: str
    owner: int


class ForeignPlace(Message):
    """Another user was first to make what the kit is to make in a folder that others can write to."""

    template = "{file}: user {owner:d} made it, in a folder that others can write to; choose another name"

    file: str
    owner: int
