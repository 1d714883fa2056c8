"""What a record may decide when it is gone on with: everything with this user's seal, and nothing that runs without."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest
from envkit.bench import record, seal
from envkit.common import user_key
from envkit.engines.local import LocalEngine

from tests.cli.commands.conftest import words
from tests.instant_engine import replace_engine
from tests.sessions import rewrite
from tests.simulation import times


@pytest.fixture
def interrupted(bench, simulation, instant, run_folder):
    """A run that was interrupted in its fourth block, by workers that go on now; its folder."""
    simulation.worker("mine", seconds=times(0.5), does="interrupt", **{"from": 3})
    assert bench("mine").returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    return run_folder


@pytest.fixture
def script(tmp_path):
    """A program, and the file by which it says that it ran."""
    path, ran = tmp_path / "script", tmp_path / "ran"
    path.write_text(f"#!/bin/sh\ntouch {ran}\n")
    path.chmod(0o755)
    return path, ran


@pytest.fixture
def really(monkeypatch, interrupted):
    """Have the local engine start processes from here on, as it does for users."""
    replace_engine(monkeypatch, "local", LocalEngine)
    return interrupted


def python(program):
    return lambda run: run["study"]["engine_options"].update(python=program)


def prefix(program):
    return lambda run: run["environments"]["baseline"].update(prefix=[program])


def preload(program):
    return lambda run: run["environments"]["mine"]["variables"].update(LD_PRELOAD=program)


def command(program):
    def change(run):
        own = {"argv": [program], "folder": "/tmp", "metric": None, "unit": "s", "warmup_lines": 0,
               "loss_metric": None, "optimizer_steps": None}  # fmt: skip
        run["study"]["user_command"] = own

    return change


@pytest.mark.parametrize("change", [python, prefix, preload, command])
def test_nothing_that_an_edited_record_names_is_run(really, refused, script, change):
    program, ran = script
    rewrite(really, change(str(program)))
    before = (really / record.FILE_NAME).read_bytes()
    assert refused("bench", "--resume", really) == (
        f"envkit: --resume {really}: the record lacks your seal (another user or machine made it, or it was "
        "edited), so it can't say what to run; give the whole command again: envkit bench PROFILE OPTIONS --resume "
        f"{really}"
    )
    assert (ran.exists(), (really / record.FILE_NAME).read_bytes() == before) == (False, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (python, "engine_options.python was {} and is now "),
        (prefix, "environments.baseline.prefix was "),
        (preload, "environments.mine.variables.LD_PRELOAD was {} and is now missing"),
        (command, "user_command was "),
    ],
)
def test_nor_by_the_command_given_again(really, cli, bench_arguments, script, change, said):
    program, ran = script
    rewrite(really, change(str(program)))
    result = cli(*bench_arguments("mine"), "--resume", really).ended(2)
    assert said.format(program) in result.stderr
    assert "lacks your seal" in result.stderr
    assert not ran.exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"engines": {}}, "its engines were none, and are now local; start a new run"),
        ({"findings": 5}, "the record can't be used"),
        ({"removed_variables": 5}, "the record can't be used"),
        ({"data_source": None, "findings": {"a": 1}}, "the record can't be used"),
    ],
)
def test_what_could_not_be_reported_is_refused_before_more_is_measured(
    interrupted, bench_arguments, cli, simulation, changed, said
):
    rewrite(interrupted, lambda run: run.update(changed))
    before = len(simulation.starts(all=True))
    result = cli(*bench_arguments("mine"), "--resume", interrupted)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert said in result.stderr
    assert len(simulation.starts(all=True)) <= before + 1  # the image is looked into


def test_a_bad_key_leaves_no_folder_behind(refused, bench_arguments, run_folder):
    user_key.find_or_make()
    user_key.path().chmod(0o644)
    assert "is open to other users" in refused(*bench_arguments("mine"))
    assert not run_folder.exists()


def test_another_users_record_says_nothing(interrupted, refused, tmp_path):
    other = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert "lacks your seal" in refused("bench", "--resume", interrupted, **other)
    user_key_there = tmp_path / "envkit/record.key"
    assert not user_key_there.exists()


def test_a_key_that_others_can_read_is_refused_before_anything_starts(interrupted, refused, simulation):
    user_key.path().chmod(0o644)
    before = len(simulation.starts(all=True))
    assert refused("bench", "--resume", interrupted).startswith(f"envkit: {user_key.path()}: is open to other users ")
    assert len(simulation.starts(all=True)) == before


@pytest.mark.parametrize("own", [True, False], ids=["sealed", "of another user"])
def test_the_same_command_given_again_goes_on(interrupted, bench_arguments, cli, samples, own):
    if not own:
        user_key.path().unlink()
    before = samples()
    result = cli(*bench_arguments("mine"), "--resume", interrupted).ended(0)
    assert "FASTER  " in result.stdout
    assert samples()[: len(before)] == before
    assert len(samples()) == len({*samples()}) == 12


def test_a_seed_that_was_random_is_the_records(bench_arguments, cli, simulation, instant, run_folder):
    simulation.worker("mine", does="interrupt", **{"from": 3})
    arguments = bench_arguments("mine")
    at = arguments.index("--seed")
    del arguments[at : at + 2]
    assert cli(*arguments).returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    user_key.path().unlink()
    assert cli(*arguments, "--resume", run_folder).returncode == 0
    seed = record.first(run_folder)["study"]["seed"]
    rewrite(run_folder, lambda run: run["study"].update(seed="7; touch x"))
    result = cli(*arguments, "--resume", run_folder)
    assert (result.returncode, type(seed)) == (2, int)
    assert "seed is '7; touch x', and must be a whole number" in result.stderr


@pytest.mark.parametrize("own", [True, False], ids=["sealed", "of another user"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", 8], "seed was 7 and is now 8"),
        (["--blocks", 7], "stopping.blocks was 6 and is now 7"),
        (["--steps", 4], "workloads.cnn.steps was 3 and is now 4"),
        (["--channels-last"], "options.channels_last was false and is now true"),
        (["--timeout", "60s", "--margin", "1%"],
         "stopping.margin was 0.02 and is now 0.01; stopping.timeout_s was 300.0 and is now 60.0"),
        (["--keep-env", "MY_TOKEN"], 'kept variables was [] and is now ["MY_TOKEN"]'),
    ],
)  # fmt: skip
def test_what_differs_is_named(interrupted, bench_arguments, cli, simulation, options, said, own):
    if not own:
        user_key.path().unlink()
    before = (interrupted / record.FILE_NAME).read_bytes()
    result = cli(*bench_arguments("mine"), *options, "--resume", interrupted, MY_TOKEN="x")
    unsealed = "" if own else "lacks your seal (another user or machine made it, or it was edited), and "
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"envkit: --resume {interrupted}: the record {unsealed}differs from the command that was given: {said}; "
        "give the record's own command, or start a new run\n"
    )
    assert (interrupted / record.FILE_NAME).read_bytes() == before


def test_another_profile_is_named(interrupted, bench_arguments, cli):
    result = cli(*bench_arguments("mine", text="numerics: may-differ\n"), "--resume", interrupted).ended(2)
    assert "environments.mine.numerics was same and is now may-differ" in result.stderr


def test_options_alone_are_no_command(interrupted, refused):
    assert refused("bench", "--resume", interrupted, "--seed", 7) == (
        "envkit: --seed can be given with --resume only if the whole command is given again; add the PROFILE and "
        "its options, or give --resume alone"
    )


def test_another_output_is_refused(interrupted, bench_arguments, refused, tmp_path):
    line = refused(*bench_arguments("mine"), "--output", tmp_path / "other", "--resume", interrupted)
    assert line.startswith(f"envkit: --output {tmp_path}/other: the run continues in {interrupted} (--resume)")


def later(kind, **fields):
    """Change the fixed numbers of a run, which stand after the event that is sealed."""

    def change(folder):
        path = folder / record.FILE_NAME
        events = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps({**one, **(fields if one["event"] == kind else {})}) + "\n" for one in events)
        )

    return change


@pytest.mark.parametrize(
    "change",
    [
        later("lengths", together="9"),
        later("lengths", together=10**6),
        later("lengths", skipped_steps=-1),
        later("lengths", steps={"cnn": "3; touch x"}),
        later("lengths", warmup_steps={"cnn": ["--data", "/"]}),
        later("lengths", steps={"cnn": True}),
    ],
)
def test_lengths_that_are_no_numbers_are_refused(interrupted, refused, simulation, change):
    change(interrupted)
    before = len(simulation.starts())
    said = refused("bench", "--resume", interrupted)
    assert re.search(r"/record\.jsonl(:4)?: is not understood \(", said)
    assert len(simulation.starts()) == before


def test_without_a_place_for_a_key_the_command_is_to_be_given_again(
    bench_arguments, cli, simulation, instant, run_folder
):
    """As in a container, or where the home can't be written to."""
    nowhere = {"XDG_CONFIG_HOME": f"{simulation.python}/no-folder"}
    simulation.worker("mine", does="interrupt", **{"from": 3})
    result = cli(*bench_arguments("mine"), **nowhere)
    assert (result.returncode, record.first(run_folder)[seal.KEY]) == (130, None)
    typed = result.stderr.splitlines()[-1].removeprefix("envkit: interrupted; continue with: ")
    assert typed.endswith(f"--resume {run_folder}")
    simulation.worker("mine", seconds=times(0.5))
    refused = cli("bench", "--resume", run_folder, **nowhere).ended(2, stdout="")
    assert "lacks your seal (it began where you could have no key, or was edited)" in refused.stderr
    assert cli(*typed.split()[1:], **nowhere).returncode == 0


