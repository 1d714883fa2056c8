"""Which numbers of ranks can train what, and why others can't."""

from __future__ import annotations

import pytest
from envkit.bench.batch_split import not_tried, shared, ungrown, unshared
from envkit.bench.requirement_messages import (
    FewerRanks,
    HasRanks,
    LargerThanData,
    NameAnother,
    NoGrowingBatch,
    NotSharable,
    RanksLearnOtherwise,
    SmallerScale,
    StagesOfRanks,
    StartsRanksItself,
    TooFewGpus,
    UnevenBatch,
    WithFix,
)
from envkit.worker.modes import CPU, CUDA, USUAL, Options
from envkit.worker.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("name", "how", "ranks", "why"),
    [
        ("cnn", USUAL, 64, None),
        ("cnn", USUAL, 3, UnevenBatch("cnn", 64, "images", 3)),
        ("cnn", Options(scale=3), 3, None),
        ("translation", USUAL, 64, UnevenBatch("translation", 32, "sentences", 64)),
        ("model-parallel", USUAL, 3, StagesOfRanks("model-parallel", 2)),
        # 4 micro-batches of a third of the batch
        ("model-parallel", USUAL, 6, UnevenBatch("model-parallel", 64, "images", 6)),
        ("model-parallel", USUAL, 32, None),
        ("loader", USUAL, 2, NotSharable("loader")),
        ("loader", USUAL, 1, None),
    ],
)
def test_what_ranks_can_share(name, how, ranks, why):
    found = unshared(name, how, ranks)
    assert (found and found.problem) == why
    assert not_tried(name, how, "any", 1, 0, ranks) == why


@pytest.mark.parametrize("name", shared())
def test_the_numbers_that_are_advised_can_be_given(name):
    advised = unshared(name, USUAL, 10007 * WORKLOADS[name].stages).fix.ranks
    assert len(advised) > 1
    assert [unshared(name, USUAL, int(one)) for one in advised] == [None] * len(advised)


@pytest.mark.parametrize(
    ("name", "scale", "ranks", "why", "fix"),
    [
        ("cnn", 1, 843, None, None),
        ("cnn", 1, 844, LargerThanData(844, 64, "images", 54000, "cnn"), FewerRanks(843)),
        ("translation", 4, 33, LargerThanData(33, 128, "sentences", 4096, "translation"), FewerRanks(32, "--scale")),
        ("cnn", 843, 2, LargerThanData(2, 843 * 64, "images", 54000, "cnn"), SmallerScale()),
        ("loader", 1, 2, NoGrowingBatch("loader"), NameAnother(tuple(shared()))),
    ],
)
def test_how_far_a_batch_can_grow(name, scale, ranks, why, fix):
    assert ungrown(name, Options(scale=scale), ranks) == (why and WithFix(why, fix))


def test_a_search_leaves_out_ranks_that_learn_otherwise():
    assert not_tried("segmentation", USUAL, "same", 1, 0, 2) == RanksLearnOtherwise()
    tried = [("segmentation", "any", 2), ("segmentation", "same", 1), ("cnn", "same", 2), (None, "same", 1)]
    assert [not_tried(name, USUAL, numerics, 1, 0, ranks) for name, numerics, ranks in tried] == [None] * len(tried)


@pytest.mark.parametrize(
    ("trained", "device", "together", "ranks", "why"),
    [
        ("cnn", CUDA, 1, 2, None),
        ("cnn", CUDA, 1, 4, TooFewGpus(4, 2)),
        ("cnn", CPU, 1, 4, None),
        ("cnn", CPU, 2, 4, HasRanks(4, 2)),
        ("cnn", CPU, 2, 1, None),
        (None, CPU, 1, 2, StartsRanksItself()),
    ],
)
def test_a_search_leaves_out_ranks_that_can_not_be_had(trained, device, together, ranks, why):
    assert not_tried(trained, Options(device=device), "same", together, 2, ranks) == why
