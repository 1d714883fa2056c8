"""A training with few threads or CPUs: who decided that, what helps, and where it is as it should be."""

from __future__ import annotations

import pytest
from envkit.checks.doctor import diagnose_process
from envkit.checks.doctor.cpu_use_findings import in_all_arms, trainer, trainer_of
from envkit.checks.process_messages import (
    AccelerateOption,
    CallWithMore,
    SetMoreThere,
    StartThreads,
    StartWithMore,
    TorchrunKeeps,
    WidenGroup,
    WidenMpi,
    WidenParent,
    WidenProgram,
    WidenSlurm,
    WidenTool,
)
from envkit.common.messages import About
from envkit.worker.evidence import cpu_use
from envkit.worker.messages.cpus import (
    BoundByGroup,
    BoundByMpi,
    BoundByParent,
    BoundByProgram,
    BoundByRuntime,
    BoundBySlurm,
    BoundByTool,
    SetAbove,
    SetAtFirst,
    SetByCall,
    SetByParent,
    SetByProgram,
    SetOnLine,
    SharedByMkl,
)

from tests.checks.test_doctor import situation
from tests.records import measured

ONE = "OMP_NUM_THREADS=1"
# A process with one thread for 8 cores, and no helpers.
USE = {
    "threads": 1, "pid": 70, "cpus": 8, "cores": 8, "machine_cpus": 8, "machine_cores": 8, "ranks": 1, "cpu_s": 10.0,
    "helper_cpu_s": 0.0, "on_gpu": False, "above": [60, 1],
}  # fmt: skip
BY_PROGRAM = SetByProgram(ONE)


def found(variables=None, prefix=(), **use):
    used = {name: value.to_json() if name.endswith("_by") else value for name, value in {**USE, **use}.items()}
    facts = {"usable_cpus": 8, "physical_cores": 8}
    return diagnose_process(situation({"cpu_use": used}, facts=facts, variables=variables or {}, prefix=prefix))


@pytest.mark.parametrize(
    ("by", "fix"),
    [
        (BY_PROGRAM, StartWithMore(("OMP_NUM_THREADS",), 8, "physical-cores")),
        (SetByProgram("MKL_NUM_THREADS=1", ("ray",)), StartWithMore(("MKL_NUM_THREADS",), 8, "physical-cores")),
        (SetByCall(), CallWithMore(8)),
        (SharedByMkl("MPI_LOCALNRANKS=1"), StartThreads("OMP_NUM_THREADS", 8)),
        (BoundByProgram(), WidenProgram(8)),
        (SetOnLine(ONE), SetMoreThere(("OMP_NUM_THREADS",), 8)),
        (SetByParent(ONE, "bash run.sh", 60), SetMoreThere(("OMP_NUM_THREADS",), 8, "bash run.sh")),
        (SetAbove(ONE, "slurmstepd", 60), SetMoreThere(("OMP_NUM_THREADS",), 8, "slurmstepd")),
        (SetAtFirst(ONE, "tini", 1), SetMoreThere(("OMP_NUM_THREADS",), 8, "tini")),
        (
            SetByParent(f"MKL_NUM_THREADS=1, {ONE}", "python", 6),
            SetMoreThere(("MKL_NUM_THREADS", "OMP_NUM_THREADS"), 8, "python"),
        ),
        (SetByParent(ONE, "torchrun", 60), TorchrunKeeps("OMP_NUM_THREADS", 8)),
        (SetByParent(ONE, "python -m torch.distributed.run", 60), TorchrunKeeps("OMP_NUM_THREADS", 8)),
        (SetByParent(ONE, "accelerate", 60), AccelerateOption(8)),
    ],
)
def test_too_few_threads(by, fix):
    (finding,) = found(threads_by=by)
    assert (finding.code, finding.severity, finding.fix) == ("too-few-threads", "warn", fix)
    assert (finding.seen.threads, finding.seen.cores, finding.seen.by, finding.seen.ranks) == (1, 8, by, None)


def test_each_of_several_ranks_with_too_few():
    (finding,) = found(threads_by=SetByParent(ONE, "torchrun", 60), ranks=2)
    assert (finding.seen.ranks, finding.fix) == (2, TorchrunKeeps("OMP_NUM_THREADS", 4))


