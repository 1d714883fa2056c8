"""Measured cores: kept for this machine and its CPUs alone, and counted by all that counts cores."""

from __future__ import annotations

import json
import os
import platform

import pytest
from envkit.bench import early_checks
from envkit.checks import this_process
from envkit.checks.doctor import preflight
from envkit.common.errors import InputError
from envkit.engines import measured_cores
from envkit.engines.measured_cores import MeasuredCores, applied, find, keep
from envkit.engines.messages import NoCacheFolder
from envkit.profiles.environment import Environment
from envkit.profiles.profile import load
from envkit.profiles.resolve import of_rank, resolve
from envkit.worker.host import cpu_facts, cpu_list, expand_cpu_list, fingerprint, usable_cpus

DAY = "2026-11-28"
PAIRS = MeasuredCores("0-3", ("0-1", "2-3"), DAY)
APART = MeasuredCores("0-3", ("0", "1", "2", "3"), DAY)


def inspection(cpus="0-3", cores=4, usable=None, smt=False, **other):
    """What a worker says that may use these CPUs of this machine."""
    facts = {**cpu_facts(), "usable_cpus": usable or len(expand_cpu_list(cpus)), "physical_cores": cores, "smt": smt}
    return {"facts": facts, "cpus": cpus, "fingerprint": fingerprint() | other, "libraries": {}, "commands": {}}


def counted(**fields):
    found = applied(inspection(**fields))
    return found["facts"]["physical_cores"], found["facts"]["smt"], found.get("cores_measured")


def test_a_cache_folder_that_this_user_may_not_read_is_as_an_empty_one(monkeypatch):
    class Unreadable:
        def is_dir(self):
            raise PermissionError

    keep(PAIRS)
    monkeypatch.setattr(measured_cores, "_folder", Unreadable)
    assert counted() == (4, False, None)


def test_nothing_was_measured():
    assert find({0}) is None
    assert counted() == (4, False, None)


@pytest.mark.parametrize(
    ("kept", "fields", "cores"),
    [
        (PAIRS, {}, (2, True, DAY)),
        (APART, {}, (4, False, DAY)),
        (APART, {"cores": 2, "smt": True}, (4, True, DAY)),  # the kernel may have called two cores one
        # a container with a part of the CPUs, or with a quota
        (PAIRS, {"cpus": "0,2", "cores": 2}, (2, False, DAY)),
        (PAIRS, {"cpus": "0-1", "cores": 2}, (1, True, DAY)),
        (PAIRS, {"cpus": "3", "cores": 1}, (1, False, DAY)),
        (APART, {"usable": 2, "cores": 2}, (2, False, DAY)),
        # CPUs that were not measured
        (PAIRS, {"cpus": "0-4"}, (4, False, None)),
        (PAIRS, {"cpus": "7"}, (4, False, None)),
        # another machine's engine
        (PAIRS, {"cpu_model": "Another CPU"}, (4, False, None)),
        (PAIRS, {"kernel": "1.0"}, (4, False, None)),
        (PAIRS, {"memory_bytes": 1}, (4, False, None)),
    ],
)
def test_the_cores_of_what_may_be_used(kept, fields, cores):
    keep(kept)
    assert counted(**fields) == cores


@pytest.mark.parametrize("cpus", ["", "x", "0-99999999", 4, None])
def test_an_image_that_says_nothing_of_its_cpus(cpus):
    keep(PAIRS)
    document = {**inspection(), "cpus": cpus}
    assert applied(document) == document
    del document["cpus"]
    assert applied(document) == document


def test_the_latest_measurement_of_the_same_cpus_counts():
    keep(PAIRS)
    keep(MeasuredCores("0-1", ("0", "1"), DAY))
    assert counted(cpus="0-1", cores=2) == (2, False, DAY)
    assert counted() == (2, True, DAY)
    keep(APART)
    assert counted(cpus="0-1", cores=2) == (2, False, DAY)
    (path,) = measured_cores._folder().iterdir()
    assert len(json.loads(path.read_text())["measured"]) == 1


def test_each_machine_that_shares_a_home_has_results_of_its_own(monkeypatch):
    keep(PAIRS)
    name = platform.node()
    monkeypatch.setattr(platform, "node", lambda: "another")
    assert find({0}) is None
    keep(APART)
    assert find({0}) == APART
    monkeypatch.setattr(platform, "node", lambda: name)
    assert find({0}) == PAIRS


