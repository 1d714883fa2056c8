from __future__ import annotations

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from envkit.worker import host
from envkit.worker.host import ADDR_NO_RANDOMIZE, cpu_facts, expand_cpu_list, fingerprint

from tests.conftest import CODE_PATH
from tests.worker.made_up import write


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Facts of a machine whose CPUs are given as (package, core), with this process's mask and CPU quota."""

    def facts(cpus, mask=None, quota=None, nodes=1, online=None):
        system = {"online": online or f"0-{len(cpus) - 1}\n"}
        for number, (package, core) in enumerate(cpus):
            system[f"cpu{number}/topology/physical_package_id"] = f"{package}\n"
            system[f"cpu{number}/topology/core_id"] = f"{core}\n"
        if len(set(cpus)) < len(cpus):
            system["smt/active"] = "1\n"
        files = {f"sys/devices/system/cpu/{path}": text for path, text in system.items()}
        files |= {f"sys/devices/system/node/node{node}/cpulist": f"{node}\n" for node in range(nodes)}
        files |= {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{quota or 'max'} 100000\n"}
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: mask or set(range(len(cpus))))
        return cpu_facts(write(tmp_path, files))

    return facts


def test_nodes_without_cpus_are_memory_only(tmp_path):
    """As a GPU's memory is on some machines: nobody's threads are divided among these."""
    lists = ["0-3", "", ""]
    files = {f"sys/devices/system/node/node{node}/cpulist": f"{cpus}\n" for node, cpus in enumerate(lists)}
    facts = cpu_facts(write(tmp_path, files))
    assert (facts["numa_nodes"], facts["memory_nodes"]) == (1, 3)


def test_nodes_without_a_cpu_of_the_mask_are_not_counted(machine):
    """As in a batch job that has one socket of two."""
    packages = {"cpus": TWO_PACKAGES, "nodes": 2}
    assert machine(**packages)["numa_nodes"] == 2
    facts = machine(**packages, mask={1})
    assert (facts["numa_nodes"], facts["memory_nodes"]) == (1, 2)


def test_cores_are_told_by_their_threads_where_their_numbers_begin_anew(tmp_path, monkeypatch):
    """In each cluster of an ARM processor, of which there are two with two cores each."""
    files = {"sys/devices/system/cpu/online": "0-3\n"}
    for cpu in range(4):
        topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files |= {f"{topology}/physical_package_id": "0\n", f"{topology}/core_id": f"{cpu % 2}\n",
                  f"{topology}/thread_siblings_list": f"{cpu}\n"}  # fmt: skip
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert cpu_facts(write(tmp_path, files))["physical_cores"] == 4


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11}), ("", set()), ("2-2\n", {2})],
)
def test_expand_cpu_list(text, cpus):
    assert expand_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["0-9999999999", "9999999999", "x", "1-x", "0-" + "9" * 5000])
def test_a_list_that_no_kernel_writes(text):
    """As evidence that a program made up may have: millions of numbers would take the memory of the machine."""
    with pytest.raises(ValueError, match=r"."):
        expand_cpu_list(text)


SMT = [(0, 0), (0, 1), (0, 0), (0, 1)]  # CPUs 2 and 3 are the second threads of the two cores
TWO_PACKAGES = [(0, 0), (0, 1), (1, 0), (1, 1)]  # core numbers begin anew in each package


@pytest.mark.parametrize(
    ("arguments", "usable", "cores"),
    [
        ({"cpus": SMT}, 4, 2),
        ({"cpus": TWO_PACKAGES}, 4, 4),
        ({"cpus": [(0, 0)]}, 1, 1),
        # the mask
        ({"cpus": SMT, "mask": {0, 2}}, 2, 1),
        ({"cpus": SMT, "mask": {0, 1}}, 2, 2),
        ({"cpus": TWO_PACKAGES, "mask": {0, 2}}, 2, 2),
        ({"cpus": TWO_PACKAGES, "mask": {3}}, 1, 1),
        # the quota, rounded down but at least 1, and never more cores than usable CPUs
        ({"cpus": SMT, "quota": 350_000}, 3, 2),
        ({"cpus": TWO_PACKAGES, "quota": 150_000}, 1, 1),
        ({"cpus": SMT, "quota": 50_000}, 1, 1),
        ({"cpus": SMT, "quota": 900_000}, 4, 2),
        ({"cpus": TWO_PACKAGES, "quota": 300_000, "mask": {0, 1}}, 2, 2),
        # CPUs of the mask that are offline do not count
        ({"cpus": TWO_PACKAGES, "online": "0,2-3\n"}, 3, 3),
    ],
)
def test_usable_cpus_and_physical_cores(machine, arguments, usable, cores):
    facts = machine(**arguments)
    assert (facts["usable_cpus"], facts["physical_cores"]) == (usable, cores)


