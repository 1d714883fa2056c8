"""What several nodes' records come to: which nodes count, and what is said of their type."""

from __future__ import annotations

import math

import pytest
from envkit.analysis.messages import BesideOtherPrograms
from envkit.cluster import messages, type_verdict, type_wording
from envkit.cluster.fleet.messages import UNFINISHED, TooFewSamples
from envkit.rendering import text

from tests import records
from tests.report.planted import NOT_IN_EFFECT, OTHER_LOSSES

MARGIN = 0.02
ARMS = (records.arm("baseline"), records.arm("mine"), records.arm("other"))


@pytest.fixture
def cluster(tmp_path):
    """Write the record of each node: how many times as long its profile takes, and what else is as no other's."""

    def write(factors, change=lambda node, events: None, arms=ARMS[:2], **options):
        places = {}
        for number, factor in enumerate(factors, 1):
            events = records.run_events(*arms, factor=factor, **options)
            change(f"node{number}", events)
            places[f"node{number}"] = records.write(tmp_path / f"node{number}", events)
        return places

    return write


def told(verdict):
    return {row.label: row.text for row in type_wording.rows(verdict)}


def said(verdict):
    return {label: text(message) for label, message in told(verdict).items()}


def test_equal_nodes(cluster):
    verdict = type_verdict.find(cluster([0.5, 0.5, 0.52]), MARGIN)
    assert verdict.nodes == ("node1", "node2", "node3")
    assert dict(verdict.left_out) == {}
    mine = verdict.across["mine"]
    assert mine.ratios == pytest.approx([2.0, 2.0, 1 / 0.52], rel=0.02)
    assert mine.speedup.low < 1.97 < mine.speedup.high
    assert said(verdict)["mine"].startswith("1.97")
    assert "x baseline speed (95% CI " in said(verdict)["mine"]
    assert " on 3 nodes: faster; speedups of nodes differ by " in said(verdict)["mine"]
    assert said(verdict)["nodes"].startswith("3 nodes of ")
    row = told(verdict)["mine"]
    assert (type(row), row.nodes, type(row.spread)) == (messages.TypeSpeedup, 3, messages.SpreadOfNodes)
    assert (row.ratio, row.low, row.high) == (mine.speedup.ratio, mine.speedup.low, mine.speedup.high)


def test_one_node_does_not_show_how_far_nodes_differ(cluster):
    row = told(type_verdict.find(cluster([0.5]), MARGIN))["mine"]
    assert type(row.spread) is messages.SpreadUnknown
    assert row.spread.low < 2.0 < row.spread.high


def test_a_node_of_another_type_does_not_count_and_is_named(cluster):
    def another(node, events):
        if node == "node2":
            events[0]["engines"]["local"]["inspection"]["fingerprint"]["cpu_model"] = "Another CPU"

    verdict = type_verdict.find(cluster([0.5, 0.9, 0.5], another), MARGIN)
    assert verdict.nodes == ("node1", "node3")
    assert type(verdict.left_out["node2"]) is messages.OfAnotherType
    assert verdict.left_out["node2"].kind.startswith("Another CPU")
    assert verdict.to_json()["left_out"]["node2"]["code"] == "cluster.of-another-type"
    assert said(verdict)["left out"].startswith("node2: is of another type")


def test_a_slow_node_does_not_count_and_is_named(cluster):
    def slow(node, events):
        for event in events:
            if event["event"] == "sample":
                more = 1.5 if node == "node4" else 1.0 + int(node[-1]) / 1000
                event["step_s"] = [more * second for second in event["step_s"]]

    verdict = type_verdict.find(cluster([0.5] * 8, slow), MARGIN)
    assert "node4" not in verdict.nodes
    assert [*verdict.left_out] == ["node4"]
    assert type(verdict.left_out["node4"]) is messages.SlowNode
    assert 0.4 < verdict.left_out["node4"].share < 0.5


def test_a_node_with_too_few_blocks_does_not_count(cluster, tmp_path):
    places = cluster([0.5, 0.5])
    places["node3"] = records.write(tmp_path / "node3", records.run_events(blocks=2, ended=None))
    verdict = type_verdict.find(places, MARGIN)
    assert verdict.nodes == ("node1", "node2")
    assert verdict.left_out == {"node3": TooFewSamples(2, 3, UNFINISHED)}


