"""Starting a run: where it is recorded, what its workers get, and what is refused; with simulated workers."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.common import user_key
from envkit.worker.request import Train, WorkerRequest, read

from tests.records import samples as recorded_samples
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


def test_more_profiles_need_more_blocks_for_an_interval_which_is_said_before_anything_is_measured(
    bench_of, instant, tmp_path
):
    result = bench_of(["one", "two"], "--blocks", 6)
    assert "Next      repeat the command with --blocks 7" in result.stdout
    before = "--blocks 6: 2 comparisons can have no verdict with fewer than 7; whether settings take effect is still"
    assert result.stderr.startswith(before)
    again = bench_of(["one", "two"], "--blocks", 7, "--output", tmp_path / "again")
    assert "interval needs" not in again.stdout
    assert "can have no verdict" not in again.stderr


def test_a_profile_named_twice_is_measured_once(bench_of, instant, run_folder):
    assert bench_of(["one", "one"], "--blocks", 1).returncode == 0
    assert len(recorded_samples(record.read(run_folder))) == 2


def test_two_profiles_of_one_name_are_refused(refused, write_profile, tmp_path):
    (tmp_path / "other").mkdir()
    paths = [write_profile("mine"), write_profile("mine", folder=tmp_path / "other")]
    assert refused("bench", *paths) == f"envkit: {paths[1]}: two profiles are called 'mine'; rename it"


# --- disks; tests/reliability fills a real one ---


@pytest.mark.parametrize(
    ("room", "lost", "fix"),
    [(1, 0, "make room, then start it again"), (10, 1, "what was recorded is safe: make room, then envkit bench ")],
    ids=["before the first line", "while it measures"],
)
def test_a_disk_that_fills_up(bench, simulation, instant, run_folder, monkeypatch, room, lost, fix):
    """All that workers answered is recorded, but for what found no room. A run that has not begun can't go on."""
    flushed = iter(range(room))  # the folder, and then each line
    user_key.find_or_make()

    def flush(descriptor):
        if "/requests" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):  # what the record names, before it does
            return
        if next(flushed, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", flush)
    result = bench("mine").ended(2)
    said = result.stderr.splitlines()[-1]
    assert f"record.jsonl: can't be written: No space left on device; {fix}" in said
    assert (f"--resume {run_folder}" in said) == (room > 1)
    lines = (run_folder / record.FILE_NAME).read_text().splitlines(keepends=True)
    assert (len(lines), all(line.endswith("}\n") for line in lines)) == (room - 1, True)
    kinds = [json.loads(line)["event"] for line in lines]
    kept = [kind for kind in kinds if kind in ("warm-up", "reference-kernel", "sample")]
    assert len(simulation.starts(all=True)) - 1 - len(kept) == lost  # one start is to look into the image


# --- the caller's variables ---


@pytest.fixture
def details(cli, run_folder):
    """The long report."""
    return lambda: cli("report", run_folder, "--details").stdout


def test_variables_that_could_change_the_outcome_are_removed_and_listed(bench, simulation, run_folder, details):
    given = {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "7", "MALLOC_ARENA_MAX": "2", "LD_PRELOAD": "libm.so.6"}
    assert bench("mine", "--blocks", 1, **given, HARMLESS="yes").returncode == 0
    assert "variables  not passed on from your environment: " in details()
    assert all(name in details() for name in given)
    for start in simulation.starts(all=True):
        assert start["environment"].keys() & {*given, "HARMLESS"} == {"HARMLESS"}
    assert record.first(run_folder)["removed_variables"] == sorted(given)


def test_a_kept_preload_is_in_the_profile_s_workers_too(cli, bench_arguments, simulation, write_profile, run_folder):
    """Behind what the profile preloads; else what a site's tracer costs would be the profile's gain."""
    simulation.inspection(libraries={"jemalloc": {"path": "libc.so.6", "sha256": "0" * 64}})  # which all machines have
    profile, both = write_profile("preloading", "preload: [jemalloc]\n"), "libc.so.6:libm.so.6"
    arguments = bench_arguments("mine", "--keep-env", "LD_PRELOAD", "--blocks", 1)
    cli(arguments[0], profile, *arguments[2:], LD_PRELOAD="libm.so.6").ended(0)
    assert {start["environment"]["LD_PRELOAD"] for start in simulation.starts()} == {"libm.so.6", both}
    first = record.first(run_folder)  # which has what is the profile's, and not what is the caller's
    assert first["environments"]["preloading"]["variables"] == {"LD_PRELOAD": "libc.so.6"}
    assert 'LD_PRELOAD=libc.so.6:"$LD_PRELOAD" ' in first["commands"]["preloading"]
    assert "libm.so.6" not in (run_folder / record.FILE_NAME).read_text()


def test_a_kept_list_is_joined_and_a_key_of_the_profile_s_counts_for_no_arm(
    cli, bench_arguments, simulation, instant, write_profile, run_folder
):
    own, theirs = "glibc.malloc.trim_threshold=4096", "glibc.rtld.optional_static_tls=8192"
    profile = write_profile("joins", f"env:\n  GLIBC_TUNABLES: {own}\n")
    arguments = bench_arguments("mine", "--keep-env", "GLIBC_TUNABLES", "--blocks", 1)
    kept = f"{theirs}:glibc.malloc.trim_threshold=8192"
    result = cli(arguments[0], profile, *arguments[2:], GLIBC_TUNABLES=kept).ended(0)
    assert {start["environment"]["GLIBC_TUNABLES"] for start in simulation.starts()} == {theirs, f"{theirs}:{own}"}
    first = record.first(run_folder)
    assert first["environments"]["joins"]["variables"] == {"GLIBC_TUNABLES": own}
    assert f'GLIBC_TUNABLES="$GLIBC_TUNABLES":{own} ' in first["commands"]["joins"]
    assert theirs not in (run_folder / record.FILE_NAME).read_text()
    said = "passed on to baseline and profiles alike: GLIBC_TUNABLES; left out glibc.malloc.trim_threshold"
    assert said in result.stderr


def test_allowed_variables_reach_every_worker_and_are_listed(bench, simulation, instant, details):
    variables = {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "7"}
    assert bench("mine", "--keep-env", "OMP_NUM_THREADS", "--blocks", 1, **variables).returncode == 0
    assert "variables  kept from your environment: OMP_NUM_THREADS\n" in details()
    assert "not passed on from your environment: KMP_BLOCKTIME\n" in details()
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


def test_a_kept_variable_that_changes_nothing_is_on_no_command_line(bench, simulation, run_folder):
    """It may be a token, which a container would be given on the engine's."""
    kept = {"OMP_NUM_THREADS": "1", "MY_TOKEN": "secret"}
    options = [word for name in kept for word in ("--keep-env", name)]
    assert bench("mine", *options, "--blocks", 1, **kept).returncode == 0
    assert {start["environment"]["MY_TOKEN"] for start in simulation.starts()} == {"secret"}
    commands = json.dumps(record.first(run_folder)["commands"])
    assert ('OMP_NUM_THREADS=\\"$OMP_NUM_THREADS\\"' in commands, "secret" in commands) == (True, False)


def test_the_request_that_a_recorded_command_reads_is_beside_the_record(bench, simulation, instant, run_folder):
    """Arms that train the same share a file, which nobody else can read, and which is valid."""
    assert bench("mine", "--warmup-steps", 4, "--blocks", 1).returncode == 0
    commands = record.first(run_folder)["commands"]
    (file,) = {Path(command.rpartition(" - < ")[2]) for command in commands.values()}
    assert (file.parent, commands.keys()) == (run_folder / "requests", {"baseline", "mine"})
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert read(str(file)) == WorkerRequest(Train("cnn", "synthetic", warmup_steps=4, steps=3))
    assert [*file.parent.iterdir()] == [file]


def test_allowed_variables_are_those_of_the_start_when_resumed(bench, simulation, instant, cli, refused, run_folder):
    """Their values come from the environment again, as they are in no record; another one is noticed all the same."""
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine", "--keep-env", "OMP_NUM_THREADS", "--blocks", 1, OMP_NUM_THREADS="1").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    assert refused("bench", "--resume", run_folder, OMP_NUM_THREADS="2") == (
        f"envkit: --resume {run_folder}: OMP_NUM_THREADS has another value in your environment than when the run "
        "began: the samples can't be compared; set it as it was, or start a new run"
    )
    assert refused("bench", "--resume", run_folder) == (
        f"envkit: --resume {run_folder}: OMP_NUM_THREADS: the run keeps it, and it is not set in your environment; "
        "set it as it was when the run began"
    )
    assert cli("bench", "--resume", run_folder, OMP_NUM_THREADS="1").returncode == 0
    assert {start["environment"]["OMP_NUM_THREADS"] for start in simulation.starts()} == {"1"}


