"""Lock, fetch and install from a real, small conda channel on this machine."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import http.server
import json
import os
import platform
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.conda_channel import index, make_channel, make_package, served
from tests.images.conftest import assert_one_clear_line
from tests.images.faulty_server import FAULTS, served_with
from tests.loopback import Quiet, serving

pytest.importorskip("rattler", reason="py-rattler is missing: make dev")
pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the lock is for linux-64"
)

EMPTY = '{"packages": []}'
COMMAND = [sys.executable, str(PROJECT / "images/conda_libraries.py")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a channel and its lock, which take seconds to make: each test gets copies of its own."""
    folder = tmp_path_factory.mktemp("conda")
    with served(make_channel(folder / "conda-forge")) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        result = run(folder / "conda.lock", "lock", "--channel", url)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def channel(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "conda-forge", tmp_path / "conda-forge"))


@pytest.fixture
def url(channel: Path) -> Iterator[str]:
    with served(channel) as address:
        yield address


def run(lock: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--lock", str(lock), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@contextlib.contextmanager
def answering(
    status: int, headers: dict[str, str], body: bytes | None
) -> Iterator[tuple[str, list[http.server.BaseHTTPRequestHandler]]]:
    """Answer every request alike, with no end where ``body`` is None; and keep what was asked."""
    asked: list[http.server.BaseHTTPRequestHandler] = []

    class Handler(Quiet):
        def do_GET(self) -> None:
            asked.append(self)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body or b"")
                while body is None:
                    self.wfile.write(bytes(1 << 16))

        do_HEAD = do_GET

    with serving(Handler) as address:
        yield address, asked


@pytest.fixture
def lock(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "conda.lock", tmp_path))


@pytest.fixture
def files(lock: Path, url: str, tmp_path: Path) -> Path:
    """What the lock names, fetched."""
    folder = tmp_path / "files"
    assert run(lock, "fetch", folder, "--channel", url).returncode == 0
    return folder


def test_the_lock_names_every_file_with_its_hash(lock: Path, channel: Path) -> None:
    packages = {package["name"]: package for package in json.loads(lock.read_text())["packages"]}
    assert sorted(packages) == ["gperftools", "jemalloc", "libneeded"]
    archive = channel / "linux-64/jemalloc-5.3.0-h0_0.tar.bz2"
    assert packages["jemalloc"] == {
        "name": "jemalloc",
        "version": "5.3.0",
        "build": "h0_0",
        # the public address, although a mirror was asked
        "url": "https://conda.anaconda.org/conda-forge/linux-64/jemalloc-5.3.0-h0_0.tar.bz2",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "size": archive.stat().st_size,
    }


def test_locking_prints_what_it_locked(tmp_path: Path, url: str, channel: Path) -> None:
    path = tmp_path / "conda.lock"
    result = run(path, "lock", "--channel", url)
    first, *rest = result.stdout.splitlines()
    assert first == f"{path}: 3 packages that {url} has today: check and commit it"
    expected = []
    for name in ("gperftools", "jemalloc", "libneeded"):
        content = (channel / f"linux-64/{name}-5.3.0-h0_0.tar.bz2").read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        expected.append(f"  {name} 5.3.0 h0_0 ({len(content):,} bytes, sha256:{digest})")
    assert rest == expected


