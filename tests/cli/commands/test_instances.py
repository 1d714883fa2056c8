"""``envkit bench --instances``: what is started, worked out and refused; workers are simulated, of 4 CPUs, 2 cores."""

from __future__ import annotations

import json

import pytest
from envkit.bench.messages import WorkerReported
from envkit.bench.study import Study
from envkit.rendering import text
from envkit.worker.messages import ProcessKilled
from envkit.worker.request import Instances, Train

from tests.cli.commands.conftest import FACTS, words
from tests.records import problem_of
from tests.simulation import STEADY, times
from tests.worker_runs import document_of

# What a step takes beside that of one process of the baseline; at once it is a step of each.
BASELINE, MINE, ALONE = 1.6, 0.8, 0.5


@pytest.fixture
def workers(simulation, instant):
    """Workers of known speed: two of `mine` at once, with what else is given."""

    def plant(**behaviour):
        simulation.worker("baseline x 2", seconds=times(BASELINE))
        simulation.worker("mine", seconds=[ALONE * second for second in STEADY])
        simulation.worker("mine x 2", **{"seconds": times(MINE), **behaviour})

    plant()
    return plant


def test_the_arms_and_how_their_workers_are_started(bench, workers, simulation, events):
    assert bench("mine", "--instances", 2, "--blocks", 1).returncode == 0
    starts = {start["name"]: start for start in simulation.starts()}
    training = Train("cnn", "synthetic", warmup_steps=5, steps=3)
    trained, several = document_of(training), document_of(Instances(2, training))
    assert {name: start["work"] for name, start in starts.items()} == {
        "baseline": trained, "mine": trained, "mine x 2": several
    }  # fmt: skip
    threads = {name: start["environment"].get("OMP_NUM_THREADS") for name, start in starts.items()}
    assert threads == {"baseline": None, "mine": None, "mine x 2": "1"}
    study = Study.from_json(events()[0]["study"])
    assert [(arm.name, arm.instances) for arm in study.arms] == [("baseline", None), ("mine", None), ("2 x mine", 2)]
    # of one process and of two at once with the baseline, and of these two with each other
    assert study.sharing == 3


def test_what_all_do_in_a_second_beside_one_process(bench, workers):
    """In as many blocks as three comparisons take."""
    result = bench("mine", "--instances", 2, "--blocks", 8, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    (one,) = found["instances"]
    assert (one["arm"], one["instances"]) == ("2 x mine", 2)
    for beside, expected in (("over_reference", 2 / MINE), ("over_one_process", 2 * ALONE / MINE)):
        assert one[beside]["low"] < expected < one[beside]["high"]
        assert one[beside]["ratio"] == pytest.approx(expected, rel=0.02)
    assert {each["arm"]: each["verdict"] for each in found["comparisons"]} == {"mine": "faster", "2 x mine": "faster"}
    speeds = {each["arm"]: each["images_per_s"] for each in found["measured"]}
    assert speeds["2 x mine"] == pytest.approx(2 / MINE * speeds["baseline"], rel=0.02)


def test_the_report(bench, cli, workers, run_folder):
    result = bench("mine", "--instances", 2, "--blocks", 8)
    text = words(result.stdout)
    assert text.startswith("FASTER 2 instances of mine: 2.50x one baseline process's throughput (95% CI 2.4")
    assert "At once 2 at once: 1.2" in text
    assert "x the throughput of one mine process" in text
    assert "Use 2 at once, each on its own CPUs: taskset -c CPUS envkit exec " in text
    assert "several trainings at once: a step is one step of each, and speedups are per item" in text
    assert "**At once**: 2 at once: 1.2" in cli("report", run_folder, "--markdown").stdout
    details = words(cli("report", run_folder, "--details").stdout)
    assert "instances 2 x mine; each on its share of the CPUs, training on all batches" in details


def test_the_baseline_alone(bench, workers, cli, run_folder):
    """Which is no calibration."""
    text = words(bench("baseline", "--instances", 2, "--blocks", 8).stdout)
    assert "2 instances of baseline: 1.25x one baseline process's throughput (95% CI 1.2" in text
    assert "At once" not in text
    assert "again" not in text


def test_several_profiles_of_which_the_best_is_told_first(cli, bench_arguments, workers, write_profile, simulation):
    simulation.worker("other x 2", seconds=times(0.4))
    other = write_profile("other", "env: {SIMULATED: other}\n")
    arguments = bench_arguments("mine", "--instances", 2, "--blocks", 9)
    result = cli(*arguments[:2], other, *arguments[2:])
    assert "2 instances of other: 5.0" in words(result.stdout)


def test_where_one_after_the_other_is_better(bench, workers):
    workers(seconds=times(1.25))
    text = words(bench("mine", "--instances", 2, "--blocks", 8).stdout)
    assert "Next train one after another under mine: 2 at once have lower throughput" in text


def test_too_few_blocks_for_intervals(bench, workers):
    text = words(bench("mine", "--instances", 2, "--blocks", 2).stdout)
    assert text.startswith("NO VERDICT 2 x mine: 2 complete blocks (one sample of each), and a verdict needs 7")


def test_an_export_has_them(cli, bench, workers, run_folder):
    assert bench("mine", "--instances", 2).returncode == 0
    rows = json.loads(cli("export", run_folder, "--format", "json").stdout)
    assert {row["arm"]: row["instances"] for row in rows} == {"baseline": 1, "mine": 1, "2 x mine": 2}


# --- evidence of each, and one that dies ---


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"evidence": {"openmp": {"max_threads": 2}}}, "openmp.max_threads (instance 1 on here): expected 1, seen 2"),
        ({"cpus": [1, 2]}, "instances.cpus: expected apart, seen instances 0 and 1 on CPU 1 of here"),
    ],
)
def test_a_profile_must_be_in_effect_in_each(bench, cli, run_folder, workers, other, said):
    workers(of_instance={"1": other})
    result = bench("mine", "--instances", 2, "--blocks", 2)
    assert result.returncode == 1
    assert result.stdout.startswith("NOT IN EFFECT  2 x mine: no speedup is reported")
    assert said in words(cli("report", run_folder, "--details").stdout)


