"""Find Fashion-MNIST and have its four files checked and decompressed in one folder, wherever they come from.

Order: the folder the user names, the user's cache, the system's folder, Debian's package unpacked without root, the
publisher's files over HTTPS, and, if none of these answers, a synthetic set that says that it is one.
"""

from __future__ import annotations

import gzip
import http.client
import io
import shutil
import subprocess
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from envkit.bench import dataset_messages as said
from envkit.bench.dataset_messages import (
    CacheEmpty,
    CacheUnwritable,
    DownloadFailed,
    FileDamaged,
    FileMissing,
    FolderMissing,
    FromPlace,
    NoPackage,
    NoPackageTools,
    NoSource,
    NotInFolder,
    SyntheticAsked,
    SyntheticInstead,
    SyntheticUsed,
    ToolFailed,
    ToolTimedOut,
)
from envkit.common import atomic, files, folders
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.messages import Message, message_of
from envkit.worker import scratch
from envkit.worker.fashion_mnist import SHA256, SYNTHETIC, mismatch

SYSTEM_FOLDER = Path("/usr/share/datasets/fashion-mnist")
PACKAGE = "dataset-fashion-mnist"
PUBLISHER = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"
DOWNLOAD_TIMEOUT_S = 60
APT_TIMEOUT_S = 120
MOST_BYTES = 64 * 2**20  # the largest file, decompressed, has 47 MB

Say = Callable[[Message], None]


class SourceError(Exception):
    """A source does not have the data."""

    def __init__(self, problem: Message) -> None:
        super().__init__(problem.code)
        self.problem = problem


@dataclass(frozen=True)
class DataSet:
    """``location`` is what the worker is given: a folder of decompressed files, or ``synthetic``."""

    location: str
    source: Message

    @property
    def synthetic(self) -> bool:
        return self.location == SYNTHETIC


def cache_folder() -> Path:
    """Where decompressed files are kept between runs."""
    return folders.cache() / "fashion-mnist"


def find(named: str | None, say: Say) -> DataSet:
    """Return the first source that has all four files, checked. Call ``say`` with what is wrong with the others.

    Raise InputError if the folder that the user named does not have them, or the cache can't be written.
    """
    if named == SYNTHETIC:
        return DataSet(SYNTHETIC, SyntheticAsked())
    cache = cache_folder()
    if named is not None:
        try:
            return _from_folder(Path(named), cache, FromPlace(said.FOLDER, named))
        except SourceError as error:
            raise InputError(NotInFolder(named, error.problem)) from None
    sources: tuple[tuple[str, Callable[[], DataSet]], ...] = (
        (said.CACHE, lambda: _from_cache(cache)),
        (said.SYSTEM_FOLDER, lambda: _from_folder(SYSTEM_FOLDER, cache, _in_system())),
        (said.PACKAGE, lambda: _from_package(cache)),
        (said.PUBLISHER, lambda: _from_publisher(cache)),
    )
    for name, source in sources:
        try:
            return source()
        except SourceError as error:
            say(NoSource(name, error.problem))
    say(SyntheticInstead())
    return DataSet(SYNTHETIC, SyntheticUsed())


def _in_system() -> Message:
    return FromPlace(said.SYSTEM_FOLDER, str(SYSTEM_FOLDER))


def _content(folder: Path, name: str) -> bytes:
    """Return file ``name`` (or ``name.gz``) of ``folder``, decompressed and checked. Raise SourceError."""
    path = folder / name
    if not path.is_file():
        path = folder / f"{name}.gz"
    try:
        content = files.read(path, MOST_BYTES)
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
                content = packed.read(MOST_BYTES + 1)  # and no more, whatever it unpacks to
    except FileNotFoundError:
        raise SourceError(FileMissing(str(folder / name))) from None
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(FileDamaged(str(path), message_of(error))) from None
    problem = mismatch(name, content)
    if problem:
        raise SourceError(About(str(path), problem))
    return content


def _from_cache(cache: Path) -> DataSet:
    if not cache.is_dir():
        raise SourceError(CacheEmpty(str(cache)))
    return _from_folder(cache, cache, FromPlace(said.CACHE, str(cache)))


def _from_folder(folder: Path, cache: Path, source: Message) -> DataSet:
    if not folder.is_dir():
        raise SourceError(FolderMissing(str(folder)))
    contents = ((name, _content(folder, name)) for name in SHA256)
    if all((folder / name).is_file() for name in SHA256):
        for _ in contents:
            pass
        return DataSet(str(folder.resolve()), source)
    _store(contents, cache)
    return DataSet(str(cache), source)


def _store(contents: Iterable[tuple[str, bytes]], cache: Path) -> None:
    """Put all files into the cache, or none: each is written under another name and renamed when complete."""
    try:
        atomic.make_folder(cache)
        cache.chmod(0o755)  # whatever the umask
        for name, content in contents:
            atomic.put(cache / name, content, 0o644)  # a container's ordinary user reads it too
    except OSError as error:
        raise InputError(CacheUnwritable(str(cache), str(error.strerror))) from None


def _run(command: list[str], folder: Path) -> None:
    """Run a package tool; SourceError with its last line if it fails."""
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=APT_TIMEOUT_S, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SourceError(ToolTimedOut(command[0], APT_TIMEOUT_S)) from None
    if result.returncode != 0:
        raise SourceError(ToolFailed(command[0], next(reversed(result.stderr.strip().splitlines()), None)))


def _from_package(cache: Path) -> DataSet:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SourceError(NoPackageTools())
    with scratch.folder("envkit-apt") as folder:
        download = ["apt-get", "-q", "-o", "APT::Sandbox::User=", "download", PACKAGE]
        try:
            _run(download, folder)
        except SourceError:
            # no package lists on this system, or old ones: make some here, and touch nothing of the system's
            for name in ("lists/partial", "cache/archives/partial"):
                (folder / name).mkdir(parents=True)
            private_lists = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
            _run(["apt-get", "-q", *private_lists, "-o", "APT::Sandbox::User=", "update"], folder)
            _run([download[0], *private_lists, *download[1:]], folder)
        package = next(folder.glob("*.deb"), None)
        if package is None:
            raise SourceError(NoPackage(PACKAGE))
        _run(["dpkg-deb", "-x", str(package), "unpacked"], folder)
        unpacked = folder / "unpacked" / SYSTEM_FOLDER.relative_to("/")
        return _from_folder(unpacked, cache, FromPlace(said.PACKAGE, package.stem))


def _from_publisher(cache: Path) -> DataSet:
    with scratch.folder("envkit-download") as folder:
        for name in SHA256:
            url = f"{PUBLISHER}{name}.gz"
            try:
                with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as response:
                    (folder / f"{name}.gz").write_bytes(response.read())
            except (OSError, http.client.HTTPException) as error:
                raise SourceError(DownloadFailed(url, str(error))) from None
        return _from_folder(folder, cache, FromPlace(said.PUBLISHER, PUBLISHER))
