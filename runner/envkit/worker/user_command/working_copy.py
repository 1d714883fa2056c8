"""Start a user's command in a fresh copy of its folder.

A training is started many times. In its own folder it would overwrite the user's checkpoints, and each start could go
on from what the one before left, which is other work. A copy protects both. It has real files, as a hard link would
share what is appended. Virtual environments, tagged caches and what the user names are linked, as training only reads
them. A git repository borrows the objects of the user's: what is committed in the copy stays there. Folders with a
record of the kit's are left out.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from envkit.worker import scratch
from envkit.worker.errors import WorkerError
from envkit.worker.messages.user_command import NoRoom

# A copy is made for each start, which takes time and room.
MOST_BYTES, MOST_FILES = 2**30, 20_000
# What a training may write must fit beside the copy.
ROOM_BYTES = 2**30
# A folder with one of these is a virtual environment, one of conda's, or a cache (bford.info/cachedir).
ONLY_READ = ("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG")
ENVIRONMENTS = ONLY_READ[:2]
RECORD, BEGINS_RECORD = "record.jsonl", b'{"event": "'
REPOSITORY = ".git"
# What other programs write while a training runs: Python's caches, and notebooks that save themselves.
NOT_ITS_OWN = ("__pycache__", ".ipynb")
OWN = re.compile(rf"envkit-[a-z]+-{os.getuid()}-")  # how temporary folders of the kit's begin
EXAMPLES = 3


class TooLarge(Exception):
    """The folder is too large to be copied: ``names`` are the largest of what is in it."""

    def __init__(self, size: int, files: int, names: Sequence[str]) -> None:
        super().__init__(size, files, names)
        self.size, self.files, self.names = size, files, names


@dataclass
class Survey:
    """List what is in a folder, by relative paths. A file has its size (bytes) and the time it was written (ns)."""

    folders: list[str] = field(default_factory=list)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)  # and what each is to point to
    repositories: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def survey(folder: Path, links: Sequence[str] = ()) -> Survey:
    """Look at what a copy of ``folder`` has, ``links`` linked. Raise TooLarge, or OSError if it can't be read."""
    inventory, linked = Survey(), {os.path.normpath(link) for link in links}
    waiting = [""]
    while waiting and len(inventory.files) <= 10 * MOST_FILES:
        inner = waiting.pop()
        try:
            with os.scandir(folder / inner) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except PermissionError:
            if not inner:
                raise
            inventory.folders.remove(inner)  # the training can't read it either
            continue
        if inner and any(entry.name == RECORD and _is_record(entry) for entry in listed):
            inventory.folders.remove(inner)
            continue
        for entry in listed:
            if OWN.match(entry.name) and entry.is_dir():
                continue
            name = os.path.join(inner, entry.name)  # noqa: PTH118 - a path of the survey
            if entry.is_symlink():
                inventory.links[name] = _target(folder, name)
            elif name in linked or (entry.is_dir() and _is_only_read(entry)):
                inventory.links[name] = entry.path
            elif entry.name == REPOSITORY:
                inventory.repositories += (
                    [name] if entry.is_dir() else []
                )  # a file would lead to a repository elsewhere
            elif entry.is_dir():
                inventory.folders.append(name)
                waiting.append(name)
            elif entry.is_file():
                about = entry.stat()
                inventory.files[name] = about.st_size, about.st_mtime_ns
    if inventory.size > MOST_BYTES or len(inventory.files) > MOST_FILES:
        raise TooLarge(inventory.size, len(inventory.files), _largest(inventory))
    return inventory


def shared(folder: Path, links: Sequence[str] = ()) -> list[str]:
    """Return the links of a copy through which its training can write elsewhere, but for ``links``, which it reads.

    Leave out virtual environments and hidden caches. Raise as ``survey``.
    """
    named = {os.path.normpath(link) for link in links}
    return [
        name for name, target in survey(folder, links).links.items()
        if name not in named and os.path.isabs(target) and os.access(target, os.W_OK)  # noqa: PTH117
        and os.path.isdir(target) and not Path(name).name.startswith(".")  # noqa: PTH112
        and not any(os.path.lexists(f"{target}/{mark}") for mark in ENVIRONMENTS)
    ]  # fmt: skip


def _is_record(entry: os.DirEntry[str]) -> bool:
    """Return whether a file is a record of the kit's, and not another program's log of that name."""
    try:
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)  # it may be a FIFO
        with os.fdopen(descriptor, "rb") as file:
            return file.read(len(BEGINS_RECORD)) == BEGINS_RECORD
    except OSError:
        return False


def _is_only_read(entry: os.DirEntry[str]) -> bool:
    return any(os.path.lexists(f"{entry.path}/{name}") for name in ONLY_READ)


