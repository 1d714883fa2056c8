"""Hosts that train together, whose workers are simulated: the first one starts them on the others."""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
import signal

import pytest
from envkit.bench import record
from envkit.bench.blocks import samples

from tests.processes import PATIENCE_S, gone, running, until

TOGETHER = "all-nodes"
# After a host was lost.
DEATH_S = 120
# What an ssh to this host does that a host of the job has started.
FROM_A_HOST = "if [[ ${{ENVKIT_HOSTS-}} ]]; then {done}; fi\n"


@pytest.fixture
def together(arguments, simulation):
    """The arguments that train on both hosts together."""
    for name in ("baseline", "mine"):
        simulation.worker(f"{name} on 2 ranks")
    return lambda command="submit", *options: arguments(command, "a,b", "--nproc", 1, "--blocks", 1, *options)


def said(stderr):
    return [line.removeprefix("envkit: ") for line in stderr.splitlines() if line.startswith("envkit: ")]


def on_ranks(simulation, profile):
    """The starts of a profile's workers, as (node, where they meet, variables)."""
    found = []
    for start in simulation.starts():
        words = start["arguments"]
        if start["name"] == f"{profile} on 2 ranks":
            node, meet = (words[words.index(option) + 1] for option in ("--node-rank", "--rendezvous"))
            found.append((node, meet, start["environment"]))
    return found


def test_both_train_and_the_one_command_of_bench_does_it_too(cli, together, simulation, run_folder, network):
    result = cli(*together("bench"))
    assert result.returncode == 0, result
    rows = [line.split()[:2] for line in result.stdout.splitlines() if line.startswith(TOGETHER)]
    assert sorted(rows) == [[TOGETHER, "1"], [TOGETHER, "mine"]]
    found = samples(record.read(run_folder / TOGETHER))
    assert {event["arm"]: len(event.get("ranks", ())) for event in found} == {"baseline": 2, "mine": 2, "1 process": 0}
    starts = on_ranks(simulation, "mine")
    assert sorted(node for node, _, _ in starts) == ["0", "1"]
    assert {meet.partition(":")[0] for _, meet, _ in starts} == {"127.0.0.1"}
    for node, _, variables in starts:
        assert variables["SIMULATED"] == "mine"
        assert variables["TMPDIR"] == str(network / f"{'ab'[int(node)]}-tmp")
    # those of one process are on the first host alone
    alone = [start["environment"] for start in simulation.starts() if "--nproc" not in start["arguments"]]
    assert {variables["TMPDIR"] for variables in alone} == {str(network / "a-tmp")}
    assert [path.name for path in run_folder.iterdir() if path.is_dir()] == [TOGETHER]


def test_a_host_that_is_lost_ends_the_others_and_the_same_command_goes_on(
    start, cli, together, simulation, run_folder, network, write_profile
):
    secret = f"SECRET_{secrets.token_hex(8)}"  # which no other test's processes have
    write_profile("mine", f"env:\n  SIMULATED: mine\n  {secret}: of-{secret}\n")
    simulation.worker("mine on 2 ranks", does="hang")
    process = start(*together())
    until(lambda: process.poll() is not None or len(on_ranks(simulation, "mine")) == 2)
    assert process.poll() is None, process.communicate()
    workers = [one["pid"] for one in simulation.starts() if one["name"] == "mine on 2 ranks"][-2:]
    # no other user sees what a worker is given
    assert on_ranks(simulation, "mine")[-1][2][secret] == f"of-{secret}"
    assert not running(secret)
    with (network / f"b-tmp/envkit-{platform.node()}.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.kill(int((network / "b.pid").read_text()), signal.SIGKILL)
    _, stderr = process.communicate(timeout=DEATH_S)
    assert process.returncode == 1, stderr
    lost, go_on = said(stderr)
    assert lost.startswith(f"{TOGETHER}: block "), lost
    assert "mine: the worker lost b: the link to it broke (ssh ended and says nothing); what was measured" in lost
    assert go_on == f"not measured to the end; go on with: envkit submit --resume {run_folder}"
    until(lambda: all(map(gone, workers)) and not running(str(run_folder)))
    simulation.worker("mine on 2 ranks")
    earlier = samples(record.read(run_folder / TOGETHER))
    result = cli("submit", "--resume", run_folder)
    assert result.returncode == 0, result
    found = samples(record.read(run_folder / TOGETHER))
    assert (len(found), found[: len(earlier)]) == (3, earlier)


def test_a_worker_that_fails_on_one_host_ends_the_others(cli, together, simulation, run_folder, network):
    """Of the first only the sleep is planted: it is told to end long before that is over."""
    python = simulation.python.read_text()
    planted = 'case "$*" in *"--node-rank 1"*) echo planted trouble >&2; exit 7;; *--node-rank*) sleep 600;; esac\n'
    simulation.python.write_text(python.replace("exec ", f"{planted}exec "))
    result = cli(*together())
    assert result.returncode == 1, result
    assert "the worker ended with exit status 7 (warming up): planted trouble" in said(result.stderr)[0]
    until(lambda: not running(str(simulation.folder)))


def test_ctrl_c_ends_all_on_both(start, together, simulation, run_folder):
    for name in ("baseline", "mine"):
        simulation.worker(f"{name} on 2 ranks warming", does="hang")
    process = start(*together())
    until(
        lambda: process.poll() is not None or "warming" in " ".join(one["name"] for one in simulation.starts(all=True))
    )
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert said(stderr)[-1] == f"interrupted; go on with: envkit submit --resume {run_folder}"
    until(lambda: not running(str(simulation.folder)) and not running(str(run_folder)))


def test_a_first_host_that_does_not_reach_the_others(cli, together, run_folder, network):
    wrong = "me@b: Permission denied (publickey)."
    (network / "b.sh").write_text(FROM_A_HOST.format(done=f"echo '{wrong}' >&2; exit 255"))
    result = cli(*together())
    assert result.returncode == 2, result
    assert said(result.stderr)[0] == (
        f"{TOGETHER}: from a, which starts the workers, b is not reached: lets nobody in without a password, and none "
        "is asked for here; put your key there: ssh-copy-id b"
    )
    assert not record.is_begun(run_folder / TOGETHER)


def test_none_trains_where_one_is_not_reached_or_is_measured_on(cli, together, run_folder, network, fails):
    fails("b", "ssh: connect to host b port 22: Connection refused\n")
    result = cli(*together())
    assert result.returncode == 2, result
    assert said(result.stderr)[0].startswith("b: no sshd answers there; start one")
    (network / "b.sh").unlink()
    (network / "b-tmp").mkdir()
    with (network / f"b-tmp/envkit-{platform.node()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = cli("submit", "--resume", run_folder)
    assert result.returncode == 2, result
    assert said(result.stderr)[0].startswith("b: another measurement runs on this machine (process unknown);")
    assert not (run_folder / TOGETHER).exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--instances", 2], "--instances means nothing with --hosts; leave one of them out"),
        (["--nodes", 2], "--nodes means nothing with --hosts; leave one of them out"),
        (["--against-python", "python3"], "--against-python means nothing with --hosts; leave one of them out"),
        (["--nproc", 2, "--engine", "docker"], "--engine docker: on nodes workers are started by local, apptainer"),
        (["--nproc", 2, "--full"], "--nproc 2 means nothing with --full, which trains once each"),
    ],
)  # fmt: skip
def test_what_bench_can_not_do_on_hosts(refused, network, options, line):
    assert refused("bench", "baseline", "--hosts", "a,b", *options).startswith(f"envkit: {line}")
