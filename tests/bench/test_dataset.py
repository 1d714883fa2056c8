from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from envkit.bench import dataset
from envkit.bench.dataset_messages import (
    CACHE,
    FOLDER,
    PACKAGE,
    PUBLISHER,
    SYSTEM_FOLDER,
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
    SyntheticInstead,
    SyntheticUsed,
    ToolFailed,
    ToolTimedOut,
)
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.messages import Message
from envkit.rendering import text
from envkit.worker.fashion_mnist import SHA256

from tests.loopback import Quiet, serving

NAMES = tuple(SHA256)
IMAGES = NAMES[0]
DEBIAN = FromPlace(PACKAGE, "dataset-fashion-mnist_0.1_all")


@dataclass
class Search:
    """A search for four small ``files`` that pass for the published ones; ``said`` has the messages on the way."""

    files: dict[str, bytes]
    cache: Path
    said: list[Message] = field(default_factory=list)

    def find(self, named: object = None) -> dataset.DataSet:
        self.said.clear()
        return dataset.find(None if named is None else str(named), self.said.append)

    def fill(self, folder: Path, level: int | None = None) -> Path:
        """Put the files into a folder, decompressed or as ``.gz`` of a level."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in (self.files if level is None else self.compressed(level)).items():
            (folder / name).write_bytes(content)
        return folder

    def compressed(self, level: int = 6) -> dict[str, bytes]:
        return {f"{name}.gz": gzip.compress(content, level) for name, content in self.files.items()}

    def sources(self) -> list[str]:
        """The sources that were asked in vain, in order."""
        return [one.source for one in self.said if one != SyntheticInstead()]


@pytest.fixture
def search(cache, monkeypatch) -> Search:
    contents = {name: f"the content of {name}".encode() for name in NAMES}
    for name, content in contents.items():
        monkeypatch.setitem(SHA256, name, hashlib.sha256(content).hexdigest())
    return Search(contents, cache)


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Path:
    """The only folder on PATH, with no package tools in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch, tools):
    """No source of the machine's own answers: neither its folder, nor its packages, nor the network."""
    monkeypatch.setattr(dataset, "SYSTEM_FOLDER", tmp_path / "system")
    monkeypatch.setattr(dataset, "PUBLISHER", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def package_tools(tools, search, tmp_path):
    """An apt-get and a dpkg-deb that have the package. apt-get notes each call in the file returned.

    ``without_lists`` lets the first download fail, as on a machine whose package lists were removed.
    """
    content = search.fill(tmp_path / "package", level=9)
    log = tmp_path / "apt.log"

    def make(without_lists=False):
        refuse = 'case "$*" in *Dir::State::lists*) ;; *) echo "E: Unable to locate" >&2; exit 100;; esac'
        scripts = {
            "apt-get": f'echo "$*" >> {log}\ncase "$*" in *update) exit 0;; esac\n{refuse if without_lists else ""}\n'
            ": > dataset-fashion-mnist_0.1_all.deb",
            "dpkg-deb": f'test "$1" = -x -a -f "$2" || exit 2\nout="$3{dataset.SYSTEM_FOLDER}"\n'
            f'/bin/mkdir -p "$out" && /bin/cp {content}/* "$out"',
        }
        for name, script in scripts.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        return log

    return make


@pytest.fixture
def publisher(monkeypatch):
    """Serve bodies by file name on loopback, as the publisher does; returns the list of what is asked for.

    What has no body is not found. Of each answer, ``missing_bytes`` more are announced than sent.
    """

    def serve(bodies, missing_bytes=0):
        asked = []

        class Handler(Quiet):
            def do_GET(self):
                asked.append(self.path)
                body = bodies.get(self.path.rpartition("/")[2])
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"") + missing_bytes))
                self.end_headers()
                self.wfile.write(body or b"")

        monkeypatch.setattr(dataset, "PUBLISHER", f"{servers.enter_context(serving(Handler))}/data/")
        return asked

    with contextlib.ExitStack() as servers:
        yield serve


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# --- the folder that the user names ---


def test_named_folder_of_decompressed_files_is_used_where_it_is(search, tmp_path):
    folder = search.fill(tmp_path / "mine")
    assert search.find(folder) == dataset.DataSet(str(folder), FromPlace(FOLDER, str(folder)))
    assert not search.cache.exists()