@pytest.mark.parametrize(
    "given",
    [
        {"ranks": 8},
        {"ranks": 5},  # it leaves less than half of the cores idle
        {"threads": 5},
        {"helper_cpu_s": 35.0},  # of four that load data
        {"on_gpu": True},
        {"variables": {"OMP_NUM_THREADS": "1"}},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_number_of_threads_that_is_fine(given):
    assert found(threads_by=BY_PROGRAM, **given) == []


def test_a_profile_that_did_not_reach_the_program():
    (finding,) = found(threads_by=BY_PROGRAM, variables={"OMP_NUM_THREADS": "8"})
    assert finding.fix == StartWithMore(("OMP_NUM_THREADS",), 8)


@pytest.mark.parametrize(
    ("by", "fix"),
    [
        (BoundByTool("taskset"), WidenTool("taskset", 7)),
        (BoundBySlurm(), WidenSlurm(8)),
        (BoundByMpi("mpirun"), WidenMpi()),
        (BoundByGroup("/job"), WidenGroup()),
        (BoundByRuntime("GOMP_CPU_AFFINITY", "python", 60), WidenProgram(8, "GOMP_CPU_AFFINITY")),
        (BoundByParent("bash run.sh", 60), WidenParent("bash run.sh", 7)),
    ],
)
def test_few_cpus(by, fix):
    (finding,) = found(cpus_by=by, cpus=1, cores=1)
    assert (finding.code, finding.severity, finding.fix) == ("few-cpus", "warn", fix)
    assert (finding.seen.cpus, finding.seen.machine, finding.seen.by) == (1, 8, by)


@pytest.mark.parametrize("given", [{"ranks": 5}, {"prefix": ("taskset", "-c", "0")}], ids=["ranks", "prefix"])
def test_a_single_cpu_that_is_fine(given):
    assert found(cpus_by=BoundByTool("taskset"), cpus=1, cores=1, **given) == []


# --- which process trains ---


def process(pid, cpu_s, above=(1,), **use):
    return {"cpu_use": {**USE, "pid": pid, "cpu_s": cpu_s, "above": [*above], **use}}


def test_the_process_that_used_the_most_trains_and_what_started_it_is_no_rank():
    agent, rank, other = process(10, 8.0), process(11, 9.0, above=(10, 1)), process(12, 8.5, above=(10, 1))
    assert (trainer([agent, rank])["cpu_use"]["pid"], trainer([agent, rank])["cpu_use"]["ranks"]) == (11, 1)
    assert trainer([agent, rank, other])["cpu_use"]["ranks"] == 2
    assert trainer([rank, process(13, 9.0, above=(11, 10, 1))], pid=11)["cpu_use"]["ranks"] == 1, "it loads data"
    assert trainer([agent, rank], pid=10)["cpu_use"]["pid"] == 10, "it took the steps"


def test_evidence_without_any_of_that():
    assert trainer_of(measured({"openmp": {}})) == {"openmp": {}}


def test_ranks_and_instances_have_what_envkit_gave_them():
    assert trainer_of(measured({"openmp": {}, **process(1, 1.0)}, ranks=[])) == {"openmp": {}}


def test_what_all_arms_have_is_said_once():
    """The numbers of processes are others in each sample."""
    (first,), (second,) = (found(threads_by=SetByParent(ONE, "bash run.sh", pid)) for pid in (1, 2))
    (other,) = found(threads_by=BY_PROGRAM)
    assert in_all_arms([("a", first), ("b", second)], arms=2) == [first]
    for arms in ([("a", first), ("b", other)], [("a", first)]):
        named = in_all_arms(arms, arms=2)
        assert [one.seen for one in named] == [About(arm, one.seen) for arm, one in arms]


def test_a_value_that_no_library_reads_is_told_once_of_all_arms():
    (wrong,) = diagnose_process(situation(evidence={"variables": {"sensitive": {"OMP_NUM_THREADS": "all"}}}))
    assert in_all_arms([("a", wrong), ("b", wrong)], arms=2) == [wrong]
    (alone,) = in_all_arms([("a", wrong)], arms=2)
    assert alone.seen == About("a", wrong.seen)


@pytest.mark.parametrize(
    ("value", "threads"), [("4", 4), (" 4,2", 4), ("MKL_DOMAIN_ALL=4", 4), ("1.0", None), ("all", None), ("", None)]
)
def test_the_number_of_threads_in_a_variable(value, threads):
    assert cpu_use.chosen_by({"OMP_NUM_THREADS": value})[1] == threads
