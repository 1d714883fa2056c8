"""Messages of what is to be measured."""

from __future__ import annotations

from envkit.messages import Message


class FolderTooLarge(Message):
    """A user's folder is too large to be copied for each start."""

    code = "bench.folder-too-large"
    template = (
        "{folder}: each start gets a copy of it, and it has {files:count file} and {bytes:size}, most of it in "
        "{names}; give --link NAME for what the training only reads, or --in-place to start it in the folder itself"
    )

    folder: str
    files: int
    bytes: int
    names: tuple[str, ...]


class FolderUnreadable(Message):
    code = "bench.folder-unreadable"
    template = "{folder}: each start gets a copy, and {path} can't be read: {why}; give --link NAME, or --in-place"

    folder: str
    path: str
    why: str


class NoSuchLink(Message):
    code = "bench.no-such-link"
    template = "--link {name}: there is no such file or folder in {folder}; name one as seen from there"

    name: str
    folder: str
