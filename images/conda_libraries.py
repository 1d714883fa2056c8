#!/usr/bin/env python3
"""Memory allocators from conda-forge: lock them, fetch exactly the locked files, install them into a prefix.

    lock               write images/cpu/conda.lock from what the channel has now, and print it
    fetch [DIR]        download the files of the lock and verify their SHA-256
    install PREFIX     put them into PREFIX, for example .venv/conda for the local engine

Only locked packages are fetched and installed. --channel URL or ENVKIT_CONDA_CHANNEL names a mirror of the channel, by
https, as a file:// or on this machine (http://127.0.0.1); the hashes stay those of the lock. --pin NAME=VERSION asks
for that version of a package.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import errno
import hashlib
import http.client
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit, urlunsplit

from addresses import hidden, refusal
from conda_lock import CHANNEL, LOCK, PACKAGES, PLATFORM, PROJECT, LibrariesError, Lock, Package, read_lock, shown

FILES = PROJECT / "build/conda"
# What the image offers to packages beside conda's own: the lock must not depend on the machine that it is made on.
VIRTUAL_PACKAGES = {
    "__unix": ("0", "0"),
    "__linux": ("5.10", "0"),
    "__glibc": ("2.36", "0"),
    "__archspec": ("1", "x86_64"),
}
TIMEOUT_S = 30
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
ABOUT = (
    "Written by `images/conda_libraries.py lock`. It may be filled in by hand: url, sha256 and size decide which "
    "file is installed, the other keys are for people to read."
)
# There are two ways on for somebody whose machine does not reach the channel.
WAYS_ON = "name a mirror (--channel URL or ENVKIT_CONDA_CHANNEL), or use a variant with libraries: debian"


def lock(path: Path, channel: str, pins: Mapping[str, str]) -> None:
    """Solve for ``PACKAGES``, those in ``pins`` in these versions, and write every package of the solution to ``path``.

    URLs are written with the channel's public address, whatever mirror was asked.
    """
    rattler = import_rattler()
    specs = [f"{name} =={pins[name]}" if name in pins else name for name in PACKAGES]
    virtual = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.package.BuildString(build)
        )
        for name, (version, build) in VIRTUAL_PACKAGES.items()
    ]

    async def solve() -> Any:
        # A cache of its own: what the channel said another time must not reach a lock.
        with tempfile.TemporaryDirectory() as cache:
            return await rattler.solve(
                sources=[rattler.Channel(channel)],
                specs=specs,
                gateway=rattler.Gateway(cache, client=rattler.Client.default_client(max_retries=1, timeout=TIMEOUT_S)),
                platforms=[PLATFORM, "noarch"],
                virtual_packages=virtual,
            )

    try:
        records = asyncio.run(solve())
    except rattler.exceptions.SolverError as error:
        raise LibrariesError(f"{channel}: has no {' and '.join(specs)} that go together: {one_line(error)}") from None
    except (rattler.exceptions.GatewayError, rattler.exceptions.FetchRepoDataError) as error:
        answers = re.match("could not find|failed to decode", str(error)) is not None
        what = "is no conda channel" if answers else "does not answer"
        raise LibrariesError(f"{channel} {what}: {WAYS_ON} ({one_line(error)})") from None
    packages = []
    for record in sorted(records, key=lambda record: record.name.normalized):
        for what, value in (("SHA-256", record.sha256), ("size", record.size)):
            if not value:
                raise LibrariesError(f"{channel}: gives no {what} of {record.file_name}: use another mirror")
        identity = (record.name.normalized, str(record.version), str(record.build))
        package = Package(*identity, record.url, record.sha256.hex(), record.size)
        packages.append(replace(package, url=package.url_at(CHANNEL)))
    document = {"about": ABOUT, "channel": CHANNEL, "platform": PLATFORM, "packages": [asdict(one) for one in packages]}
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete(path) as partial:
        partial.write_text(json.dumps(document, indent=2) + "\n")
    # The channel was trusted just now, and never again: somebody has to look at this.
    print(f"{shown(path)}: {len(packages)} packages that {hidden(channel)} has today: check and commit it")
    for one in packages:
        print(f"  {one.name} {one.version} {one.build} ({one.size:,} bytes, sha256:{one.sha256})")


@contextlib.contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Where to write what gets the name ``path`` when it is all there; nothing of it stays otherwise."""
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        if error.errno in NO_ROOM:
            error.filename = str(path)  # writing says the error alone
        raise
    finally:
        partial.unlink(missing_ok=True)


