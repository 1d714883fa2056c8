"""The folder of wheels that images are built from: only locked files, verified each time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.conftest import assert_one_clear_line

# A small wheel of the image, whatever its version is now.
SMALL = "mpmath-*.whl"


def images(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a script of images/."""
    command = [*prefix, str(PROJECT / "images" / str(arguments[0])), *map(str, arguments[1:])]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def complete() -> Path:
    """The project's own wheelhouse, as `make image` fills it."""
    result = images("wheelhouse")
    assert result.returncode == 0, result.stderr
    return PROJECT / "build/wheelhouse"


@pytest.fixture
def wheelhouse(complete: Path, tmp_path: Path) -> Path:
    """A copy to spoil. Its files are links: replace one, don't write to it."""
    folder = tmp_path / "wheelhouse"
    try:
        shutil.copytree(complete, folder, copy_function=os.link)
    except shutil.Error:  # another file system
        shutil.rmtree(folder)
        shutil.copytree(complete, folder)
    return folder


def test_every_wheel_is_of_a_locked_hash_and_for_the_image(complete: Path) -> None:
    # of all variants: somebody may have built another one
    locks = "".join(lock.read_text() for folder in ("cpu", "cuda") for lock in PROJECT.glob(f"images/{folder}/*.lock"))
    wheels = list(complete.glob("*.whl"))
    assert len(wheels) > 10
    for wheel in wheels:
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() in locks
        assert "-cp311-" in wheel.name or "-none-" in wheel.name


def test_a_complete_wheelhouse_is_left_alone(wheelhouse: Path) -> None:
    before = {path.name: path.stat().st_ino for path in wheelhouse.iterdir()}
    result = images("wheelhouse", wheelhouse)
    assert result.returncode == 0, result.stderr
    assert {path.name: path.stat().st_ino for path in wheelhouse.iterdir()} == before


def test_a_missing_wheel_is_fetched(wheelhouse: Path) -> None:
    (wheel,) = wheelhouse.glob(SMALL)
    wheel.unlink()
    result = images("wheelhouse", wheelhouse)
    assert result.returncode == 0, result.stderr
    assert wheel.is_file()


def test_check_names_a_missing_wheel(wheelhouse: Path) -> None:
    (wheel,) = wheelhouse.glob(SMALL)
    wheel.unlink()
    result = images("wheelhouse", "--check", wheelhouse)
    assert_one_clear_line(result, 2, str(wheelhouse), "mpmath==", f"images/wheelhouse {wheelhouse}")
    assert not wheel.exists()


@pytest.mark.parametrize("option", [(), ("--check",)])
def test_a_changed_wheel_is_refused(wheelhouse: Path, option: tuple[str, ...]) -> None:
    (wheel,) = wheelhouse.glob(SMALL)
    content = wheel.read_bytes()
    wheel.unlink()
    wheel.write_bytes(content + b"\0")
    result = images("wheelhouse", *option, wheelhouse)
    assert_one_clear_line(result, 2, str(wheel), "SHA-256", "remove it and try again")


def test_wheels_left_from_an_earlier_lock_do_no_harm(wheelhouse: Path) -> None:
    (wheelhouse / "mpmath-0.1-py3-none-any.whl").write_bytes(b"old")
    assert images("wheelhouse", "--check", wheelhouse).returncode == 0


def test_markers_are_those_of_the_image_and_not_of_this_python(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    digests = {version: hashlib.sha256(version.encode()).hexdigest() for version in ("3.10", "3.11", "3.12")}
    lock.write_text("".join(
        f"thing==1.{version} ; python_version == '{version}' and sys_platform == 'linux' \\\n"
        f"    --hash=sha256:{digest}\n" for version, digest in digests.items()
    ))  # fmt: skip
    command = [sys.executable, PROJECT / "images/wheels.py", "missing", tmp_path, lock]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"thing==1.3.11 --hash=sha256:{digests['3.11']}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
def test_a_full_disk_is_said_in_one_line(complete: Path, tmp_path: Path) -> None:
    # in a mount namespace of its own, which takes the small disk along when it ends
    small = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$@"', "sh")
    result = images("wheelhouse", tmp_path / "wheelhouse", prefix=small)
    assert_one_clear_line(result, 1, "no space left", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "said"), [(("a", "b"), "usage"), (("--fast",), "usage")], ids=["two folders", "unknown option"]
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str) -> None:
    assert_one_clear_line(images("wheelhouse", *arguments), 2, said)
