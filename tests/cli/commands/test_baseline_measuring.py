"""``envkit baseline check``: measuring the same again."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.bench.run import read

from tests.cli.commands.conftest import FACTS
from tests.sessions import REFERENCE_KERNEL_S, signed, verdicts
from tests.simulation import times

BLOCKS_NOW = 6


def environments(**arms):
    """Change what the arms of a record set and expect."""

    def change(run):
        for name, settings in arms.items():
            run["environments"][name] |= {"variables": {}, "preload": {}, "prefix": [], "expect": {}, **settings}

    return change


MINE = environments(baseline={}, mine={"variables": {"SIMULATED": "mine"}, "expect": {"openmp.max_threads": 2}})


@pytest.fixture
def again(instant, simulation, save, write_profile, folder, tmp_path):
    """The arguments that check a baseline by measuring again, with simulated workers that are as fast as it was."""
    simulation.worker("baseline", seconds=times(3.0))
    simulation.worker("mine", seconds=times(1.5))
    simulation.worker("reference-kernel", seconds=[REFERENCE_KERNEL_S])
    save(engine_options={"python": str(simulation.python)}, data="synthetic", change=MINE)
    profile = write_profile("mine", "env:\n  SIMULATED: mine\nexpect:\n  openmp.max_threads: 2\n")
    return ["baseline", "check", "old", profile, "--folder", folder, "--python", simulation.python,
            "--data", "synthetic", "--blocks", BLOCKS_NOW, "--output", tmp_path / "again"]  # fmt: skip


@pytest.fixture
def measured_twice(instant, simulation, cli, folder, run_folder):
    """Measure ``mine``, save that as a baseline and measure the same again; the plans of both, and the result."""
    simulation.worker("mine", seconds=times(0.5))

    def run(*arguments):
        cli(*arguments).ended(0)
        assert cli("baseline", "save", "old", "--from", run_folder, "--folder", folder).returncode == 0
        again, given = run_folder.with_name("again"), [*arguments[1:]]
        for option in ("--seed", "--output", "--steps", "--blocks"):  # of one run alone, or as the baseline has it
            while option in given:
                at = given.index(option)
                del given[at : at + 2]
        result = cli("baseline", "check", "old", *given, "--folder", folder, "--output", again)
        assert (result.returncode, len(verdicts(result))) == (0, 2), result
        then, now = (read(one).study for one in (run_folder, again))
        return then, now, result

    return run


@pytest.mark.parametrize("given", [True, False], ids=["steps-given", "steps-by-pace"])
def test_measure_save_and_measure_the_same_again(measured_twice, bench_arguments, run_folder, given):
    arguments = bench_arguments("mine", "--blocks", 7)
    at = arguments.index("--steps")
    then, now, result = measured_twice(*(arguments if given else arguments[:at] + arguments[at + 2 :]))
    assert (now.arms, now.engine_options) == (then.arms, then.engine_options)
    assert (now.workload, now.workloads) == (then.workload, then.workloads)
    assert (now.stopping.timeout_s, now.stopping.blocks) == (then.stopping.timeout_s, then.stopping.blocks)
    assert now.training.steps >= 3
    assert now.training.warmup_steps > 0
    environments = [record.first(one)["environments"] for one in (run_folder, run_folder.with_name("again"))]
    assert environments[0] == environments[1]
    assert "Settings" not in result.stdout


def test_modes_and_a_workload_that_makes_its_data(measured_twice, bench_arguments):
    modes = ("--workload", "segmentation", "--precision", "bf16-autocast", "--channels-last", "--scale", 2)
    arguments = [one for one in bench_arguments("mine", *modes, "--blocks", 7) if one not in ("--data", "synthetic")]
    then, now, _ = measured_twice(*arguments)
    assert (now.workload, now.data_of(now.reference)) == ("segmentation", "generated")
    assert now.options == then.options
    assert (then.options.precision, then.options.channels_last, then.options.scale) == ("bf16-autocast", True, 2)


def test_check_finds_a_slowdown(again, cli, simulation):
    simulation.worker("mine", seconds=times(2.1))
    result = cli(*again).ended(1)
    assert "REGRESSION" in verdicts(result)[1]


def test_check_with_json_prints_nothing_else(again, cli):
    document = json.loads(cli(*again, "--json").stdout)
    assert document["regression"] is False


def test_a_profile_that_is_no_longer_in_effect(again, cli, simulation):
    simulation.worker("mine", evidence={"openmp": {"max_threads": 7}})
    result = cli(*again).ended(1)
    assert "NOT IN EFFECT" in result.stdout
    assert verdicts(result) == []


def test_another_machine_is_refused_before_anything_is_measured(again, refused, simulation, run_folder):
    simulation.inspection(facts={**FACTS, "usable_cpus": 2})
    assert "the number of usable CPUs was 4 and is now 2" in refused(*again)
    assert (simulation.starts(), run_folder.with_name("again").exists()) == ([], False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--blocks", 3), "--blocks 3: is too few to compare; give 6 or more"),
        (
            ("--budget", "60s"),
            "--budget can't be given to baseline check, which measures a fixed number of blocks "
            "(10, as many as old has); give another with --blocks",
        ),
    ],
)
def test_another_way_to_end_is_refused_before_measuring(again, refused, simulation, run_folder, options, said):
    assert refused(*again, *options) == f"envkit: {said}"
    assert (simulation.starts(), run_folder.with_name("again").exists()) == ([], False)


def test_a_check_whose_reference_kernel_fails_says_so(again, cli, simulation):
    simulation.worker("reference-kernel", does="exit", status=3)
    result = cli(*again).ended(2, stdout="")
    assert "6 of 6 blocks have no reference kernel, because the worker " in result.stderr.splitlines()[-1]


def test_an_interrupted_check_says_how_to_go_on(again, simulation, cli, run_folder):
    simulation.worker("mine", does="interrupt", **{"from": 3})
    result = cli(*again)
    folder = run_folder.with_name("again")
    assert result.returncode == 130
    assert result.stderr.splitlines()[-2:] == [
        f"envkit: interrupted; continue with: envkit bench --resume {folder}",
        "envkit: and then compare: envkit baseline check old --against that folder",
    ]
    simulation.worker("mine", seconds=times(1.5))
    assert cli("bench", "--resume", folder).returncode == 0
    assert cli(*again[:3], *again[4:6], "--against", folder).returncode == 0


def test_a_check_without_a_profile_says_what_to_give(again, refused, folder, simulation):
    """A baseline is data: nobody runs what it names."""
    assert refused(*again[:3], *again[4:6]) == (
        f"envkit: {folder}/old.json: a baseline does not say what to run; read its command line, and give it if "
        f"you trust it: envkit baseline check old mine --python {simulation.python} --data synthetic"
    )
    assert simulation.starts(all=True) == []


def test_nothing_that_a_baseline_names_is_run(again, refused, folder, tmp_path):
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    signed(folder / "old.json", lambda document: document["study"]["engine_options"].update(python=str(script)))
    message = refused(*again)
    assert f"differs from the command line: engine options.python was {script} and is now " in message
    assert "python" in refused(*again[:3], *again[4:6])
    assert not ran.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workload", "translation"), "workload was cnn and is now translation"),
        (("--channels-last",), "modes.channels_last was false and is now true"),
        (("--python", "python3"), "engine options.python was "),
        (("--engine", "podman"), "arms.baseline was local and is now podman; arms.mine was local and is now podman"),
    ],
)
def test_what_differs_is_named_before_anything_runs(again, refused, simulation, options, said):
    message = refused(*again, *options)
    assert f"/old.json: differs from the command line: {said}" in message
    assert "baseline check old --against DIR" in message
    assert simulation.starts(all=True) == []


def test_another_command_of_ones_own_is_named(again, refused, simulation):
    own = [word for word in again if word not in ("--data", "synthetic")]
    message = refused(*own, "--", "python", "train.py")
    assert "workload was cnn and is now python train.py; command was null and is now {" in message
    assert simulation.starts(all=True) == []


def test_a_profile_that_sets_something_else_now_is_named(again, refused, write_profile, simulation):
    write_profile("mine", "env:\n  SIMULATED: mine\n  OMP_NUM_THREADS: 3\nexpect:\n  openmp.max_threads: 2\n")
    assert "mine.variables.OMP_NUM_THREADS was missing and is now 3" in refused(*again)
    assert simulation.starts() == []


def test_a_variable_that_is_kept_now_is_named(again, refused, simulation):
    assert 'kept variables was [] and is now ["MY_TOKEN"]' in refused(*again, "--keep-env", "MY_TOKEN", MY_TOKEN="x")
    assert simulation.starts() == []


def test_a_profile_of_this_machine_is_found(again, cli, own_surroundings, tmp_path):
    """As ``envkit tune`` writes them."""
    named = ["mine" if str(word).endswith("mine.yaml") else word for word in again]
    folder = own_surroundings / "config/envkit/profiles"
    folder.mkdir(parents=True)
    (tmp_path / "mine.yaml").rename(folder / "mine.yaml")
    result = cli(*named)
    assert (result.returncode, len(verdicts(result))) == (0, 2), result