def test_the_file_of_another_machine_in_the_place_of_this_one(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: "another")
        keep(PAIRS)
    (path,) = measured_cores._folder().iterdir()
    path.rename(measured_cores._path(measured_cores.machine()))
    assert find({0}) is None


def of(**fields):
    document = {"cpus": "0-3", "cores": ["0-1", "2-3"], "day": DAY, **fields}
    return {"machine": measured_cores.machine(), "measured": [document]}


@pytest.mark.parametrize(
    "damaged",
    [
        b"", b"{", b"[]", b"null", b'{"machine": {}}', b"\xff\xfe", b"[" * 10**5, b"{}" * 9 * 2**20,
        {"machine": 1, "measured": []}, of(cpus="0-2"), of(cpus=""), of(cores=[]), of(cores=["0-3", "0"]), of(cores=4),
        of(cores=["0-99999999999"]), of(cpus="x"), of(day="yesterday"), of(day=None), of(cpus=None),
    ],
)  # fmt: skip
def test_a_damaged_file_is_none_and_is_replaced(damaged):
    keep(PAIRS)
    (path,) = measured_cores._folder().iterdir()
    path.write_bytes(damaged if isinstance(damaged, bytes) else json.dumps(damaged).encode())
    assert counted() == (4, False, None)
    keep(APART)
    assert counted() == (4, False, DAY)


def test_a_folder_that_can_not_be_written_to(own_surroundings):
    (own_surroundings / "cache").write_text("a file")
    with pytest.raises(InputError) as refused:
        keep(PAIRS)
    assert refused.value.message.file == str(measured_cores._path(measured_cores.machine()))
    (own_surroundings / "cache").unlink()


def test_a_user_without_a_home(monkeypatch):
    def fail():
        raise RuntimeError

    monkeypatch.setattr(measured_cores.folders, "cache", fail)
    assert find({0}) is None
    with pytest.raises(InputError) as refused:
        keep(PAIRS)
    assert refused.value.message == NoCacheFolder()


@pytest.fixture
def measured_here():
    """This machine has one core for all the CPUs that may be used, as a measurement says."""
    cpus = cpu_list(usable_cpus())
    keep(MeasuredCores(cpus, (cpus,), DAY))


def test_all_that_counts_cores_counts_the_measured_ones(measured_here, write_profile, monkeypatch):
    profile = load(str(write_profile("mine", "env:\n  OMP_NUM_THREADS: ${physical_cores}\n")))
    assert measured_cores.facts_here()["physical_cores"] == 1
    assert this_process._resolved(profile, usable_cpus()).variables == {"OMP_NUM_THREADS": "1"}
    document = applied(inspection(cpu_list(usable_cpus())))
    assert resolve(profile, document).variables == {"OMP_NUM_THREADS": "1"}
    assert of_rank(document, 2)["facts"]["physical_cores"] == 1
    two = load(str(write_profile("two", "needs: {physical_cores: 2}\nenv:\n  OMP_DYNAMIC: 'false'\n")))
    assert [one.name for one in early_checks.applying([profile, two])] == ["mine"]


@pytest.mark.parametrize(("kept", "codes"), [(None, ["hidden-topology"]), (APART, []), (PAIRS, ["cores-differ"])])
def test_a_binding_on_a_virtual_machine_is_in_doubt_until_cores_were_measured(kept, codes):
    if kept is not None:
        keep(kept)
    variables = {"OMP_PROC_BIND": "close"}
    environment = Environment("mine", "A test", variables, {}, (), {}, "same", 1, 0)
    document = applied(inspection(hypervisor="KVM"))
    assert [finding["code"] for finding in preflight([(environment, document)], force=False)] == codes


@pytest.mark.parametrize("cpus", [{0}, {0, 1}, {0, 2, 3, 4, 9}, {*range(256)}, {255}])
def test_lists_of_cpus(cpus):
    assert expand_cpu_list(cpu_list(cpus)) == cpus
    assert cpu_list({0, 2, 3, 4, 9}) == "0,2-4,9"
    assert usable_cpus() <= os.sched_getaffinity(0)
