"""Training scripts that the kit has never seen, measured by real engines."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.common.errors import InputError
from envkit.engines import apptainer, container, docker, podman
from envkit.engines.base import PROJECT, EngineOptions, Launch
from envkit.engines.setup_messages import HidesImage, Unmountable, UnreadableInside
from envkit.rendering import text
from envkit.worker.request import HostFolder, RunCommand, Train, UserCommand

from tests.engines.conftest import copy_code
from tests.processes import gone, until
from tests.records import problem_of
from tests.refusals import refusal
from tests.worker_runs import of_command


def command_in(folder):
    """Return the request for a user's command in a folder."""
    return RunCommand(UserCommand(("true",), folder))


TRAIN, COMMAND = Train("cnn", "synthetic"), command_in("/home/me")

SCRIPTS = PROJECT / "tests/scripts"
# How each script is started and tells its steps, and how many readings a sample of it has. Small networks are trained
# by one thread: several would wait for each other, and for CPUs that other tests have.
METRICS = {
    "plain_loop.py --steps 20": (["--metric", r"time ([\d.]+) ms", "--unit", "ms", "--warmup-lines", "10"], 10),
    "loader.py --hidden 16": (["--metric", "$.train.step_time"], 40),
    "lightning_log.py --hidden 16": (["--metric", r"([\d.]+)it/s", "--unit", "per-second", "--warmup-lines", "5"], 75),
}
PYTHON = {"local": sys.executable, "docker": "python", "podman": "python", "apptainer": "python"}
# Each script under one engine: inside of a container the same worker reads what it prints. What engines do for a script
# is in these, and in tests of `envkit exec`.
MEASURED = [*zip(METRICS, ("local", "docker", "apptainer"), strict=True)]


@pytest.fixture(scope="module")
def place():
    """A folder for code, scripts and images that a container's ordinary user may write to, whoever runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="envkit-tests-", dir="/var/tmp"))
    copy_code(folder / "project")
    shutil.copytree(SCRIPTS, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tmp").mkdir()
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def measured(cli, place, image_of, tmp_path):
    """Measure a command in the folder of scripts: the result, and the events of the record."""

    def run(engine, profile, command, *options, blocks=1):
        option = "--sif" if engine == "apptainer" else "--image"
        image = [option, image_of(engine)] if engine != "local" else []
        fixed = ["--engine", engine, *image, "--blocks", blocks, "--output", tmp_path / "run"]
        surroundings = {"PYTHONPATH": str(place / "project/runner"), "TMPDIR": str(place / "tmp")}
        given = [*options, "--", *shlex.split(command)]
        result = cli("bench", profile, *fixed, *given, cwd=place / "scripts", **surroundings)
        events = record.read(tmp_path / "run") if (tmp_path / "run").exists() else []
        return result, events

    return run


@pytest.mark.parametrize(("script", "engine"), MEASURED)
def test_a_script_is_measured_and_the_profile_is_in_effect(measured, script, engine):
    metric, readings = METRICS[script]
    result, events = measured(engine, "intel-omp", f"{PYTHON[engine]} {script}", *metric)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " verified in every process" in " ".join(result.stdout.split())
    samples = [event for event in events if event["event"] == "sample"]
    assert len(samples) == 2
    for sample in samples:
        assert len(sample["step_s"]) == readings
        assert all(0 < step < sample["seconds"] for step in sample["step_s"])
        # Apptainer's squashfuse reads the SIF for the script
        assert (sample["usage"].get("engine_s", 0.0) > 0.0) == (engine == "apptainer")
        runtime = sample["evidence"]["openmp"]["runtime"]
        assert runtime == ("intel" if sample["arm"] == "intel-omp" else "gnu")
        assert f"file {script.split()[0]}" in sample["digests"]


# What has the kit's hook leave evidence, and takes no seconds to import.
TORCH = """
class _Tensor:
    def add_(self, number): pass
def zeros(count, device): return _Tensor()
def get_num_threads(): return 1
"""
QUICK_LOOP = """
import time, torch
for step in range(12):
    time.sleep(0.003)
    print(f"step {step} time 2 ms", flush=True)