# --- bad input: one line, status 2, nothing recorded ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["baseline", "--python", "/bin/false"], "/bin/false: the worker ended with exit status 1"),
        (["baseline", "--python", "/bin/true"], "/bin/true: "),
        (["baseline", "--python", "/bin/echo"], "/bin/echo: "),
    ],
)
def test_bad_input(refused, run_folder, arguments, said):
    assert refused("bench", *arguments, "--output", run_folder).startswith(f"envkit: {said}")
    assert not run_folder.exists()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--precision", "1%",
         "'1%' is not a number format; choose one of: fp32, bf16-autocast (the width of the interval is --half-width)"),
        ("--device", "gpu",
         "'gpu' is not a device; give cpu or cuda; CUDA_VISIBLE_DEVICES says which GPU is the first"),
        ("--backend", "mpi", "no backend 'mpi'; choose one of: gloo, nccl"),
    ],
)  # fmt: skip
def test_words_that_there_are_not(cli, option, value, said):
    result = cli("bench", "baseline", option, value).ended(2)
    assert result.stderr.splitlines()[-1].endswith(said)


def test_an_interpreter_without_torch(refused, bench_arguments, simulation, run_folder):
    simulation.inspection(packages={"torch": None})
    said = "/python: has no torch; name the Python that trains, with torch "
    assert said in refused(*bench_arguments("baseline"))
    assert not run_folder.exists()


def test_a_profile_of_ones_own_is_not_called_like_the_reference(refused, write_profile):
    path = write_profile("baseline", "env:\n  OMP_NUM_THREADS: 1\n")
    assert refused("bench", path) == f"envkit: {path}: a profile of your own can't be called 'baseline'; rename it"
