"""Real ranks: torchrun, DistributedDataParallel and stages of a model over gloo, and ranks that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.engines.base import PROJECT, WORKER
from envkit.worker.messages import ProcessKilled
from envkit.worker.modes import Options
from envkit.worker.request import Ranks, Train, WorkerRequest
from envkit.worker.workloads import WORKLOADS
from envkit.worker.workloads.all_reduce import SIZES

from tests import worker_runs
from tests.conftest import CODE_PATH
from tests.processes import gone, listening, until

STEPS = 2
SHORT = ("--steps", "2", "--warmup-steps", "1", "--blocks", "1")
ENDLESS = "2000000"  # other tests look for their own endless workers by another number
# From the death of a rank to the end of all others.
DEATH_S = 120
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks take two CPUs")

# What a rank runs at its start: the counters of the CPUs are read when steps are about to be timed.
TROUBLE = """
import os, sys
def fail(event, arguments):
    if event == "open" and str(arguments[0]) == "/proc/stat":
        raise RuntimeError("planted trouble")
if os.environ.get("RANK") == "1" and "ENVKIT_RANK" not in os.environ:
    sys.addaudithook(fail)
"""


def worker(workload, nproc, steps=STEPS, data="generated"):
    """What a worker on so many ranks is to do; numbers may not depend on there being CPUs for all of them."""
    training = Train(workload, data, steps=int(steps))
    return Ranks(nproc, training) if nproc > 1 else training


def document_of(work, **variables):
    """What a worker prints that is to do this."""
    result = worker_runs.of(work, **variables)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


# What a runner is to its workers: it starts one by an engine, and waits for it.
RUNNER = """
import json, os, sys
from envkit import engines
from envkit.engines.base import EngineOptions, Launch
from envkit.worker.request import WorkerRequest
name, options, request = sys.argv[1:]
engine = engines.get_all([name], EngineOptions(**json.loads(options)))[name]
work = WorkerRequest.from_json(json.loads(request)).work
outcome = engine.run(Launch(work, inherited=dict(os.environ), timeout_s=240))
print(json.dumps([outcome.failure and outcome.failure.to_json(), outcome.stdout, outcome.stderr_tail]))
"""


def started_by(engine, options, work):
    """The command that has ``engine`` start a worker on ``work``, and prints what came of it."""
    return [sys.executable, "-c", RUNNER, engine, json.dumps(options), WorkerRequest(work).line()]


# Leaves the gradients of one step, of those parameters that each rank trains. Four processes do all of it, because
# importing torch takes seconds. They are four ranks first. Then two of them are the ranks of one workload after the
# other, and each of the other two trains one of these workloads alone, for comparison.
PROBE = """
import json, os, sys
sys.path.insert(0, os.getcwd())
import torch.distributed
from envkit.worker.modes import Options
from envkit.worker.workloads import get
folder, number, pairs = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
def shown(grad):
    some = grad.flatten()[:: max(1, grad.numel() // 50)].tolist()
    return float(grad.abs().sum()), float(grad.abs().max()), some
def leave(workload, data, name):
    training = get(workload).prepare(data, Options())
    training.step()
    whole = getattr(training, "_model", training.network).model
    found = {name: shown(one.grad) for name, one in whole.named_parameters() if one.grad is not None}
    with open(os.path.join(folder, name), "w") as file:
        json.dump(found, file)
def leave_as_rank(workload, data, nproc):
    meet = f"file://{folder}/{workload}-{nproc}.meet"
    torch.distributed.init_process_group("gloo", init_method=meet, rank=number, world_size=nproc)
    leave(workload, data, f"{workload}-{nproc}-{number}")
    torch.distributed.destroy_process_group()
leave_as_rank("model-parallel", "synthetic", 4)
for at, (workload, data) in enumerate(pairs):
    if number < 2:
        leave_as_rank(workload, data, 2)
    elif at == number - 2:
        leave(workload, data, f"{workload}-1-0")
"""
# What two ranks train; the first two of these also one process. Ranks of translation have unlike many words.
PAIRS = ("cnn", "translation", "model-parallel")


@pytest.fixture(scope="module")
def gradients(tmp_path_factory):
    """By workload and number of ranks: of each rank, by the names of parameters, sum and maximum of absolute values,
    and some of the values."""
    folder = tmp_path_factory.mktemp("gradients")
    (folder / "probe.py").write_text(PROBE)
    pairs = json.dumps([[name, "generated" if WORKLOADS[name].generated else "synthetic"] for name in PAIRS])
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": CODE_PATH}
    processes = [
        subprocess.Popen(
            [sys.executable, folder / "probe.py", folder, str(number), pairs], cwd=PROJECT, env=variables,
            stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    try:
        for process in processes:
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said
    finally:
        for process in processes:
            process.kill()
            process.communicate()

    def found(workload, nproc):
        return [json.loads((folder / f"{workload}-{nproc}-{rank}").read_text()) for rank in range(nproc)]

    return found


@pytest.mark.parametrize(
    ("workload", "nproc"),
    [
        *((name, 2) for name in PAIRS),
        ("model-parallel", 4),  # two stages, each in two ranks that share the batches
    ],
)
def test_ranks_have_the_gradients_of_one_process(gradients, workload, nproc):
    (one,) = gradients("cnn" if workload == "model-parallel" else workload, 1)
    ranks = gradients(workload, nproc)
    assert {name for rank in ranks for name in rank} == one.keys()
    if workload == "model-parallel":
        assert ranks[0].keys().isdisjoint(ranks[1])
    for rank in ranks:
        for name, (total, most, values) in rank.items():
            assert total == pytest.approx(one[name][0], rel=1e-3), name
            assert values == pytest.approx(one[name][2], rel=1e-3, abs=1e-4 * most), name


@pytest.mark.parametrize(("workload", "nproc"), [("segmentation", 2), ("model-parallel", 4)])
def test_a_sample_of_several_ranks(workload, nproc):
    """With a CPU for each or not; gloo's messages and the profiler's show that they did talk."""
    found = {}
    known = WORKLOADS[workload]
    data = "generated" if known.generated else "synthetic"
    for count in (1, nproc):
        found[count] = document_of(worker(workload, count, data=data), OMP_NUM_THREADS="1")
    one, several = found[1], found[nproc]
    assert several["losses"] == pytest.approx(one["losses"], rel=max(known.loss_tolerance, known.ranks_tolerance))
    assert several["digests"] == one["digests"]
    assert several["images_per_step"] == one["images_per_step"]
    assert [rank["rank"] for rank in several["ranks"]] == [*range(nproc)]
    assert all(rank["evidence"]["openmp"]["max_threads"] == 1 for rank in several["ranks"])
    assert 0 < several["communication"]["share"] <= 1
    assert several["backend"] == "gloo"
    assert "ranks" not in one


@two_cpus
def test_weak_scaling_gives_each_of_two_processes_the_batch_of_one():
    """By what ``bench --nproc 2 --weak`` gives to workers (tests/cli/commands/test_ranks.py)."""
    twice = Train("cnn", "synthetic", steps=STEPS, options=Options(scale=2), profiles_ranks=False)
    two = document_of(Ranks(2, twice))
    one = document_of(Ranks(1, worker("cnn", 1, data="synthetic"), cpu_shares=2))
    assert (two["images_per_step"], one["images_per_step"]) == (128, 64)
    assert [rank["rank"] for rank in two["ranks"]] == [0, 1]
    assert one["usage"]["worker_cpus"] == len(two["ranks"][0]["cpus"])


# --- by the command line ---


@pytest.fixture
def measured(cli, tmp_path):
    """Measure profiles on two ranks for one block; the result, and the samples by arm."""

    def run(*options, **variables):
        folder = tmp_path / "run"
        result = cli("bench", *options, "--nproc", 2, *SHORT, "--output", folder, **variables)
        events = record.read(folder) if (folder / record.FILE_NAME).exists() else []
        return result, {event["arm"]: event for event in events if event["event"] == "sample"}

    return run


def told(text):
    return " ".join(text.split())


@two_cpus
def test_an_all_reduce_over_gloo(measured):
    result, samples = measured("baseline", "--workload", "all-reduce")
    assert result.returncode == 0, result.stdout + result.stderr
    assert samples.keys() == {"baseline"}
    sample = samples["baseline"]
    assert sample["losses"] == [1.0] * 2  # every sum was right
    times = [one["seconds"] for one in sample["exchange"]]
    assert [one["bytes"] for one in sample["exchange"]] == [*SIZES]
    assert 0 < times[0] < times[-1] < sample["step_s"][0]
    assert sample["communication"]["share"] > 0.1
    said = "bus bandwidth (size over time, times 1 for 2 ranks): 4 KiB "
    assert said in told(result.stdout)


@two_cpus
def test_two_processes_beside_one(measured, data_folder):
    result, samples = measured("gnu-omp", "--data", data_folder)
    assert result.returncode == 0, result.stdout + result.stderr
    assert samples.keys() == {"baseline", "gnu-omp", "1 process", "1 process on 1/2"}
    for name in ("baseline", "gnu-omp"):
        first, second = samples[name]["ranks"]
        assert set(first["cpus"]).isdisjoint(second["cpus"])
        assert first["evidence"]["variables"]["sensitive"] == second["evidence"]["variables"]["sensitive"]
        assert samples[name]["losses"] == pytest.approx(samples["1 process"]["losses"], rel=1e-3)
    places = [rank["evidence"]["openmp"]["settings"]["OMP_PLACES"] for rank in samples["gnu-omp"]["ranks"]]
    assert places[0] != places[1]
    assert samples["1 process on 1/2"]["usage"]["worker_cpus"] == len(samples["baseline"]["ranks"][0]["cpus"])
    text = told(result.stdout)
    assert text.count("of 1 process's over ") == 2
    assert "DIFFER" not in text


@two_cpus
@pytest.mark.parametrize("engine", ["docker", "apptainer"])
def test_two_processes_in_a_container(engine, engine_options, surroundings, project):
    """Which has no network but the loopback interface, and no name that leads anywhere."""
    _, _, option, image = engine_options(engine)
    result = subprocess.run(
        started_by(engine, {option.removeprefix("--"): image}, worker("cnn", 2, data="synthetic")), cwd=project,
        env={**os.environ, **surroundings}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    failure, printed, said = json.loads(result.stdout)
    assert failure is None, said
    document = json.loads(printed)
    assert (len(document["ranks"]), len(document["losses"])) == (2, STEPS)


@two_cpus
def test_a_rank_that_raises_is_named_and_its_log_shown(measured, data_folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TROUBLE)
    result, _ = measured("baseline", "--data", data_folder, PYTHONPATH=f"{tmp_path}:{CODE_PATH}")
    assert result.returncode == 1
    assert "the worker lost rank 1, which ended with exit status 1" in told(result.stdout)
    assert "RuntimeError: planted trouble" in result.stdout


# --- ranks that die ---


def ranks():
    """The processes of ranks that have torch mapped, by the number of the rank."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if not worker_runs.trains(entry, "rank", ENDLESS) or "libtorch" not in (entry / "maps").read_text():
                continue
            variables = dict(line.split("=", 1) for line in (entry / "environ").read_text().split("\0") if "=" in line)
        except OSError:  # it has just ended
            continue
        found[int(variables["RANK"])] = int(entry.name)
    return found


def both():
    found = ranks()
    return found if len(found) == 2 else None


def test_when_a_rank_is_killed_the_others_end(tmp_path):
    request = tmp_path / "request.json"
    request.write_text(WorkerRequest(worker("cnn", 2, ENDLESS, "synthetic")).line())
    launcher = subprocess.Popen(
        [sys.executable, str(WORKER), str(request)], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        found = until(both)
        until(lambda: all(map(listening, found.values())))  # for each other, when they have met
        addresses = set().union(*(listening(pid) for pid in (launcher.pid, *found.values())))
        killed = time.monotonic()
        os.kill(found[1], signal.SIGKILL)
        stdout, _ = launcher.communicate(timeout=DEATH_S)
        assert time.monotonic() - killed < DEATH_S
    finally:
        launcher.kill()
    assert (launcher.returncode, gone(found[0])) == (1, True)
    assert json.loads(stdout) == {"problem": ProcessKilled("rank 1", "SIGKILL").to_json()}
    assert addresses == {"127.0.0.1"}


@two_cpus
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_rank_outlives_the_runner(number):
    runner = subprocess.Popen(
        started_by("local", {}, worker("cnn", 2, ENDLESS, "synthetic")), cwd=PROJECT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        found = until(lambda: both() or (runner.poll() is not None and "ended"))
        assert found != "ended", runner.communicate()
        runner.send_signal(number)
        runner.wait(DEATH_S)
        until(lambda: all(gone(pid) for pid in found.values()))
    finally:
        runner.kill()
        runner.communicate()
    assert runner.returncode == -number
