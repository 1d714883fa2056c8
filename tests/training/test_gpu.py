"""``benchmarks/gpu.sh``: what it refuses, and what it does on a machine with GPUs; with simulated workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from envkit.bench import record
from envkit.bench.decide import ENDED
from envkit.engines.base import PROJECT

from tests.nvidia import accelerator
from tests.simulated_worker import inspection
from tests.simulation import STEADY

SCRIPT = PROJECT / "benchmarks/gpu.sh"
# What a Python that has torch, rich and PyYAML need not have.
NOT_THERE = ("docker", "requests", "matplotlib", "optuna", "pyarrow", "sacrebleu", "jsonschema", "pytest")
RUNNER = f"""
import os, runpy, sys
sys.modules.update(dict.fromkeys({NOT_THERE}))
sys.path.insert(0, os.getcwd())
runpy.run_module("envkit", run_name="__main__", alter_sys=True)
"""
# One that looks and computes like this one, whose runner is RUNNER, and whose workers are simulated.
PYTHON = r"""#!/bin/sh
case "$1 $2" in
*/envkit/worker/__main__.py\ *) exec {workers} "$@" ;;
"-c import numpy"*) exit ;;
"-m envkit") shift 2; exec {python} {runner} "$@" ;;
esac
exec {python} "$@"
"""
READING = {"sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_w": 118.4, "held_back": []}
GPU = {"before": READING, "after": READING, "energy_j": 700.0, "mean_power_w": 350.0, "allocated_bytes": 2**30,
       "reserved_bytes": 2**30, "idle_share": 0.25, "kernels_per_step": 100.0}  # fmt: skip
# What profiles for one GPU expect, of which a simulated worker shows the same under each.
ONE_GPU = {"gpu": {"one_queue": True, "cublas_workspace_bytes": 2**25}}
# What the profiles expect that ddp and all-reduce compare, all at once.
NCCL = {
    "log": "written", "version": "2.28.3", "ranks": 2, "network": "Socket", "transports": "SHM", "channels": 2,
    "rings": 2, "trees": 2, "algorithms": None, "protocols": None, "interfaces": "eth0", "choices": [], "warnings": [],
    "settings": {"NCCL_ALGO": "Ring", "NCCL_P2P_DISABLE": 1, "NCCL_SOCKET_IFNAME": "^docker,lo"},
}  # fmt: skip


# With the loopback alone; a view of the interfaces belongs to who mounts it.
NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c",
              'mount -t sysfs none /sys && exec "$@"', "sh")  # fmt: skip


def run(*arguments, within=(), **variables):
    return subprocess.run(
        [*within, SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pyton", "x"), "no argument '--pyton' (--help lists them)"),
        (("everything",), "no argument 'everything' (--help lists them)"),
        (("--budget",), "--budget needs a value (--help lists the options)"),
        (("--ranks", "two"), "--ranks two: not a number"),
        (("--python", "/none/python3"), "--python /none/python3: no such executable"),
        (("--python", "/bin/false"), "--python /bin/false: lacks one of torch, numpy, scipy, rich and PyYAML"),
    ],
)
def test_bad_input_is_one_line(arguments, said, tmp_path):
    result = run("--output", tmp_path / "out", *arguments)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result
    assert said in result.stderr


def test_the_help_names_every_part():
    result = run("--help")
    assert result.returncode == 0
    for part in ("look", "cnn", "segmentation", "input", "ddp", "all-reduce", "kernels", "cpu", "epochs"):
        assert f"\n  {part} " in result.stdout


def test_without_a_gpu_a_part_fails_and_says_why(tmp_path):
    import torch

    if torch.version.cuda is not None:
        pytest.skip("this torch is a build with CUDA")
    result = run("--python", sys.executable, "--output", tmp_path / "out", "segmentation", "ddp")
    assert result.returncode == 1
    assert "can't: its torch is a build without CUDA" in result.stderr
    assert "benchmarks/gpu.sh: segmentation did not come to its end" in result.stderr
    assert "== ddp: left out, as it takes two GPUs" in result.stdout
    assert not (tmp_path / "out/segmentation").exists()


def test_looking_takes_no_gpu(tmp_path):
    result = run("--python", sys.executable, "--output", tmp_path / "out", "--ranks", 1, "look")
    assert result.returncode == 0, result.stderr
    written = (tmp_path / "out/look.txt").read_text()
    assert "do not apply here: needs gpus to be 1 or more" in " ".join(written.split())
    assert "gpu-cublas-fixed" in written


@pytest.fixture
def gpu_python(simulation, tmp_path):
    """A Python of a machine with two GPUs: its workers are simulated, and its runner has only what such a one has."""
    seen = accelerator(2)
    simulation.inspection(facts={**inspection([], {})["facts"], "gpus": 2}, accelerator=seen)
    for name in ("baseline", "baseline warming"):
        simulation.worker(name, seconds=STEADY, gpu=GPU, evidence=ONE_GPU)
    evidence = {"gpu": {}, "nccl": NCCL}
    of_rank = {str(rank): {"evidence": {"gpu": {"uuid": one["uuid"]}}} for rank, one in enumerate(seen["devices"])}
    for name in ("baseline on 2 ranks", "baseline on 2 ranks warming"):
        simulation.worker(name, seconds=STEADY, gpu=GPU, evidence=evidence, of_rank=of_rank,
                          exchange=[{"bytes": 2**16, "seconds": 1e-4}])  # fmt: skip
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER)
    python = tmp_path / "python3"
    python.write_text(PYTHON.format(python=sys.executable, runner=runner, workers=simulation.python))
    python.chmod(0o755)
    return python


def test_every_part_measures_and_reports(gpu_python, simulation, tmp_path):
    """All but what a GPU does: one block of each part."""
    out = tmp_path / "out"
    parts = ("cnn", "input", "ddp", "all-reduce", "kernels", "cpu")
    arguments = ("--python", gpu_python, "--output", out, "--blocks", 1, "--ranks", 2, *parts)
    result = run(*arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    for part in parts:
        if part == "kernels":
            continue
        assert record.read(out / part)[-1]["reason"] in ENDED
        markdown, details = ((out / part / name).read_text() for name in ("report.md", "details.txt"))
        assert "1980 MHz" in details
        assert "without work for 25.0% of a step" in details
        assert "Simulated CPU" in markdown
    assert "bus bandwidth" in (out / "all-reduce/report.md").read_text()
    assert "NCCL 2.28.3, 2 ranks" in (out / "ddp/details.txt").read_text()
    assert (out / "kernels.txt").read_text()
    started = len(simulation.starts(all=True))
    again = run(*arguments[: -len(parts)], "cnn", "ddp", "cpu")
    assert (again.returncode, len(simulation.starts(all=True))) == (0, started)


def test_without_a_network_there_is_no_arm_that_takes_one(gpu_python, tmp_path):
    try:
        subprocess.run([*NO_NETWORK, "true"], capture_output=True, check=True, timeout=240)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user can't make a namespace without a network")
    out = tmp_path / "out"
    arguments = ("--python", gpu_python, "--output", out, "--blocks", 1, "--ranks", 2, "all-reduce")
    result = run(*arguments, within=NO_NETWORK)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "== all-reduce: without nccl-socket, as there is no network" in result.stdout
    details = (out / "all-reduce/details.txt").read_text()
    assert "nccl-no-p2p" in details
    assert "nccl-socket" not in details


def test_a_part_that_fails_is_reported_and_may_go_on(gpu_python, simulation, tmp_path):
    out = tmp_path / "out"
    arguments = ("--python", gpu_python, "--output", out, "--blocks", 1, "--ranks", 1, "cnn")
    simulation.worker("baseline", seconds=STEADY, evidence=ONE_GPU, does="exit", status=3, **{"from": 1})
    result = run(*arguments)
    assert result.returncode == 1
    assert "benchmarks/gpu.sh: cnn did not come to its end" in result.stderr
    assert "ended with exit status 3" in (out / "cnn/report.md").read_text()
    simulation.worker("baseline", seconds=STEADY, gpu=GPU, evidence=ONE_GPU)
    assert run(*arguments).returncode == 0
    assert record.read(out / "cnn")[-1]["reason"] in ENDED
