"""A Docker daemon that dies in mid-run: one of the test's own, with an image that only pretends to train."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.rendering import text
from envkit.worker.image import inspect

from tests.conftest import command_line
from tests.records import problem_of

PATIENCE_S = 240
IMAGE = "pretends"
PROGRAMS = ("sh", "sleep", "cat")


@pytest.fixture
def daemon(requires, monkeypatch):
    """A daemon with its own socket and images; the machine's is not touched. Also stops what it still runs."""
    requires("docker")
    if os.getuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("only root can start a Docker daemon of the test's own")
    folder = Path(tempfile.mkdtemp(prefix="envkit-dockerd-", dir="/var/tmp"))  # short: a socket's path must be
    address = f"unix://{folder}/socket"
    process = subprocess.Popen(
        # in a network namespace of its own: without a bridge it would remove that of the machine's daemon
        ["unshare", "--net", "dockerd", "--host", address, "--data-root", folder / "data",
         "--exec-root", folder / "exec", "--pidfile", folder / "pid", "--storage-driver", "vfs",
         "--bridge", "none", "--iptables=false", "--ip-forward=false"],
        stdout=(folder / "log").open("w"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    monkeypatch.setenv("DOCKER_HOST", address)
    end = time.monotonic() + PATIENCE_S
    while subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        assert time.monotonic() < end, (folder / "log").read_text()[-2000:]
        time.sleep(0.2)
    yield process
    if process.poll() is None:
        left = subprocess.run(["docker", "ps", "--quiet"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["docker", "rm", "--force", *left], capture_output=True, check=False)
        process.terminate()
    process.wait(PATIENCE_S)
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):  # the shim of a container outlives a daemon that was killed
        with contextlib.suppress(OSError):  # it ended meanwhile
            if str(folder).encode() in cmdline.read_bytes():
                os.kill(int(cmdline.parent.name), signal.SIGKILL)
    for line in Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(str(folder)):
            subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def image(daemon, tmp_path):
    """An image whose interpreter answers an inspection, and never ends when it is asked to train."""
    root = tmp_path / "root"
    for program in PROGRAMS:
        _install(Path(shutil.which(program)), root)
    python = root / "opt/kit/bin/python"
    python.parent.mkdir(parents=True)
    answers = "case $request in *'\"inspect\"'*) exec cat /inspection.json;; esac"
    python.write_text(f"#!/bin/sh\nread -r request\n{answers}\nexec sleep 1000\n")
    python.chmod(0o755)
    (root / "inspection.json").write_text(json.dumps(inspect(())))
    (root / "kit/envkit").mkdir(parents=True)
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.add(root, arcname=".")
    subprocess.run(["docker", "import", tmp_path / "root.tar", IMAGE], check=True, capture_output=True)
    return IMAGE


def _install(program, root):
    """Copy a program and the libraries that it is linked with to where they are."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = [word for word in listed.split() if word.startswith("/")]
    for path, target in [(program, f"bin/{program.name}"), *((Path(one), one.lstrip("/")) for one in libraries)]:
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / target)


def test_a_daemon_that_dies_in_mid_run_is_recorded(daemon, image, tmp_path):
    run = subprocess.Popen(
        command_line("bench", "baseline", "--engine", "docker", "--image", image, "--data", "synthetic",
                     "--output", tmp_path / "run"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + PATIENCE_S
    while not (tmp_path / "run").exists() or not _containers():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end
        time.sleep(0.2)
    daemon.kill()
    stdout, stderr = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 1, (stdout, stderr)
    assert "Traceback" not in stderr
    (failure,) = [event for event in record.read(tmp_path / "run") if event["event"] == "failure"]
    assert text(problem_of(failure)).startswith("was lost: the Docker daemon does not answer any more")
    assert "the Docker daemon does not answer any more" in " ".join(stdout.split())


def _containers():
    return subprocess.run(["docker", "ps", "--quiet"], capture_output=True, text=True, check=False).stdout.split()
