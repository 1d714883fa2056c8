"""What ranks do beside their training, without any: the sample of all of them, and what adds up."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import pytest
from envkit.worker import distributed
from envkit.worker.messages import OtherModes, UnlikeRank

RANK = "rank 1 (there)"


def document(rank, **fields):
    """What one rank measured."""
    usage = {name: float(rank + 1) for name in distributed.SUMMED}
    return {
        "rank": rank, "node": "here", "cpus": [rank], "seconds": 1.0 + rank, "step_s": [0.5, 0.5 + rank],
        "warmup_step_s": [2.0 - rank], "losses": [2.0 + rank, 1.0], "modes": {"precision": "fp32"},
        "usage": {**usage, "throttled_s": 0.5 * rank, "machine_busy_s": 7.0 + rank}, "peak_memory_bytes": 100,
        "communication": {"seconds": 0.25 * rank, "share": 0.5 * rank}, "evidence": {"of": rank},
        "digests": {"code": "c", "initial_weights": "w"}, "final_weights": "f", "unit": "images", **fields,
    }  # fmt: skip


def test_a_sample_of_all_ranks():
    found = distributed.merged([document(0), document(1)])
    assert (found["seconds"], found["step_s"], found["warmup_step_s"]) == (2.0, [0.5, 1.5], [2.0])
    assert found["losses"] == [2.5, 1.0]
    assert {found["usage"][name] for name in distributed.SUMMED} == {3.0}
    assert (found["usage"]["throttled_s"], found["usage"]["machine_busy_s"]) == (0.5, 7.0)
    assert found["peak_memory_bytes"] == 200
    assert found["communication"] == {"seconds": 0.125, "share": 0.25}
    assert found["evidence"] == {"of": 0}
    shares = [{"seconds": 0.25 * rank, "share": 0.5 * rank} for rank in range(2)]
    assert found["ranks"] == [
        {"rank": rank, "node": "here", "cpus": [rank], "communication": shares[rank], "evidence": {"of": rank}}
        for rank in range(2)
    ]
    assert found.keys().isdisjoint(distributed.OF_ONE)


def test_a_sample_for_which_nobody_asked_how_ranks_communicate():
    documents = [document(0), document(1)]
    for one in documents:
        del one["communication"]
    found = distributed.merged(documents)
    assert "communication" not in found
    assert [rank.keys() for rank in found["ranks"]] == [{"rank", "node", "cpus", "evidence"}] * 2


def test_what_a_kernel_does_not_tell_has_no_sum():
    other = document(1)
    other["usage"]["throttle_events"] = None
    assert distributed.merged([document(0), other])["usage"]["throttle_events"] is None


def test_ranks_that_know_no_loss_do_not_count():
    found = distributed.merged([document(0, losses=[None] * 2), document(1)])
    assert found["losses"] == [3.0, 1.0]


def test_a_loss_that_is_not_a_number_stays_one():
    found = distributed.merged([document(0), document(1, losses=[3.0, math.nan])])
    assert (found["losses"][0], math.isnan(found["losses"][1])) == (2.5, True)
    # one replica of a model in two stages has gone astray from the first step on
    stages = [[None] * 2, [math.nan] * 2, [None] * 2, [3.0, 1.0]]
    documents = [document(rank, losses=losses) for rank, losses in enumerate(stages)]
    assert all(map(math.isnan, distributed.merged(documents)["losses"]))


def test_steps_of_all_ranks_are_no_longer_than_the_whole():
    first, second = document(0, step_s=[10.0, 12.0] * 2), document(1, step_s=[12.0, 10.0] * 2)
    assert distributed.merged([first, second])["step_s"] == [12.0, 10.0, 12.0, 10.0]


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ({"modes": {"precision": "bf16"}}, {}, OtherModes(RANK)),
        ({}, {"modes": {"precision": "bf16"}}, OtherModes(RANK)),
        ({"backend": "nccl"}, {"backend": "gloo"}, OtherModes(RANK)),
        ({}, {"digests": {"code": "c", "initial_weights": "x"}}, UnlikeRank("initial weights", RANK)),
        ({}, {"final_weights": "x"}, UnlikeRank("weights at the end", RANK)),
    ],
)
def test_ranks_must_have_the_same_modes_backend_code_data_and_weights(one, other, problem):
    found = distributed.merged([document(0, **one), document(1, node="there", **other)])
    assert found == {"problem": problem.to_json()}


@pytest.mark.parametrize(
    ("spans", "total"),
    [([], 0), ([(1, 3)], 2), ([(1, 3), (2, 5)], 4), ([(4, 5), (1, 2)], 2), ([(1, 9), (2, 3), (8, 10)], 9)],
)
def test_what_overlaps_is_counted_once(spans, total):
    assert distributed.covered(spans) == total


def test_one_process_has_the_whole_batch():
    batch = [1, 2, 3]
    assert (distributed.size(), distributed.rank()) == (1, 0)
    assert distributed.share(batch) is batch
    assert distributed.weighted(batch, 3, 3) is batch
    assert distributed.wrapped(batch) is batch


def test_the_mean_over_ranks_is_that_of_all_items(monkeypatch):
    monkeypatch.setattr(distributed, "size", lambda: 2)
    # sums 6 of 2 items, and 2 of 2 others; then of 3 items and 1
    assert (distributed.weighted(3.0, 2, 4) + distributed.weighted(1.0, 2, 4)) / 2 == 8 / 4
    assert (distributed.weighted(2.0, 3, 4) + distributed.weighted(2.0, 1, 4)) / 2 == 8 / 4


# --- on GPUs: what is asked of torch, and what its profiler says, as there is none here ---


class Torch:
    """What a rank asks of torch.cuda and torch.distributed when it meets the others."""

    def __init__(self):
        self.asked = []
        self.cuda = SimpleNamespace(set_device=lambda number: self.asked.append(("gpu", number)))

    def init_process_group(self, backend, **where):
        self.asked.append(("group", backend, *where.values()))


@pytest.mark.parametrize(
    ("backend", "device", "asked"),
    [
        ("gloo", "cpu", [("group", "gloo")]),
        ("nccl", "cuda", [("gpu", 1), ("group", "cpu:gloo,cuda:nccl")]),
        ("gloo", "cuda", [("gpu", 1), ("group", "gloo")]),
    ],
)
def test_a_rank_takes_the_gpu_of_its_number_on_the_node(monkeypatch, backend, device, asked):
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.delenv(distributed.MEETING, raising=False)
    distributed.meet(torch, backend, device)
    assert torch.asked == asked


def test_ranks_of_one_node_meet_in_a_file(monkeypatch):
    torch = Torch()
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", distributed.MEETING: "/private/ranks"}.items():
        monkeypatch.setenv(name, value)
    distributed.meet(torch, "gloo", "cpu")
    assert torch.asked == [("group", "gloo", "file:///private/ranks", 1, 2)]


def test_one_process_knows_what_all_have_found():
    assert distributed.of_all({"a": [1.5, None]}) == [{"a": [1.5, None]}]


def event(name, begin, end, device="CPU"):
    """As torch.profiler has them: times in microseconds."""
    return SimpleNamespace(
        name=name, time_range=SimpleNamespace(start=begin, end=end), device_type=SimpleNamespace(name=device)
    )


# Names as PyTorch and NCCL give them; the times are made up.
PROFILED = [
    event("aten::mm", 0, 9),
    event("gloo:all_reduce", 2, 4),
    event("nccl:all_reduce", 1, 2),
    event("nccl:all_reduce", 3, 8, "CUDA"),
    event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 3, 8, "CUDA"),
    event("ampere_sgemm_128x64_nn", 0, 3, "CUDA"),
]


@pytest.mark.parametrize(("backend", "spans"), [("gloo", [(2, 4)]), ("nccl", [(3, 8), (3, 8)])])
def test_what_is_communication(backend, spans):
    assert distributed.messages(PROFILED, backend) == spans


def test_the_gpus_of_all_ranks_as_one():
    gpus = [{"idle_share": 0.1, "allocated_bytes": 5}, {"idle_share": 0.3, "allocated_bytes": 7}]
    found = distributed.merged([document(rank, gpu=gpu, backend="nccl") for rank, gpu in enumerate(gpus)])
    assert (found["gpu"], found["backend"]) == ({"idle_share": 0.3, "allocated_bytes": 12}, "nccl")
    assert [rank["gpu"] for rank in found["ranks"]] == gpus


def test_an_exchange_takes_the_mean_over_ranks():
    documents = [document(rank, exchange=[{"bytes": 4096, "seconds": 1.0 + rank}]) for rank in range(2)]
    assert distributed.merged(documents)["exchange"] == [{"bytes": 4096, "seconds": 1.5}]
