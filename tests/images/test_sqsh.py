"""`images/build sqsh`, with a stand-in for Docker that has one small image, and what is in the file that comes out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from envkit.engines.base import PROJECT

from tests.images.conftest import assert_one_clear_line
from tests.images.test_build import build

# Its answers are files in its own folder; without one it refuses.
DOCKER = """\
#!/bin/bash
here=${0%/*}
echo "$*" >>"$here/told"
case "$*" in
*none) exit 1 ;;
*.Id*) echo sha256:12 ;;
*.Size*) echo 7000000 ;;
"image inspect"*) cat "$here/inspected" ;;
create*) echo 34 ;;
export*) cat "$here/files.tar" || { echo "Error: no such container" >&2 && exit 1; } ;;
esac
"""
CONFIG = {
    "Env": ["PATH=/opt/kit/bin:/bin", 'QUOTED="a b"', "EMPTY="], "Entrypoint": None, "Cmd": ["python"],
    "WorkingDir": "/kit", "Volumes": None, "Labels": {"envkit.variant": "x"},
}  # fmt: skip
MANIFEST = "0" * 64 + "  torch.whl\n"
# The files of a container, and what is in them; nothing is in folders.
FILES = {
    ".dockerenv": "", "dev": None, "dev/console": "", "etc": None, "etc/environment": "OLD=1\n", "etc/rc": "old\n",
    "etc/shadow": "secret\n", "kit": None, "opt/kit/manifest.sha256": MANIFEST,
}  # fmt: skip


@dataclass
class Engine:
    path: Path
    build_folder: Path

    def has(self, **config: Any) -> None:
        """One image, that is so configured."""
        document = [{"Id": "sha256:12", "Config": {**CONFIG, **config}}]
        (self.path / "inspected").write_text(json.dumps(document))

    def script(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def build(self, *arguments: object, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": f"{self.path}:{path}", "KIT_BUILD_DIR": str(self.build_folder)}
        return build("sqsh", *arguments, **variables)

    def told(self, word: str) -> list[str]:
        lines = (self.path / "told").read_text().splitlines()
        return [line for line in lines if line.startswith(f"{word} ")]


def make_tar(file: Path) -> None:
    with tarfile.open(file, "w") as made:
        for name, text in FILES.items():
            member = tarfile.TarInfo(name)
            member.uid = member.gid = 1000
            member.mode = 0o755 if text is None else 0o200 if name == "etc/shadow" else 0o644
            if text is None:
                member.type = tarfile.DIRTYPE
                made.addfile(member)
            else:
                (file.parent / "content").write_text(text)
                member.size = len(text)
                with (file.parent / "content").open("rb") as content:
                    made.addfile(member, content)
        for kind, name in ((tarfile.SYMTYPE, "opt/kit/link"), (tarfile.LNKTYPE, "opt/kit/hard")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "opt/kit/manifest.sha256"
            made.addfile(member)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path / "bin", tmp_path / "build")
    made.path.mkdir()
    made.script("docker", DOCKER)
    made.script("podman", DOCKER)
    made.has()
    make_tar(made.path / "files.tar")
    return made


@pytest.fixture
def squashfs() -> None:
    if shutil.which("mksquashfs") is None:
        pytest.skip("mksquashfs is not installed: apt-get install squashfs-tools")


def inside(file: Path, name: str) -> str:
    result = subprocess.run(["unsquashfs", "-cat", file, name], capture_output=True, text=True, check=True)
    return result.stdout


def listed(file: Path) -> dict[str, tuple[str, str]]:
    """By name the permissions and the owner of what is in an image."""
    result = subprocess.run(["unsquashfs", "-lln", file], capture_output=True, text=True, check=True)
    words = [line.split(None, 5) for line in result.stdout.splitlines()]
    return {
        one[5].partition("/")[2].partition(" -> ")[0]: (one[0], one[1])
        for one in words if len(one) > 5 and one[5].startswith("squashfs-root/")
    }  # fmt: skip


# --- what comes out ---


def test_all_files_are_there_and_those_that_enroot_reads(squashfs: None, engine: Engine) -> None:
    result = engine.build()
    assert result.returncode == 0, result
    file = engine.build_folder / "envkit-cpu.sqsh"
    found = listed(file)
    expected = FILES.keys() - {".dockerenv", "dev/console"} | {"opt", "opt/kit", "opt/kit/link", "opt/kit/hard"}
    assert found.keys() == expected | {"etc/fstab"}
    assert {owner for _, owner in found.values()} == {"0/0"}
    # what only root may read is read by whoever starts it
    assert found["etc/shadow"][0] == "-rw-------"
    assert inside(file, "etc/environment") == 'PATH=/opt/kit/bin:/bin\nQUOTED=""a b""\nEMPTY=\n'
    assert inside(file, "etc/fstab") == ""
    assert found["etc/rc"][0] == "-rwxr-xr-x"
    manifest = subprocess.run(
        ["images/manifest", "sqsh", file], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert manifest.stdout == MANIFEST


def test_volumes_can_be_written_to(squashfs: None, engine: Engine) -> None:
    engine.has(Volumes={"/data": {}})
    assert engine.build().returncode == 0
    fstab = "${ENROOT_ROOTFS}/data /data none x-create=dir,bind,rw,nosuid,nodev\n"
    assert inside(engine.build_folder / "envkit-cpu.sqsh", "etc/fstab") == fstab


@pytest.mark.parametrize(
    ("config", "arguments", "printed"),
    [
        ({"Cmd": ["echo", "it's"]}, (), "it's\n"),
        ({"Cmd": ["echo", "it's"]}, ("echo", "mine"), "mine\n"),
        ({"Cmd": ["its"], "Entrypoint": ["echo", "a b"]}, (), "a b its\n"),
        ({"Cmd": ["its"], "Entrypoint": ["echo", "a b"]}, ("mine",), "a b mine\n"),
        ({"Cmd": None, "Entrypoint": ["echo", "alone"]}, (), "alone\n"),
        ({"Cmd": None, "WorkingDir": ""}, ("pwd",), "/\n"),
        ({"Cmd": None, "WorkingDir": "/usr"}, ("pwd",), "/usr\n"),
    ],
)
def test_it_starts_what_the_image_does(
    squashfs: None, engine: Engine, config: dict[str, Any], arguments: tuple[str, ...], printed: str
) -> None:
    engine.has(**{"WorkingDir": "/", **config})
    assert engine.build().returncode == 0
    script = inside(engine.build_folder / "envkit-cpu.sqsh", "etc/rc")
    result = subprocess.run(["sh", "-c", script, "rc", *arguments], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == (printed, "")


# --- how it is made ---


@pytest.mark.parametrize(
    ("arguments", "asked", "name"),
    [
        ((), "envkit-cpu", "envkit-cpu"),
        (("--variant", "debian"), "envkit-cpu:debian", "envkit-cpu-debian"),
        (("--variant", "cuda"), "envkit-cuda", "envkit-cuda"),
        (("--from", "registry:5000/team/kit:latest"), "registry:5000/team/kit:latest", "kit"),
        (("--engine", "podman"), "envkit-cpu", "envkit-cpu"),
    ],
)
def test_what_it_is_made_of_and_called_like(
    squashfs: None, engine: Engine, arguments: tuple[str, ...], asked: str, name: str
) -> None:
    result = engine.build(*arguments)
    assert result.returncode == 0, result
    assert engine.told("image")[0] == f"image inspect --format {{{{.Id}}}} {asked}"
    assert [file.name for file in engine.build_folder.glob("*.sqsh")] == [f"{name}.sqsh"]
    # a container is made of what was looked at, is started by nobody, and goes
    (created,), (exported,), (removed,) = (engine.told(word) for word in ("create", "export", "rm"))
    container = exported.removeprefix("export ")
    assert created == f"create --name {container} --network none sha256:12 true"
    assert removed == f"rm --force {container}"


def test_a_second_build_does_nothing_and_another_image_is_another(squashfs: None, engine: Engine) -> None:
    assert engine.build().returncode == 0
    again = engine.build()
    assert (again.returncode, again.stdout.count("is up to date")) == (0, 1)
    assert len(engine.told("export")) == 1
    engine.script("docker", DOCKER.replace("sha256:12", "sha256:56"))
    assert engine.build().returncode == 0
    assert len(engine.told("export")) == 2


def test_a_build_that_fails_leaves_nothing(squashfs: None, engine: Engine) -> None:
    (engine.path / "files.tar").unlink()
    result = engine.build()
    assert_one_clear_line(result, 1, "the build failed: ", "sqsh.log")
    assert [file.name for file in engine.build_folder.iterdir()] == ["sqsh.log"]
    assert len(engine.told("rm")) == 1


@pytest.mark.parametrize("value", ["two\nlines", "${HOME}/x"])
def test_what_enroots_files_can_not_say(squashfs: None, engine: Engine, value: str) -> None:
    engine.has(Env=[f"MINE={value}"])
    result = engine.build()
    assert_one_clear_line(result, 1, "the build failed: sqsh.py: the image sets MINE to a value with ", "as it is (log")
    assert not [*engine.build_folder.glob("*.sqsh")]


# --- what is missing ---


def test_an_image_that_is_not_there(squashfs: None, engine: Engine) -> None:
    said = "--from none: docker has no such image: images/build oci --engine docker"
    assert_one_clear_line(engine.build("--from", "none"), 2, said)
    engine.script("docker", "#!/bin/sh\nexit 1\n")
    said = "docker has no such image: images/build oci --engine docker --variant conda\n"
    assert_one_clear_line(engine.build("--variant", "conda"), 2, "--from envkit-cpu:conda: ", said)


def test_a_squashfs_that_reads_no_tar(engine: Engine) -> None:
    engine.script("mksquashfs", "#!/bin/sh\necho 'SYNTAX:mksquashfs source1 source2 ...'\n")
    said = "this mksquashfs reads no tar: install squashfs-tools 4.5 or later: apt-get install squashfs-tools"
    assert_one_clear_line(engine.build(), 2, said)


@pytest.mark.parametrize("missing", ["mksquashfs", "docker"])
def test_a_tool_that_is_missing(engine: Engine, tmp_path: Path, missing: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for file in Path(folder).glob("*"):
            if file.name != missing and not (programs / file.name).is_symlink():
                (programs / file.name).symlink_to(file)
    if missing == "docker":
        (engine.path / "docker").unlink()
        engine.script("mksquashfs", "#!/bin/sh\nprintf '%b' '\\n-tar\\tread tar\\n'\n")
    said = {"docker": "it has the image envkit-cpu", "mksquashfs": "install squashfs-tools 4.5 or later"}[missing]
    assert_one_clear_line(engine.build(path=str(programs)), 2, f"there is no '{missing}' on PATH: {said}")


def test_a_disk_without_room(squashfs: None, engine: Engine) -> None:
    engine.script("df", "#!/bin/sh\necho Avail\necho 6\n")
    assert_one_clear_line(engine.build(), 1, "has 6 MB free, and the build needs 7: free some")