# --- commands that choose what to measure ---


def test_plan_without_options_is_its_own_command_given_again(cli, simulation, instant, run_folder, monkeypatch):
    options = ("plan", "--data", "synthetic", "--steps", 3, "--blocks", 6, "--output", run_folder)
    simulation.worker("baseline", does="interrupt", **{"from": 6})
    assert cli(*options).returncode == 130
    simulation.worker("baseline")
    user_key.path().unlink()
    alone = cli("plan", "--resume", run_folder, "--data", "synthetic")
    assert "stopping.blocks was 6 and is now 0" in alone.stderr
    assert cli(*options, "--resume", run_folder).returncode == 0


@pytest.fixture
def many(cli, simulation, instant, write_profile, run_folder):
    """A matrix that was interrupted, of which one profile was left out when it was tried: its command."""
    for name in ("one", "two", "bad"):
        write_profile(name, f"env:\n  SIMULATED: {name}\n")
    paths = [write_profile(name, f"env:\n  SIMULATED: {name}\n") for name in ("one", "two", "bad")]
    simulation.worker("bad", does="exit", status=3)
    simulation.worker("bad warming", does="exit", status=3)
    simulation.worker("two", does="interrupt", **{"from": 3})
    command = ["matrix", *paths, "--data", "synthetic", "--steps", 3, "--blocks", 8, "--output", run_folder]
    result = cli(*command).ended(130)
    assert "left out bad: its worker ended with exit status 3" in words(result.stderr)
    simulation.worker("two", seconds=times(0.5))
    return command