"""


@pytest.fixture
def complaining(measured, place):
    """Measure a training whose shell script does something first: the result, and the events of the record."""
    folder = place / "scripts" / "complaining"
    folder.mkdir()
    (folder / "torch.py").write_text(TORCH)
    (folder / "loop.py").write_text(QUICK_LOOP)

    def run(profile, first, *options):
        (folder / "run.sh").write_text(f"#!/bin/sh\n{first}\nexec {sys.executable} complaining/loop.py\n")
        metric = ("--metric", r"time (\d+) ms", "--unit", "ms")
        return measured("local", profile, "sh complaining/run.sh", *metric, *options)

    yield run
    shutil.rmtree(folder)


def test_a_complaint_about_what_no_profile_sets_is_a_note(complaining, write_profile, cli, tmp_path):
    """As of a site's library for one command of a script, and of a log of another job that the training shows."""
    missing = "from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored."
    line = f"ERROR: ld.so: object '/opt/site/x.so' {missing}"
    shown = "libgomp: Invalid value for environment variable OMP_PLACES"
    profile = write_profile("arenas", "env:\n  MALLOC_ARENA_MAX: 2\nexpect:\n  malloc.allocator: glibc\n")
    result, events = complaining(profile, f"LD_PRELOAD=/opt/site/x.so date\necho '{shown}'")
    assert result.returncode == 0, result.stdout + result.stderr
    text = " ".join(result.stdout.split())
    assert " verified in every process" in text
    details = " ".join(cli("report", tmp_path / "run", "--details").stdout.split())
    said = 'a library printed "{}", and 1 more it concerns no setting of a profile'
    assert any(said.format(first) in details for first in (line, shown))  # two streams, in either order
    for sample in (event for event in events if event["event"] == "sample"):
        assert {line, shown} <= {*sample["stderr"].splitlines()}


def test_a_complaint_about_what_the_profile_sets_fails_it(complaining, write_profile, cli, tmp_path):
    line = "libgomp: Invalid value for environment variable OMP_PLACES"
    result, _ = complaining(write_profile("places", "env:\n  OMP_PLACES: threads\n"), f"echo '{line}'")
    assert result.returncode == 1
    assert result.stdout.startswith("NOT IN EFFECT  places: ")
    assert line in " ".join(cli("report", tmp_path / "run", "--details").stdout.split())


@pytest.mark.parametrize("engine", ["local", "docker", "podman", "apptainer"])
def test_what_it_writes_belongs_to_the_caller_and_a_metric_that_never_matches(measured, place, engine):
    inside = "touch $HOME/cache && ls /kit/envkit >/dev/null && ! touch /kit/envkit/x 2>/dev/null && "
    script = f"id -u >{engine}.txt && {inside if engine != 'local' else ''}echo step 1 && echo step 2"
    result, events = measured(engine, "baseline", f"sh -c '{script}'", "--in-place", "--metric", "epoch")
    assert result.returncode == 1
    problem = (
        "found no step: the metric 'epoch' matches none of the 2 lines that the command printed, the last being "
        "'step 2'; try it on a line like that (warming up)"
    )
    assert [text(problem_of(event)) for event in events if event["event"] == "failure"] == [problem]
    assert problem in " ".join(result.stdout.split())
    written = place / "scripts" / f"{engine}.txt"
    if engine != "apptainer":  # which may be a wrapper that works as another user
        assert written.read_text().strip() == str(os.getuid())
        assert written.stat().st_uid == os.getuid()


def test_a_program_that_is_not_python_is_not_seen_to_use_the_runtime(measured):
    """What is expected of an OpenMP runtime can't be seen in a shell: no speedup is worked out."""
    result, events = measured("local", "intel-omp", "sh -c 'sleep 0.3'", "--whole-command")
    assert result.returncode == 1
    text = " ".join(result.stdout.split())
    assert text.startswith("NOT IN EFFECT intel-omp")
    assert "openmp.runtime intel not seen" in text
    assert "the command left no evidence of its own" in text
    (sample,) = (event for event in events if event["event"] == "sample" and event["arm"] == "intel-omp")
    assert set(sample["evidence"]["variables"]["preloaded"].values()) == {"mapped"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_of_it_outlives_the_runner(start, tmp_path, number):
    script = "sleep 300 & echo $$ $! > pids.new; mv pids.new pids; wait"
    (tmp_path / "train.sh").write_text(script)
    job = tmp_path / "job.yaml"
    job.write_text("command: sh train.sh\nin_place: true\n")
    runner = start("bench", "baseline", "--workload", job, "--output", tmp_path / "run")
    pids = until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text()).split()
    runner.send_signal(number)
    runner.communicate()
    until(lambda: all(gone(int(pid)) for pid in pids))


