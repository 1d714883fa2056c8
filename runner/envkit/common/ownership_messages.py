"""Messages of files that name a program, and that another user can have written."""

from __future__ import annotations

from envkit.messages import Message


class OfAnother(Message):
    """A file that names a program belongs to another user."""

    template = "{file}: user {owner} owns it and can change what it starts; make a copy of your own"

    file: str
    owner: str


class WritableFile(Message):
    """Others can write a file that names a program."""

    template = "{file}: other users can write it and so choose what it starts; read it, then run: {mend:command}"

    file: str
    mend: tuple[str, ...]


class FolderOpen(Message):
    """Others can replace a file that names a program."""

    template = (
        "{file}: other users can replace it, because they can write to {folder}; "
        "move it to a folder of your own, or run: {mend:command}"
    )

    file: str
    folder: str
    mend: tuple[str, ...]