def test_fetched_files_install_without_the_channel(lock: Path, files: Path, channel: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    shutil.rmtree(channel)
    for _ in range(2):  # a second time changes nothing
        result = run(lock, "install", prefix, "--from", files, "--channel", "http://127.0.0.1:9/none")
        assert result.returncode == 0, result.stderr
    ctypes.CDLL(str(prefix / "lib/libjemalloc.so.2"))
    config = subprocess.run([prefix / "bin/jemalloc-config"], capture_output=True, text=True, check=True)
    assert config.stdout == f"{prefix}/lib\n"
    record = json.loads((prefix / "conda-meta/jemalloc-5.3.0-h0_0.json").read_text())
    assert record["url"].startswith("https://conda.anaconda.org/conda-forge/linux-64/")
    assert sorted(path.name for path in files.iterdir()) == sorted(
        package["url"].rsplit("/", 1)[1] for package in json.loads(lock.read_text())["packages"]
    )


def test_a_prefix_made_for_an_image_has_the_images_path_inside(lock: Path, files: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    result = run(lock, "install", prefix, "--from", files, "--final-prefix", "/opt/kit/conda")
    assert result.returncode == 0, result.stderr
    assert (prefix / "bin/jemalloc-config").read_text().endswith("echo /opt/kit/conda/lib\n")
    library = (prefix / "lib/libjemalloc.so.2").read_bytes()
    assert b"/opt/kit/conda/etc\0" in library
    assert str(prefix).encode() not in library


def test_manifest_is_what_sha256sum_says(lock: Path, files: Path) -> None:
    names = sorted(path.name for path in files.iterdir())
    expected = subprocess.run(["sha256sum", *names], cwd=files, capture_output=True, text=True, check=True)
    assert run(lock, "manifest", files).stdout == expected.stdout


def test_libraries_of_a_virtual_environment_are_attributed(lock: Path, files: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "pyvenv.cfg").touch()
    (venv / "bin").mkdir()
    (venv / "bin/python").symlink_to(sys.executable)
    # the packages of this Python, as a real environment would have its own
    site = venv / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    site.parent.mkdir(parents=True)
    site.symlink_to(Path(pytest.__file__).parent.parent)
    home = Path(sys.base_prefix) / "bin"
    (venv / "pyvenv.cfg").write_text(f"home = {home}\n")
    result = run(lock, "install", venv / "conda", "--from", files)
    assert result.returncode == 0, result.stderr
    libraries = json.loads((venv / "providers.json").read_text())["libraries"]
    assert libraries["jemalloc"] == "conda-forge jemalloc 5.3.0 h0_0"
    assert libraries["tcmalloc"] == "conda-forge gperftools 5.3.0 h0_0"
    assert libraries["gnu-openmp"].startswith("bundled in torch 2")


def test_a_file_that_the_channel_replaced_is_refused(lock: Path, url: str, channel: Path, tmp_path: Path) -> None:
    archive = make_package(channel, "jemalloc", "libm.so.6", "libjemalloc.so.2", ["libneeded"])
    result = run(lock, "fetch", tmp_path / "files", "--channel", url)
    assert_one_clear_line(result, 2, f"{url}/linux-64/{archive.name}", "SHA-256", "use another mirror")
    assert not list((tmp_path / "files").glob("jemalloc*"))


def test_a_fetched_file_that_was_changed_stops_everything(lock: Path, files: Path, url: str, tmp_path: Path) -> None:
    changed = files / "jemalloc-5.3.0-h0_0.tar.bz2"
    changed.write_bytes(changed.read_bytes() + b"\0")
    for command in (("fetch", files, "--channel", url), ("manifest", files),
                    ("install", tmp_path / "prefix", "--from", files)):  # fmt: skip
        assert_one_clear_line(run(lock, *command), 2, str(changed), "SHA-256", "remove the file and fetch again")
    assert not (tmp_path / "prefix").exists()


def test_a_fetched_file_that_is_missing_is_named(lock: Path, files: Path, tmp_path: Path) -> None:
    (files / "gperftools-5.3.0-h0_0.tar.bz2").unlink()
    result = run(lock, "install", tmp_path / "prefix", "--from", files)
    assert_one_clear_line(result, 2, "gperftools-5.3.0-h0_0.tar.bz2", "missing", "fetch")


@pytest.mark.parametrize("command", ["lock", "fetch"])
def test_a_channel_that_does_not_answer(lock: Path, tmp_path: Path, command: str) -> None:
    before = lock.read_bytes()
    folder = [tmp_path / "files"] if command == "fetch" else []
    result = run(lock, command, *folder, "--channel", "http://127.0.0.1:9/conda-forge")
    assert_one_clear_line(result, 2, "http://127.0.0.1:9/conda-forge", "does not answer", "libraries: debian")
    assert lock.read_bytes() == before


def test_a_channel_without_the_packages(lock: Path, url: str, channel: Path) -> None:
    for archive in channel.glob("linux-64/jemalloc*"):
        archive.unlink()
    index(channel)
    assert_one_clear_line(run(lock, "lock", "--channel", url), 2, url, "jemalloc")


ENTRY = (
    '{{"packages": [{{"url": "{}/b/linux-64/jemalloc-5.3.0-h0_0.conda", "sha256": "' + "0" * 64 + '", "size": {}}}]}}'
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{", "not JSON"),
        ("{}", "packages must be a list"),
        ('{"packages": [{"url": "jemalloc.conda", "sha256": ""}]}', "packages[0].url"),
        ('{"packages": [{"url": "https://a/b/linux-64/jemalloc-5.3.0-h0_0.conda"}]}', "packages[0].sha256"),
        (ENTRY.format("https://a", -1), "packages[0].size: -1 is not the size"),
        (ENTRY.format("https://a", "true"), "packages[0].size: True is not the size"),
        (ENTRY.format("http://a", 9), "packages[0].url: http://a/b/linux-64/jemalloc-5.3.0-h0_0.conda is not https"),
        (
            ENTRY.format("https://me:canary@a", 9),
            "packages[0].url: https://****@a/b/linux-64/jemalloc-5.3.0-h0_0.conda",
        ),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_lock_that_is_not_one(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "conda.lock"
    path.write_text(change)
    assert_one_clear_line(run(path, "fetch", tmp_path / "files"), 2, str(path), said)


@pytest.mark.parametrize("command", ["check", "fetch", "install", "manifest"])
@pytest.mark.parametrize("content", [None, EMPTY])
def test_nothing_is_installed_without_a_lock_and_the_command_that_locks_is_named(
    tmp_path: Path, content: str | None, command: str, url: str
) -> None:
    path, target = tmp_path / "conda.lock", tmp_path / "target"
    if content is not None:
        path.write_text(content)
    arguments = [] if command == "check" else [target]
    channel = [] if command == "manifest" else ["--channel", url]
    result = run(path, command, *arguments, *channel)
    locks = f"--lock {path} lock"
    assert_one_clear_line(result, 2, str(path), "only locked packages are installed", locks, "libraries: debian")
    assert result.stdout == ""
    assert not target.exists()
    assert (path.read_text() if path.exists() else None) == content
    # The command that is named is one that locks.
    named = re.search(r"run '(.+?)' where", result.stderr)
    assert named is not None
    words = shlex.split(named.group(1).replace(".venv/bin/python", sys.executable))
    locked = subprocess.run([*words, "--channel", url], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert locked.returncode == 0, locked.stderr
    assert run(path, "check", "--channel", url).returncode == 0


def test_the_shipped_lock_installs_nothing_that_it_does_not_name(tmp_path: Path, url: str) -> None:
    """The project's own lock has no entries yet; once it has, every one of them must be complete."""
    result = run(PROJECT / "images/cpu/conda.lock", "check", "--channel", url)
    if json.loads((PROJECT / "images/cpu/conda.lock").read_text())["packages"]:
        assert result.returncode == 0, result.stderr
    else:
        assert_one_clear_line(result, 2, "names no packages yet", ".venv/bin/python images/conda_libraries.py lock'")


def test_a_lock_is_made_in_a_folder_that_is_made_too(tmp_path: Path, url: str) -> None:
    path = tmp_path / "images/new/conda.lock"
    result = run(path, "lock", "--channel", url)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(path.read_text())["packages"]


def test_a_lock_filled_in_by_hand_needs_only_url_hash_and_size(lock: Path, url: str, tmp_path: Path) -> None:
    document = json.loads(lock.read_text())
    document["packages"] = [{key: entry[key] for key in ("url", "sha256", "size")} for entry in document["packages"]]
    lock.write_text(json.dumps(document))
    files, prefix = tmp_path / "files", tmp_path / "prefix"
    assert run(lock, "fetch", files, "--channel", url).returncode == 0
    assert run(lock, "install", prefix, "--from", files).returncode == 0
    assert (prefix / "lib/libtcmalloc.so.4").is_file()


def test_a_version_that_is_asked_for_is_locked(tmp_path: Path, url: str) -> None:
    path = tmp_path / "conda.lock"
    assert run(path, "lock", "--channel", url, "--pin", "jemalloc=5.3.0").returncode == 0
    assert {entry["name"]: entry["version"] for entry in json.loads(path.read_text())["packages"]}[
        "jemalloc"
    ] == "5.3.0"


def test_a_version_that_the_channel_has_not(tmp_path: Path, url: str) -> None:
    result = run(tmp_path / "conda.lock", "lock", "--channel", url, "--pin", "jemalloc=5.2.1")
    assert_one_clear_line(result, 2, url, "has no jemalloc ==5.2.1 and gperftools that go together")


def test_a_lock_with_another_version_than_is_asked_for(lock: Path) -> None:
    result = run(lock, "check", "--pin", "jemalloc=5.2.1")
    command = f"--lock {lock} lock --pin jemalloc=5.2.1"
    assert_one_clear_line(result, 2, str(lock), "has jemalloc 5.3.0, and 5.2.1 is asked for", command)


@pytest.mark.parametrize("text", ["jemalloc", "jemalloc=", "jemalloc=new", "mimalloc=2.0"])
def test_what_is_no_version_of_a_package(lock: Path, text: str) -> None:
    assert_one_clear_line(run(lock, "check", "--pin", text), 2, f"--pin {text}: is not NAME=VERSION")


# As COMMAND is, but it waits for other than half a minute: shorter where a request hangs, and longer where all are
# answered, which takes its time on a slow machine.
PATIENT_FOR = (
    "import sys; sys.path.insert(0, 'images'); import conda_libraries as it; it.TIMEOUT_S = {}; it.leave(it.main())"
)
# What is said of each fault, where a file of the lock has it, and where the channel's list of packages has it.
OF_A_FILE = {"hangs": "does not answer", "404": "404", "page": "SHA-256", "cut short": r"ended after \d+ of \d+ bytes"}
OF_THE_LIST = {
    "hangs": "does not answer: .*timed out", "404": "is no conda channel: .*404", "page": "is no conda channel",
    "cut short": "does not answer|is no conda channel",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("command", "content", "where", "said"),
    [
        ("fetch", None, "libneeded", OF_A_FILE),
        ("lock", None, "repodata", OF_THE_LIST),
        ("lock", EMPTY, "repodata", OF_THE_LIST),
    ],
    ids=["file", "list", "list for an empty lock"],
)
def test_a_bad_channel_ends_in_one_line_and_leaves_nothing_half_made(
    lock: Path, channel: Path, tmp_path: Path, fault: str, command: str, content: str | None, where: str,
    said: dict[str, str],
) -> None:  # fmt: skip
    if content is not None:
        lock.write_text(content)
    before, files = lock.read_bytes(), tmp_path / "files"
    with served_with(fault, channel.parent, where) as address:
        folder = [files] if command == "fetch" else []
        # others of the lock come before a file that hangs; before the list there is nothing
        patience_s = 120 if fault != "hangs" else 1 if where == "repodata" else 5
        words = ["--lock", lock, command, *folder, "--channel", f"{address}/{channel.name}"]
        result = subprocess.run(
            [sys.executable, "-c", PATIENT_FOR.format(patience_s), *map(str, words)], cwd=PROJECT, capture_output=True,
            text=True, check=False, timeout=240,
        )  # fmt: skip
    assert_one_clear_line(result, 2, address)
    assert re.search(said[fault], result.stderr), result.stderr
    assert lock.read_bytes() == before
    assert not list(tmp_path.rglob("*.partial"))
    # those that came before the bad one are whole, and kept
    kept = {path.name.partition("-")[0] for path in files.glob("*")}
    assert kept == ({"gperftools", "jemalloc"} if where == "libneeded" else set())


@pytest.mark.parametrize("channel", ["", "somebody", "/no/address"])
@pytest.mark.parametrize("command", ["lock", "fetch"])
def test_a_channel_that_is_no_address(lock: Path, tmp_path: Path, command: str, channel: str) -> None:
    folder = [tmp_path / "files"] if command == "fetch" else []
    assert_one_clear_line(run(lock, command, *folder, "--channel", channel), 2, f"--channel {channel}: is no address")


NOT_TAKEN = (
    "http://192.0.2.1/conda-forge", "http://localhost@192.0.2.1/conda-forge", "ftp://127.0.0.1/conda-forge",
    "http://127.0.0.1.example.org/conda-forge", "file://elsewhere/conda-forge", "http://192.0.2.1\\@127.0.0.1/c",
)  # fmt: skip


@pytest.mark.parametrize("channel", NOT_TAKEN)
@pytest.mark.parametrize("command", ["lock", "fetch", "check", "install"])
def test_a_channel_that_others_on_the_way_can_change_is_refused(
    lock: Path, tmp_path: Path, command: str, channel: str
) -> None:
    before, folder = lock.read_bytes(), [tmp_path / "files"] if command in ("fetch", "install") else []
    result = run(lock, command, *folder, "--channel", channel)
    assert_one_clear_line(result, 2, "--channel ", "use https, a file:// or an address of this machine")
    assert lock.read_bytes() == before
    assert not (tmp_path / "files").exists()


def test_a_channel_can_be_a_folder(lock: Path, channel: Path, tmp_path: Path) -> None:
    address = channel.as_uri()
    assert run(tmp_path / "new.lock", "lock", "--channel", address).returncode == 0
    assert json.loads((tmp_path / "new.lock").read_text()) == json.loads(lock.read_text())
    files = tmp_path / "files"
    assert run(lock, "fetch", files, "--channel", address).returncode == 0
    result = run(lock, "install", tmp_path / "prefix", "--from", files, "--channel", address)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "prefix/lib/libjemalloc.so.2").is_file()


def test_a_channel_that_leads_elsewhere_is_not_followed_there(lock: Path, tmp_path: Path) -> None:
    with answering(302, {"Location": "http://192.0.2.1/jemalloc.conda"}, b"") as (url, _):
        result = run(lock, "fetch", tmp_path / "files", "--channel", f"{url}/conda-forge")
    assert_one_clear_line(result, 2, "leads to http://192.0.2.1/jemalloc.conda", "is not https")


def test_a_file_without_an_end_is_not_read_to_one(lock: Path, tmp_path: Path) -> None:
    with answering(200, {}, None) as (url, _):
        result = run(lock, "fetch", tmp_path / "files", "--channel", f"{url}/conda-forge")
    assert_one_clear_line(result, 2, "is longer than the", "bytes of the lock")
    assert not list((tmp_path / "files").iterdir())


@pytest.mark.parametrize("address", ["http://me:canary@{}/conda-forge", "http://{}/t/canary/conda-forge"])
@pytest.mark.parametrize("command", ["lock", "fetch"])
def test_a_password_of_a_channel_is_used_and_never_printed(
    lock: Path, tmp_path: Path, command: str, address: str
) -> None:
    folder = [tmp_path / "files"] if command == "fetch" else []
    with answering(404, {}, b"") as (url, asked):
        host = url.removeprefix("http://")
        result = run(lock, command, *folder, "--channel", address.format(host))
    assert result.returncode == 2
    assert "canary" not in result.stdout + result.stderr
    assert "****" in result.stderr
    expected = "Basic " + base64.b64encode(b"me:canary").decode() if "@" in address else None
    assert asked
    assert {request.headers.get("Authorization") for request in asked} == {expected}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
@pytest.mark.parametrize(
    ("arguments", "named", "left"),
    [
        (("fetch", "{disk}/files"), "{disk}/files/libneeded-5.3.0-h0_0.tar.bz2", ["gperftools", "jemalloc"]),
        (("install", "{disk}/prefix", "--from", "{files}"), "{disk}/prefix", []),
        (("lock",), "{disk}/new.lock", []),
    ],
    ids=["fetch", "install", "lock"],
)
def test_a_full_disk_leaves_nothing_half_made(
    lock: Path, files: Path, url: str, tmp_path: Path, arguments: tuple[str, ...], named: str, left: list[str]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    used = lock if arguments[0] != "lock" else disk / "new.lock"
    command = [*COMMAND, "--lock", used, *arguments, "--channel", url]
    words = [str(word).format(disk=disk, files=files) for word in command]
    # A mount namespace of its own takes the small disk along when it ends; what was left on it is listed at last. No
    # lock is too large for it, so that it is filled for this one.
    fill = f"head -c 100k /dev/zero >{disk}/fill && " if arguments[0] == "lock" else ""
    script = (
        f'mount -t tmpfs -o size=100k none {disk} && {fill}"$@"; status=$?; cd {disk} && find . -type f; exit $status'
    )
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words], capture_output=True, text=True, check=False
    )
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1), result
    assert f"{named.format(disk=disk)}" in result.stderr
    assert "No space left on device" in result.stderr
    found = [line.removeprefix("./") for line in result.stdout.splitlines() if line.startswith("./")]
    assert sorted(name.removeprefix("files/").partition("-")[0] for name in found if name != "fill") == left


def test_nothing_but_text_of_a_lock_reaches_the_terminal(lock: Path) -> None:
    """What a channel calls its files, and a folder's name, is shown with escapes."""
    document = json.loads(lock.read_text())
    document["packages"][0]["url"] = "http://x/linux-64/jemalloc\x1b[31m\x9b\u202e-5-h.conda"
    odd = lock.with_name("odd\x1b]0;t\x07\x9b\u202e.lock")
    odd.write_text(json.dumps(document))
    ours, theirs = pty.openpty()
    ended = subprocess.run([*COMMAND, "--lock", odd, "check"], stdout=theirs, stderr=theirs, check=False)
    printed = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert (ended.returncode, printed.count("\n")) == (2, 1)
    assert "odd\\x1b]0;t\\x07\\x9b\\u202e.lock" in printed
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*printed}