# --- how containers are started ---


def test_what_starts_with_numactl_is_allowed_to_place_memory():
    added = {
        command: "--cap-add SYS_NICE" in " ".join(container.run_options(launch, EngineOptions(), rootless=False))
        for command in ("/usr/bin/numactl", "env")
        if (launch := Launch(TRAIN, prefix=(command, "--option")))
    }
    assert added == {"/usr/bin/numactl": True, "env": False}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_root_alone_writes_to_folders_of_others(tmp_path):
    """As it does outside of containers, where sudo started the command in a user's folder."""
    launch = Launch(command_in(str(tmp_path)))
    allowed = []
    for owner in (0, 65534):
        os.chown(tmp_path, owner, owner)
        allowed.append("--cap-add DAC_OVERRIDE" in " ".join(container.run_options(launch, EngineOptions(), False)))
    assert allowed == [False, True]


def test_the_folder_alone_can_be_written_to():
    launch = Launch(command_in("/home/me/training"), variables={"OMP_NUM_THREADS": "2"})
    assert container.mounts(launch) == [
        f"{PROJECT}/runner/envkit:/kit/envkit:ro",
        "/home/me/training:/home/me/training:rw",
    ]
    options = " ".join(container.run_options(launch, EngineOptions(), rootless=False))
    assert f"--user {os.getuid()}:{os.getgid()}" in options
    assert "--network host" in options
    assert "--env HOME=/tmp --env OMP_NUM_THREADS=2" in options
    assert "--user 0:0" in " ".join(container.run_options(launch, EngineOptions(), rootless=True))


@pytest.mark.parametrize("engine", [docker.DockerEngine, podman.PodmanEngine, apptainer.ApptainerEngine])
def test_what_is_passed_on_is_named_alone(engine):
    """Anybody may read a command line."""
    launch = Launch(COMMAND, variables={"A": "1"}, passed_on={"TOKEN": "secret", "A": "2"})
    made = engine.__new__(engine)
    made.given, made._sif, made._rootless = EngineOptions(), Path("x.sif"), False
    made._described = {"image": "x"}
    command = " ".join(made.command(launch))
    assert ("secret" in command, "A=1" in command, "A=2" in command) == (False, True, False)
    assert ("--env TOKEN " in command) == (engine is not apptainer.ApptainerEngine)


def test_a_home_that_is_passed_on_is_the_callers():
    launch = Launch(COMMAND, passed_on={"HOME": "/home/me"})
    options = " ".join(container.run_options(launch, EngineOptions(), rootless=False))
    assert options.endswith("--env HOME")


def test_the_kits_own_workloads_get_no_network_and_write_nothing():
    options = " ".join(
        container.run_options(Launch(Train("cnn", HostFolder("/data/set"))), EngineOptions(), rootless=False)
    )
    assert "--network none" in options
    assert "--user" not in options
    assert ":rw" not in options
    assert "HOME" not in options


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("/", HidesImage),
        ("/usr", HidesImage),
        ("/opt", HidesImage),
        ("/home/me/a:b", Unmountable),
    ],
)
def test_folders_that_cannot_be_mounted(folder, problem):
    found = refusal(container.mounts, Launch(command_in(folder)))
    assert isinstance(found, problem)
    assert found.folder == folder


def test_data_that_cannot_be_mounted():
    found = refusal(container.mounts, Launch(Train("cnn", HostFolder("/scratch/a,b"))))
    assert isinstance(found, Unmountable)
    assert found.folder == "/scratch/a,b"


def test_code_that_is_closed_to_others_is_for_those_who_run_as_the_caller(monkeypatch, tmp_path):
    (tmp_path / "envkit").mkdir(mode=0o700)
    monkeypatch.setattr(container, "PACKAGE", tmp_path / "envkit")
    with pytest.raises(InputError, match=UnreadableInside.code):
        container.run_options(Launch(TRAIN), EngineOptions(), rootless=False)
    assert "--user" in container.run_options(Launch(COMMAND), EngineOptions(), rootless=False)
    made = apptainer.ApptainerEngine.__new__(apptainer.ApptainerEngine)
    made.given, made._sif = EngineOptions(), Path("x.sif")
    assert f"{tmp_path}/envkit:/kit/envkit:ro" in made.command(Launch(TRAIN))


