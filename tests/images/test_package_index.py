"""What the scripts that install packages say on a bad day: of a package index, or of a disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.conftest import assert_one_clear_line
from tests.images.faulty_server import served_with
from tests.images.made_wheel import make_wheel

# How each is called, the folder that it fills, and what is there only when it is done.
SCRIPTS = {
    "wheelhouse": (("--variant", "tiny", "house"), "house", "*.whl"),
    "stack": (("tiny",), ".venv-tiny", ".locked"),
    "setup": (("new",), "new", ".locked"),
}
Run = Callable[..., "subprocess.CompletedProcess[str]"]
PYTHON = shutil.which("python3.11") or sys.executable
# The rest of an index is what a directory's listing is.
LIST, FILE = "/simple/numpy/", ".whl"


@pytest.fixture
def tree(tiny_project: Path) -> Path:
    """With an index of its wheels in ``simple``, and images/setup installs the same packages."""
    for wheel in (tiny_project / "wheels").iterdir():
        folder = tiny_project / "simple" / wheel.name.partition("-")[0].replace("_", "-")
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
    shutil.copy(PROJECT / "pyproject.toml", tiny_project)
    shutil.copy(tiny_project / "images/tiny/requirements.lock", tiny_project / "images/cpu")
    (tiny_project / "images/host/requirements.lock").write_text("")
    return tiny_project


@pytest.fixture
def run(tree: Path, monkeypatch: pytest.MonkeyPatch, copying_python: str) -> Run:
    """Run one of SCRIPTS where pip is configured to ask nobody else, and not to wait."""
    if shutil.which("python3.11") is None and sys.version_info[:2] != (3, 11):
        pytest.skip("there is no Python 3.11, which the variants' wheels are for")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    variables = {"CONFIG_FILE": "/dev/null", "TIMEOUT": "1", "RETRIES": "1", "NO_CACHE_DIR": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("PYTHON", "STACK_PYTHON"):
        monkeypatch.setenv(name, copying_python)

    def run(script: str, prefix: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess[str]:
        command = [*prefix, str(tree / "images" / script), *SCRIPTS[script][0]]
        return subprocess.run(
            command, cwd=tree, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
            timeout=240,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("script", ["wheelhouse", "stack"])
def test_what_an_index_has_is_installed(run: Run, tree: Path, script: str) -> None:
    with served_with("", tree, "no such file") as address:
        result = run(script, PIP_INDEX_URL=f"{address}/simple", PIP_TIMEOUT="60", STACK_PYTHON=PYTHON)
    assert result.returncode == 0, result
    _, folder, done = SCRIPTS[script]
    assert list((tree / folder).glob(done))


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PIP_INDEX_URL", "http://me:canary@192.0.2.1/simple"),
        ("PIP_EXTRA_INDEX_URL", "https://example.org/simple http://me:canary@192.0.2.1/simple"),
        ("PIP_FIND_LINKS", "/wheels http://me:canary@192.0.2.1/simple"),
        ("PIP_CONFIG_FILE", "[global]\nindex-url = http://me:canary@192.0.2.1/simple\n"),
    ],
)
def test_an_index_that_others_on_the_way_can_change_is_refused(
    run: Run, tree: Path, tmp_path: Path, script: str, variable: str, value: str
) -> None:
    if variable == "PIP_CONFIG_FILE":
        (tmp_path / "pip.conf").write_text(value)
        value = str(tmp_path / "pip.conf")
    result = run(script, **{variable: value})
    assert_one_clear_line(result, 2, "http://****@192.0.2.1/simple is not https: use https, a file://")
    assert "canary" not in result.stdout
    _, folder, done = SCRIPTS[script]
    assert not list((tree / folder).glob(done))


@pytest.mark.parametrize("variable", ["UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"])
def test_no_lock_is_renewed_from_such_an_index(tree: Path, variable: str) -> None:
    before = (tree / "images/cpu/requirements.lock").read_bytes()
    address = "name=http://me:canary@192.0.2.1/simple" if "DEFAULT" in variable else "http://192.0.2.1/simple"
    result = subprocess.run(
        [tree / "images/lock"], env={**os.environ, variable: address}, capture_output=True, text=True, check=False,
        timeout=240,
    )  # fmt: skip
    assert_one_clear_line(result, 2, variable, "192.0.2.1/simple is not https")
    assert "canary" not in result.stderr
    assert (tree / "images/cpu/requirements.lock").read_bytes() == before


# Where the index has which fault, and what is said.
NOBODY = r"127\.0\.0\.1:\d+ does not answer: name another package index"
NOTHING = r"numpy==1\.0 \(from versions: none\): name another package index"
OTHER = r"numpy==1\.0 that pip found \(http://127.*\.whl\) has the SHA-256 [0-9a-f]{64}, which is not in the lock"
HANGS, IS_NOT_THERE, IS_ANOTHER = (LIST, "hangs", NOBODY), (LIST, "404", NOTHING), (FILE, "page", OTHER)
FAULTS = (
    HANGS, IS_NOT_THERE, IS_ANOTHER, (LIST, "page", NOTHING), (FILE, "hangs", NOBODY), (FILE, "404", "HTTP error 404"),
    (FILE, "cut short", "which is not in the lock|[Bb]roken|[Ii]ncomplete"),
)  # fmt: skip
# pip says the same to all of them, and an environment takes seconds to make.
CASES = [("wheelhouse", *fault) for fault in FAULTS]
CASES += [(script, *fault) for script in ("stack", "setup") for fault in (HANGS, IS_NOT_THERE, IS_ANOTHER)]


@pytest.mark.parametrize(("script", "where", "fault", "said"), CASES)
def test_a_bad_index_ends_in_one_line(run: Run, tree: Path, script: str, where: str, fault: str, said: str) -> None:
    with served_with(fault, tree, where) as address:
        # what is answered is to be answered in time, and what comes before a file that is not
        timeout_s = {(LIST, "hangs"): "1", (FILE, "hangs"): "5"}.get((where, fault), "60")
        result = run(script, PIP_INDEX_URL=f"{address}/simple", PIP_TIMEOUT=timeout_s)
    assert_one_clear_line(result, 2)
    assert re.search(said, result.stderr), result.stderr
    _, folder, done = SCRIPTS[script]
    assert not list((tree / folder).glob(done))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
@pytest.mark.parametrize("megabytes", [5, 50], ids=["for Python itself", "for packages"])
@pytest.mark.parametrize("script", ["stack", "setup"])
def test_a_full_disk_is_said_in_one_line(run: Run, tree: Path, script: str, megabytes: int) -> None:
    large = make_wheel(tree / "wheels", "numpy", "1.0", "# nothing\n" * 6_000_000)
    for folder in ("tiny", "cpu"):
        lock = tree / f"images/{folder}/requirements.lock"
        lock.write_text(large + lock.read_text().splitlines()[1] + "\n")
    _, name, _ = SCRIPTS[script]
    disk = tree / name
    disk.mkdir()
    small = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={megabytes}m none {disk} && exec "$@"', "sh")
    fills = {"PYTHON": PYTHON, "STACK_PYTHON": PYTHON} if megabytes == 5 else {}
    result = run(script, small, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tree / "wheels"), **fills)
    assert_one_clear_line(result, 2, "no space left for ", name, ": it takes ", "free some")


PIP = """\
#!/bin/sh
case "$*" in
*" config list") echo "$CONFIGURED" ;;
images/addresses.py) exec python3 "$@" ;;
*) echo "$@" >&2 && echo "$@" ;;
esac
"""


@pytest.mark.parametrize(
    ("configured", "waits"),
    [("", True), ("global.index-url='https://a/simple'", True), (":env:.default-timeout='180'", False),
     ("global.retries='9'", False)],
)  # fmt: skip
def test_pip_waits_as_long_as_it_is_configured_to(tmp_path: Path, configured: str, waits: bool) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(PIP)
    python.chmod(0o755)
    script = f". images/common.sh; venv={tmp_path} log={tmp_path}/log; pip download x"
    subprocess.run(["bash", "-c", script], cwd=PROJECT, env={**os.environ, "CONFIGURED": configured}, check=True)
    told = (tmp_path / "log.last").read_text()
    assert "download x" in told
    assert ("--timeout 15 --retries 2" in told) == waits


def test_a_log_that_is_cut_is_a_full_disk(tmp_path: Path) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(PIP)
    python.chmod(0o755)
    # /dev/full takes nothing
    (tmp_path / "log.last").symlink_to("/dev/full")
    script = f". images/common.sh; venv={tmp_path} log={tmp_path}/log; pip download x; no_room"
    result = subprocess.run(["bash", "-c", script], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