def test_named_folder_may_be_relative_and_what_the_worker_is_given_is_not(search, tmp_path, monkeypatch):
    search.fill(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert search.find("mine").location == str(tmp_path / "mine")


@pytest.mark.parametrize("not_compressed", [(), (IMAGES,)])
def test_named_folder_of_compressed_files_is_decompressed_into_the_cache(search, tmp_path, not_compressed):
    folder = search.fill(tmp_path / "mine", 6)
    for name in not_compressed:
        (folder / f"{name}.gz").unlink()
        (folder / name).write_bytes(search.files[name])
    assert search.find(folder) == dataset.DataSet(str(search.cache), FromPlace(FOLDER, str(folder)))
    assert contents(search.cache) == search.files
    # a container's user can read them
    assert {path.stat().st_mode & 0o777 for path in search.cache.iterdir()} == {0o644}


def wrong(path):
    path.write_bytes(b"something else")


def truncated(path):
    path.write_bytes(path.read_bytes()[:-9])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def not_gzip(path):
    path.write_bytes(b"<html>not found</html>")


@pytest.mark.parametrize(
    ("level", "damage", "problem"),
    [
        (None, wrong, (About, IMAGES)),
        (6, truncated, (FileDamaged, f"{IMAGES}.gz")),
        (6, flipped, ((FileDamaged, About), f"{IMAGES}.gz")),
        (6, not_gzip, (FileDamaged, f"{IMAGES}.gz")),
        (None, Path.unlink, (FileMissing, IMAGES)),
        (6, Path.unlink, (FileMissing, IMAGES)),
    ],
)
def test_named_folder_with_a_bad_file_is_refused_by_the_files_name(search, tmp_path, level, damage, problem):
    folder = search.fill(tmp_path / "mine", level)
    damage(folder / (IMAGES if level is None else f"{IMAGES}.gz"))
    with pytest.raises(InputError) as caught:
        search.find(folder)
    message, (kind, file) = caught.value.message, problem
    assert isinstance(message, NotInFolder)
    assert isinstance(message.problem, kind)
    about = {**message.problem.values()}
    assert (message.folder, about.get("file", about.get("subject"))) == (str(folder), str(folder / file))
    assert not search.cache.exists() or not list(search.cache.iterdir())


def test_what_unpacks_to_gigabytes_is_unpacked_no_further_than_it_should_be(search, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_BYTES", 2**20)
    folder = search.fill(tmp_path / "named", level=6)
    (folder / f"{IMAGES}.gz").write_bytes(gzip.compress(b"0" * 2**24))
    tracemalloc.start()
    with pytest.raises(InputError):
        search.find(folder)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_named_folder_that_does_not_exist(search, tmp_path):
    with pytest.raises(InputError) as caught:
        search.find(f"{tmp_path}/none")
    assert caught.value.message == NotInFolder(f"{tmp_path}/none", FolderMissing(f"{tmp_path}/none"))


def test_synthetic_when_asked_for(search):
    data = search.find("synthetic")
    assert (data.location, data.synthetic, search.said) == ("synthetic", True, [])


def test_a_cache_that_cannot_be_written(search, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = search.fill(tmp_path / "mine", 6)
    with pytest.raises(InputError) as caught:
        search.find(folder)
    assert caught.value.message == CacheUnwritable(f"{tmp_path}/file/envkit/fashion-mnist", "Not a directory")


def test_a_relative_cache_folder_is_ignored_as_the_xdg_specification_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert dataset.cache_folder() == tmp_path / ".cache/envkit/fashion-mnist"


# --- the order of sources ---


def test_cache_before_system_folder(search):
    search.fill(dataset.SYSTEM_FOLDER)
    search.fill(search.cache)
    assert search.find() == dataset.DataSet(str(search.cache), FromPlace(CACHE, str(search.cache)))
    assert search.said == []


def test_system_folder_before_package_and_publisher(search, package_tools, publisher):
    log, asked = package_tools(), publisher(search.compressed())
    search.fill(dataset.SYSTEM_FOLDER, 6)
    assert search.find() == dataset.DataSet(str(search.cache), FromPlace(SYSTEM_FOLDER, str(dataset.SYSTEM_FOLDER)))
    assert contents(search.cache) == search.files
    assert not log.exists()
    assert asked == []
    assert search.said == [NoSource(CACHE, CacheEmpty(str(search.cache)))]


def test_package_before_publisher(search, package_tools, publisher):
    log, asked = package_tools(), publisher(search.compressed())
    assert search.find() == dataset.DataSet(str(search.cache), DEBIAN)
    assert contents(search.cache) == search.files
    assert len(log.read_text().splitlines()) == 1
    assert asked == []
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


def test_publisher_last(search, publisher):
    asked = publisher(search.compressed())
    assert search.find() == dataset.DataSet(str(search.cache), FromPlace(PUBLISHER, dataset.PUBLISHER))
    assert contents(search.cache) == search.files
    assert asked == [f"/data/{name}.gz" for name in NAMES]
    assert search.sources() == ["cache", "system folder", "Debian package"]
    assert search.said[2].problem == NoPackageTools()


def test_second_time_from_the_cache(search, publisher):
    publisher(search.compressed())
    search.find()
    asked = publisher({})
    assert search.find().source == FromPlace(CACHE, str(search.cache))
    assert asked == []


def test_synthetic_in_loud_words_when_nothing_answers(search):
    data = search.find()
    assert data.synthetic
    assert data.source == SyntheticUsed()
    assert search.sources() == ["cache", "system folder", "Debian package", "publisher"]
    assert search.said[-1] == SyntheticInstead()
    assert "SYNTHETIC" in text(search.said[-1])


# --- each source going wrong: the next one is asked ---


def test_a_corrupt_file_in_the_cache_is_named_and_replaced(search):
    search.fill(dataset.SYSTEM_FOLDER, 6)
    truncated(search.fill(search.cache) / IMAGES)
    assert search.find().location == str(search.cache)
    assert isinstance(search.said[0].problem, About)
    assert search.said[0].problem.subject == f"{search.cache}/{IMAGES}"
    assert contents(search.cache) == search.files


def test_compressed_files_in_the_cache_are_not_given_to_the_worker(search):
    search.fill(search.cache, 6)
    data = search.find()
    assert data.synthetic or all((Path(data.location) / name).is_file() for name in search.files)


def test_a_corrupt_file_in_the_system_folder_is_named(search, publisher):
    publisher(search.compressed())
    truncated(search.fill(dataset.SYSTEM_FOLDER, 6) / f"{IMAGES}.gz")
    assert search.find().source.kind == PUBLISHER
    assert isinstance(search.said[1].problem, FileDamaged)
    assert search.said[1].problem.file == f"{dataset.SYSTEM_FOLDER}/{IMAGES}.gz"


def test_package_with_lists_of_its_own_where_the_system_has_none(search, package_tools):
    log = package_tools(without_lists=True)
    assert search.find().source == DEBIAN
    first, update, second = log.read_text().splitlines()
    assert first.endswith("download dataset-fashion-mnist")
    assert update.endswith("update")
    temporary = os.environ["TMPDIR"]
    for call in (update, second):
        assert f"Dir::State::lists={temporary}/" in call
        assert f"Dir::Cache={temporary}/" in call


@pytest.mark.parametrize(
    ("script", "timeout_s", "said"),
    [
        ("echo warning >&2; echo E: no network >&2; exit 100", 120, ToolFailed("apt-get", "E: no network")),
        ("exit 100", 120, ToolFailed("apt-get")),
        ("exit 0", 120, NoPackage("dataset-fashion-mnist")),
        ("exec /bin/sleep 60", 0.2, ToolTimedOut("apt-get", 0.2)),
    ],
)
def test_package_tools_that_bring_nothing_say_why(search, package_tools, tools, monkeypatch, script, timeout_s, said):
    package_tools()
    (tools / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(dataset, "APT_TIMEOUT_S", timeout_s)
    assert search.find().synthetic
    assert search.said[2] == NoSource(PACKAGE, said)


@pytest.mark.parametrize(
    ("changed", "missing_bytes", "said"),
    [
        ({f"{NAMES[3]}.gz": None}, 0, (DownloadFailed, f"/data/{NAMES[3]}.gz: HTTP Error 404")),
        ({f"{IMAGES}.gz": gzip.compress(b"something else")}, 0, (About, f"{IMAGES}.gz: not the published file")),
        ({}, 5, (DownloadFailed, f"/data/{IMAGES}.gz: ")),
    ],
    ids=["without a file", "damaged", "cut short"],
)
def test_a_publisher_that_fails_is_named_with_its_file(search, publisher, changed, missing_bytes, said):
    publisher({**search.compressed(), **changed}, missing_bytes)
    assert search.find().synthetic
    kind, words = said
    assert search.said[3].source == PUBLISHER
    assert isinstance(search.said[3].problem, kind)
    assert words in text(search.said[3])
    assert list(search.cache.glob("*")) == []


def test_interrupted_while_storing_leaves_no_half_file(search, tmp_path, monkeypatch):
    folder = search.fill(tmp_path / "mine", 6)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fchmod", interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.find(folder)
    assert list(search.cache.iterdir()) == []