def test_swap_counts_under_every_engine():
    options = EngineOptions(memory="2g")
    assert "--memory 2g --memory-swap 2g" in " ".join(container.limits(options))
    assert " ".join(container.run_options(Launch(TRAIN), options, rootless=False)).count("--memory-swap 2g") == 1


def test_the_document_by_hand(measured, cli, tmp_path):
    """The command that the report gives for one sample runs in a shell."""
    measured("local", "baseline", "sh -c 'echo t=1; echo t=2'", "--metric", r"t=(\d)", "--unit", "us")
    details = cli("report", tmp_path / "run", "--details").stdout
    line = details.split("by hand  (one sample each)\n")[1].splitlines()[0]
    by_hand = subprocess.run(["/bin/sh", "-c", line], cwd="/", capture_output=True, text=True, check=False)
    assert json.loads(by_hand.stdout)["step_s"] == [1e-6, 2e-6]


# Prints a rate, without the words that a rate usually has. With OMP_NUM_THREADS it is 20% faster.
RATE = """
import os, time
for step in range(60):
    begin = time.perf_counter()
    time.sleep(0.010 if os.environ.get("OMP_NUM_THREADS") else 0.012)
    print(f"step {step} done {64 / (time.perf_counter() - begin):.1f}", flush=True)
"""
# Changes from milliseconds to seconds, as others do at a second.
FLIPS = """
import time
for step in range(1, 25):
    begin = time.perf_counter()
    time.sleep(0.03 if step % 2 else 0.05)
    took = time.perf_counter() - begin
    speed = f"{took:.4f} sec/it" if took > 0.04 else f"{1000 * took:.2f} ms/it"
    print(f"Train | {step}/24 | {speed} | Loss 0.5", flush=True)
"""


def test_a_rate_is_not_taken_for_seconds(measured, tmp_path):
    (tmp_path / "rate.py").write_text(RATE)
    command, metric = f"{sys.executable} {tmp_path}/rate.py", ("--metric", r"done (\S+)")
    result, events = measured("local", "baseline", command, *metric)
    assert result.returncode == 1
    (problem,) = (text(problem_of(event)) for event in events if event["event"] == "failure")
    assert problem.startswith("read impossible step times: 60 readings of the metric 'done (\\S+)' would take ")
    assert "--unit per-second" in problem
    assert not [event for event in events if event["event"] == "sample"]
    shutil.rmtree(tmp_path / "run")
    # the script has no OpenMP that would prove the profile, so that the run ends with the profile's first process
    _, events = measured("local", "physical-cores", command, *metric, "--unit", "per-second", blocks=2)
    step_s = {event["arm"]: event["step_s"] for event in events if event["event"] in ("warm-up", "sample")}
    assert statistics.median(step_s["physical-cores"]) < statistics.median(step_s["baseline"])


def test_a_unit_that_changes_with_the_speed_loses_no_step(measured, tmp_path):
    (tmp_path / "flips.py").write_text(FLIPS)
    command = f"{sys.executable} {tmp_path}/flips.py"
    result, events = measured("local", "baseline", command, "--metric", r"([0-9.]+) (?=ms)", "--unit", "ms")
    assert result.returncode == 1
    (problem,) = (text(problem_of(event)) for event in events if event["event"] == "failure")
    assert problem.startswith("read only a part of the steps: ")
    assert "lines have sec/it where the metric" in problem
    mend = re.search("--metric '(.*)' --unit auto", problem)[1]
    shutil.rmtree(tmp_path / "run")
    result, events = measured("local", "baseline", command, "--metric", mend, "--unit", "auto")
    assert result.returncode == 0, result.stdout + result.stderr
    (sample,) = (event for event in events if event["event"] == "sample")
    # a metric with both words of the unit reads what each step says, without --unit auto too
    how = {"metric": r"([0-9.]+) ms/it", "unit": "ms"}
    by_worker = of_command(tmp_path, argv=(sys.executable, tmp_path / "flips.py"), **how)
    for found in (sample, json.loads(by_worker.stdout)):
        assert len(found["step_s"]) == 24
        assert all(took >= 0.03 for took in found["step_s"])
        assert sum(took >= 0.05 for took in found["step_s"]) >= 12
