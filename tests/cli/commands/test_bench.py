"""Starting a run: where it is recorded, what its workers get, and what is refused; with simulated workers."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from runner.bench import record
from runner.bench.blocks import samples as recorded_samples
from tests.conftest import command_line
from tests.processes import PATIENCE_S
from tests.simulation import times

# --- several profiles ---


@pytest.fixture
def bench_of(cli, bench_arguments, write_profile, simulation):
    """Measure several profiles against the baseline in one run."""

    def run(names, *options):
        paths = [write_profile(name, f"env:\n  SIMULATED: {name}\n") for name in names]
        arguments = bench_arguments(names[0], *options)
        return cli(arguments[0], *paths, *arguments[2:])

    return run


def test_several_profiles_are_compared_with_one_baseline_side_by_side(bench_of, simulation, instant, run_folder):
    simulation.worker("quick", seconds=times(0.5))
    simulation.worker("slow", seconds=times(1.5))
    result = bench_of(["quick", "slow", "same"], "--blocks", 8)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    for name, verdict in (("quick", ": FASTER"), ("slow", ": SLOWER"), ("same", ": NO DIFFERENCE LARGER THAN 2%")):
        assert [line for line in lines if line.startswith(f"{name} ") and line.endswith(verdict)], name
    table = [line.split()[:2] for line in lines if line.split()[1:2] == ["8"] and not line.startswith("sure")]
    assert table == [[name, "8"] for name in ("baseline", "quick", "slow", "same")]
    assert "in at most 5% of such runs for all of them together" in " ".join(result.stdout.split())
    # every block has all four, in an order of its own
    arms = [event["arm"] for event in recorded_samples(record.read(run_folder))]
    blocks = [arms[start : start + 4] for start in range(0, 32, 4)]
    assert all(sorted(block) == ["baseline", "quick", "same", "slow"] for block in blocks)
    assert len(set(map(tuple, blocks))) > 1


def test_several_profiles_share_one_error_rate(bench_of, simulation, instant, tmp_path):
    """The same times of the same profile: compared together with two others its interval is wider."""
    simulation.worker("mine", seconds=times(0.97))
    found = []
    for names in (["mine"], ["mine", "two", "three"]):
        (simulation.folder / "starts.jsonl").unlink(missing_ok=True)  # each begins with the first of its times again
        options = ("--blocks", 8, "--json", "--output", tmp_path / f"of{len(names)}")
        found.append(json.loads(bench_of(names, *options).stdout)["comparisons"][0]["speedup"])
    alone, together = found
    assert alone["ratio"] == together["ratio"]
    assert together["low"] < alone["low"] < alone["high"] < together["high"]


def test_more_profiles_need_more_blocks_for_an_interval(bench_of, instant, tmp_path):
    assert "interval needs 7 complete blocks (raise --blocks)" in bench_of(["one", "two"], "--blocks", 6).stdout
    assert "interval needs" not in bench_of(["one", "two"], "--blocks", 7, "--output", tmp_path / "again").stdout


def test_a_profile_named_twice_is_measured_once(bench_of, instant, run_folder):
    assert bench_of(["one", "one"], "--blocks", 1).returncode == 0
    assert len(recorded_samples(record.read(run_folder))) == 2


def test_two_profiles_of_one_name_are_refused(refused, write_profile, tmp_path):
    (tmp_path / "other").mkdir()
    paths = [write_profile("mine"), write_profile("mine", folder=tmp_path / "other")]
    assert refused("bench", *paths) == f"envkit: {paths[1]}: two profiles are called 'mine'; rename it"


# --- disks ---


@pytest.fixture
def mounted(tmp_path, bench_arguments, monkeypatch):
    """Measure with the run's folder on a file system of its own, and keep what it holds in the end in ``after``."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))

    def run(options, *arguments):
        folder, after = tmp_path / "mount", tmp_path / "after"
        for made in (folder, after):
            made.mkdir()
        namespaces = ["unshare", "--map-root-user", "--mount"]
        mount = [*namespaces, "mount", "-t", "tmpfs", "none", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("this machine has no user and mount namespaces")
        command = shlex.join(command_line(*bench_arguments("mine", "--output", folder / "run", *arguments)))
        script = (
            f"mount -t tmpfs -o {options} none {folder} && {{ {command}; s=$?; cp -r {folder}/. {after}; exit $s; }}"
        )
        result = subprocess.run(
            [*namespaces, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert "Traceback" not in result.stderr, result.stderr
        return result, after / "run"

    return run


def test_a_read_only_folder(mounted, simulation):
    result, _ = mounted("ro")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("envkit: ")
    assert line.endswith("results can't be written there: Read-only file system; give another folder with --output")
    assert simulation.starts() == []


@pytest.mark.parametrize("kilobytes", [16, 32])
def test_a_disk_that_fills_up(mounted, simulation, kilobytes):
    simulation.worker("mine", seconds=times(0.5))
    result, folder = mounted(f"size={kilobytes}k", "--steps", "100")
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("envkit: ")
    assert "record.jsonl: can't be written: No space left on device; what was recorded is safe: make room" in last
    events = record.read(folder)
    assert (folder / record.FILE_NAME).read_bytes().endswith(b"}\n")
    # all that workers answered is there, but for what found no room
    kept = [event for event in events if event["event"] in ("warm-up", "reference-kernel", "sample")]
    assert len(simulation.starts(all=True)) - 1 - len(kept) in (0, 1)
    assert recorded_samples(events)


def test_a_disk_without_room_for_the_first_line(mounted, simulation, monkeypatch):
    monkeypatch.setenv("BIG", "x" * 2**14)
    result, _ = mounted("size=4k", "--keep-env", "BIG")
    assert result.returncode == 2
    assert "record.jsonl: can't be written: No space left on device" in result.stderr.splitlines()[-1]
    assert simulation.starts() == []


# --- the caller's variables ---


@pytest.fixture
def details(cli, run_folder):
    """The long report."""
    return lambda: cli("report", run_folder, "--details").stdout


def test_variables_that_could_change_the_outcome_are_removed_and_listed(bench, simulation, run_folder, details):
    given = {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "7", "MALLOC_ARENA_MAX": "2", "HARMLESS": "yes"}
    assert bench("mine", "--blocks", 1, **given).returncode == 0
    assert "note     not passed on from your environment: " in details()
    assert all(name in details() for name in list(given)[:3])
    for start in simulation.starts(all=True):
        assert start["environment"].keys() & given.keys() == {"HARMLESS"}
    assert record.read(run_folder)[0]["removed_variables"] == {name: given[name] for name in list(given)[:3]}


def test_a_preload_of_the_caller_is_removed(bench, simulation, details):
    assert bench("mine", "--blocks", 1, LD_PRELOAD="libm.so.6").returncode == 0
    assert "not passed on from your environment: LD_PRELOAD" in details()
    assert not any("LD_PRELOAD" in start["environment"] for start in simulation.starts(all=True))


def test_a_kept_preload_is_in_the_profile_s_workers_too(cli, bench_arguments, simulation, write_profile, run_folder):
    """Behind what the profile preloads; else what a site's tracer costs would be the profile's gain."""
    simulation.inspection(libraries={"jemalloc": {"path": "libc.so.6", "sha256": "0" * 64}})  # which all machines have
    profile, both = write_profile("preloading", "preload: [jemalloc]\n"), "libc.so.6:libm.so.6"
    arguments = bench_arguments("mine", "--keep-env", "LD_PRELOAD", "--blocks", 1)
    result = cli(arguments[0], profile, *arguments[2:], LD_PRELOAD="libm.so.6")
    assert result.returncode == 0, result.stdout
    assert {start["environment"]["LD_PRELOAD"] for start in simulation.starts()} == {"libm.so.6", both}
    assert record.read(run_folder)[0]["environments"]["preloading"]["variables"] == {"LD_PRELOAD": both}


def test_allowed_variables_reach_every_worker_and_are_listed(bench, simulation, details):
    variables = {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "7"}
    assert bench("mine", "--keep-env", "OMP_NUM_THREADS", "--blocks", 1, **variables).returncode == 0
    assert "note     kept from your environment: OMP_NUM_THREADS\n" in details()
    assert "note     not passed on from your environment: KMP_BLOCKTIME\n" in details()
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


def test_a_kept_variable_that_changes_nothing_is_on_no_command_line(bench, simulation, run_folder):
    """It may be a token, which a container would be given on the engine's."""
    kept = {"OMP_NUM_THREADS": "1", "MY_TOKEN": "secret"}
    options = [word for name in kept for word in ("--keep-env", name)]
    assert bench("mine", *options, "--blocks", 1, **kept).returncode == 0
    assert {start["environment"]["MY_TOKEN"] for start in simulation.starts()} == {"secret"}
    commands = json.dumps(record.read(run_folder)[0]["commands"])
    assert ("OMP_NUM_THREADS=1" in commands, "secret" in commands) == (True, False)


def test_allowed_variables_are_those_of_the_start_when_resumed(bench, simulation, cli, run_folder):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine", "--keep-env", "OMP_NUM_THREADS", "--blocks", 1, OMP_NUM_THREADS="1").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    assert cli("bench", "--resume", run_folder, OMP_NUM_THREADS="2").returncode == 0
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


# --- bad input: one line, status 2, nothing recorded ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "bench needs a PROFILE; envkit profiles lists them"),
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
    assert message.startswith(f"envkit: {words}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--budget", "0"), ("--budget", "soon"), ("--half-width", "5"), ("--precision", "5%"), ("--scale", "65"),
     ("--steps", "0"), ("--timeout", "-1"),
     ("--seed", "x"), ("--workload", "bert"), ("--nonsense", "1"), ("--blocks", "0"), ("--blocks", "2.5"),
     ("--margin", "200%"), ("--margin", "0")],
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
    arguments = bench_arguments("mine", "--blocks", 1)
    arguments[arguments.index(simulation.python)] = f"./{simulation.python.name}"
    result = cli(*arguments, cwd=simulation.folder)
    assert (result.returncode, result.stderr.count("envkit: ")) == (0, 0), result.stderr


def test_a_users_profile_that_is_called_like_the_reference_is_not_taken_for_it(refused, write_profile):
    path = write_profile("baseline", "env:\n  OMP_NUM_THREADS: 1\n")
    message = refused("bench", path)
    assert message == f"envkit: {path}: a profile of your own can't be called 'baseline'; rename it"


def test_synthetic_data_is_said_loudly(bench, simulation):
    simulation.worker("mine", does="exit", status=3)
    assert "SYNTHETIC DATA: this is not Fashion-MNIST. Losses and accuracy mean nothing." in bench("mine").stdout


def test_keeping_a_variable_that_is_not_set_is_refused(refused, bench_arguments):
    line = refused(*bench_arguments("mine", "--keep-env", "OMP_NUM_TREADS"))
    assert "--keep-env OMP_NUM_TREADS: it is not set in your environment" in line


@pytest.mark.parametrize("option", [("--steps", 5), ("--budget", "10s"), ("--half-width", "1%")])
def test_what_means_nothing_to_a_full_training_is_refused(refused, bench_arguments, option):
    assert f"{option[0]} means nothing with --full" in refused(*bench_arguments("mine", "--full", *option))


@pytest.mark.parametrize("command", [("bench",), ("submit", "--dry-run")])
def test_blocks_whose_number_is_given_stop_at_no_half_width(refused, command):
    said = "--half-width means nothing with --blocks, which never stops early; leave one of them out"
    assert refused(*command, "intel-omp", "--blocks", 8, "--half-width", "1%") == f"envkit: {said}"


def test_epochs_mean_nothing_without_a_full_training(refused, bench_arguments):
    assert "--epochs 2 means nothing without --full" in refused(*bench_arguments("mine", "--epochs", 2))
