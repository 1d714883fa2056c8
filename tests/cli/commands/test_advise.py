"""``envkit advise --watch-only``: what is said of a training that was watched, and what is refused; simulated."""

from __future__ import annotations

import json

import pytest
from envkit.advice import expected
from envkit.advice.expected import Fit, Fitted
from envkit.cli.commands import advise as advise_command
from envkit.rendering import text
from envkit.worker.messages.cpus import BoundByTool, SetByParent
from envkit.worker.messages.user_command import CommandEnded, LastLine, NoSteps, TooShort
from envkit.worker.request import RunCommand, UserCommand

from tests.advice.trainings import observed
from tests.cli.commands.advice_document import FORM, parsed
from tests.cli.commands.conftest import words
from tests.simulated_worker import inspection
from tests.simulation import PROJECT
from tests.worker_runs import document_of

FITS = {
    "glibc-retain": [Fit({"kernel": 1.0}, 0.05, 0.1)],
    "mkl-native": [Fit({"matrix": 0.5}, 0.0, 0.1)],
    "intel-omp": [Fit({}, -0.1, 0.05)],
    "jemalloc": [Fit({}, 0.0, 0.05)],
}
LIBRARIES = {**inspection([], {})["libraries"], "mkl-dispatch": {"path": "/sim/mkl.so", "sha256": "1" * 64}}
MACHINE = "Simulated CPU, 4 usable CPUs"


@pytest.fixture(autouse=True)
def fits(monkeypatch):
    """What the kit knows: four profiles, of which the machine lacks what intel-omp preloads."""

    def known(machine=MACHINE, fits=FITS):
        made = Fitted([machine], "2026-11-01", ["one", "two"], fits)
        monkeypatch.setattr(expected, "fitted", lambda: made)

    known()
    return known


@pytest.fixture
def watched(simulation):
    """Have workers see this of the command."""

    def given(helpers=None, gpu=None, threads=2, cpu_use=None, usage=None, small=False, **seen):
        sample = observed(**seen)
        if small:
            sample["observed"]["operators"].update(self_s={"aten::mul": 0.18}, calls={"aten::mul": 9_000})
        evidence = {**sample["evidence"], "gpu": gpu or {}, "cpu_use": cpu_use or {}}
        told = {**sample["observed"], "helpers": helpers, "threads": threads}
        simulation.worker("baseline", seconds=[1.0], full_steps=10, observed=told, evidence=evidence, usage=usage or {})
        simulation.inspection(libraries=LIBRARIES)

    given()
    return given


@pytest.fixture
def advise(cli, instant, simulation, watched, tmp_path):
    (tmp_path / "train.py").touch()
    return lambda *options, **more: cli(
        "advise", "--watch-only", "--python", simulation.python, *options, "--", "python", "train.py", "--epochs", "9",
        **{"cwd": tmp_path, **more},
    )  # fmt: skip


def test_the_profile_to_try_first_with_reasons(advise):
    result = advise().ended(0)
    said = words(result.stdout)
    assert said.startswith("Try glibc-retain first: 1.42x baseline speed is expected (1.28 to 1.57) ")
    assert "watched 10 steps of 100.0 ms in 1.0 s; 2.0 of 4 CPUs busy" in said
    assert "time 40% matrix products, 40% outside of operators, 10% copying and filling memory" in said
    assert (
        "why 30% of its CPU time is the kernel's, with 5,000 page faults a step: the allocator returns memory to "
        "the kernel, which zeroes its pages again for each step (page-faults)"
    ) in said
    assert "glibc-retain 1.42 1.28 to 1.57 page-faults mkl-native 1.22" in said
    assert "jemalloc 1.00 0.95 to 1.05 similar trainings did not become faster" in said
    assert "ranges from 2 trainings that were measured on Simulated CPU, 4 usable CPUs" in said
    assert "next measure which is the fastest: envkit advise --python" in said
    assert said.endswith("-- python train.py --epochs 9")


def test_what_does_not_apply_here_is_left_out(advise):
    said = words(advise().stdout)
    assert "left out intel-omp; not installed: intel-openmp no root /sim/bin/python -m pip install intel-openmp" in said
    assert "intel-omp 0.90" not in said


def test_the_worker_watches_the_command_in_its_folder(advise, simulation, tmp_path):
    advise(cwd=tmp_path)
    (start,) = (one for one in simulation.starts(all=True) if one["work"]["kind"] == "command")
    command = UserCommand(("python", "train.py", "--epochs", "9"), str(tmp_path))
    assert start["work"] == document_of(RunCommand(command, warmup=3, watch_s=10.0, watch_limit_s=75.0))


def test_where_nothing_helps_it_says_so(advise, watched, fits):
    fits(fits={name: FITS[name] for name in ("mkl-native", "jemalloc")})
    watched(matrix=0.02, system_share=0.01)
    said = words(advise().stdout)
    assert said.startswith("No profile is expected to make this training faster ")
    assert "mkl-native 1.01 0.91 to 1.12 2% of a step is matrix products, for which MKL uses code" in said
    assert parsed(advise("--json").stdout)["try_first"] is None


