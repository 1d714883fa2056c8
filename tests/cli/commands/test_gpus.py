"""Ranks on GPUs, and what reports and exports say of GPUs, NCCL and an all-reduce; with simulated workers."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.bench.study import Study

from tests.cli.commands.conftest import FACTS, words
from tests.simulation import times

ON_GPU = ("--device", "cuda")

# --- ranks ---

READING = {"sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_w": 118.4, "held_back": ["idle"]}
GPU = {
    "before": READING, "after": {**READING, "sm_mhz": 1755, "temperature_c": 56, "held_back": ["power cap"]},
    "energy_j": 700.0, "mean_power_w": 350.2, "allocated_bytes": 3 * 2**30, "reserved_bytes": 4 * 2**30,
    "idle_share": 0.125, "kernels_per_step": 240.0,
}  # fmt: skip


def uuids(*of_ranks):
    """What a rank's evidence has of its GPU."""
    return {str(rank): {"evidence": {"gpu": {"uuid": uuid}}} for rank, uuid in enumerate(of_ranks)}


@pytest.fixture
def on_ranks(bench, simulation, instant, machine):
    """``mine`` and the baseline on two ranks, of which there are GPUs for each; both behave as is said."""

    def run(*options, count=2, blocks=1, **behaviour):
        machine(count)
        fields = {"evidence": {"gpu": {}}, "of_rank": uuids("GPU-1", "GPU-2"), "backend": "nccl", **behaviour}
        for name in ("baseline on 2 ranks", "mine on 2 ranks"):
            simulation.worker(name, seconds=times(0.5), **fields)
        return bench("mine", "--nproc", 2, "--blocks", blocks, *ON_GPU, *options)

    return run


def test_ranks_train_on_gpus_by_nccl(on_ranks, simulation, run_folder):
    on_ranks().ended(0)
    for start in simulation.starts():
        options = start["training"]["options"]
        assert (options["device"], options["backend"]) == ("cuda", "")
    assert Study.from_json(record.first(run_folder)["study"]).options.exchange == "nccl"


def test_ranks_on_gpus_may_exchange_by_gloo(on_ranks, simulation):
    result = on_ranks("--backend", "gloo", backend="gloo").ended(0)
    for start in simulation.starts():
        assert start["training"]["options"]["backend"] == "gloo"
    assert "workload cnn (cuda, gloo, 2 ranks)" in words(result.stdout)


def test_what_is_the_usual_backend_is_not_said_again(bench, simulation, instant, run_folder):
    assert bench("mine", "--nproc", 2, "--blocks", 1, "--backend", "gloo").returncode == 0
    assert Study.from_json(record.first(run_folder)["study"]).options.backend == ""


def test_ranks_that_exchanged_by_another_backend_are_a_failure(on_ranks):
    result = on_ranks(backend="gloo").ended(1)
    assert "the worker should have used nccl to exchange gradients, but used gloo" in words(result.stdout)


def test_ranks_on_one_gpu_are_not_in_effect(on_ranks, cli, run_folder):
    on_ranks(of_rank=uuids("GPU-1", "GPU-1")).ended(1)
    assert "ranks.gpus: expected apart, seen ranks 0 and 1 on GPU GPU-1 of here" in words(
        cli("report", run_folder, "--details").stdout
    )


@pytest.mark.parametrize(
    ("usable", "options", "text", "said"),
    [
        (1, ("--nproc", 4), "", "4 ranks take a GPU each, and 1 is usable (local); train on one process"),
        (3, ("--nproc", 4), "", "4 ranks take a GPU each, and 3 are usable (local); train on 3 ranks or fewer"),
        (1, (), "ranks: 2\n", "2 ranks take a GPU each, and 1 is usable (local); train on one process"),
    ],
)
def test_more_ranks_than_gpus(refused, bench_arguments, machine, run_folder, usable, options, text, said):
    machine(3, usable=usable)
    assert refused(*bench_arguments("mine", *options, *ON_GPU, text=text)) == f"envkit: --device cuda: {said}"
    assert not run_folder.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nproc", 2, "--backend", "nccl"],
         "--backend nccl: NCCL works only between GPUs; add --device cuda, or leave it out"),
        (["--backend", "gloo"], "--backend gloo has no effect without --nproc; add it, or leave this out"),
        (["--nproc", 2, "--device", "cuda", "--workload", "model-parallel"],
         "model-parallel is trained on CPUs in fp32, not compiled and not channels-last; leave such options out"),
        (["--nproc", 2, "--workload", "all-reduce", "--compile"],
         "all-reduce trains nothing: it is not compiled, and always in fp32; leave such options out"),
    ],
)  # fmt: skip
def test_what_ranks_can_not_do(refused, bench_arguments, simulation, machine, run_folder, options, said):
    machine(2)
    arguments = [one for one in bench_arguments("mine", *options) if one not in ("--data", "synthetic")]
    assert refused(*arguments) == f"envkit: {said}"
    assert not run_folder.exists()


@pytest.mark.parametrize("command", ["bench", "matrix", "plan", "breakdown", "submit"])
def test_commands_of_one_process_exchange_nothing(refused, simulation, command):
    where = ["--nodes", 1, "--dry-run"] if command == "submit" else []
    named = [] if command == "plan" else ["physical-cores"]
    line = refused(command, *named, *where, "--python", simulation.python, "--workload", "all-reduce")
    assert (
        line == "envkit: --workload all-reduce: one process has no peer to exchange with; give envkit bench --nproc N"
    )


