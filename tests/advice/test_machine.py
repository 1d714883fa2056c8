"""The machine's part of a profile's gain."""

from __future__ import annotations

import pytest
from envkit.advice import machine as machines
from envkit.advice.machine import Machine, features, machine_of, page_fault_s

from tests.simulated_worker import inspection


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 0x1A, 2, "Zen 5"),
        ("AuthenticAMD", 0x19, 1, "Zen 3"),
        ("AuthenticAMD", 0x19, 0x11, "Zen 4"),
        ("GenuineIntel", 6, 143, "Golden Cove"),
        ("GenuineIntel", 6, 999, None),
        ("", 0x41, 0xD0C, None),
    ],
)
def test_the_microarchitecture_follows_from_family_and_model(vendor, family, model, name):
    assert Machine(vendor, family, model, "CPU", 2, 2).microarchitecture == name


def test_a_title_names_the_vendor_once_and_cores_if_threads_share_them():
    assert Machine("AuthenticAMD", 26, 2, "AMD EPYC", 2, 2).title == "AMD Zen 5, 2 CPUs"
    assert Machine("AuthenticAMD", 99, 2, "AMD EPYC", 4, 2).title == "AMD EPYC, 4 CPUs on 2 cores"
    assert Machine("", 0, 0, "Neoverse-N1", 8, 8).title == "Neoverse-N1, 8 CPUs"


@pytest.mark.parametrize(
    ("numbers", "family", "model"),
    [
        ("cpu family 26, model 2, stepping 1", 26, 2),
        ("CPU implementer 0x41, CPU variant 0x3, CPU part 0xd0c", 0x41, 0xD0C),
        (None, 0, 0),
    ],
)
def test_family_and_model_are_read_from_the_kernels_numbers(numbers, family, model):
    document = inspection([], {})
    document["fingerprint"]["cpu_numbers"] = numbers
    machine = machine_of(document)
    assert (machine.family, machine.model, machine.usable_cpus) == (family, model, 4)


def test_a_page_fault_costs_less_than_a_millisecond(monkeypatch):
    monkeypatch.setattr(machines, "TIMED_S", 0.05)
    assert 0 < page_fault_s() < 1e-3


def test_features_name_the_vendor_the_shared_cores_and_the_cost_of_a_fault():
    machine = Machine("GenuineIntel", 6, 143, "Intel Xeon", 4, 2)
    assert features(machine, 2.5e-7) == {"intel": 1.0, "shared_cores": 0.5, "fault_us": pytest.approx(0.25)}
    assert features(machine, None)["fault_us"] is None
