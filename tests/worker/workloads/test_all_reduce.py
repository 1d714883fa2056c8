"""What ranks exchange, without any others: sums and bandwidths; tests/engines/test_ranks.py has real ranks."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest
from envkit.worker import accelerator, distributed
from envkit.worker.modes import Options
from envkit.worker.workloads import all_reduce
from envkit.worker.workloads.all_reduce import REPEATS, SIZES, bus_factor


@pytest.mark.parametrize(("ranks", "factor"), [(1, 0), (2, 1), (4, 1.5), (8, 1.75)])
def test_the_bus_carries_more_than_the_algorithm_the_more_ranks_there_are(ranks, factor):
    assert bus_factor(ranks) == factor


@pytest.fixture
def alone(monkeypatch):
    """One process that has ``ranks`` others with the same numbers, and clocks that tell two seconds for each size."""
    calls = []

    def ranks(count):
        def add_up(numbers):
            calls.append(numbers.numel() * 4)
            # the first sum is of 1 to count, each further one of as many equal numbers
            first = len(calls) % (REPEATS + 1) == 1
            numbers *= (count + 1) / 2 * count if first else count

        exchange = all_reduce.prepare("generated", Options())
        monkeypatch.setattr(distributed, "size", lambda: count)
        monkeypatch.setattr(exchange._torch.distributed, "all_reduce", add_up)
        monkeypatch.setattr(
            accelerator, "clock", lambda device: SimpleNamespace(mark=lambda: None, times=lambda: [3.0, 5.0])
        )
        return exchange, calls

    return ranks


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_result_is_1_for_any_number_of_ranks(alone, count):
    exchange, calls = alone(count)
    assert [exchange.step(), exchange.step()] == [1.0, 1.0]
    assert calls == [size for size in SIZES for _ in range(REPEATS + 1)] * 2


def test_a_wrong_sum_shows(alone, monkeypatch):
    exchange, _ = alone(2)
    monkeypatch.setattr(exchange._torch.distributed, "all_reduce", lambda numbers: None)
    assert exchange.step() < 0.1


def test_the_time_of_one_is_the_mean_over_its_repeats(alone):
    exchange, _ = alone(2)
    for _ in range(3):
        exchange.step()
    assert exchange.exchanged(2) == [{"bytes": size, "seconds": 2.0 / REPEATS} for size in SIZES]


def test_warm_up_steps_do_not_count():
    exchange = all_reduce.prepare("generated", Options())
    exchange._seconds = [[9.0, 9.0, 1.0, 2.0, 3.0] for _ in SIZES]
    assert {one["seconds"] for one in exchange.exchanged(3)} == {2.0}


def test_one_process_adds_nothing_up():
    exchange = all_reduce.prepare("generated", Options())
    assert exchange.step() == 1.0
    assert exchange.quality() is None
    assert exchange.modes() == {"precision": "fp32", "compile": False, "channels_last": False, "device": "cpu"}


def test_a_scale_makes_all_sizes_larger():
    exchange = all_reduce.prepare("generated", Options(scale=2))
    exchange.step()
    assert [one["bytes"] for one in exchange.exchanged(1)] == [2 * size for size in SIZES]
    assert exchange.images_per_step == round(2 * (REPEATS + 1) * sum(SIZES) / 1e6)


def test_digests_are_of_its_code_and_its_numbers():
    one, other = (all_reduce.prepare("generated", Options(scale=scale)).digests for scale in (1, 2))
    assert one["code"] != other["code"]
    assert one["initial_weights"] != other["initial_weights"]
    assert one["data"] == hashlib.sha256().hexdigest()