def fetch(locked: Lock, folder: Path, channel: str) -> None:
    """Put every file of the lock into ``folder``; what is there already is verified and kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in locked.packages:
        path = folder / package.file_name
        if path.exists():
            verify(path, package)
            continue
        with complete(path) as partial:
            download(package, package.url_at(channel), partial)
        print(f"  {package.file_name} ({path.stat().st_size / 1e6:.1f} MB)")


def download(package: Package, url: str, path: Path) -> None:
    """Raises LibrariesError if the channel does not answer with the locked file."""
    try:
        with open_url(url) as answer:
            length = answer.headers.get("Content-Length", "")
            content = answer.read(package.size + 1)  # no more: an answer may have no end
    except urllib.error.HTTPError as error:
        raise LibrariesError(f"{url}: {error.code} {error.reason}: {WAYS_ON}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise LibrariesError(f"{url} does not answer: {WAYS_ON} ({one_line(error)})") from None
    path.write_bytes(content)
    size = len(content)
    if length.isdigit() and size < min(int(length), package.size):
        raise LibrariesError(f"{url}: ended after {size} of {length} bytes: try again, or use another mirror")
    again = "use another mirror, or lock again if the channel replaced the file"
    if size > package.size:
        raise LibrariesError(
            f"{url}: is longer than the {package.size} bytes of the lock, so its SHA-256 is not: {again}"
        )
    actual = hashlib.sha256(content).hexdigest()
    if actual != package.sha256:
        raise LibrariesError(f"{url}: its SHA-256 {actual} is not the one in the lock, {package.sha256}: {again}")


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow an answer that names another address, if that is one that software is taken from."""

    def redirect_request(self, request: Any, file: Any, code: int, message: str, headers: Any, address: str) -> Any:
        why = refusal(address)
        if why is not None:
            raise LibrariesError(f"{request.full_url}: leads to {address}, which {why}")
        return super().redirect_request(request, file, code, message, headers, address)


def open_url(url: str) -> Any:
    """Open ``url``, whose user and password go into a header for that host alone: urllib does not know them."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(urlunsplit(parts._replace(netloc=host)))
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    return urllib.request.build_opener(SafeRedirects).open(request, timeout=TIMEOUT_S)


def verify(path: Path, package: Package) -> None:
    """Raises LibrariesError if ``path`` is not the locked file."""
    if not path.is_file():
        raise LibrariesError(f"{path}: missing: run images/conda_libraries.py fetch {shown(path.parent)}")
    actual = file_sha256(path)
    if actual != package.sha256:
        raise LibrariesError(
            f"{path}: its SHA-256 {actual} is not the one in the lock: remove the file and fetch again"
        )


def file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()  # conda files of libraries are a few megabytes


def manifest(locked: Lock, folder: Path) -> None:
    """Print SHA-256 and name of every file, as sha256sum does."""
    for package in sorted(locked.packages, key=lambda package: package.file_name):
        verify(folder / package.file_name, package)
        print(f"{package.sha256}  {package.file_name}")


def install(locked: Lock, prefix: Path, folder: Path, final_prefix: str | None) -> None:
    """Install the fetched files into ``prefix`` without any network.

    Packages have the path of their prefix written into files. For an image that path is ``final_prefix``, although the
    files are put together on the host: so the image needs no conda client and its build no network.
    """
    rattler = import_rattler()
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise LibrariesError(f"{shown(LOCK)}: is for {PLATFORM}, and this machine is not: use the system's libraries")
    for package in locked.packages:
        verify(folder / package.file_name, package)
    made_by_conda = (prefix / "conda-meta").is_dir()
    if prefix.exists() and not made_by_conda and any(prefix.iterdir()):
        raise LibrariesError(f"{prefix}: is not empty and no conda prefix: name another folder")

    async def work() -> None:
        records = [
            await rattler.RepoDataRecord.from_package_archive(folder / package.file_name) for package in locked.packages
        ]
        await rattler.install(
            records,
            target_prefix=prefix,
            cache_dir=folder / ".cache",
            alternative_target_prefix=final_prefix,
            show_progress=False,
        )

    try:
        asyncio.run(work())
    except (rattler.exceptions.InstallerError, rattler.exceptions.ExtractError, rattler.exceptions.LinkError) as error:
        if not made_by_conda:  # a library that is cut short could be found there, and preloaded
            shutil.rmtree(prefix, ignore_errors=True)
        if no_room := next((number for number in NO_ROOM if os.strerror(number) in str(error)), None):
            raise OSError(no_room, os.strerror(no_room), f"{prefix} or {folder}") from None
        raise LibrariesError(f"{prefix}: the packages cannot be installed: {one_line(error)}") from None
    finally:
        shutil.rmtree(folder / ".cache", ignore_errors=True)
    # The client saw files on this machine; where they come from is what the lock says.
    for package in locked.packages:
        path = prefix / f"conda-meta/{package.name}-{package.version}-{package.build}.json"
        record = rattler.PrefixRecord.from_path(path)
        record.url, record.channel = package.url, locked.channel
        record.write_to_path(path, pretty=True)


def write_providers(venv: Path) -> None:
    """Say in VENV/providers.json, as in an image, which package each library comes from."""
    script = PROJECT / "images/providers.py"
    text = subprocess.run([venv / "bin/python", script], check=True, capture_output=True, text=True).stdout
    (venv / "providers.json").write_text(text)


def import_rattler() -> Any:
    try:
        import rattler
        import rattler.exceptions
    except ImportError:
        raise LibrariesError("this Python has no py-rattler: run make dev and use .venv/bin/python") from None
    return rattler


def one_line(error: BaseException) -> str:
    """The innermost cause: the client's errors are chains of half a dozen lines."""
    cause = str(error).rsplit("Caused by:", 1)[-1]
    return " ".join(cause.split())


