"""Hosts that a real sshd is on: how they are measured, why some are not, and what is left running."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from envkit.bench import record
from envkit.bench.blocks import samples
from envkit.profiles import profile

from tests.engines.hosts.conftest import STATE
from tests.processes import PATIENCE_S, gone, running, until
from tests.simulation import times

SPACE = """\
name: small
title: A test
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 1000]}
"""
UNLIKE = """\
Host changed
    HostKeyAlias changed
    UserKnownHostsFile {folder}/changed
Host unknown
    HostKeyAlias unknown
Host closed
    User nobody
Host no-such
    HostName no-such.invalid
Host nobody
    Port 1
"""


def measured(folder, host):
    path = folder / host / record.FILE_NAME
    return samples(record.read(folder / host)) if path.exists() and b"\n" in path.read_bytes() else []


def children(pid):
    """The processes that this one has started, by their commands."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(one): Path(f"/proc/{one}/cmdline").read_text().split("\0") for one in found}


def below(pid):
    """All that a process has started, and these in turn."""
    mine = children(pid)
    return {**mine, **{one: words for child in mine for one, words in below(child).items()}}


def test_two_hosts_measure_and_each_other_one_is_named_with_its_mend(cli, submit, known, run_folder, tmp_path):
    (tmp_path / "changed").write_text(f"changed {(STATE / 'other.key.pub').read_text()}")
    known(UNLIKE.format(folder=tmp_path))
    result = cli(*submit("host1,host2,changed,unknown,closed,nobody,no-such"))
    assert result.returncode == 2, result
    lines = [line for line in result.stderr.splitlines() if line.startswith("envkit: ")]
    for start in (
        f"envkit: changed: its host key is another than in {tmp_path}/changed, line 1; if it was set up anew: "
        f"ssh-keygen -f {tmp_path}/changed -R changed, and log in by hand",
        "envkit: unknown: its host key is in no known_hosts file here; log in once by hand",
        "envkit: closed: lets nobody in without a password, and none is asked for here; put your key there",
        "envkit: nobody: no sshd answers there; ",
        "envkit: no-such: no such host: ",
    ):
        assert sum(line.startswith(start) for line in lines) == 1, (start, lines)
    assert lines[-1] == f"envkit: 2 of 7 nodes measured; go on with: envkit submit --resume {run_folder}"
    assert [len(measured(run_folder, host)) for host in ("host1", "host2")] == [12, 12]


def test_a_fleet(cli, simulation, run_folder):
    short = ("--steps", 3, "--blocks", 6, "--data", "synthetic", "--seed", 7, "--python", simulation.python)
    result = cli("fleet", "baseline", "--hosts", "host1,host2", *short, "--output", run_folder)
    assert result.returncode == 0, result
    rows = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("host")]
    assert sorted(rows) == ["host1", "host2"]
    assert [len(measured(run_folder, host)) for host in ("host1", "host2")] == [6, 6]


def test_hosts_that_tune_together(cli, simulation, run_folder, tmp_path):
    space, written = tmp_path / "space.yaml", tmp_path / "hosts-tuned.yaml"
    space.write_text(SPACE)
    simulation.named("mine", "GOMP_SPINCOUNT=1000")
    simulation.worker("mine", seconds=times(0.5))
    short = ("--steps", 3, "--budget", "20s", "--data", "synthetic", "--seed", 7, "--python", simulation.python)
    asked = ("--space", space, "--space-only", "--profile", written, "--output", run_folder)
    result = cli("tune", "--hosts", "host1,host2", *asked, *short)
    assert result.returncode == 0, result
    assert "on 2 nodes" in " ".join(result.stdout.split())
    assert profile.load(str(written)).env == {"GOMP_SPINCOUNT": "1000"}
    for host in ("host1", "host2"):
        assert record.read(run_folder / host / record.CONFIRMATION)[-1]["reason"] == "complete"


def test_a_killed_ssh_leaves_nothing_running_there(start, submit, run_folder, simulation):
    simulation.worker("mine", does="hang", **{"from": 3})
    process = start(*submit("host1"))
    until(lambda: process.poll() is not None or measured(run_folder, "host1"))
    links = {pid: words for pid, words in below(process.pid).items() if words[0] == "/usr/bin/ssh"}
    (link,) = links
    (node,) = running(f"\0-m\0runner.cli.slurm_node\0{run_folder}\0")
    workers = until(lambda: [*below(node)])
    os.kill(link, signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in (node, *workers)))
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    until(lambda: not running(f"\0{run_folder}\0"))
    assert "host1: it was told to end, or the link to it broke" in stderr
