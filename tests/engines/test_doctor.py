"""``envkit doctor``: what it finds in a profile's worker and in a command of one's own, and how it ends."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import pytest

# Enough for all of them to want to run at a time, on any machine.
THREADS = max(8, 4 * len(os.sched_getaffinity(0)))
# Which others on this machine need not wait for: that threads want to run shows all the same. hashlib lets others run.
OVERSUBSCRIBED = f"""
import hashlib, os, threading
os.nice(19)
def work():
    while True:
        hashlib.sha256(bytes(2**20)).digest()
for _ in range({THREADS}):
    threading.Thread(target=work).start()
"""
# On a busy machine the start alone may take all of the first: of a plain script, and where torch is imported.
SOON, WATCH = ("4s", "60s"), ("12s", "60s")
QUIET = "import time; time.sleep(60)"
# What others do on this machine while the tests run, which no test can prevent.
FROM_OUTSIDE = {"other-load", "steal", "cores-unmeasured"}


@pytest.fixture(scope="module")
def cores(tmp_path_factory):
    """Where it is kept which CPUs share a core: a virtual machine's are measured once."""
    return tmp_path_factory.mktemp("cores")


@pytest.fixture(autouse=True)
def measured_once(cores, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cores))


@pytest.fixture
def cli(cli_process):
    """A process of its own: a watched command writes to its real stderr."""
    return cli_process


@pytest.fixture
def watched(tmp_path, cli):
    """Watch a Python script; the findings, and how ``doctor`` ended. It looks no longer than the script runs."""

    def run(script, *options, watch="60s"):
        path = tmp_path / "script.py"
        path.write_text(script)
        return cli("doctor", "--watch", watch, *options, "--", sys.executable, path)

    return run


def patiently(watched, script, *options, times=WATCH):
    for watch in times:
        result = watched(script, *options, watch=watch)
        if result.returncode == 1:
            break
    return result


def codes(result):
    return [finding["code"] for finding in json.loads(result.stdout)]


# --- a command of one's own ---


def test_an_oversubscribed_script_is_found(watched):
    result = patiently(watched, OVERSUBSCRIBED, times=SOON)
    assert result.returncode == 1, result
    said = " ".join(result.stdout.split())
    assert f"threads want to run at a time, on {len(os.sched_getaffinity(0))} usable CPUs why " in said
    assert "stop too-many-threads: typically" in said
    assert "fix OMP_NUM_THREADS=" in said
    assert "s of watching (--watch)" in result.stderr


def test_nothing_is_found_in_a_quiet_script_and_it_is_stopped(watched, tmp_path):
    result = watched(f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); {QUIET}", watch="4s")
    assert (result.returncode, result.stdout) == (0, "nothing found\n")
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_the_script_prints_stays_out_of_the_findings(watched):
    result = watched("print('a line of its own')", "--json")
    assert (result.returncode, json.loads(result.stdout)) == (0, [])
    assert "a line of its own" in result.stderr


def test_a_command_that_does_not_exist(refused):
    assert refused("doctor", "--", "/no/such/command") == (
        f"envkit: /no/such/command: no such file in {Path.cwd()}; start envkit where your training starts"
    )


def test_a_command_that_ends_at_once_with_a_failure(watched):
    result = watched("raise SystemExit(1)")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"doctor -- {sys.executable}: it ended with status 1; it must run for a while to be watched" in result.stderr


def test_no_command(refused):
    assert "doctor --: name the command to watch" in refused("doctor", "--")


# --- a profile ---


def test_a_clean_baseline(cli):
    """A real worker. The machine may be busy with other tests or other virtual machines: that is no false alarm."""
    result = cli("doctor", "baseline", "--json")
    assert result.returncode == 0, result
    assert set(codes(result)) <= FROM_OUTSIDE


def test_a_profile_that_asks_for_too_many_threads_and_is_not_in_effect(cli, write_profile):
    text = "env:\n  OMP_NUM_THREADS: ${usable_cpus + 1}\nexpect:\n  openmp.runtime: intel\n"
    result = cli("doctor", write_profile("mine", text), "--json")
    assert result.returncode == 1, result
    findings = json.loads(result.stdout)
    assert all(finding.keys() == {"code", "severity", "seen", "why", "fix", "message"} for finding in findings)
    # with MKL, PyTorch has no more threads than cores whatever it was told: then the variable is not in effect
    assert (findings[0]["code"], findings[0]["severity"]) in {("too-many-threads", "stop"), ("not-in-effect", "stop")}
    wrong = [one["seen"] for one in findings if (one["code"], one["severity"]) == ("not-in-effect", "stop")]
    assert any("openmp.runtime: expected intel, seen gnu" in one for one in wrong), findings


def test_a_worker_that_fails_is_a_finding(cli, simulation):
    simulation.worker("baseline", does="exit", status=3)
    result = cli("doctor", "baseline", "--python", simulation.python)
    assert result.returncode == 1, result
    said = " ".join(result.stdout.split())
    assert "stop worker-failed: a worker ended with exit status 3 why simulated trouble" in said


def test_a_profile_that_does_not_exist(refused):
    assert refused("doctor", "basline").startswith("envkit: no profile 'basline'")


@pytest.mark.parametrize("option", [("--watch", "soon"), ("--engine", "lxc")])
def test_options_that_are_wrong(cli, option):
    result = cli("doctor", "baseline", *option)
    assert result.returncode == 2
    assert option[1] in result.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="one CPU: there is no other for the workers")
def test_data_loader_workers_on_one_core_are_found(watched):
    """The trap of an affinity that was meant for OpenMP: the loader's workers inherit the first thread's mask."""
    script = """
import os
import platform
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # whoever is ended first, the others may print a traceback
from torch.utils.data import DataLoader

class Endless:
    def __len__(self): return 10**9
    def __getitem__(self, index): return sum(range(1000))

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for batch in DataLoader(Endless(), num_workers=2, worker_init_fn=lambda number: os.nice(19)): pass
"""
    result = patiently(watched, script, "--json")
    assert result.returncode == 1, result
    assert "workers-on-one-core" in codes(result)


def test_what_a_bug_report_needs_has_no_word_of_who_runs_it(cli, tmp_path):
    """Of a real worker, with a home folder and a secret of its own."""
    home = tmp_path / "home-of-jane"
    home.mkdir()
    secrets = {"HOME": str(home), "TORCH_HOME": f"{home}/models", "TORCH_TOKEN": "s3cr3t"}
    result = cli("doctor", "--for-issue", OMP_NUM_THREADS="1", **secrets)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("```text\ntorch ")
    for said in (
        "OMP_NUM_THREADS=1",
        "OpenMP ",
        "allocator ",
        "masks ",
        "MKL ",
        "quota",
        "TORCH_TOKEN=(set, not shown)",
    ):
        assert said in result.stdout, said
    for secret in (str(home), "jane", "s3cr3t", platform.node(), str(tmp_path)):
        assert secret not in result.stdout, secret
    document = json.loads(cli("doctor", "gnu-omp", "--for-issue", "--json").stdout)
    assert "OpenMP        gnu" in document["markdown"]
