"""Which numbers of ranks can train what, and why others can't."""

from __future__ import annotations

import pytest
from envkit.bench.batch_split import not_tried, shared, ungrown, unshared
from envkit.worker.modes import CPU, CUDA, USUAL, Options
from envkit.worker.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("name", "how", "ranks", "why"),
    [
        ("cnn", USUAL, 64, None),
        ("cnn", USUAL, 3, "a batch of cnn has 64 images, which 3 ranks can't share evenly"),
        ("cnn", Options(scale=3), 3, None),
        ("translation", USUAL, 64, "a batch of translation has 32 sentences, which 64 ranks can't share evenly"),
        ("model-parallel", USUAL, 3, "model-parallel has 2 stages, each in ranks of its own"),
        # 4 micro-batches of a third of the batch
        ("model-parallel", USUAL, 6, "a batch of model-parallel has 64 images, which 6 ranks can't share evenly"),
        ("model-parallel", USUAL, 32, None),
        ("loader", USUAL, 2, "ranks can't share the batches of loader"),
        ("loader", USUAL, 1, None),
    ],
)
def test_what_ranks_can_share(name, how, ranks, why):
    found = unshared(name, how, ranks)
    assert (found and found[0]) == why
    assert not_tried(name, how, "any", 1, 0, ranks) == why


@pytest.mark.parametrize("name", shared())
def test_the_numbers_that_are_advised_can_be_given(name):
    _, fix = unshared(name, USUAL, 10007 * WORKLOADS[name].stages)
    advised = fix.removeprefix("give one of: ").removesuffix(", or another --scale").split(", ")
    assert len(advised) > 1
    assert [unshared(name, USUAL, int(one)) for one in advised] == [None] * len(advised)


@pytest.mark.parametrize(
    ("name", "scale", "ranks", "why", "fix"),
    [
        ("cnn", 1, 843, None, None),
        ("cnn", 1, 844, "844 ranks with 64 images each have more at once than the 54,000 of cnn",
         "train on 843 ranks or fewer"),
        ("translation", 4, 33, "33 ranks with 128 sentences each have more at once than the 4,096 of translation",
         "train on 32 ranks or fewer, or give a smaller --scale"),
        ("loader", 1, 2, "loader has no batch that grows with ranks",
         f"leave it out, or name one of: {', '.join(shared())}"),
    ],
)  # fmt: skip
def test_how_far_a_batch_can_grow(name, scale, ranks, why, fix):
    assert ungrown(name, Options(scale=scale), ranks) == (why and (why, fix))


def test_a_search_leaves_out_ranks_that_learn_otherwise():
    assert not_tried("segmentation", USUAL, "same", 1, 0, 2) == (
        "several ranks learn something else; --numerics any tries them too"
    )
    tried = [("segmentation", "any", 2), ("segmentation", "same", 1), ("cnn", "same", 2), (None, "same", 1)]
    assert [not_tried(name, USUAL, numerics, 1, 0, ranks) for name, numerics, ranks in tried] == [None] * len(tried)


@pytest.mark.parametrize(
    ("trained", "device", "together", "ranks", "why"),
    [
        ("cnn", CUDA, 1, 2, None),
        ("cnn", CUDA, 1, 4, "4 ranks take a GPU each, and 2 are usable"),
        ("cnn", CPU, 1, 4, None),
        ("cnn", CPU, 2, 4, "has 4 ranks of its own, and --nproc 2 is given"),
        ("cnn", CPU, 2, 1, None),
        (None, CPU, 1, 2, "a command of your own starts its ranks itself"),
    ],
)
def test_a_search_leaves_out_ranks_that_can_not_be_had(trained, device, together, ranks, why):
    assert not_tried(trained, Options(device=device), "same", together, 2, ranks) == why
