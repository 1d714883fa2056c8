"""What holds for ``--instances`` and for ``--nproc``: evidence of each process, failures and refusals.

Workers are simulated, of 4 CPUs and 2 cores.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from envkit.bench.messages import WorkerReported
from envkit.engines import step
from envkit.rendering import text
from envkit.worker.messages import ProcessEnded, ProcessKilled

from tests.cli.commands.conftest import FACTS, words
from tests.records import problem_of


@dataclass(frozen=True)
class Kind:
    option: str
    worker: str  # of the profile, as simulated workers are called
    arm: str
    process: str

    @property
    def of_each(self) -> str:
        return f"of_{self.process}"


INSTANCES = Kind("--instances", "mine x 2", "2 x mine", "instance")
RANKS = Kind("--nproc", "mine on 2 ranks", "mine", "rank")
both = pytest.mark.parametrize("kind", [INSTANCES, RANKS], ids=["instances", "ranks"])

THREADS = {"evidence": {"openmp": {"max_threads": 2}}}
VARIABLE = {"evidence": {"variables": {"sensitive": {"KMP_BLOCKTIME": "0"}}}}
# a runtime has bound a thread to another rank's CPU; and where that could not be seen
BOUND = {"evidence": {"threads": {"masks": {"0": 1, "3": 1}}}}
UNSEEN = {"cpus": [1, 2], "evidence": {"threads": {"masks": {}}}}


@pytest.mark.parametrize(
    ("kind", "other", "said"),
    [
        (INSTANCES, THREADS, "openmp.max_threads (instance 1 on here): expected 1, seen 2"),
        (INSTANCES, {"cpus": [1, 2]}, "instances.cpus: expected apart, seen instances 0 and 1 on CPU 1 of here"),
        (RANKS, THREADS, "openmp.max_threads (rank 1 on here): expected 1, seen 2"),
        (RANKS, VARIABLE, "variable KMP_BLOCKTIME (rank 1 on here): expected not set, seen 0"),
        (RANKS, {"cpus": [1, 2]}, "ranks.cpus: expected apart, seen ranks 0 and 1 on CPU 1 of here"),
        (RANKS, BOUND, "expected apart, seen ranks 0 and 1 on CPU 0 of here"),
        (RANKS, UNSEEN, "apart, seen ranks 0 and 1 on CPU 1 of here"),
    ],
)
def test_a_profile_must_be_in_effect_in_each(bench, cli, run_folder, simulation, instant, kind, other, said):
    simulation.worker(kind.worker, **{kind.of_each: {"1": other}})
    result = bench("mine", kind.option, 2, "--blocks", 2).ended(1)
    assert result.stdout.startswith(f"NOT IN EFFECT  {kind.arm}: no speedup is reported")
    assert said in words(cli("report", run_folder, "--details").stdout)


@pytest.mark.parametrize(
    ("kind", "printed"),
    [
        (INSTANCES, "{problem}"),
        (RANKS, "noise\n{problem}\n"),
        # of several nodes each may tell of one
        (RANKS, "noise\n{problem}\n" + json.dumps({"problem": ProcessEnded("rank 0 on b", 1).to_json()}) + "\n"),
    ],
)
def test_one_that_died_is_named_and_its_last_lines_are_shown(bench, simulation, instant, events, kind, printed):
    problem = ProcessKilled(f"{kind.process} 1", "SIGKILL")
    told = printed.replace("{problem}", json.dumps({"problem": problem.to_json()}))
    simulation.worker(kind.worker, does="problem", text=told, stderr="a\nb\nlast words\n")
    result = bench("mine", kind.option, 2).ended(1)
    assert f"Failed block 1, {kind.arm}: the worker {text(problem)}" in words(result.stdout)
    assert "          | last words" in result.stdout
    assert [problem_of(failure) for failure in events("failure")] == [WorkerReported(problem)]


SAMPLE_OF_ONE = {
    "seconds": 1.0, "step_s": [0.5, 0.5], "losses": [2.0, 1.0], "digests": {}, "usage": {}, "evidence": {},
}  # fmt: skip


@both
def test_a_sample_of_one_is_a_failure(bench, simulation, instant, kind):
    simulation.worker(kind.worker, does="print", text=json.dumps(SAMPLE_OF_ONE))
    result = bench("mine", kind.option, 2).ended(1)
    assert f"the worker should have used 2 {kind.process}s, but used 1" in words(result.stdout)


@both
def test_one_is_what_it_is_without_any(bench, simulation, instant, kind):
    assert bench("mine", kind.option, 1, "--blocks", 1).returncode == 0
    assert {start["name"] for start in simulation.starts()} == {"baseline", "mine"}


@pytest.mark.parametrize(("kind", "who"), [(INSTANCES, "each"), (RANKS, "each rank")], ids=["instances", "ranks"])
@pytest.mark.parametrize(
    ("cores", "number", "usable", "fix"),
    [
        # there are four CPUs here, two of each core
        (2, 4, "2 cores are", "give {option} 2 or less"),
        (1, 2, "1 core is", "leave it out"),
    ],
)
def test_more_than_cores(refused, bench_arguments, simulation, run_folder, kind, who, cores, number, usable, fix):
    simulation.inspection(facts={**FACTS, "physical_cores": cores})
    needs = f"only {usable} usable (engine local), and {who} needs its own; {fix.format(option=kind.option)}"
    assert refused(*bench_arguments("mine", kind.option, number)) == f"envkit: {kind.option} {number}: {needs}"
    assert not run_folder.exists()


TWO_INSTANCES = ("--instances", 2)
AT_ONCE = "--instances 2 trains 2 independent processes at once, and "
OWN_RANKS = "ranks: 2\nexpect:\n  openmp.max_threads: ${physical_cores}\n"
TASKSET = "prefix: [taskset, -c, '0']\n"
STAGES = ("--workload", "model-parallel")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", (*TWO_INSTANCES, "--nproc", 2),
         f"{AT_ONCE}--nproc trains one model on several ranks; leave one of them out"),
        ("ranks: 2\n", TWO_INSTANCES, f"{AT_ONCE}profile 'mine' has 2 ranks of its own; leave one of them out"),
        ("", (*TWO_INSTANCES, "--full"), f"{AT_ONCE}--full trains each arm once; leave one of them out"),
        ("", (*TWO_INSTANCES, "--device", "cuda"),
         f"{AT_ONCE}--device cuda runs one process per GPU; leave one of them out"),
        ("", (*TWO_INSTANCES, "--workload", "all"),
         f"{AT_ONCE}--workload all compares on each workload; leave one of them out"),
        (TASKSET, TWO_INSTANCES,
         "profile 'mine' chooses CPUs ('taskset -c 0'), and each process gets its own CPUs; leave one of them out"),
        ("", ("--nproc", 3), "--nproc 3: a batch of cnn has 64 images, which 3 ranks can't share evenly; give one of"),
        ("", ("--nproc", 3, *STAGES),
         "--nproc 3: model-parallel has 2 stages, each in its own ranks; give a multiple of 2"),
        ("", ("--nproc", 2, "--workload", "loader"), "--nproc 2: ranks can't share the batches of loader; leave it o"),
        ("", ("--nproc", 2, "--workload", "all"),
         "--nproc 2: not all workloads can share their batches; name one of: c"),
        ("", ("--nproc", 2, "--full"), "--nproc 2 has no effect with --full, which trains each arm once, for whole "
                                       "epochs; leave it out"),
        ("", (*STAGES, "--compile"),
         "model-parallel is trained on CPUs in fp32, not compiled and not channels-last; "),
        (TASKSET, ("--nproc", 2),
         "profile 'mine' chooses CPUs ('taskset -c 0'), and each process gets its own CPUs; leave one of "),
        (OWN_RANKS, ("--nproc", 2), "profile 'mine' has 2 ranks of its own; leave --nproc out"),
        ("ranks: 4\n", (),
         "profile 'mine' trains on 4 ranks, and this process can use 2 cores: it does not apply to this "),
        ("ranks: 3\n", (), "profile 'mine', ranks: 3: a batch of cnn has 64 images, which 3 ranks can't share "),
    ],
)  # fmt: skip
def test_what_does_not_go_together(refused, bench_arguments, run_folder, text, options, said):
    assert refused(*bench_arguments("mine", *options, text=text)).startswith(f"envkit: {said}")
    assert not run_folder.exists()


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", TWO_INSTANCES, f"{AT_ONCE}your own command is started once (it may start several processes itself); leave "
                            "one of them out"),
        ("", ("--nproc", 2), "--nproc 2 has no effect on your own command; leave it out"),
        ("", ("--nodes", 2), "--nodes 2 has no effect on your own command; leave it out"),
        ("ranks: 2\n", (), "profile 'mine' has 2 ranks, which your own command must start itself"),
    ],
)  # fmt: skip
def test_a_command_of_ones_own_starts_its_processes_itself(refused, write_profile, monkeypatch, text, options, said):
    monkeypatch.setattr(step, "require", lambda nodes: None)
    line = refused("bench", write_profile("mine", text), *options, "--", "python", "train.py")
    assert line.startswith(f"envkit: {said}")
