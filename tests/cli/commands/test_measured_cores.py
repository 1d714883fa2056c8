"""Cores that were measured: when doctor measures, and where commands and reports say so."""

from __future__ import annotations

import json

import pytest
from envkit.checks.core_messages import CoresDisturbed, LittleCpuTime
from envkit.cli.commands import doctor
from envkit.engines import measured_cores
from envkit.engines.measured_cores import MeasuredCores
from envkit.worker.host import fingerprint
from envkit.worker.measure.machine_load import Load

from tests import records
from tests.simulated_worker import inspection as simulated

DAY = "2026-11-28"
ONE_EACH = MeasuredCores("0-3", ("0", "1", "2", "3"), DAY)
PAIRS = MeasuredCores("0-3", ("0-1", "2-3"), DAY)
DISTURBED = CoresDisturbed((LittleCpuTime(0.5),))


@pytest.fixture
def virtual(simulation):
    """Have workers say that this machine is a virtual one, whose kernel shows 4 cores for 4 CPUs."""

    def say(**facts):
        facts = {**simulated([], {})["facts"], "physical_cores": 4, "smt": False, **facts}
        machine = {**simulated([], {})["fingerprint"], **fingerprint(), "hypervisor": "KVM"}
        simulation.inspection(facts=facts, cpus="0-3", fingerprint=machine)

    say()
    return say


@pytest.fixture
def measuring(monkeypatch):
    """Have the machine be quiet and have 4 CPUs; the list has what measurements will say, and loses it to them."""
    answers = []
    monkeypatch.setattr(doctor, "measure", lambda cpus: answers.pop(0))
    monkeypatch.setattr(doctor, "usable_cpus", lambda: {0, 1, 2, 3})
    monkeypatch.setattr(doctor, "cpu_quota", lambda: None)
    monkeypatch.setattr(doctor, "watch_machine", lambda seconds: Load(seconds, 0.0, 0.0, 0.0))
    return answers


@pytest.fixture
def diagnose(cli, simulation, instant):
    def run(*options):
        result = cli("doctor", "--python", simulation.python, "--json", *options).ended(0)
        return {one["code"]: one for one in json.loads(result.stdout)}, result.stderr

    return run


def test_doctor_measures_a_virtual_machine_once(virtual, measuring, diagnose):
    measuring += [PAIRS]
    assert diagnose() == ({}, f"envkit: 4 usable CPUs on 2 cores, measured {DAY}\n")
    assert diagnose() == ({}, f"envkit: 4 usable CPUs on 2 cores, measured {DAY}\n")
    assert measuring == []
    measuring += [ONE_EACH]
    assert diagnose("--measure-cores")[1] == f"envkit: 4 usable CPUs on 4 cores, measured {DAY}\n"
    assert diagnose("baseline")[1] == f"envkit: 4 usable CPUs on 4 cores, measured {DAY}\n"


def test_a_disturbed_measurement_is_told_and_not_kept(virtual, measuring, diagnose):
    measuring += [DISTURBED, DISTURBED, ONE_EACH]
    for options in ((), ("--measure-cores",)):
        found, stderr = diagnose(*options)
        assert (found.keys(), stderr) == ({"cores-unmeasured"}, "")
        assert found["cores-unmeasured"]["severity"] == "note"
        assert found["cores-unmeasured"]["message"]["code"] == "checks.cores-disturbed"
        assert measured_cores.find({0}) is None
    assert diagnose()[0] == {}


def test_a_disturbed_measurement_leaves_the_one_that_is_kept(virtual, measuring, diagnose):
    measured_cores.keep(PAIRS)
    measuring += [DISTURBED]
    found, stderr = diagnose("--measure-cores")
    assert (found.keys(), stderr) == ({"cores-unmeasured"}, f"envkit: 4 usable CPUs on 2 cores, measured {DAY}\n")


def test_doctor_measures_again_where_the_file_is_damaged(virtual, measuring, diagnose):
    measured_cores.keep(PAIRS)
    (path,) = measured_cores._folder().iterdir()
    path.write_text("{")
    measuring += [ONE_EACH]
    assert diagnose() == ({}, f"envkit: 4 usable CPUs on 4 cores, measured {DAY}\n")


def test_what_can_not_be_kept_is_told(virtual, measuring, diagnose, own_surroundings):
    (own_surroundings / "cache/envkit").mkdir(parents=True)
    (own_surroundings / "cache/envkit/cores").write_text("a file")
    measuring += [PAIRS]
    found, _ = diagnose()
    assert found["cores-unmeasured"]["message"]["code"] == "common.unwritable"


