"""Find Fashion-MNIST and have its four files checked and decompressed in one folder, wherever they come from.

Order: the folder the user names, the user's cache, the system's folder, Debian's package unpacked without root, the
publisher's files over HTTPS, and, if none of these answers, a synthetic set that says that it is one.
"""

from __future__ import annotations

import gzip
import http.client
import os
import shutil
import subprocess
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from envkit.common import user_folders
from envkit.common.errors import InputError
from envkit.rendering import text
from envkit.worker.fashion_mnist import SHA256, SYNTHETIC, mismatch

SYSTEM_FOLDER = Path("/usr/share/datasets/fashion-mnist")
PACKAGE = "dataset-fashion-mnist"
PUBLISHER = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"
DOWNLOAD_TIMEOUT_S = 60
APT_TIMEOUT_S = 120

Say = Callable[[str], None]


class SourceError(Exception):
    """This source does not have the data; the message says why."""


@dataclass(frozen=True)
class DataSet:
    """``location`` is what the worker is given: a folder of decompressed files, or ``synthetic``."""

    location: str
    source: str

    @property
    def synthetic(self) -> bool:
        return self.location == SYNTHETIC


def cache_folder() -> Path:
    """Where decompressed files are kept between runs."""
    return user_folders.cache() / "fashion-mnist"


def find(named: str | None, say: Say) -> DataSet:
    """The first source that has all four files, checked; ``say`` is told what was wrong with the others.

    Raises InputError if the folder that the user named does not have them, or the cache can't be written.
    """
    if named == SYNTHETIC:
        return DataSet(SYNTHETIC, "synthetic, as asked for")
    cache = cache_folder()
    if named is not None:
        try:
            return _from_folder(Path(named), cache, f"folder {named}")
        except SourceError as error:
            raise InputError(f"--data {named}: {error}; give a folder with the four files of Fashion-MNIST") from None
    sources: tuple[tuple[str, Callable[[], DataSet]], ...] = (
        ("cache", lambda: _from_cache(cache)),
        ("system folder", lambda: _from_folder(SYSTEM_FOLDER, cache, f"system folder {SYSTEM_FOLDER}")),
        ("Debian package", lambda: _from_package(cache)),
        ("publisher", lambda: _from_publisher(cache)),
    )
    for name, source in sources:
        try:
            return source()
        except SourceError as error:
            say(f"data: {name}: {error}")
    say("data: no source has Fashion-MNIST: a SYNTHETIC set of the same shapes is used")
    return DataSet(SYNTHETIC, "synthetic, because no source of Fashion-MNIST could be reached")


def _content(folder: Path, name: str) -> bytes:
    """File ``name`` (or ``name.gz``) of ``folder``, decompressed and checked. Raises SourceError naming the file."""
    path = folder / name
    if not path.is_file():
        path = folder / f"{name}.gz"
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise SourceError(f"{folder / name}[.gz]: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: corrupt or truncated ({error})") from None
    problem = mismatch(name, content)
    if problem:
        raise SourceError(f"{path}: {text(problem)}")
    return content


def _from_cache(cache: Path) -> DataSet:
    if not cache.is_dir():
        raise SourceError(f"{cache}: nothing there yet")
    return _from_folder(cache, cache, f"cache {cache}")


def _from_folder(folder: Path, cache: Path, source: str) -> DataSet:
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder")
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
        cache.mkdir(parents=True, exist_ok=True)
        cache.chmod(0o755)  # whatever the umask
        for name, content in contents:
            with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
                try:
                    file.write(content)
                    file.flush()
                    os.fchmod(file.fileno(), 0o644)  # a container's ordinary user reads it too
                    Path(file.name).replace(cache / name)
                except BaseException:
                    Path(file.name).unlink()
                    raise
    except OSError as error:
        raise InputError(
            f"{cache}: the data set can't be cached there: {error.strerror}; set XDG_CACHE_HOME to a folder with 60 MB"
        ) from None


def _run(command: list[str], folder: Path) -> None:
    """Run a package tool; SourceError with its last line if it fails."""
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=APT_TIMEOUT_S, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SourceError(f"{command[0]} did not end in {APT_TIMEOUT_S} s") from None
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise SourceError(f"{command[0]} failed: {last}")


def _from_package(cache: Path) -> DataSet:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SourceError("apt-get or dpkg-deb is not on this machine")
    with tempfile.TemporaryDirectory(prefix="envkit-apt-") as temporary:
        folder = Path(temporary)
        download = ["apt-get", "-q", "-o", "APT::Sandbox::User=", "download", PACKAGE]
        try:
            _run(download, folder)
        except SourceError:
            # no package lists on this system, or old ones: make some here, and touch nothing of the system's
            for name in ("lists/partial", "cache/archives/partial"):
                (folder / name).mkdir(parents=True)
            own = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
            _run(["apt-get", "-q", *own, "-o", "APT::Sandbox::User=", "update"], folder)
            _run([download[0], *own, *download[1:]], folder)
        package = next(folder.glob("*.deb"), None)
        if package is None:
            raise SourceError(f"apt-get download {PACKAGE} left no package")
        _run(["dpkg-deb", "-x", str(package), "unpacked"], folder)
        unpacked = folder / "unpacked" / SYSTEM_FOLDER.relative_to("/")
        return _from_folder(unpacked, cache, f"Debian package {package.name.removesuffix('.deb')}")


def _from_publisher(cache: Path) -> DataSet:
    with tempfile.TemporaryDirectory(prefix="envkit-download-") as temporary:
        for name in SHA256:
            url = f"{PUBLISHER}{name}.gz"
            try:
                with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as response:
                    (Path(temporary) / f"{name}.gz").write_bytes(response.read())
            except (OSError, http.client.HTTPException) as error:
                raise SourceError(f"{url}: {error}") from None
        return _from_folder(Path(temporary), cache, f"publisher {PUBLISHER}")