def test_a_matrix_given_again_tries_nothing_again(many, cli, simulation, run_folder):
    user_key.path().unlink()
    before = len([start for start in simulation.starts(all=True) if start["name"].startswith("bad")])
    cli(*many, "--resume", run_folder).ended(0)
    assert len([start for start in simulation.starts(all=True) if start["name"].startswith("bad")]) == before


def test_a_matrix_of_other_profiles_is_named(many, cli, run_folder):
    user_key.path().unlink()
    result = cli(*many[:2], *many[3:], "--resume", run_folder).ended(2)
    assert "differs from the command that was given: arms was " in result.stderr


def test_a_profile_that_is_taken_apart_is_so_by_the_command_again(
    cli, simulation, instant, write_profile, run_folder, samples
):
    """What was made of it is beside the record, where anybody may have edited it: it is made again."""
    settings = "env:\n  SIMULATED: mine\n  OMP_NUM_THREADS: 2\n  GOMP_SPINCOUNT: 100\n"
    command = ["ablate", write_profile("mine", settings), "--allow-unknown", "--data", "synthetic", "--steps", 3,
               "--blocks", 12, "--output", run_folder]  # fmt: skip
    simulation.worker("mine", does="interrupt", **{"from": 12})
    assert cli(*command).returncode == 130
    simulation.worker("mine", seconds=times(0.5))
    user_key.path().unlink()
    made = sorted((run_folder / "profiles").iterdir())
    for path in made:
        path.write_text(path.read_text().replace("env:", "env:\n  LD_PRELOAD: /tmp/evil.so"))
    cli(*command, "--resume", run_folder).ended(0)
    assert not [start for start in simulation.starts(all=True) if "LD_PRELOAD" in start["environment"]]


# --- what is kept, and for whom ---


SECRET = "s3cr3t-0f-th3-c4ll3r"


def test_a_kept_value_is_given_to_workers_and_recorded_by_its_name(bench, simulation, instant, run_folder):
    """That it is in nothing else that commands print or leave is in test_secrets."""
    simulation.worker("mine", does="exit", status=3, stderr=f"token is {SECRET}\n", **{"from": 1})
    kept = {"MY_TOKEN": SECRET, "OMP_STACKSIZE": f"{SECRET}-too", "LD_PRELOAD": f"/opt/{SECRET}/tracer.so"}
    assert bench("mine", *(word for name in kept for word in ("--keep-env", name)), **kept).returncode == 1
    for start in simulation.starts():
        assert kept.items() <= start["environment"].items()
        assert SECRET not in json.dumps(start["work"])
    assert [path for path in run_folder.rglob("*") if path.is_file() and SECRET in path.read_text()] == []
    text = (run_folder / record.FILE_NAME).read_text()
    assert "token is $MY_TOKEN" in text
    assert record.first(run_folder)["allowed_variables"].keys() == kept.keys()


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_what_a_run_leaves_is_for_its_user_alone(interrupted, bench, cli, simulation, tmp_path, mask, undrawn):
    simulation.worker("mine", seconds=times(0.5))
    before = os.umask(mask)
    try:
        folder, page = tmp_path / "new/run", tmp_path / "page.html"
        assert bench("mine", "--output", folder).returncode == 0
        assert cli("report", folder, "--html", page).returncode == 0
    finally:
        os.umask(before)
    assert mode(folder) == 0o700
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert mode(page) == 0o666 & ~mask  # which the user asked for


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)