@pytest.mark.parametrize(("cpus", "quota"), [({3}, None), ({0, 1, 2, 3}, 2.5)])
def test_one_cpu_and_a_quota(virtual, measuring, diagnose, cli, simulation, monkeypatch, cpus, quota):
    monkeypatch.setattr(doctor, "usable_cpus", lambda: cpus)
    monkeypatch.setattr(doctor, "cpu_quota", lambda: quota)
    assert diagnose() == ({}, "")
    refused = cli("doctor", "--python", simulation.python, "--measure-cores").ended(2, stdout="")
    assert refused.stderr.startswith("envkit: --measure-cores: ")
    assert len(refused.stderr.splitlines()) == 1


def test_bare_metal_is_measured_on_request_alone(simulation, measuring, diagnose):
    assert diagnose() == ({}, "")
    measuring += [ONE_EACH]
    diagnose("--measure-cores")
    assert measuring == []


@pytest.mark.parametrize("others", [("--for-issue",), ("--", "true")])
def test_options_that_measure_nothing(cli, others):
    refused = cli("doctor", "--measure-cores", *others).ended(2)
    assert "--measure-cores" in refused.stderr


def test_threads_that_share_a_core_are_found(virtual, measuring, diagnose, simulation):
    simulation.worker("baseline", evidence={"openmp": {"max_threads": 4}})
    measuring += [PAIRS]
    assert diagnose()[0]["smt-siblings"]["message"]["cores"] == 2


def test_show_and_env(virtual, cli, simulation, write_profile):
    path = write_profile("mine", "env:\n  OMP_NUM_THREADS: ${physical_cores}\n")
    shown = [cli(command, path, "--python", simulation.python).stdout for command in ("show", "env")]
    assert [DAY in text for text in shown] == [False, False]
    assert ["OMP_NUM_THREADS=4" in text for text in shown] == [True, True]
    measured_cores.keep(PAIRS)
    shown = [cli(command, path, "--python", simulation.python).stdout for command in ("show", "env")]
    assert f"cores    4 usable CPUs on 2 cores, measured {DAY}" in shown[0].splitlines()
    assert f"resolved for 4 usable CPUs on 2 cores (measured {DAY}) of " in shown[1]
    assert ["OMP_NUM_THREADS=2" in text for text in shown] == [True, True]
    document = json.loads(cli("show", path, "--python", simulation.python, "--json").stdout)
    assert (document["cores_measured"], document["variables"]) == (DAY, {"OMP_NUM_THREADS": "2"})


@pytest.mark.parametrize(("kept", "cores"), [(None, []), (PAIRS, ["0-1", "2-3"])])
def test_ranks_and_instances_get_their_cpus_by_the_measured_cores(
    virtual, cli, instant, simulation, write_profile, kept, cores, tmp_path
):
    if kept is not None:
        measured_cores.keep(kept)
    path = write_profile("mine", "env:\n  OMP_DYNAMIC: 'false'\n")
    for option, kind in (("--nproc", "ranks"), ("--instances", "instances")):
        ran = cli(
            "bench", path, "--python", simulation.python, "--data", "synthetic", "--blocks", 1, option, 2,
            "--output", tmp_path / kind,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        works = [start["work"] for start in simulation.starts() if start["work"]["kind"] == kind]
        assert works
        assert all(work["cores"] == cores for work in works)


def test_a_run_and_its_report(virtual, cli, instant, simulation, write_profile, run_folder):
    measured_cores.keep(PAIRS)
    path = write_profile("mine", "env:\n  OMP_NUM_THREADS: ${physical_cores}\n")
    fixed = ("--python", simulation.python, "--data", "synthetic", "--output", run_folder)
    cli("bench", path, "--budget", "50s", *fixed).ended(0)
    details = " ".join(cli("report", run_folder, "--details").stdout.split())
    assert f"4 usable CPUs on 2 cores, measured {DAY}, KVM" in details


@pytest.mark.parametrize(("kept", "status"), [(ONE_EACH, 0), (PAIRS, 2)])
def test_a_run_goes_on_with_as_many_cores_as_it_began_with(
    virtual, bench, cli, instant, simulation, run_folder, kept, status
):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine", "--budget", "50s").returncode == 1
    simulation.worker("mine")
    measured_cores.keep(kept)
    resumed = cli("bench", "--resume", run_folder)
    assert resumed.returncode == status, resumed
    assert ("facts.physical_cores was 4 and is now 2" in resumed.stderr) == (status == 2)


def test_a_report_whose_cores_were_not_measured(cli, tmp_path):
    events = records.run_events()
    assert "measured 2" not in cli("report", records.write(tmp_path / "run", events), "--details").stdout