def _pins(given: Sequence[str]) -> dict[str, str]:
    """``NAME=VERSION`` each. Raises LibrariesError for anything else."""
    for text in given:
        if re.fullmatch(rf"({'|'.join(PACKAGES)})=\d+(\.\d+)*[a-z0-9]*", text) is None:
            raise LibrariesError(f"--pin {text}: is not NAME=VERSION, with a NAME of: {', '.join(PACKAGES)}")
    return dict(text.split("=") for text in given)


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    main.add_argument("--lock", type=Path, default=LOCK, metavar="FILE", help=f"the lock file ({shown(LOCK)})")
    mirror = argparse.ArgumentParser(add_help=False)
    mirror.add_argument("--channel", metavar="URL", default=os.environ.get("ENVKIT_CONDA_CHANNEL") or CHANNEL)
    mirror.add_argument("--pin", metavar="NAME=VERSION", action="append", default=[], help="of a package of the lock")
    commands = main.add_subparsers(dest="command", required=True)
    commands.add_parser("lock", parents=[mirror], help="write the lock file")
    command = commands.add_parser("fetch", parents=[mirror], help="download the locked files")
    command.add_argument("folder", type=Path, nargs="?", default=FILES)
    commands.add_parser("check", parents=[mirror], help="only see that there is a usable lock")
    command = commands.add_parser("manifest", help="print SHA-256 and name of the fetched files")
    command.add_argument("folder", type=Path, nargs="?", default=FILES)
    command = commands.add_parser("install", parents=[mirror], help="install the locked files into a prefix")
    command.add_argument("prefix", type=Path)
    command.add_argument("--from", dest="folder", type=Path, metavar="DIR", help="fetched files; nothing is downloaded")
    command.add_argument("--final-prefix", metavar="PATH", help="where the prefix will be when it is used")
    return main


def run(arguments: argparse.Namespace) -> None:
    pins = _pins(getattr(arguments, "pin", []))
    channel = getattr(arguments, "channel", CHANNEL)
    why = refusal(channel)  # of a bare name, too, which would be that of anybody's channel
    if why is not None:
        raise LibrariesError(f"--channel {channel}: {why}")
    if arguments.command == "lock":
        lock(arguments.lock, channel, pins)
        return
    locked = read_lock(arguments.lock, pins)
    if arguments.command == "check":
        return
    if arguments.command == "fetch":
        fetch(locked, arguments.folder, channel)
    elif arguments.command == "manifest":
        manifest(locked, arguments.folder)
    else:
        folder = arguments.folder
        if folder is None:
            folder = FILES
            fetch(locked, folder, channel)
        install(locked, arguments.prefix, folder, arguments.final_prefix)
        if (arguments.prefix.parent / "pyvenv.cfg").is_file():
            write_providers(arguments.prefix.parent)
        print(f"{arguments.prefix}: {len(locked.packages)} packages")


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))
    from envkit.common import output

    output.guard()  # a channel names files and packages as it likes
    try:
        run(parser().parse_args())
    except LibrariesError as error:
        print(f"images/conda_libraries.py: {hidden(str(error))}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in (*NO_ROOM, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise
        print(f"images/conda_libraries.py: {error.filename or 'the disk'}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def leave(status: int) -> NoReturn:
    """End without taking the interpreter down.

    The conda client's threads outlive what they were started for, and one that still returns an object to Python while
    the interpreter goes aborts the process (PyGILState_Release, seen with py-rattler 0.28 after a finished install).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(main())
