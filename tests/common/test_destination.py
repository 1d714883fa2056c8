"""What other users planted where the kit writes: nothing outside is touched, and one line says so."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from envkit.bench.record import FILE_NAME, Record
from envkit.common import atomic
from envkit.common.errors import InputError
from envkit.common.file_messages import ForeignLink, ForeignPlace
from envkit.common.messages import Unwritable

from tests.refusals import refusal

OTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
SHARED = [pytest.param(0o1777, id="sticky"), pytest.param(0o777, id="plain")]


def other(*command: object) -> None:
    """Run a command as another user."""
    become = ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups"]
    subprocess.run([*become, *map(str, command)], check=True)


@pytest.fixture
def place():
    """A folder below which another user can go: pytest's own is private."""
    made = Path(tempfile.mkdtemp(prefix="envkit-test-shared-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def precious(tmp_path):
    file = tmp_path / "precious"
    file.write_bytes(b"mine")
    return file


def shared(place: Path, mode: int, owner: int = 0) -> Path:
    folder = place / "shared"
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, owner, owner)
    return folder


def content_of(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


@as_root
@pytest.mark.parametrize("owner", [0, OTHER])
@pytest.mark.parametrize("mode", SHARED)
def test_a_link_that_another_user_planted_is_not_followed(place, precious, mode, owner):
    folder = shared(place, mode, owner)
    other("ln", "-s", precious, folder / "report.html")
    file = folder / "report.html"
    for refused in (refusal(atomic.write, file, b"new"), refusal(atomic.require, file)):
        assert refused == ForeignLink(str(file), "report.html", OTHER)
    assert precious.read_bytes() == b"mine"
    assert file.is_symlink()


@as_root
@pytest.mark.parametrize("mode", SHARED)
def test_a_link_to_a_folder_on_the_way_is_not_followed(place, tmp_path, mode):
    folder, home = shared(place, mode), tmp_path / "home"
    home.mkdir()
    other("ln", "-s", home, folder / "results")
    file = folder / "results/run/page.html"
    for refused in (
        refusal(atomic.write, file, b"new"),
        refusal(atomic.make_private, file),
        refusal(atomic.make_folder, file),
        refusal(Record.create, folder / "results/run"),
    ):
        assert isinstance(refused, ForeignLink)
        assert (refused.name, refused.owner) == ("results", OTHER)
    assert content_of(home) == []


@as_root
def test_a_chain_of_links_that_ends_at_another_users_is_not_followed(place, precious):
    folder = shared(place, 0o1777)
    other("ln", "-s", precious, folder / "theirs")
    (place / "mine").symlink_to("shared/theirs")
    assert refusal(atomic.write, place / "mine", b"new") == ForeignLink(str(place / "mine"), "theirs", OTHER)
    assert precious.read_bytes() == b"mine"


@as_root
def test_a_fifo_of_another_user_is_not_written_to(place):
    folder = shared(place, 0o1777)
    other("mkfifo", "-m", "666", folder / "report.html")
    file = folder / "report.html"
    assert refusal(atomic.write, file, b"new") == ForeignPlace(str(file), OTHER)


@as_root
def test_a_folder_that_another_user_was_first_to_make(place):
    folder = shared(place, 0o1777)
    other("mkdir", "-m", "777", folder / "run")
    assert refusal(Record.create, folder / "run") == ForeignPlace(str(folder / "run"), OTHER)
    assert refusal(atomic.make_folder, folder / "run") == ForeignPlace(str(folder / "run"), OTHER)


@as_root
def test_a_record_that_is_a_link_of_another_user(place, precious):
    folder = shared(place, 0o777)
    other("ln", "-s", precious, folder / FILE_NAME)
    mode = precious.stat().st_mode
    assert refusal(Record.create, folder) == ForeignLink(str(folder / FILE_NAME), FILE_NAME, OTHER)
    assert (precious.read_bytes(), precious.stat().st_mode) == (b"mine", mode)


@as_root
def test_permissions_of_another_users_file_are_not_taken_over(place):
    folder = shared(place, 0o777)
    other("touch", folder / "page.html")
    other("chmod", "4777", folder / "page.html")
    atomic.write(folder / "page.html", b"new")
    about = (folder / "page.html").stat()
    assert about.st_uid == 0
    assert not about.st_mode & 0o6022


@as_root
def test_a_folder_that_is_exchanged_meanwhile(place, tmp_path):
    """Another user exchanges a folder and a link as fast as possible; nothing ever lands behind the link."""
    folder, home = shared(place, 0o777), tmp_path / "home"
    home.mkdir()
    script = (
        "import os, sys\n"
        "os.setgid(65534); os.setuid(65534); os.chdir(sys.argv[1]); os.mkdir('a', 0o777); os.chmod('a', 0o777)\n"
        "os.symlink(sys.argv[2], 'l')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.rename('a', 'b'); os.rename('l', 'a'); os.rename('a', 'l'); os.rename('b', 'a')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, folder, home], stdout=subprocess.PIPE) as racing:
        try:
            assert racing.stdout is not None
            racing.stdout.readline()
            outcomes = {type(_attempt(folder / f"a/{number}")) for number in range(300)}
        finally:
            racing.kill()
    assert content_of(home) == []
    assert outcomes <= {type(None), ForeignLink, Unwritable}


def _attempt(file):
    try:
        atomic.write(file, b"new")
    except InputError as error:
        return error.message
    return None


def test_the_users_own_links_go_on_working(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "results").symlink_to("scratch")
    (tmp_path / "latest").symlink_to(tmp_path / "results/../results/page.html")
    atomic.make_private(tmp_path / "results/run")
    atomic.write(tmp_path / "results/run/page.html", b"one")
    atomic.write(tmp_path / "latest", b"two")
    assert content_of(tmp_path / "scratch") == ["page.html", "run", "run/page.html"]
    assert (tmp_path / "scratch/page.html").read_bytes() == b"two"
    Record.create(tmp_path / "results/other").append("end")


@as_root
def test_links_of_a_folders_owner_are_followed_on_the_way(place):
    """As a project's folder in a container, which belongs to a user whom the container does not know."""
    project = place / "project"
    (project / "scratch").mkdir(parents=True)
    (project / "results").symlink_to("scratch")
    for one in (project, project / "scratch"):
        os.chown(one, OTHER, OTHER)
    os.lchown(project / "results", OTHER, OTHER)
    project.chmod(0o775)
    atomic.make_private(project / "results/run")
    assert content_of(project / "scratch") == ["run"]


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for file in (tmp_path / "a", tmp_path / "a/file"):
        assert refusal(atomic.write, file, b"") == Unwritable(str(file), "Too many levels of symbolic links")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_standard_output_by_its_name(tmp_path, name, to):
    """What was printed before stays before it, and what is printed later comes behind it."""
    script = (
        "import sys; from pathlib import Path; from envkit.common import atomic\n"
        f"print('one', flush=True); atomic.write(Path({name!r}), b'two\\n'); print('three')\n"
    )
    file = tmp_path / "out"
    with file.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=subprocess.PIPE if to == "pipe" else out, check=True
        )
    assert (done.stdout if to == "pipe" else file.read_bytes()) == b"one\ntwo\nthree\n"


def test_a_private_file_stays_readable_for_a_group_that_the_user_let_in(tmp_path):
    file = tmp_path / "file"
    atomic.write(file, b"", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o666)
    atomic.write(file, b"", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_a_record_is_private_whatever_the_umask_and_stays_open_to_a_group_by_choice(tmp_path, mask):
    folder, before = tmp_path / "results/run", os.umask(0o022)
    folder.parent.mkdir()
    os.umask(mask)
    try:
        with Record.create(folder) as record:
            record.append("run")
    finally:
        os.umask(before)
    file = folder / FILE_NAME
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, file)] == [0o700, 0o600]
    folder.chmod(0o750)
    file.chmod(0o640)
    with Record.reopen(folder) as record:
        record.append("resume")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, file)] == [0o750, 0o640]
