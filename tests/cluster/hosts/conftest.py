"""Hosts without a network: a stand-in for ssh starts what it is to start on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation import times

# What ssh does, as far as it is used: the command's standard input ends when this process does, however it ends. What
# the file of a host's name has is done first.
SSH = """\
#!{python} -IS
import os, subprocess, sys, threading
if sys.argv[1] == "-G":
    sys.exit(print("hostname 127.0.0.1"))
host, command = sys.argv[-2:]
folder = {folder!r}
if os.path.exists(f"{{folder}}/{{host}}.sh"):
    status = subprocess.call(["bash", f"{{folder}}/{{host}}.sh"], stdin=subprocess.DEVNULL)
    if status:
        sys.exit(status)
os.makedirs(f"{{folder}}/{{host}}-tmp", exist_ok=True)
with open(f"{{folder}}/{{host}}.pid", "w") as file:
    print(os.getpid(), file=file)
there = {{**os.environ, "TMPDIR": f"{{folder}}/{{host}}-tmp"}}
child = subprocess.Popen(["bash", "-c", command], stdin=subprocess.PIPE, env=there, start_new_session=True, bufsize=0)
def pass_on():
    while data := os.read(0, 4096):
        child.stdin.write(data)
    child.stdin.close()
threading.Thread(target=pass_on, daemon=True).start()
sys.exit(child.wait())
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the stand-in's: NAME.sh is done first, and NAME.pid has the last ssh to the host of this name."""
    folder = tmp_path / "network"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin/ssh"
    program.write_text(SSH.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def arguments(simulation, write_profile, run_folder, network):
    """What measures a profile on hosts by simulated workers."""
    path = write_profile("mine", "env:\n  SIMULATED: mine\n")
    simulation.worker("mine", seconds=times(0.5))

    def made(command, hosts, *options):
        short = ("--steps", 3, "--blocks", 6, "--data", "synthetic", "--seed", 7, "--python", simulation.python)
        return [command, path, "--hosts", hosts, *short, "--output", run_folder, *options]

    return made


@pytest.fixture
def fails(network: Path) -> Callable[..., None]:
    """Have ssh to a host fail with these words of its own."""

    def plant(host: str, said: str) -> None:
        (network / f"{host}.said").write_text(said)
        (network / f"{host}.sh").write_text(f"cat {network}/{host}.said >&2\nexit 255\n")

    return plant