def test_a_machine_where_no_profile_applies(advise, fits):
    fits(fits={"intel-omp": FITS["intel-omp"]})
    result = advise()
    assert result.returncode == 0
    assert words(result.stdout).startswith("No profile that was measured on other trainings applies to this machine ")
    assert parsed(advise("--json").stdout)["expected"] == []


def test_on_another_machine_ranges_are_said_to_come_from_elsewhere(advise, fits):
    fits(machine="Another CPU, 64 usable CPUs")
    said = words(advise().stdout)
    assert said.startswith(
        "Try glibc-retain first: 1.42x baseline speed is expected (1.28 to 1.57) caution gains were measured on "
        "Another CPU, 64 usable CPUs: on this machine only the order of profiles is of use "
    )
    assert "ranges from 2 trainings that were measured on Another CPU, 64 usable CPUs" in said


def test_a_disturbed_watching_tells_the_order_and_no_gains(advise, watched):
    watched(usage={"worker_cpus": 4, "worker_cpus_busy_s": 5.0})
    said = words(advise().stdout)
    assert said.startswith(
        "Try glibc-retain first; how much it gains is not told, because the watching was disturbed caution while it "
        "was watched, others used "
    )
    assert "only the order of profiles is of use; watch again without that" in said
    assert "glibc-retain page-faults mkl-native generic-matrix-code jemalloc" in said
    assert "1.42" not in said
    assert "ranges" not in said
    found = parsed(advise("--json").stdout)
    assert found["try_first"] == "glibc-retain"
    assert found["expected"][0] == {"profile": "glibc-retain", "gain": None, "low": None, "high": None}
    assert [cause.startswith("others used ") for cause in found["disturbed"]] == [True]


def test_a_disturbed_watching_of_one_that_nothing_helps(advise, watched, fits):
    fits(fits={"jemalloc": FITS["jemalloc"]})
    watched(usage={"worker_cpus": 4, "worker_cpus_busy_s": 5.0})
    said = words(advise().stdout)
    assert said.startswith(
        "The watching was disturbed, so it is not known whether a profile makes this training faster"
    )


def test_many_small_blocks_are_told_with_a_profile_without_a_number(advise, watched, simulation, fits):
    fits(fits={"jemalloc": FITS["jemalloc"]})
    watched(small=True, system_share=0.01, matrix=0.0)
    simulation.inspection(libraries={**LIBRARIES, "mimalloc": {"path": "/sim/mimalloc.so", "sha256": "2" * 64}})
    said = words(advise().stdout)
    assert said.startswith("Try mimalloc-retain first: it removes an observed cause, and its gain is not known ")
    assert "why 60% of a step is in operators of less than 20 us each, 30,000 of them a second: each allocates" in said
    assert "mimalloc-retain - not measured yet small-blocks" in said


def test_a_training_that_waits_is_told_that_no_profile_changes_that(advise, simulation):
    simulation.inspection(libraries=LIBRARIES, facts={**inspection([], {})["facts"], "usable_cpus": 8})
    assert "it keeps 2.0 CPUs busy and otherwise waits for input or for one thread" in words(advise().stdout)


def test_a_script_that_sets_its_threads_itself(advise, watched):
    watched(threads=1)
    said = words(advise().stdout)
    assert "it computes with 1 of 4 possible threads; if the script sets that number" in said
    watched(threads=4)
    assert "possible threads" not in words(advise().stdout)


USE = {
    "threads": 1, "pid": 7, "cpus": 4, "cores": 2, "machine_cpus": 4, "machine_cores": 2, "ranks": 1, "cpu_s": 9.5,
    "helper_cpu_s": 0.0, "on_gpu": False, "above": [1],
}  # fmt: skip
BY_PARENT = {**USE, "threads_by": SetByParent("OMP_NUM_THREADS=1", "python launch.py", 6).to_json()}
BY_TOOL = {**USE, "cpus": 1, "cores": 1, "cpus_by": BoundByTool("taskset").to_json()}


def test_one_with_too_few_threads_needs_these_first_and_no_profile(advise, watched):
    """Others that were measured had all of theirs."""
    watched(threads=1, cpu_use=BY_PARENT)
    said = words(advise().stdout)
    assert said.startswith(
        "Fix this first: it computes with 1 of 2 possible threads, because python launch.py (process 6) started it "
        "with OMP_NUM_THREADS=1 "
    )
    assert "remove OMP_NUM_THREADS in python launch.py, or set 2 there" in said
    assert "left out glibc-retain, mkl-native, jemalloc: measured on trainings with all their threads" in said
    assert "no profile changes" not in said
    assert "1.42" not in said
    found = parsed(advise("--json").stdout)
    assert (found["fix_first"], found["try_first"], found["expected"]) == ("too-few-threads", None, [])