def _target(folder: Path, name: str) -> str:
    """Return what a symbolic link points to, seen from the copy: the same inside the folder, else a full path."""
    text = str((folder / name).readlink())
    parent = folder / os.path.dirname(name)  # noqa: PTH120 - a path of the survey
    full = os.path.normpath(parent / text)
    for top in (str(folder), os.path.realpath(folder)):
        if full == top or full.startswith(f"{top}/"):
            return os.path.relpath(full, os.path.join(top, os.path.dirname(name))) if os.path.isabs(text) else text  # noqa: PTH117, PTH118, PTH120
    return full


def _largest(inventory: Survey) -> list[str]:
    """Return the names at the top of the folder with the most bytes or, if none is large, the most files."""
    sizes: dict[str, int] = {}
    weighs = (lambda size: size) if inventory.size > MOST_BYTES else (lambda size: 1)
    for name, (size, _) in inventory.files.items():
        top = Path(name).parts[0]
        sizes[top] = sizes.get(top, 0) + weighs(size)
    return sorted(sizes, key=lambda top: -sizes[top])[:EXAMPLES]


class Written(TypedDict):
    """Files that a command wrote: how many, their bytes, and some names."""

    files: int
    bytes: int
    names: list[str]


@dataclass
class Place:
    """Where a command is started: a copy of its ``folder``, or that itself."""

    path: Path
    folder: Path
    before: Survey | None  # None for one that is too large to be looked at

    def writes(self) -> dict[str, Written]:
        """Return what was written since: into the place and, for a copy, into the folder itself.

        Empty if nothing was written or nothing is known.
        """
        if self.before is None:
            return {}
        changed = {"inside": _changed(self.path, self.before)}
        if self.path != self.folder:
            changed["outside"] = _changed(self.folder, self.before)
        return {name: written for name, written in changed.items() if written is not None}


def _changed(folder: Path, before: Survey) -> Written | None:
    """Return what is new, changed or gone in ``folder``, or None. Files of NOT_ITS_OWN don't count."""
    try:
        now = survey(folder, [*before.links]).files
    except TooLarge as error:
        return {"files": error.files, "bytes": error.size, "names": [*error.names]}
    except OSError:
        return None
    names = [
        name for name in dict.fromkeys([*now, *before.files])
        if now.get(name) != before.files.get(name) and not any(part in name for part in NOT_ITS_OWN)
    ]  # fmt: skip
    if not names:
        return None
    size = sum(now[name][0] for name in names if name in now)
    return {"files": len(names), "bytes": size, "names": names[:EXAMPLES]}


@contextlib.contextmanager
def in_place(folder: Path) -> Iterator[Place]:
    """Start the command in its own folder."""
    try:
        before: Survey | None = survey(folder)
    except (TooLarge, OSError):
        before = None
    yield Place(folder, folder, before)


@contextlib.contextmanager
def fresh(folder: Path, links: Sequence[str] = ()) -> Iterator[Place]:
    """Make a copy of ``folder``, and remove it at the end. Raise TooLarge, WorkerError or OSError."""
    inventory = survey(folder, links)
    with scratch.folder("envkit-copy", _room(folder, inventory.size)) as made:
        path = made / (folder.name or "copy")
        path.mkdir(mode=0o700)
        for name in inventory.folders:
            (path / name).mkdir()
        for name, target in inventory.links.items():
            (path / name).symlink_to(target)
        for name in inventory.files:
            with contextlib.suppress(PermissionError):
                shutil.copy2(folder / name, path / name)
        for name in inventory.repositories:
            _borrow(folder / name, path / name)
        for name in reversed(["", *inventory.folders]):
            shutil.copystat(folder / name, path / name)
            (path / name).chmod(stat.S_IMODE((folder / name).stat().st_mode) | stat.S_IRWXU)
        yield Place(path, folder, inventory)


def _borrow(repository: Path, copy: Path) -> None:
    """Copy a git repository but for its objects, which it reads from the original (gitrepository-layout(5))."""
    for parent, folders, files in os.walk(repository):
        here = copy / Path(parent).relative_to(repository)
        here.mkdir(exist_ok=True)
        if "objects" in folders and "HEAD" in files:  # this folder, or that of a submodule
            folders[:] = [name for name in folders if name not in ("objects", "lfs")]
            (here / "objects/info").mkdir(parents=True)
            (here / "objects/info/alternates").write_text(f"{parent}/objects\n")
        for name in [*files, *(name for name in folders if Path(parent, name).is_symlink())]:
            if stat.S_ISREG(os.lstat(f"{parent}/{name}").st_mode) or Path(parent, name).is_symlink():
                shutil.copy2(f"{parent}/{name}", here / name, follow_symlinks=False)


def _room(folder: Path, size: int) -> Path | None:
    """Return where a copy fits: None for the temporary folder, else the folder itself. Raise WorkerError if nowhere."""
    for place, path in ((None, Path(scratch.temporary())), (folder, folder)):
        about = os.statvfs(path)
        if about.f_bavail * about.f_frsize >= size + ROOM_BYTES and os.access(path, os.W_OK):
            return place
    raise WorkerError(NoRoom(str(folder), scratch.temporary()))
