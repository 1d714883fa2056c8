"""Interrupting and resuming a run, and only one at a time; signals with simulated workers that are really started."""

from __future__ import annotations

import signal

import pytest
from envkit.bench import record

from tests.processes import PATIENCE_S, gone, until
from tests.records import samples as recorded_samples
from tests.simulated_worker import inspection
from tests.simulation import times


@pytest.fixture
def samples(run_folder):
    """What is recorded of each sample so far."""

    def read():
        path = run_folder / record.FILE_NAME
        begun = path.exists() and b"\n" in path.read_bytes()
        return recorded_samples(record.read(run_folder)) if begun else []

    return read


@pytest.fixture
def started(start, bench_arguments, simulation, samples):
    """A run that has measured two of three blocks, and whose next worker hangs."""
    simulation.worker("baseline", does="hang", **{"from": 2})
    simulation.worker("mine", seconds=times(0.5), does="hang", **{"from": 2})

    def run(*options):
        process = start(*bench_arguments("mine", "--blocks", 3, *options))
        until(lambda: len(simulation.starts()) == 5 or process.poll() is not None)
        assert (process.poll(), len(samples())) == (None, 4), process.communicate()
        return process

    return run


@pytest.fixture
def resume(simulation, cli, run_folder):
    """Go on with the run, whose workers no longer hang."""

    def run(*options):
        simulation.worker("baseline")
        simulation.worker("mine", seconds=times(0.5))
        return cli("bench", "--resume", run_folder, *options)

    return run


# --- interrupts ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_keeps_what_was_measured_and_says_how_to_go_on(started, simulation, samples, run_folder, number):
    process = started()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == f"envkit: interrupted; continue with: envkit bench --resume {run_folder}"
    assert "Traceback" not in stderr
    assert stdout.startswith("UNFINISHED  mine: ")
    assert f"envkit bench --resume {run_folder}" in stdout
    assert len(samples()) == 4
    assert record.read(run_folder)[-1]["reason"] == "interrupted"
    assert all(gone(one["pid"]) for one in simulation.starts())


@pytest.fixture
def interrupted(bench, simulation, instant):
    """A run that was interrupted in the last of three blocks."""
    simulation.worker("mine", does="interrupt", **{"from": 2})
    assert bench("mine", "--blocks", 3).returncode == 130


def test_interrupted_resumed_and_complete(interrupted, events, resume):
    assert resume().returncode == 0
    kinds = [event["event"] for event in events() if event["event"] not in ("sample", "reference-kernel")]
    assert kinds == ["run", "warm-up", "warm-up", "lengths", "design", "end", "resume", "warm-up", "warm-up", "end"]


@pytest.fixture
def failed_run(bench, simulation, instant, run_folder):
    """The folder of a run whose first sample failed, as none does any more."""
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    return run_folder


def test_a_failed_sample_is_measured_again_on_resume(failed_run, cli):
    result = cli("bench", "--resume", failed_run).ended(0)
    assert "FASTER  " in result.stdout
    assert "Failed    block 1, mine: the worker ended with exit status 3" in result.stdout


# --- resuming what can't be resumed ---


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"packages": {"torch": "2.14.0", "numpy": "2.4.6"}}, "packages.torch was 2.13.0 and is now 2.14.0"),
        ({"libraries": {}}, "libraries.jemalloc was "),
        ({"fingerprint": {**inspection([], {})["fingerprint"], "cpu_numbers": "model 2"}},
         "fingerprint.cpu_numbers was model 1 and is now model 2"),
        ({"python": {"version": "3.12.0"}}, "python."),
    ],
)  # fmt: skip
def test_a_run_is_not_resumed_in_other_surroundings(failed_run, simulation, refused, change, what):
    before = (failed_run / record.FILE_NAME).read_bytes()
    simulation.inspection(**change)
    message = refused("bench", "--resume", failed_run)
    assert what in message
    assert "the samples can't be compared; start a new run" in message
    assert (failed_run / record.FILE_NAME).read_bytes() == before


# --- one at a time ---


def test_reports_can_be_read_while_a_measurement_runs(interrupted, cli, run_folder):
    path = run_folder / record.FILE_NAME
    path.write_text(path.read_text().rpartition('{"event": "end"')[0])
    with record.Record.reopen(run_folder):
        result, details = (cli("report", run_folder, *option) for option in ([], ["--details"]))
    assert result.returncode == 0
    assert result.stdout.startswith("UNFINISHED  mine: ")
    assert "ended     not yet, or killed: continue with --resume" in details.stdout