def test_one_that_died_is_named_and_its_last_lines_are_shown(bench, workers, events):
    problem = ProcessKilled("instance 1", "SIGKILL")
    workers(does="problem", text=json.dumps({"problem": problem.to_json()}), stderr="a\nlast words\n")
    result = bench("mine", "--instances", 2)
    assert result.returncode == 1
    assert f"Failed block 1, 2 x mine: the worker {text(problem)}" in words(result.stdout)
    assert "          | last words" in result.stdout
    assert [problem_of(failure) for failure in events("failure")] == [WorkerReported(problem)]


def test_a_sample_of_one_is_a_failure(bench, simulation, workers):
    simulation.worker("mine x 2", does="print", text=json.dumps(SAMPLE_OF_ONE))
    result = bench("mine", "--instances", 2)
    assert result.returncode == 1
    assert "the worker should have used 2 instances, but used 1" in words(result.stdout)


SAMPLE_OF_ONE = {
    "seconds": 1.0, "step_s": [0.5, 0.5], "losses": [2.0, 1.0], "digests": {}, "usage": {}, "evidence": {},
}  # fmt: skip


# --- what can't be measured so ---


@pytest.mark.parametrize(
    ("cores", "number", "said"),
    [
        # there are four CPUs here, two of each core
        (2, 4, "only 2 cores are usable (engine local), and each needs its own; give --instances 2 or less"),
        (1, 2, "only 1 core is usable (engine local), and each needs its own; leave it out"),
    ],
)
def test_more_than_cores(refused, bench_arguments, simulation, run_folder, cores, number, said):
    simulation.inspection(facts={**FACTS, "physical_cores": cores})
    assert refused(*bench_arguments("mine", "--instances", number)) == f"envkit: --instances {number}: {said}"
    assert not run_folder.exists()


WHAT = "envkit: --instances 2 trains 2 independent processes at once, and "


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", ("--nproc", 2), "--nproc trains one model on several ranks; leave one of them out"),
        ("ranks: 2\n", (), "profile 'mine' has 2 ranks of its own; leave one of them out"),
        ("", ("--full",), "--full trains each arm once; leave one of them out"),
        ("", ("--device", "cuda"), "--device cuda runs one process per GPU; leave one of them out"),
        ("", ("--workload", "all"), "--workload all compares on each workload; leave one of them out"),
    ],
)
def test_what_does_not_go_together(refused, bench_arguments, run_folder, text, options, said):
    assert refused(*bench_arguments("mine", "--instances", 2, *options, text=text)) == f"{WHAT}{said}"
    assert not run_folder.exists()


def test_a_command_of_ones_own_is_started_once(refused, write_profile):
    line = refused("bench", write_profile("mine"), "--instances", 2, "--", "python", "train.py")
    why = "your own command is started once (it may start several processes itself); leave one of them out"
    assert line == f"{WHAT}{why}"


def test_a_prefix_that_says_where_to_run(refused, bench_arguments):
    line = refused(*bench_arguments("mine", "--instances", 2, text="prefix: [taskset, -c, '0']\n"))
    assert line.endswith("('taskset -c 0'), and each process gets its own CPUs; leave one of them out")


def test_two_images(refused):
    line = refused("bench", "baseline", "--instances", 2, "--against-python", "/usr/bin/python3")
    why = "has no effect with --against-python, which measures one process in each image; leave it out"
    assert line == f"envkit: --instances 2 {why}"


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_what_is_no_number_of_them(cli, number):
    result = cli("bench", "baseline", "--instances", number)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"--instances: '{number}' is not a whole number above 0" in result.stderr


def test_one_is_what_it_is_without_any(bench, simulation, instant):
    assert bench("mine", "--instances", 1, "--blocks", 1).returncode == 0
    assert {start["name"] for start in simulation.starts()} == {"baseline", "mine"}


def test_no_baseline_is_saved_of_them(bench, workers, refused, run_folder):
    assert bench("mine", "--instances", 2, "--blocks", 8).returncode == 0
    line = refused("baseline", "save", "old", "--from", run_folder)
    assert line.endswith(": trained several at once (--instances); measure one process alone")


def test_several_at_once_are_no_advice_under_a_profile_that_is_slower_than_the_baseline(bench, simulation, instant):
    simulation.worker("mine", seconds=[4 * second for second in STEADY])
    simulation.worker("mine x 2", seconds=times(4.0))
    text = words(bench("mine", "--instances", 2, "--blocks", 8).stdout)
    assert "At once 2 at once: 2.0" in text  # one process under mine, and half of the baseline's
    assert "Use " not in text
    assert "Next keep baseline" in text
