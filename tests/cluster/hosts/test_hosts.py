"""Submissions to hosts that ssh reaches, whose workers are simulated."""

from __future__ import annotations

import os
import signal

import pytest
from envkit.bench import record
from envkit.bench.blocks import samples

from tests.processes import PATIENCE_S, running, until
from tests.simulation import times

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Offending ED25519 key in /home/me/.ssh/known_hosts:7
  remove with:
  ssh-keygen -f "/home/me/.ssh/known_hosts" -R "[b]:2222"
Host key for [b]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""


def measured(folder, host):
    path = folder / host / record.FILE_NAME
    return samples(record.read(folder / host)) if path.exists() and b"\n" in path.read_bytes() else []


def said(result):
    return [line.removeprefix("envkit: ") for line in result.stderr.splitlines() if line.startswith("envkit: ")]


def test_every_host_measures_and_one_that_changed_its_key_is_named(cli, arguments, run_folder, fails, network):
    """The same command goes on with that one alone."""
    fails("b", CHANGED)
    without = cli(*arguments("bench", "a,b"))
    assert without.returncode == 2, without
    assert said(without) == [
        "b: its host key is another than in /home/me/.ssh/known_hosts, line 7; if it was set up anew: "
        "ssh-keygen -f /home/me/.ssh/known_hosts -R '[b]:2222', and log in by hand",
        f"1 of 2 nodes measured; go on with: envkit submit --resume {run_folder}",
    ]
    assert (len(measured(run_folder, "a")), measured(run_folder, "b")) == (12, [])
    before = (run_folder / "a" / record.FILE_NAME).read_bytes()
    (network / "b.sh").unlink()
    assert "--partition is for Slurm" in cli("submit", "--resume", run_folder, "--partition", "work").stderr
    result = cli("bench", "--resume", run_folder)  # which began it
    assert result.returncode == 0, result
    assert "on 2 nodes" in " ".join(result.stdout.split())
    assert len(measured(run_folder, "b")) == 12
    assert (run_folder / "a" / record.FILE_NAME).read_bytes() == before


def test_a_fleet_of_hosts(cli, arguments):
    result = cli(*arguments("fleet", "a,b"))
    assert result.returncode == 0, result
    rows = [line.split()[0] for line in result.stdout.splitlines() if line.startswith(("a ", "b "))]
    assert sorted(rows) == ["a", "b"]


def test_ctrl_c_ends_all_and_the_same_command_goes_on(start, cli, arguments, run_folder, simulation):
    simulation.worker("mine", seconds=times(0.5), delay=5)
    process = start(*arguments("submit", "a,b"))
    until(lambda: process.poll() is not None or all(len(measured(run_folder, host)) > 1 for host in "ab"))
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert f"envkit: interrupted; go on with: envkit submit --resume {run_folder}" in stderr, stdout
    earlier = {host: measured(run_folder, host) for host in "ab"}
    simulation.worker("mine", seconds=times(0.5))
    result = cli("submit", "--resume", run_folder)
    assert result.returncode == 0, result
    for host, those in earlier.items():
        found = measured(run_folder, host)
        assert (len(found), found[: len(those)]) == (12, those)


def test_nothing_runs_on_when_the_link_breaks(start, arguments, run_folder, simulation, network):
    """A killed ssh, as a broken link, ends what it has started; the other host measures to its end."""
    simulation.worker("baseline", does="hang", **{"from": 4})
    process = start(*arguments("submit", "a"))
    until(lambda: process.poll() is not None or len(measured(run_folder, "a")) > 1)
    os.kill(int((network / "a.pid").read_text()), signal.SIGKILL)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    assert "envkit: a: " in stderr
    until(lambda: not running(str(simulation.folder)) and not running(str(run_folder)))


def test_a_matrix_of_hosts(cli, arguments, run_folder):
    result = cli(*arguments("matrix", "a,b"))
    assert result.returncode == 0, result
    (ratio,) = (float(words[1]) for line in result.stdout.splitlines() if (words := line.split())[:1] == ["mine"])
    assert ratio == pytest.approx(2, rel=0.1)
    assert [len(measured(run_folder, host)) for host in "ab"] == [12, 12]


def test_hosts_tune_together(cli, simulation, network, run_folder, tmp_path):
    """Each stage on all of them, and one profile for the type of host."""
    space = tmp_path / "space.yaml"
    space.write_text(
        "name: small\ntitle: A test\nparameters:\n  spin: {variable: GOMP_SPINCOUNT, values: [unset, 1000]}\n"
    )
    written = tmp_path / "hosts-tuned.yaml"
    short = ("--steps", 3, "--budget", "90s", "--data", "synthetic", "--seed", 7, "--python", simulation.python)
    asked = ("--space", space, "--profile", written, "--output", run_folder)
    result = cli("tune", "--hosts", "a,b", *asked, *short)
    assert result.returncode == 0, result
    assert "on 2 nodes" in " ".join(result.stdout.split())
    assert [record.is_begun(run_folder / host / record.CONFIRMATION) for host in "ab"] == [True, True]
    assert written.exists()


def test_what_nothing_was_measured_of_goes_on_by_the_command_that_began_it(cli, refused, arguments, run_folder, fails):
    fails("a", "ssh: connect to host a port 22: Connection refused\n")
    assert cli(*arguments("matrix", "a")).returncode == 2
    go_on = f"envkit matrix --resume {run_folder}"
    assert refused("report", run_folder) == f"envkit: {run_folder}: nothing was measured yet; follow it with: {go_on}"
    for command in ("submit", "bench"):
        assert refused(command, "--resume", run_folder) == f"envkit: --resume {run_folder}: goes on with: {go_on}"
