"""Messages about places where another user could have the kit write to something else."""

from __future__ import annotations

from envkit.messages import Message


class ForeignLink(Message):
    """Another user made a link on the way to a file that the kit is to write. ``owner`` is the number of that user."""

    code = "common.foreign-link"
    template = "{file}: user {owner:d} made the link '{name}', which may lead anywhere; write to another folder"

    file: str
    name: str
    owner: int


class ForeignPlace(Message):
    """Another user was first to make what the kit is to make in a folder that others can write to."""

    code = "common.foreign-place"
    template = "{file}: user {owner:d} made it, in a folder that others can write to; choose another name"

    file: str
    owner: int
