"""What is made of NVML's answers, from a library that answers as the NVML API reference says: no GPU is here."""

from __future__ import annotations

import ctypes

import pytest
from envkit.worker import nvml
from envkit.worker.messages.gpus import (
    DriverNotLoaded,
    DriverNotPermitted,
    DriverSilent,
    DriverVersionsDiffer,
    NoDriverSeen,
)
from envkit.worker.nvml import Nvml, Unavailable, around, held_back, reading

from tests.nvidia import UUIDS, Library

NUMBERS = {
    "sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_mw": 118432, "energy_mj": 9_000_000_500,
    "reasons": 4,
}  # fmt: skip


def test_the_driver_and_its_gpus():
    found = Nvml(Library(gpus=2))
    assert (found.driver(), found.cuda()) == ("580.95.05", "13.0")
    assert Nvml(Library(nvmlSystemGetCudaDriverVersion_v2=12080)).cuda() == "12.8"  # it tells one number
    assert found.devices() == [{"name": "NVIDIA H100 80GB HBM3", "uuid": uuid} for uuid in UUIDS]
    assert Nvml(Library(gpus=0)).devices() == []


def test_what_a_gpu_counts_and_measures():
    assert Nvml(Library(gpus=2)).numbers(UUIDS[1]) == NUMBERS
    assert Nvml(Library()).numbers("GPU-none") is None


def test_an_older_driver_calls_the_reasons_something_else():
    library = Library(
        missing=("nvmlDeviceGetCurrentClocksEventReasons",), nvmlDeviceGetCurrentClocksThrottleReasons=0x48
    )
    assert Nvml(library).numbers(UUIDS[0]) == {**NUMBERS, "reasons": 0x48}


def test_what_a_gpu_does_not_support_is_not_known():
    library = Library(
        nvmlDeviceGetPowerUsage=None, nvmlDeviceGetTotalEnergyConsumption=None,
        nvmlDeviceGetCurrentClocksEventReasons=None,
    )  # fmt: skip
    numbers = Nvml(library).numbers(UUIDS[0])
    assert numbers == {**NUMBERS, "power_mw": None, "energy_mj": None, "reasons": None}
    assert reading(numbers) == {
        "sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_w": None, "energy_j": None, "held_back": None,
    }  # fmt: skip


def test_a_reading_has_a_records_units():
    assert reading(NUMBERS) == {
        "sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_w": 118.432, "energy_j": 9_000_000.5,
        "held_back": ["power cap"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (0, []),
        (0x1, ["idle"]),
        (0x4 | 0x20, ["power cap", "software thermal slowdown"]),
        (0x8 | 0x40 | 0x80, ["hardware slowdown", "hardware thermal slowdown", "power brake"]),
        (0x2 | 0x10 | 0x100, ["applications clocks", "sync boost", "display clocks"]),
        (0x1 | 0x2000, ["idle", "0x2000"]),
    ],
)
def test_why_clocks_are_held_back(reasons, words):
    assert held_back(reasons) == words


def test_two_readings_tell_the_energy_between_them():
    before, after = reading(NUMBERS), reading({**NUMBERS, "energy_mj": 9_000_700_500, "temperature_c": 55})
    told = around(before, after, 2.0)
    assert (told["energy_j"], told["mean_power_w"]) == (700.0, 350.0)
    assert (told["before"]["temperature_c"], told["after"]["temperature_c"]) == (41, 55)
    assert "energy_j" not in told["before"]  # since the driver was loaded, which means nothing alone


@pytest.mark.parametrize("energy_mj", [None, 8_000_000_000])  # a counter that began anew
def test_without_a_counter_there_is_no_energy(energy_mj):
    told = around(reading(NUMBERS), reading({**NUMBERS, "energy_mj": energy_mj}), 2.0)
    assert (told["energy_j"], told["mean_power_w"]) == (None, None)


def test_no_driver(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(Unavailable) as caught:
        nvml.start()
    assert caught.value.message == NoDriverSeen("libnvidia-ml.so.1")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (9, DriverNotLoaded()),
        (18, DriverVersionsDiffer()),
        (4, DriverNotPermitted()),
        (999, DriverSilent(999)),
    ],
)
def test_a_driver_that_does_not_answer(monkeypatch, status, said):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library(init=status))
    with pytest.raises(Unavailable) as caught:
        nvml.start()
    assert caught.value.message == said


def test_several_gpus_as_one():
    """The slowest, the hottest, all of their power; what held back any of them."""
    one = {"before": {"sm_mhz": 1980, "temperature_c": 40, "power_w": 100.0, "held_back": ["power cap"]}, "energy_j": 5}
    other = {"before": {"sm_mhz": 1755, "temperature_c": 61, "power_w": 90.0, "held_back": ["idle"]}, "energy_j": 6}
    assert nvml.together([one, other]) == {
        "before": {"sm_mhz": 1755, "temperature_c": 61, "power_w": 190.0, "held_back": ["power cap", "idle"]},
        "energy_j": 11,
    }
    assert nvml.together([one]) == one


def test_what_one_of_several_does_not_tell_is_not_known():
    told = {"before": {"sm_mhz": 1980, "held_back": None}, "idle_share": 0.5}
    assert nvml.together([told, {"idle_share": None}]) == {"before": None, "idle_share": None}
    assert nvml.together([told, told])["before"] == {"sm_mhz": 1980, "held_back": None}
