"""Starting, interrupting and resuming a run, with simulated workers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner import measure, record
from tests.conftest import command_line
from tests.processes import PATIENCE_S, gone, until
from tests.simulation import times


@pytest.fixture
def samples(run_folder):
    """What is recorded of each sample so far."""

    def read():
        path = run_folder / record.FILE_NAME
        begun = path.exists() and b"\n" in path.read_bytes()
        return measure.samples(record.read(run_folder)) if begun else []

    return read


@pytest.fixture
def started(start, bench_arguments, simulation, samples):
    """A run that has measured four samples and goes on, each worker taking a moment."""
    simulation.worker("baseline", delay=0.05)
    simulation.worker("mine", seconds=times(0.5), delay=0.05)

    def run(*options):
        process = start(*bench_arguments("mine", *options))
        until(lambda: len(samples()) >= 4 or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process

    return run


def keys(events):
    return [(event["block"], event["arm"]) for event in events]


# --- interrupts ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_keeps_what_was_measured_and_says_how_to_go_on(started, samples, run_folder, number):
    process = started()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == f"runner: interrupted; go on with: runner bench --resume {run_folder}"
    assert "Traceback" not in stderr
    assert "ended    interrupted" in stdout
    assert len(samples()) >= 4
    assert record.read(run_folder)[-1]["reason"] == "interrupted"


def test_interrupted_while_a_worker_hangs_leaves_no_worker(start, bench_arguments, simulation):
    simulation.worker("mine", does="hang")
    process = start(*bench_arguments("mine"))
    until(lambda: "mine" in [one["name"] for one in simulation.starts()])
    process.send_signal(signal.SIGINT)
    assert (process.wait(PATIENCE_S), process.stderr.read().splitlines()[-1][:20]) == (130, "runner: interrupted;")
    assert all(gone(one["pid"]) for one in simulation.starts())


def test_killed_and_resumed(started, simulation, samples, run_folder, cli):
    process = started()
    process.kill()
    process.wait()
    earlier = samples()
    assert cli("report", run_folder).returncode == 0
    result = cli("bench", "--resume", run_folder, "--json")
    assert result.returncode == 0
    later = samples()
    assert later[: len(earlier)] == earlier
    assert len(set(keys(later))) == len(later)
    document = json.loads(result.stdout)
    assert sum(one["samples"] for one in document["measured"]) == len(later)
    assert document["comparisons"][0]["verdict"] == "faster"
    assert document["ended"] == "precise enough"
    # one worker was running when the runner was killed; no other was started in vain
    assert len(simulation.starts()) - len(later) in (0, 1)


def test_killed_leaves_no_worker(start, bench_arguments, simulation):
    simulation.worker("mine", does="hang")
    process = start(*bench_arguments("mine"))
    until(lambda: "mine" in [one["name"] for one in simulation.starts()])
    process.kill()
    process.wait()
    until(lambda: gone(simulation.starts()[-1]["pid"]))


def test_a_line_cut_short_by_the_kill_is_measured_again(started, samples, run_folder, cli):
    process = started()
    process.kill()
    process.wait()
    path = run_folder / record.FILE_NAME
    os.truncate(path, path.read_bytes().rstrip(b"\n").rfind(b"\n") + 30)
    earlier = samples()
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert samples()[: len(earlier)] == earlier
    assert len(set(keys(samples()))) == len(samples())


def test_interrupted_resumed_and_complete(started, run_folder, cli):
    process = started()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert cli("bench", "--resume", run_folder).returncode == 0
    kinds = [event["event"] for event in record.read(run_folder) if event["event"] != "sample"]
    assert kinds == ["run", "end", "resume", "end"]
    # a complete run has nothing left to measure
    before = len(record.read(run_folder))
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert len(record.read(run_folder)) == before + 2


def test_a_failed_sample_is_measured_again_on_resume(bench, simulation, run_folder, cli):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    result = cli("bench", "--resume", run_folder)
    assert result.returncode == 0
    assert ": FASTER" in result.stdout
    assert "FAILED   block 1, mine: the worker ended with exit status 3" in result.stdout


# --- resuming what can't be resumed ---


@pytest.fixture
def failed_run(bench, simulation, run_folder):
    """The folder of a run whose first sample failed."""
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    return run_folder


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["baseline"], "PROFILE"),
        (["--seed", "5"], "--seed"),
        (["--budget", "60s"], "--budget"),
        (["--precision", "1%"], "--precision"),
        (["--timeout", "9s"], "--timeout"),
        (["--steps", "9"], "--steps"),
        (["--warmup-steps", "9"], "--warmup-steps"),
        (["--workload", "cnn"], "--workload"),
        (["--engine", "local"], "--engine"),
        (["--python", sys.executable], "--python"),
        (["--data", "synthetic"], "--data"),
        (["--keep-env", "X"], "--keep-env"),
        (["--output", "x"], "--output"),
        (["--full"], "--full"),
    ],
)
def test_a_resumed_run_keeps_its_settings(refused, tmp_path, option, named):
    message = f"runner: {named} can't be given with --resume: the run keeps the settings it was started with"
    assert refused("bench", *option, "--resume", tmp_path) == message


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"packages": {"torch": "2.14.0", "numpy": "2.4.6"}}, "packages.torch was 2.13.0 and is now 2.14.0"),
        ({"libraries": {}}, "libraries.jemalloc was "),
        ({"python": {"version": "3.12.0"}}, "python."),
    ],
)
def test_a_run_is_not_resumed_in_other_surroundings(failed_run, simulation, refused, change, what):
    run_folder = failed_run
    before = (run_folder / record.FILE_NAME).read_bytes()
    simulation.inspection(**change)
    message = refused("bench", "--resume", run_folder)
    assert what in message
    assert "samples of both can't be compared; start a new run" in message
    assert (run_folder / record.FILE_NAME).read_bytes() == before


def test_resuming_a_folder_without_a_run(refused, tmp_path):
    assert refused("bench", "--resume", tmp_path).endswith(
        "record.jsonl: can't be read: No such file or directory; give the folder of a run"
    )


# --- one at a time ---


def test_a_second_measurement_on_the_machine_is_refused(started, refused, simulation, tmp_path):
    process = started()
    begun = len(simulation.starts())
    message = refused("bench", "baseline", "--output", tmp_path / "other")
    assert message == (
        f"runner: another measurement runs on this machine (process {process.pid}); both would be spoilt: wait for it"
    )
    assert not (tmp_path / "other").exists()
    assert {one["name"] for one in simulation.starts()[begun:]} <= {"baseline", "mine"}


def test_reports_can_be_read_while_a_measurement_runs(started, cli, run_folder):
    started()
    result = cli("report", run_folder)
    assert result.returncode == 0
    assert "ended    not yet, or killed: continue with --resume" in result.stdout


def test_a_record_is_not_resumed_while_it_is_written_from_elsewhere(started, refused, run_folder, tmp_path):
    """With another temporary folder the machine's lock is another one; the record has its own."""
    started()
    message = refused("bench", "--resume", run_folder, TMPDIR=str(tmp_path))
    assert (
        message
        == f"runner: {run_folder}/record.jsonl: another runner is writing to it; wait for it, or give another folder"
    )