def test_what_the_counts_were_worked_out_from(machine):
    facts = machine(SMT, mask={0, 1, 2}, quota=250_000, nodes=2)
    assert facts == {
        "usable_cpus": 2, "physical_cores": 2, "numa_nodes": 2, "affinity_cpus": 3, "online_cpus": 4, "cpu_quota": 2.5,
        "smt": True, "cpu_vendor": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cpuinfo", "vendor"),
    [
        ("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\nprocessor\t: 1\n", "GenuineIntel"),
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\n", "AuthenticAMD"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", None),
    ],
)
def test_who_made_the_processor(tmp_path, cpuinfo, vendor):
    assert cpu_facts(write(tmp_path, {"proc/cpuinfo": cpuinfo}))["cpu_vendor"] == vendor


def test_a_machine_that_tells_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    facts = cpu_facts(tmp_path)
    assert (facts["usable_cpus"], facts["physical_cores"], facts["numa_nodes"], facts["smt"]) == (3, 3, 1, False)


def test_fingerprint(tmp_path):
    cpu0 = "sys/devices/system/cpu/cpu0"
    files = {
        "proc/cpuinfo": "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some CPU @ 2GHz\n"
        "stepping\t: 1\nmicrocode\t: 0x5\n"
        "flags\t\t: avx2 hypervisor amx_bf16\n\nprocessor\t: 1\nmodel name\t: Another CPU\n",
        "proc/meminfo": "MemFree: 5 kB\nMemTotal:       2048 kB\n",
        "etc/os-release": 'NAME="x"\nPRETTY_NAME="Some Linux 12"\n',
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/class/dmi/id/sys_vendor": "Some Vendor\n",
        "sys/class/dmi/id/product_name": "Some Machine\n",
        f"{cpu0}/cpufreq/scaling_governor": "powersave\n",
        f"{cpu0}/cache/index0/level": "1\n",
        f"{cpu0}/cache/index0/type": "Data\n",
        f"{cpu0}/cache/index0/size": "32K\n",
    }
    found = fingerprint(write(tmp_path, files))
    expected = {
        "cpu_model": "Some CPU @ 2GHz", "cpu_numbers": "cpu family 25, model 17, stepping 1", "microcode": "0x5",
        "isa": ["avx2", "amx_bf16"], "memory_bytes": 2048 * 1024, "distribution": "Some Linux 12",
        "thp_enabled": "madvise", "thp_defrag": None, "governor": "powersave",
        "hypervisor": "Some Vendor Some Machine", "caches": {"L1 Data": "32K"},
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("cpuinfo", "name", "value"),
    [
        ("CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n",
         "cpu_numbers", "CPU implementer 0x41, CPU variant 0x3, CPU part 0xd0c"),
        ("cpu\t\t: POWER9, altivec supported\n", "cpu_numbers", None),
        ("flags : avx2\n", "hypervisor", None),
        ("flags : hypervisor\n", "hypervisor", "a virtual machine of unknown make"),
    ],
)  # fmt: skip
def test_what_cpuinfo_tells_of_other_processors(tmp_path, cpuinfo, name, value):
    assert fingerprint(write(tmp_path, {"proc/cpuinfo": cpuinfo}))[name] == value


@pytest.fixture
def personality(monkeypatch):
    """Let the kernel say this when it is asked for the process's personality."""

    def answer(persona):
        monkeypatch.setattr(host.ctypes, "CDLL", lambda name: SimpleNamespace(personality=lambda asked: persona))

    return answer


@pytest.mark.parametrize(
    ("kernel", "persona", "aslr"),
    [
        ("2", 0, "full"),
        ("1", 0, "partial"),
        ("0", 0, "off"),
        (None, 0, None),
        ("2", ADDR_NO_RANDOMIZE, "off for this process"),
        ("1", ADDR_NO_RANDOMIZE | 0x8, "off for this process"),
        (None, ADDR_NO_RANDOMIZE, "off for this process"),
        ("0", ADDR_NO_RANDOMIZE, "off"),
        ("2", 0x8, "full"),
        ("2", -1, "full"),  # a filter of system calls refuses to tell
        ("7", 0, "7"),
    ],
)
def test_address_space_randomisation(tmp_path, personality, kernel, persona, aslr):
    files = {"proc/sys/kernel/randomize_va_space": f"{kernel}\n"} if kernel is not None else {}
    personality(persona)
    assert fingerprint(write(tmp_path, files))["aslr"] == aslr


@pytest.mark.skipif(shutil.which("setarch") is None, reason="setarch is not installed")
def test_a_process_without_random_addresses_says_so():
    if subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode:
        pytest.skip("the personality can't be set here")
    ask = "from envkit.worker.host import fingerprint; print(fingerprint()['aslr'])"
    command = ["setarch", "-R", sys.executable, "-S", "-c", ask]
    environment = {**os.environ, "PYTHONPATH": CODE_PATH}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.startswith("off")