def test_nothing_where_no_node_has_enough(cluster):
    assert type_verdict.find(cluster([0.5], blocks=2), MARGIN) is None


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [(NOT_IN_EFFECT, messages.NotInEffectOn("node1")), (OTHER_LOSSES, messages.LossesDifferOn("node1"))],
)
def test_an_arm_that_a_node_found_wrong_is_not_recommended(cluster, tmp_path, behaviour, why):
    verdict = type_verdict.find(cluster([0.5, 0.5], behaviour=behaviour), MARGIN)
    assert verdict.cautions == {"mine": why}
    assert told(verdict)["mine"].reason == why
    table, rows = type_wording.page_parts(verdict, tmp_path)
    if isinstance(why, messages.NotInEffectOn):  # its times are no result
        assert said(verdict)["mine"] == "no speedup is reported: not in effect on node1"
        assert table.rows[0] == ["mine", "-", "", messages.NOT_IN_EFFECT, "2", "-", ""]
    else:
        assert type(told(verdict)["mine"]) is messages.NotRecommended
        assert said(verdict)["mine"].endswith(f" on 2 nodes: not recommended: {text(why)}")
        assert (table.rows[0][1][-1], table.rows[0][3]) == ("x", messages.LOSSES_DIFFER)
    assert table.weights == ["bad"]
    assert rows.rows[0] == next(row for row in type_wording.rows(verdict) if row.label == "mine")


def test_an_arm_above_the_memory_limit_on_a_node_is_not_recommended(cluster, tmp_path):
    def larger(node, events):
        events[0]["study"]["stopping"]["max_memory"] = 0.1
        for event in events:
            if event["event"] == "sample" and event["arm"] == "mine" and node == "node2":
                event["peak_memory_bytes"] *= 1.5

    verdict = type_verdict.find(cluster([0.5, 0.5], larger), MARGIN)
    assert verdict.cautions == {"mine": messages.OverMemoryOn("node2", 0.5)}
    table, _ = type_wording.page_parts(verdict, tmp_path)
    assert table.rows[0][3] == messages.OVER_MEMORY


def test_two_profiles_are_compared_with_each_other_in_the_blocks_of_each_node(cluster):
    def third(node, events):
        for event in events:
            if event["event"] == "sample" and event["arm"] == "other":
                event["step_s"] = [1.25 * second for second in event["step_s"]]

    places = cluster([0.5, 0.5], third, arms=ARMS)
    verdict = type_verdict.find(places, MARGIN, pair=("mine", "other"))
    assert verdict.versus.speedup.ratio == pytest.approx(1.25, rel=0.02)
    ordered = type_wording.table(verdict).rows
    assert [row[0] for row in ordered] == ["mine", "other"]
    assert math.isclose(float(ordered[0][1][:-1]) / float(ordered[1][1][:-1]), 1.25, rel_tol=0.02)
    assert [row[1][-1] for row in ordered] == ["x", "x"]
    assert [row[3] for row in ordered] == ["faster", "faster"]


def beside_a_load(*nodes):
    def change(node, events):
        for event in events:
            if event["event"] == "sample" and node in nodes:
                own = event["usage"]["user_s"] + event["usage"]["system_s"]
                event["usage"] |= {"worker_cpus": 2, "worker_cpus_busy_s": own + 1.5 * event["seconds"]}

    return change


def test_a_node_that_was_measured_beside_a_load_does_not_count_and_is_named(cluster):
    verdict = type_verdict.find(cluster([0.5, 0.5, 0.5], beside_a_load("node2"), blocks=4), MARGIN)
    assert verdict.nodes == ("node1", "node3")
    why = verdict.left_out["node2"]
    assert why == messages.UnderLoad(BesideOtherPrograms(pytest.approx(1.5, rel=0.02), 2))
    assert text(why) == "was measured beside other programs that used 1.5 of 2 CPUs: measure it again"
    assert verdict.load is None
    assert "faster" in said(verdict)["mine"]


def test_where_all_nodes_were_measured_beside_a_load_nothing_is_recommended(cluster):
    verdict = type_verdict.find(cluster([0.5, 0.5], beside_a_load("node1", "node2"), blocks=4), MARGIN)
    assert verdict.nodes == ("node1", "node2")
    assert verdict.to_json()["load"]["kind"] == "other-programs"
    why = "not recommended: measured beside other programs that used 1.5 of 2 CPUs"
    assert said(verdict)["mine"].endswith(why)
    assert [row[3] for row in type_wording.table(verdict).rows] == ["faster, under load"]