def test_a_command_of_ones_own_exchanges_as_it_likes(refused):
    line = refused("bench", "baseline", "--backend", "gloo", "--", "true")
    assert "--backend has no effect on your own command" in line


# --- what reports and exports say of GPUs, of NCCL, and of an all-reduce ---

# In the shape of envkit.worker.evidence.nccl.parse.
LOG = {
    "log": "written", "version": "2.28.3+cuda13.0", "rank": 0, "ranks": 2, "network": "Socket", "interfaces": "eth0",
    "transports": "P2P", "paths": {"P2P/CUMEM": 4}, "channels": 8, "rings": 2, "trees": 2, "algorithms": "ring",
    "protocols": "simple", "settings": {}, "warnings": ["something is slow"],
    "choices": [{"collective": "AllReduce", "algorithm": "ring", "protocol": "simple", "calls": 12,
                 "least_bytes": 4096, "most_bytes": 2**24}],
}  # fmt: skip


def test_the_report_tells_of_the_gpus_state(bench, cli, simulation, instant, machine, run_folder, undrawn):
    machine()
    simulation.worker("mine", seconds=times(0.5), gpu=GPU)
    bench("mine", *ON_GPU, "--blocks", 3)
    said = words(cli("report", run_folder, "--details").stdout)
    assert "gpu mine: 1755 to 1980 MHz, 41 to 56 °C, 350 W while steps were timed, at most 3.0 GiB in tensors" in said
    assert "its clocks were held back (power cap) around 3 of 3 samples" in said
    assert "idle" not in said
    assert "without work for 12.5% of a step between 240 kernels and copies, under the profiler" in said
    assert "gpu baseline" not in said
    page = run_folder / "x.html"
    assert cli("report", run_folder, "--html", page).returncode == 0
    assert "1755 to 1980 MHz" in page.read_text()
    (told,) = json.loads(cli("report", run_folder, "--json").stdout)["gpus"]
    assert (told["arm"], told["held_back"], told["power_w"]) == ("mine", {"power cap": 3}, 350.2)


def test_what_nvml_does_not_tell_is_not_said(bench, cli, simulation, instant, machine, run_folder):
    machine()
    simulation.worker("mine", seconds=times(0.5), gpu={"allocated_bytes": 2**20, "idle_share": None})
    bench("mine", *ON_GPU, "--blocks", 1)
    said = words(cli("report", run_folder, "--details").stdout)
    assert "gpu mine: at most 1.0 MiB in tensors " in said
    assert "without work" not in said


def test_the_report_tells_what_nccl_chose(on_ranks, cli, run_folder):
    on_ranks(evidence={"gpu": {}, "nccl": LOG})
    said = words(cli("report", run_folder, "--details").stdout)
    assert (
        "nccl mine: NCCL 2.28.3+cuda13.0, 2 ranks; 2 rings, 2 trees, 8 channels; between ranks P2P; network Socket; "
        "AllReduce by ring, protocol simple, 12 times"
    ) in said
    assert "NCCL warns: something is slow" in said


def test_exports_have_columns_for_it(on_ranks, cli, run_folder):
    on_ranks(evidence={"gpu": {}, "nccl": LOG}, gpu=GPU)
    rows = json.loads(cli("export", run_folder, "--format", "json").stdout)
    (row,) = (row for row in rows if row["arm"] == "mine")
    assert (row["gpu_after_sm_mhz"], row["gpu_after_temperature_c"], row["gpu_mean_power_w"]) == (1755, 56, 350.2)
    assert (row["gpu_after_held_back"], row["gpu_idle_share"]) == ('["power cap"]', 0.125)
    assert (row["nccl_version"], row["nccl_algorithms"], row["nccl_channels"]) == ("2.28.3+cuda13.0", "ring", 8)


def test_an_all_reduce_has_bandwidths(bench_arguments, cli, simulation, instant, run_folder):
    sizes = [{"bytes": 4096, "seconds": 1e-4}, {"bytes": 2**24, "seconds": 8e-3}]
    for name in ("baseline on 4 ranks", "mine on 4 ranks"):
        simulation.worker(name, seconds=times(0.5), exchange=sizes, losses=[1.0] * 3, unit="MB")
    simulation.inspection(facts={**FACTS, "physical_cores": 4})
    arguments = bench_arguments("mine", "--nproc", 4, "--blocks", 1, "--workload", "all-reduce")
    result = cli(*[one for one in arguments if one not in ("--data", "synthetic")]).ended(0)
    assert {start["name"] for start in simulation.starts()} == {"baseline on 4 ranks", "mine on 4 ranks"}
    said = words(result.stdout)
    assert (
        "Transfer bus bandwidth (size over time, times 1.5 for 4 ranks): "
        "4 KiB 0.0614 GB/s (0.1 ms) and 16 MiB 3.15 GB/s (8 ms)"
    ) in said
    rows = json.loads(cli("export", run_folder, "--format", "json").stdout)
    assert rows[0]["all_reduce_16777216_s"] == 8e-3
    assert rows[0]["all_reduce_16777216_bus_bytes_per_s"] == pytest.approx(2**24 / 8e-3 * 1.5)
