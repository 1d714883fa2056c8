"""Which nodes are held against each other."""

from __future__ import annotations

import pytest
from envkit.cluster.fleet import comparability, reading
from envkit.cluster.fleet.messages import MOST, UNFINISHED, FactBeside, Facts, MeasuredOtherwise, TooFewSamples
from envkit.rendering import text

from tests import records
from tests.cluster.fleet.nodes import fleet, node, node_events
from tests.nvidia import accelerator

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def grouped(place):
    nodes, left_out = reading.read(place, None)
    assert left_out == []
    groups, left_out = comparability.groups(nodes)
    return [[one.name for one in group] for group in groups], {one.name: one.reason for one in left_out}


def test_a_node_with_another_image(tmp_path):
    fleet(tmp_path, 3, digest=A)
    node(tmp_path, "n03", digest=B)
    groups, left_out = grouped(tmp_path)
    assert groups == [["n00", "n01", "n02"]]
    unlike = FactBeside("image digest", "sha256:bbbbbbbbbbbbbbbbb…", "sha256:aaaaaaaaaaaaaaaaa…", MOST)
    assert left_out == {"n03": MeasuredOtherwise(Facts((unlike,)))}


@pytest.mark.parametrize(("options", "unlike"), [
    ({"steps": 5}, ("steps", "5", "3")),
    ({"workload": "other"}, ("workload", "other", "cnn")),
    ({"options": {"precision": "bf16-autocast"}}, ("mode", "bf16-autocast", "fp32")),
    ({"profiles": ("baseline",)}, ("profile", "baseline", "mine")),
])  # fmt: skip
def test_a_node_that_measured_something_else(tmp_path, options, unlike):
    fleet(tmp_path, 3)
    node(tmp_path, "n03", **options)
    assert FactBeside(*unlike, MOST) in grouped(tmp_path)[1]["n03"].facts.facts


def test_a_node_whose_ranks_had_a_larger_batch(tmp_path):
    fleet(tmp_path, 3, ranks=2)
    node(tmp_path, "n03", ranks=2, weak=True)
    unlike = FactBeside("scaling", "weak scaling", "strong scaling", MOST)
    assert grouped(tmp_path)[1] == {"n03": MeasuredOtherwise(Facts((unlike,)))}
    assert sorted({one.workload for one in reading.read(tmp_path, None)[0]}) == ["cnn", "cnn (weak scaling)"]


def test_of_many_differences_two_are_named(tmp_path):
    fleet(tmp_path, 3)
    node(tmp_path, "n03", steps=5, epochs=2, workload="other")
    facts = grouped(tmp_path)[1]["n03"].facts
    assert (len(facts.facts), facts.more) == (2, 1)
    assert text(facts).endswith(" and 1 more")


def test_kinds_of_machines_are_apart(tmp_path):
    fleet(tmp_path, 2)
    node(tmp_path, "n02", facts={"usable_cpus": 8})
    node(tmp_path, "n03", fingerprint={"cpu_model": "Another CPU"})
    assert grouped(tmp_path) == ([["n00", "n01"], ["n03"], ["n02"]], {})


def with_gpu(place, name, gpu, **options):
    events = node_events(name, **options)
    seen = accelerator(1, devices=[{"name": gpu, "uuid": "GPU-1"}])
    events[0]["engines"]["local"]["inspection"]["accelerator"] = seen
    records.write(place / name, events)


def test_gpus_are_of_the_kind_where_they_are_trained_on(tmp_path):
    for number, gpu in enumerate(("A100", "A100", "V100")):
        with_gpu(tmp_path, f"n{number:02}", gpu, options={"device": "cuda"})
    assert grouped(tmp_path) == ([["n00", "n01"], ["n02"]], {})
    groups, _ = comparability.groups(reading.read(tmp_path, None)[0])
    assert [group[0].kind.rpartition(", ")[2] for group in groups] == ["A100", "V100"]
    assert groups[0][0].facts["GPU driver"] == "580.95.05"


def test_gpus_that_nothing_was_trained_on_make_no_other_kind(tmp_path):
    for number, gpu in enumerate(("A100", "V100")):
        with_gpu(tmp_path, f"n{number:02}", gpu)
    assert grouped(tmp_path) == ([["n00", "n01"]], {})


@pytest.mark.parametrize(("ended", "state"), [("complete", None), ("interrupted", UNFINISHED), (None, UNFINISHED)])
def test_a_node_with_few_samples(tmp_path, ended, state):
    fleet(tmp_path, 2)
    node(tmp_path, "n02", samples=3, ended=ended)
    assert grouped(tmp_path)[1] == {"n02": TooFewSamples(3, 6, state)}