def test_a_second_run_in_the_same_folder_is_refused(bench, simulation, run_folder):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    before = (run_folder / record.FILE_NAME).read_bytes()
    begun = len(simulation.starts())
    result = bench("mine")
    assert result.returncode == 2
    assert result.stderr == (
        f"runner: {run_folder}/record.jsonl: holds a run already; continue it with --resume {run_folder}, "
        "or give another folder\n"
    )
    assert (run_folder / record.FILE_NAME).read_bytes() == before
    assert len(simulation.starts()) == begun


# --- disks ---


@pytest.fixture
def mounted(tmp_path, bench_arguments, monkeypatch):
    """Measure with the run's folder on a file system of its own, and keep what it holds in the end in ``after``."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def run(options, *arguments):
        folder, after = tmp_path / "mount", tmp_path / "after"
        for made in (folder, after):
            made.mkdir()
        command = shlex.join(command_line(*bench_arguments("mine", "--output", folder / "run", *arguments)))
        script = (
            f"mount -t tmpfs -o {options} none {folder} && {{ {command}; s=$?; cp -r {folder}/. {after}; exit $s; }}"
        )
        result = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
        )  # fmt: skip
        if "unshare" in result.stderr or "mount:" in result.stderr:
            pytest.skip(f"this machine has no user and mount namespaces: {result.stderr.strip()}")
        assert "Traceback" not in result.stderr, result.stderr
        return result, after / "run"

    return run


def test_a_read_only_folder(mounted, simulation):
    result, _ = mounted("ro")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("runner: ")
    assert line.endswith("results can't be written there: Read-only file system; give another folder with --output")
    assert simulation.starts() == []


@pytest.mark.parametrize("kilobytes", [16, 32])
def test_a_disk_that_fills_up(mounted, simulation, kilobytes):
    simulation.worker("mine", seconds=times(0.5))
    result, folder = mounted(f"size={kilobytes}k", "--steps", "100")
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("runner: ")
    assert "record.jsonl: can't be written: No space left on device; what was recorded is safe: make room" in last
    events = record.read(folder)
    assert (folder / record.FILE_NAME).read_bytes().endswith(b"}\n")
    # all that was measured is there, but for the sample that found no room
    assert len(measure.samples(events)) == len(simulation.starts()) - 1 > 0


def test_a_disk_without_room_for_the_first_line(mounted, simulation, monkeypatch):
    monkeypatch.setenv("BIG", "x" * 2**14)
    result, _ = mounted("size=4k", "--keep-env", "BIG")
    assert result.returncode == 2
    assert "record.jsonl: can't be written: No space left on device" in result.stderr.splitlines()[-1]
    assert simulation.starts() == []


# --- the caller's variables ---


def test_variables_that_could_change_the_outcome_are_removed_and_listed(bench, simulation, run_folder):
    simulation.worker("mine", does="exit", status=3)
    given = {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "7", "MALLOC_ARENA_MAX": "2", "HARMLESS": "yes"}
    result = bench("mine", **given)
    assert "note     not passed on from your environment: " in result.stdout
    assert all(name in result.stdout for name in list(given)[:3])
    for start in simulation.starts():
        assert start["environment"].keys() & given.keys() == {"HARMLESS"}
    assert record.read(run_folder)[0]["removed_variables"] == {name: given[name] for name in list(given)[:3]}


def test_a_preload_of_the_caller_is_removed(bench, simulation):
    simulation.worker("mine", does="exit", status=3)
    result = bench("mine", LD_PRELOAD="libm.so.6")
    assert "not passed on from your environment: LD_PRELOAD" in result.stdout
    assert not any("LD_PRELOAD" in start["environment"] for start in simulation.starts())


def test_kept_variables_reach_every_worker_and_are_listed(bench, simulation):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--keep-env", "OMP_NUM_THREADS", OMP_NUM_THREADS="1", KMP_BLOCKTIME="7")
    assert result.returncode == 0
    assert "note     kept from your environment: OMP_NUM_THREADS\n" in result.stdout
    assert "note     not passed on from your environment: KMP_BLOCKTIME\n" in result.stdout
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


def test_kept_variables_are_those_of_the_start_when_resumed(bench, simulation, cli, run_folder):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine", "--keep-env", "OMP_NUM_THREADS", OMP_NUM_THREADS="1").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    assert cli("bench", "--resume", run_folder, OMP_NUM_THREADS="2").returncode == 0
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


# --- bad input: one line, status 2, nothing recorded ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "bench needs a PROFILE; there are: baseline, "),
        (["inetl-omp"], "no profile 'inetl-omp' in "),
        (["baseline", "--engine", "dokcer"], "no engine 'dokcer'; there are: local, docker, "),
        (["baseline", "--python", "/no/python"], "--python /no/python: no such executable; give an interpreter, for "),
        (["baseline", "--python", "/bin/false"], "/bin/false: the worker ended with exit status 1"),
        (["baseline", "--python", "/bin/true"], "/bin/true: "),
        (["baseline", "--python", "/bin/echo"], "/bin/echo: "),
        (["baseline", "--data", "/no/folder"], "--data /no/folder: /no/folder: no such folder; give a folder with"),
        (["baseline", "--image", "x"], "--image means nothing to the engine local; leave it out"),
        (["baseline", "--cpuset-cpus", "0"], "--cpuset-cpus means nothing to the engine local; leave it out"),
    ],
)
def test_bad_input(refused, tmp_path, arguments, words):
    message = refused("bench", *arguments, "--output", tmp_path / "run")
    assert message.startswith(f"runner: {words}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--budget", "0"), ("--budget", "soon"), ("--precision", "5"), ("--steps", "0"), ("--timeout", "-1"),
     ("--seed", "x"), ("--workload", "bert"), ("--nonsense", "1")],
)  # fmt: skip
def test_bad_options_name_the_option(cli, option, value):
    result = cli("bench", "baseline", option, value)
    assert result.returncode == 2
    assert option in result.stderr.splitlines()[-1]
    assert result.stdout == ""


def test_an_interpreter_without_torch(refused, simulation, tmp_path):
    simulation.inspection(packages={"torch": None})
    message = refused("bench", "baseline", "--python", simulation.python, "--output", tmp_path / "run")
    assert message.endswith("/python: has no torch; install it there, or name another interpreter with --python")
    assert not (tmp_path / "run").exists()


def test_a_missing_library_and_a_missing_prefix_command(bench):
    result = bench("mine", text="preload: [mimalloc]\n")
    assert result.returncode == 2
    assert "profile 'mine' preloads mimalloc, which is not installed (looked in /sim/lib, /usr/lib)" in result.stderr
    result = bench("mine", text="prefix: [no-such-command]\n")
    assert result.returncode == 2
    assert "profile 'mine' starts workers with 'no-such-command', which is not installed" in result.stderr


def test_an_interpreter_may_be_named_relative_to_the_users_folder(cli, bench_arguments, simulation):
    simulation.worker("mine", seconds=times(0.5))
    arguments = bench_arguments("mine")
    arguments[arguments.index(simulation.python)] = f"./{simulation.python.name}"
    result = cli(*arguments, cwd=simulation.folder)
    assert (result.returncode, result.stderr.count("runner: ")) == (0, 0), result.stderr


def test_a_users_profile_that_is_called_like_the_reference_is_not_taken_for_it(
    cli, bench_arguments, write_profile, simulation
):
    arguments = bench_arguments("mine", "--budget", "1s")
    arguments[1] = write_profile("baseline", "env:\n  OMP_NUM_THREADS: 1\n")
    result = cli(*arguments)
    threads = {start["environment"].get("OMP_NUM_THREADS") for start in simulation.starts()}
    assert result.returncode == 2 or threads == {None, "1"}


def test_synthetic_data_is_said_loudly(bench, simulation):
    simulation.worker("mine", does="exit", status=3)
    assert "SYNTHETIC DATA: this is not Fashion-MNIST. Losses and accuracy mean nothing." in bench("mine").stdout


def test_keeping_a_variable_that_is_not_set_is_refused(refused, bench_arguments):
    line = refused(*bench_arguments("mine", "--keep-env", "OMP_NUM_TREADS"))
    assert "--keep-env OMP_NUM_TREADS: it is not set in your environment" in line


@pytest.mark.parametrize("option", [("--steps", 5), ("--budget", "10s"), ("--precision", "1%")])
def test_what_means_nothing_to_a_full_training_is_refused(refused, bench_arguments, option):
    assert f"{option[0]} means nothing with --full" in refused(*bench_arguments("mine", "--full", *option))
