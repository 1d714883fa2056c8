"""What starts a command on each host, and ends it there with the link."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
from envkit.common.errors import INTERRUPTED
from envkit.engines.hosts import on_each
from envkit.engines.hosts.ssh import Patience

from tests.processes import gone, until


@pytest.fixture
def lifeline():
    """The end that is read, and the one whose closing ends all."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.fixture
def run(network, lifeline, capfdbinary, monkeypatch):
    """Run a text of bash on hosts: the exit status, and the lines on stdout."""

    def on(hosts, text, **patience):
        monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
        status = on_each.run(hosts, "17", ["bash", "-c", text], lifeline[0], Patience(**patience))
        return status, capfdbinary.readouterr().out.decode().splitlines()

    return on


def test_each_host_knows_its_name_and_place_and_the_worst_status_counts(run, network):
    (network / "b.sh").write_text("echo Welcome to b")  # which a login may print
    text = 'echo "$SLURMD_NODENAME $SLURM_JOB_ID $SLURM_NODEID"; [[ $SLURM_NODEID == 0 ]] || exit 3'
    status, lines = run(["a", "b"], text)
    assert (status, sorted(lines)) == (3, ["a 17 0", "b 17 1"])


def test_a_host_that_hangs_after_login_keeps_nobody_waiting(run, network):
    (network / "b.sh").write_text("sleep 600")
    began = time.monotonic()
    status, lines = run(["a", "b"], "sleep 0.2; echo here", answer_s=15.0)
    assert (status, lines) == (
        1,
        ["here", "unreached b starts nothing within 15 s; what keeps its login? Try: ssh b true"],
    )
    assert time.monotonic() - began < 300


def test_a_host_whose_folder_hangs_keeps_the_roll_call_no_longer(run):
    status, lines = run(["a"], "sleep 600", within_s=1.0)
    said = "did not say within 1 s what it has; does the folder that all share hang there?"
    assert (status, lines) == (1, [f"unreached a {said}"])


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_the_end_of_the_lifeline_ends_what_was_started(run, lifeline, tmp_path, trap):
    """Also what does not heed SIGTERM, some time later."""
    noted = tmp_path / "pid"

    def end():
        until(lambda: noted.exists() and noted.read_text().endswith("\n"))
        os.close(lifeline[1])

    threading.Thread(target=end).start()
    status, _ = run(["a"], f"{trap}echo $$ >{noted}; while :; do sleep 0.05; done", kill_wait_s=0.3)
    assert status == INTERRUPTED
    until(lambda: gone(int(noted.read_text())))
    assert run(["a"], "echo nothing is started any more") == (INTERRUPTED, [])


def test_a_silent_link_counts_as_broken(run):
    """As where a cable was pulled, and no end of anything comes. What is started has time to set its trap."""
    text = "trap 'echo told; exit 5' TERM; while :; do sleep 0.05; done"
    status, lines = run(["a"], text, silence_s=8, beat_s=600.0, kill_wait_s=60)
    assert (status, lines) == (5, ["told"])


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "ssh: Could not resolve hostname nope: Name or service not known\r\n",
            "no such host: its name can't be resolved here; correct --hosts, or name it in ~/.ssh/config "
            "(ssh: Could not resolve hostname nope: Name or service not known)",
        ),
        (
            "No ED25519 host key is known for b and you have requested strict checking.\r\n"
            "Host key verification failed.\r\n",
            "its host key is in no known_hosts file here; log in once by hand, and compare the key: ssh b",
        ),
        (
            "me@b: Permission denied (publickey,password).\r\n",
            "lets nobody in without a password, and none is asked for here; put your key there: ssh-copy-id b",
        ),
        (
            "ssh: connect to host b port 22: Connection refused\r\n",
            "no sshd answers there; start one, or give its port in ~/.ssh/config "
            "(ssh: connect to host b port 22: Connection refused)",
        ),
        (
            "ssh: connect to host b port 22: Connection timed out\r\n",
            "does not answer (ssh: connect to host b port 22: Connection timed out); is it up? Try: ssh b true",
        ),
        ("", "ssh starts nothing there (ssh ended and says nothing); try: ssh b true"),
    ],
    ids=["unknown name", "unknown key", "password", "no sshd", "down", "says nothing"],
)
def test_what_ssh_says_has_a_meaning_and_a_mend(run, fails, said, line):
    fails("b", said)
    assert run(["b"], "true") == (1, [f"unreached b {line}"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--hosts", ""], "'' is no name of a host; write for example host1,host2"),
        (["--hosts", "a,-oProxyCommand=x"], "'-oProxyCommand=x' is no name of a host"),
        (["--hosts", "a,b,a"], "'a,b,a': names a twice; name every host once"),
        (["--hosts", "a", "--nodes", "2"], "--nodes is for Slurm, and means nothing with --hosts; leave one out"),
        (["--hosts", "a", "--nodelist", "b"], "--nodelist is for Slurm"),
        (["--hosts", "a", "--partition", "work"], "--partition is for Slurm"),
        (["--hosts", "a", "--detach"], "--detach is for Slurm"),
        (
            ["--hosts", "a", "--workload", "all"],
            "--workload all means nothing to --hosts, which measure one; name one of",
        ),
    ],
)
def test_what_means_nothing_is_refused(cli, network, options, line):
    result = cli("submit", "baseline", *options, "--data", "synthetic", "--steps", "3")
    assert result.returncode == 2
    assert line in result.stderr.splitlines()[-1]


def test_without_ssh(refused, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = "ssh is not found, by which --hosts are reached; install it (apt-get install openssh-client)"
    assert refused("fleet", "baseline", "--hosts", "a,b") == f"envkit: {said}"


def test_a_dry_run_shows_what_each_host_would_run(cli, network):
    result = cli("submit", "baseline", "--hosts", "a,me@b", "--dry-run", "--data", "synthetic", "--steps", "3")
    assert result.returncode == 0, result
    assert "hosts=(a me@b)\n" in result.stdout
    assert "#SBATCH" not in result.stdout