def test_one_on_a_single_cpu_is_told_so_first(advise, watched):
    watched(threads=1, cpu_use=BY_TOOL)
    said = words(advise().stdout)
    assert said.startswith("Fix this first: 1 of this machine's 4 CPUs may be used, because taskset binds it ")
    assert "leave out taskset, or give it more CPUs, such as: taskset -c 0-3" in said
    assert "no profile changes" not in said
    assert "next" not in said, "nothing races on one CPU"
    assert parsed(advise("--json").stdout)["fix_first"] == "few-cpus"


def test_the_threads_that_the_callers_environment_asks_for(advise):
    warned = (
        "your environment has OMP_NUM_THREADS=1, which envkit does not pass on: without envkit the training computes "
        "with 1 of 4 possible threads"
    )
    assert warned in words(advise(OMP_NUM_THREADS="1").stdout)
    for fine in ({"OMP_NUM_THREADS": "3"}, {"options": ["--keep-env", "OMP_NUM_THREADS"], "OMP_NUM_THREADS": "1"}):
        options = fine.pop("options", ())
        assert "your environment has" not in words(advise(*options, **fine).stdout)


def test_one_that_waits_for_what_loads_its_data(advise, simulation, watched):
    watched(helpers={"seconds": 1.0, "user_s": 2.5, "system_s": 0.5, "minor_faults": 0})
    simulation.inspection(libraries=LIBRARIES, facts={**inspection([], {})["facts"], "usable_cpus": 8})
    said = words(advise().stdout)
    assert "5.0 of 8 CPUs busy" in said
    assert "it keeps 2.0 CPUs busy and its helper processes 3.0: it waits for input" in said


def test_of_gpus_nothing_is_known(advise, simulation, watched):
    watched(gpu={"name": "Simulated GPU"})
    said = words(advise().stdout)
    assert said.startswith("No profile that was measured on other trainings applies to this machine ")
    why = "this training computes on a GPU, and all trainings behind the advice compute on CPUs"
    assert f"left out glibc-retain, mkl-native, jemalloc: {why}" in said


def test_the_reference_names_each_key_of_the_document():
    lines = (PROJECT / "docs/reference.md").read_text().splitlines()
    (row,) = (line for line in lines if line.startswith("| `advise`"))
    assert [key for key in FORM if f"`{key}`" not in row] == []


def test_json(advise):
    found = parsed(advise("--json").stdout)
    assert found["try_first"] == "glibc-retain"
    assert found["symptoms"]["system_share"] == pytest.approx(0.3)
    assert [one["code"] for one in found["reasons"]] == ["page-faults", "generic-matrix-code"]
    assert [one["profile"] for one in found["expected"]] == ["glibc-retain", "mkl-native", "jemalloc"]
    assert list(found["left_out"]) == ["intel-omp"]


def test_one_that_runs_already_is_watched_from_outside(cli, simulation, instant, watched, monkeypatch):
    usage = {"user_s": 14.0, "system_s": 6.0, "minor_faults": 200_000}
    seen = {"seconds": 10.0, "usage": usage, "waited_s": 0.1}
    monkeypatch.setattr(advise_command.steady_process, "watch", lambda pid, seconds: seen | {"pid": pid})
    monkeypatch.setattr(advise_command.steady_process, "require", lambda pid: None)
    cli("advise", "--pid", "4711", "--python", simulation.python).ended(2)
    monkeypatch.setattr(advise_command.engine_options, "engine", lambda arguments: (instant, {}))
    said = words(cli("advise", "--pid", "4711").stdout)
    assert said.startswith("Try glibc-retain first: 1.42x baseline speed is expected")
    assert "watched 10 s from outside; 2.0 of 4 CPUs busy" in said
    assert "30% of its CPU time is the kernel's, with 20,000 page faults a second" in said
    assert "mkl-native" not in said, "what it multiplies is not seen from outside"
    assert parsed(cli("advise", "--pid", "4711", "--json").stdout)["race"] is None
    assert "next a running process can't be started again; start the training: envkit advise -- COMMAND" in said
    usage |= {"worker_cpus": 4, "worker_cpus_busy_s": 35.0}
    said = words(cli("advise", "--pid", "4711").stdout)
    assert "caution while it was watched, others used 1.50 CPUs: only the order of profiles is of use" in said
    assert "1.42" not in said
    seen["cpu_use"] = BY_PARENT
    said = words(cli("advise", "--pid", "4711").stdout)
    assert said.startswith("Fix this first: it computes with 1 of 2 possible threads, because python launch.py ")


# --- what is refused ---


@pytest.mark.parametrize("problem", [NoSteps(45.0), TooShort(2.1, 3), CommandEnded(3, LastLine("no such file"))])
def test_a_command_that_can_not_be_watched_is_one_line(refused, simulation, tmp_path, problem):
    (tmp_path / "train.py").touch()
    simulation.worker("baseline", does="print", status=1, text=json.dumps({"problem": problem.to_json()}))
    line = refused("advise", "--python", simulation.python, "--", "python", "train.py", cwd=tmp_path)
    assert line == f"envkit: advise -- python: the worker {text(problem)}"
