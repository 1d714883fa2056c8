"""The shell loop of docs/slurm.md for machines without Slurm, with stand-ins for ssh, scp and the workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CODE_PATH, PROJECT
from tests.simulation import times

PAGE = PROJECT / "docs/slurm.md"
HOSTS = ("node1", "node2", "node3")
# A machine is a folder that is the home there, with a temporary folder of its own: the lock of a machine is in that.
PROGRAMS = {
    "ssh": """\
[ "$1" = -n ] || exit 99
cd "{machines}/$2" && TMPDIR=$PWD/tmp exec sh -c "$3"
""",
    "scp": """\
[ "$1" = -qr ] || exit 99
exec cp -r "{machines}/${{2%%:*}}/${{2#*:}}" "$3"
""",
    "envkit": """\
if [ "$1 $2" = "bench glibc-retain" ]; then
    shift 2
    set -- bench {profile} "$@" --steps 3 --blocks 6 --data synthetic --seed 7 --python {workers}
fi
exec {python} -m envkit "$@"
""",
}


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulation, write_profile) -> Path:
    simulation.worker("mine", seconds=times(0.5))
    folder, programs = tmp_path / "machines", tmp_path / "bin"
    for host in HOSTS:
        (folder / host / "tmp").mkdir(parents=True)
    programs.mkdir()
    profile = write_profile("mine", "env:\n  SIMULATED: mine\n")
    for name, text in PROGRAMS.items():
        made = text.format(machines=folder, profile=profile, workers=simulation.python, python=sys.executable)
        (programs / name).write_text(f"#!/bin/sh\n{made}")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    return folder


def test_the_loop_measures_on_each_machine_and_reports_on_all(machines: Path, tmp_path: Path) -> None:
    section = PAGE.read_text().partition("## Several machines without Slurm\n")[2].partition("\n## ")[0]
    (loop,) = re.findall(r"^```(?:sh|bash)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert f'hosts="{" ".join(HOSTS)}"' in loop
    result = subprocess.run(
        ["bash", "-e", "-c", loop], cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 0, result
    rows = sorted(line.split()[0] for line in result.stdout.splitlines() if line.startswith(HOSTS))
    assert rows == [*HOSTS], result.stdout
    for host in HOSTS:
        copied, there = (
            place / host / "record.jsonl" for place in (tmp_path / "fleet", machines / f"{host}/envkit-fleet")
        )
        assert copied.read_bytes() == there.read_bytes()
