"""The page, Prometheus' text and the document say what was found."""

from __future__ import annotations

import json

import pytest
from envkit.cluster.fleet import findings, page, prometheus, sentences
from envkit.cluster.fleet import report_messages as messages
from envkit.cluster.fleet.findings import NodeVerdict
from envkit.rendering import text

from tests.cluster.fleet.nodes import fleet, node
from tests.records import BEGUN
from tests.report.exports.gauges import gauges
from tests.report.test_html import Page, complete

HOUR_S = 3600.0


@pytest.fixture
def found(tmp_path):
    """Forty nodes of one kind, of which three are slow and share a setting, a lone one of another, and one left out."""
    odd = {"thp_enabled": "never"}
    fleet(tmp_path, 40)
    for name in ("n03", "n07", "n11"):
        node(tmp_path, name, 0.25, fingerprint=odd)
    node(tmp_path, "n20", 0.03, noise=0.02)
    node(tmp_path, "other", fingerprint={"cpu_model": 'A <b>"CPU"</b>'})
    node(tmp_path, "broken").joinpath("record.jsonl").write_text("nonsense\n")
    return findings.find(tmp_path, None, 0.02)


def told(rows):
    return {row.label: row.text for row in rows}


def test_verdicts(found):
    assert {one.node.name for one in found.of(NodeVerdict.SLOW)} == {"n03", "n07", "n11"}
    assert len(found.of(NodeVerdict.OK)) + len(found.of(NodeVerdict.NOT_CERTAIN)) == 37
    assert [kind.judged for kind in found.kinds] == [True, False]
    assert [one.name for one in found.left_out] == ["broken"]


def test_in_words(found):
    assert sentences.headline(found).text == messages.SlowNodes(3, 40)
    said = told([*sentences.summary(found), *sentences.certainty(found)])
    assert (said["note"].nodes, said["note"].least) == (1, 6)
    assert said["errors"] == messages.FalseAlarms(0.01, found.side)
    assert "at most 1% are expected to be false alarms" in text(said["errors"])
    assert told(sentences.advice(found))["next"] == messages.MeasureAgain()


def test_the_reference_kernel_shows_whether_the_whole_machine_is_slow(found):
    slow = found.of(NodeVerdict.SLOW)[0]
    assert slow.reference_kernel == pytest.approx(1.25)
    assert slow.clock is None


def test_clocks_that_are_apart_are_no_matter_and_are_named(tmp_path):
    fleet(tmp_path, 8)
    node(tmp_path, "n08", began=BEGUN + 50 * HOUR_S)
    node(tmp_path, "n09", began=0.0)
    found = findings.find(tmp_path, None, 0.02)
    assert (found.of(NodeVerdict.SLOW), found.left_out) == ([], [])
    said = told(sentences.certainty(found))["clocks"]
    assert (type(said), said.number, said.node) == (messages.ClocksApart, 2, "n09")
    assert said.hours < -50
    assert "times of steps do not depend on it" in text(said)


def test_a_fleet_that_was_measured_over_a_week_has_no_clock_that_is_apart(tmp_path):
    for number in range(8):
        node(tmp_path, f"n{number}", began=BEGUN + 24 * number * HOUR_S)
    assert "clocks" not in told(sentences.certainty(findings.find(tmp_path, None, 0.02)))


def test_slow_because_of_a_neighbour(tmp_path):
    fleet(tmp_path, 10)
    node(tmp_path, "n03", 0.5, usage={"machine_swapped_bytes": 2**25})
    found = findings.find(tmp_path, None, 0.02)
    assert told(sentences.advice(found)) == {"next": messages.MostDisturbed(messages.Names(("n03",)), "it swapped")}
    assert sentences.slow_row(found.of(NodeVerdict.SLOW)[0])[-1] == "10 of 10"


@pytest.mark.parametrize(("chance", "shown"), [(0.0213, "0.02"), (3.2e-12, "3e-12"), (1.0, "1"), (0.999, "1")])
def test_small_chances_can_be_read(chance, shown):
    assert sentences.chance_text(chance) == shown


def test_the_document_has_every_node_and_is_json(found):
    read = json.loads(json.dumps(found.to_json(), allow_nan=False))
    kind, other = read["kinds"]
    assert (len(kind["nodes"]), len(other["nodes"])) == (40, 1)
    assert read["nodes_by_verdict"]["slow"] == 3
    assert read["nodes_by_verdict"]["left out"] == 1
    slow = next(one for one in kind["nodes"] if one["node"] == "n03")
    assert slow["verdict"] == "slow"
    assert 1 + kind["allowance"] < slow["low"] < slow["ratio"] < slow["high"]
    assert {"fact": "thp enabled", "value": "never", "most": "madvise"} in slow["unusual"]
    (fact,) = kind["differences"]
    assert [(value["text"], value["nodes"], value["slow"], value["shared"]) for value in fact["values"]] == [
        ("madvise", 37, 0, False), ("never", 3, 3, True),
    ]  # fmt: skip
    (broken,) = read["left_out"]
    reason = {name: broken["reason"][name] for name in ("code", "file", "line")}
    assert broken["name"] == "broken"
    assert reason == {"code": "bench.unusable-record", "file": "record.jsonl", "line": 1}


def test_prometheus_is_what_its_format_allows(found):
    """Text format 0.0.4; no value has a time, which a textfile collector refuses."""
    names, values = gauges(prometheus.render(found).decode().splitlines(), ("HELP", "TYPE"))
    assert len(names) > 10
    kind = 'kind="Simulated CPU (model 1), 4 usable CPUs (x86_64)"'
    assert values['envkit_fleet_nodes{verdict="slow"}'] == 3
    assert values['envkit_fleet_nodes{verdict="left_out"}'] == 1
    assert values[f'envkit_node_slow{{node="n03",profile="mine",{kind}}}'] == 1
    assert values[f'envkit_node_slow{{node="n04",profile="mine",{kind}}}'] == 0
    assert values[f'envkit_node_time_ratio{{node="n03",profile="mine",{kind}}}'] == pytest.approx(1.25, rel=0.03)
    assert values[f"envkit_fleet_step_seconds{{{kind}}}"] == pytest.approx(0.025, rel=0.01)
    assert any(r"\"CPU\"" in name for name in values)


def test_the_page_needs_nothing_else_and_says_it_all(found):
    content = page.page(found)
    read = complete(content)
    assert [section["id"] for section in read.all("section")] == [
        "picture", "found", "spread", "certainty", "records", "nodes", "differences", "left-out",
    ]  # fmt: skip
    assert len(read.all("svg")) == 4
    assert "SLOW 3 of 40 nodes" in " ".join(read.section(None).split())
    assert read.all("svg")[0]["aria-label"].startswith("Histogram of the nodes' times. ")
    for name in ("n03", "n07", "n11"):
        assert name in read.section("nodes")
    assert "thp enabled never (most: madvise)" in read.section("nodes")
    assert "Counts name no cause" in read.section("differences")
    assert "broken record.jsonl:1: damaged line" in read.section("left-out")
    assert "<b>" not in content
    assert content == page.page(found)


def test_a_page_without_slow_nodes(tmp_path):
    read = Page(page.page(findings.find(fleet(tmp_path, 7), None, 0.02)))
    assert len(read.all("svg")) == 2
    assert messages.NONE_SLOW in read.section("nodes")
    assert messages.NO_DIFFERENCES in read.section("differences")
