"""``envkit doctor`` of profiles for GPUs, with simulated workers."""

from __future__ import annotations

import json

import pytest
from envkit.cli.commands import doctor
from envkit.worker.measure.machine_load import Load

OF_NO_COMMAND = "has no effect with the command after --, which runs as it is, on this machine; leave it out"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Nothing else runs on the machine, which takes no time to see."""
    monkeypatch.setattr(doctor, "watch_machine", lambda seconds: Load(seconds, 0.0, 0.0, 0.0))


@pytest.fixture
def diagnosed(cli, simulation, instant):
    """The findings of a profile, and how ``doctor`` ended."""

    def run(profile, *options, **variables):
        named = options or ("--python", simulation.python)
        result = cli("doctor", profile, *named, "--json", **variables)
        assert result.returncode in (0, 1), result
        return {one["code"]: one for one in json.loads(result.stdout)}, result.returncode

    return run


@pytest.mark.parametrize("profile", ["nccl-log", "nccl-ring", "nccl-socket"])
def test_what_ranks_tell_of_is_not_missed_in_one_process(diagnosed, simulation, machine, profile):
    machine(2)
    simulation.worker("baseline", evidence={"nccl": {"log": "not written"}})
    found, status = diagnosed(profile)
    assert (found.keys(), status) == ({"ranks-only"}, 0)
    assert found["ranks-only"]["seen"].startswith("not checked: nccl.log")
    assert found["ranks-only"]["message"]["code"] == "checks.ranks-only"
    assert found["ranks-only"]["message"]["keys"][0] == "nccl.log"
    assert found["ranks-only"]["fix"] == f"envkit bench {profile} --device cuda --nproc 2"


def test_what_else_such_a_profile_expects_is_checked(diagnosed, machine, write_profile):
    machine(2)
    expect = "needs: {gpus: 2}\nexpect:\n  nccl.log: written\n  openmp.runtime: intel\n"
    found, status = diagnosed(write_profile("mine", expect))
    assert (found.keys(), status) == ({"ranks-only", "not-in-effect"}, 1)
    assert found["not-in-effect"]["seen"] == "openmp.runtime: expected intel, seen gnu"


def test_what_the_worker_could_not_tell(diagnosed, simulation, machine):
    machine(1)
    simulation.worker("baseline", evidence={"gpu": {"not_verified": {"one_queue": "the times are not clear"}}})
    found, status = diagnosed("gpu-one-queue")
    assert (found.keys(), status) == ({"not-verified"}, 0)
    assert found["not-verified"]["seen"] == "gpu.one_queue: the times are not clear"


def test_what_is_not_there(diagnosed, machine, write_profile):
    machine(1)
    found, status = diagnosed(write_profile("mine", "needs: {gpus: 1}\nenv: {CUDA_VISIBLE_DEVICES: '3'}\n"))
    assert (found.keys(), status) == ({"gpu-missing"}, 1)


@pytest.mark.parametrize("needs", ["", "needs: {gpus: 1}\n"])
def test_the_choice_of_a_gpu_is_kept(diagnosed, simulation, machine, write_profile, needs):
    machine(1)
    assert diagnosed(write_profile("mine", needs), CUDA_VISIBLE_DEVICES="1") == ({}, 0)
    for start in simulation.starts(all=True):
        assert start["environment"]["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.parametrize("needs", ["", "needs: {gpus: 1}\n"])
def test_it_is_kept_in_a_container(diagnosed, in_image, write_profile, needs):
    options = ("--engine", "docker", "--image", "envkit-cuda")
    assert diagnosed(write_profile("mine", needs), *options, CUDA_VISIBLE_DEVICES="1") == ({}, 0)
    (trial,) = in_image.starts()
    assert trial["environment"]["CUDA_VISIBLE_DEVICES"] == "1"
    assert trial["training"]["options"]["device"] == ("cuda" if needs else "cpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("baseline", "--", "true"), "doctor: give a PROFILE, or a command after --, and not both"),
        (("baseline", "python", "train.py"), "doctor: 'python': a command to watch comes after --"),
        (
            ("--for-issue", "--watch", "3s"),
            "--watch has no effect with --for-issue, which looks at one short training; leave it out",
        ),
        (
            ("--watch", "3s", "baseline"),
            "--watch has no effect without the command after --; add it, or leave this out",
        ),
        (("--engine", "docker", "--", "true"), f"--engine {OF_NO_COMMAND}"),
        (("--python", "python3", "--", "true"), f"--python {OF_NO_COMMAND}"),
    ],
)
def test_a_profile_or_a_command(refused, words, said):
    assert refused("doctor", *words) == f"envkit: {said}"
