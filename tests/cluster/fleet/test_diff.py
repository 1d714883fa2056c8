"""``envkit fleet diff``: nodes that became slower from one report to the next, where the truth is planted."""

from __future__ import annotations

import json
import shutil

import pytest
from envkit.cluster.fleet import kept

from tests.cli.commands.conftest import words
from tests.cluster.fleet.nodes import fleet, node
from tests.cluster.slurm.conftest import study, submission_in
from tests.records import BEGUN
from tests.report.exports.gauges import gauges


@pytest.fixture
def then(tmp_path):
    return fleet(tmp_path / "then", 20, slower={"n03": 0.2})


@pytest.fixture
def now(tmp_path):
    """All take 10% more time, one of them 30% more than that; one is as fast as the others now, and one is new."""
    usual = {f"n{number:02}": 0.1 for number in range(20)}
    place = fleet(tmp_path / "now", 20, slower={**usual, "n07": 0.43})
    node(place, "n99", 0.1)
    shutil.rmtree(place / "n19")
    return place


def test_a_node_that_became_slower_is_named_and_what_became_of_all_is_the_fleet_s(cli, then, now):
    result = cli("fleet", "diff", then, now).ended(1)
    text = words(result.stdout)
    assert text.startswith("SLOWER 1 of 19 nodes")
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.startswith("n")}
    assert "SLOWER" in rows["n07"]
    assert "FASTER" in rows["n03"]
    assert "the middle node takes 1.1" in text
    assert "at most 5% of comparisons without any change name a node" in text
    assert "the tails of Student's t with 3 degrees of freedom, or lighter ones" in text
    assert "gone n19" in text
    assert "new n99" in text


def test_as_json_and_for_prometheus(cli, then, now, tmp_path):
    document = json.loads(cli("fleet", "diff", then, now, "--json").stdout)
    (kind,) = document["kinds"]
    slower = [one for one in kind["changes"] if one["verdict"] == "slower"]
    assert [one["node"] for one in slower] == ["n07"]
    assert slower[0]["low"] < 1.3 < slower[0]["high"]
    assert kind["fleet_ratio"] == pytest.approx(1.1, rel=0.02)
    assert (document["comparisons_with_a_false_alarm_at_most"], document["assumed_degrees_of_freedom_at_least"]) == (
        0.05, 3,
    )  # fmt: skip
    assert (document["complete"], document["nodes_by_verdict"]["gone"]) == (False, 1)


def changes(cli, path, *options):
    """The values of the changes' metrics, by name and labels, and the exit status."""
    result = cli("fleet", "diff", *options, "--prometheus", path)
    _, values = gauges(path.read_text().splitlines(), ("HELP", "TYPE"))
    return values, result.returncode


def test_for_prometheus(cli, then, now, tmp_path):
    values, status = changes(cli, tmp_path / "changes.prom", then, now)
    slow = [name for name, value in values.items() if name.startswith("envkit_node_became_slower") and value == 1]
    assert (status, ['node="n07"' in name for name in slow]) == (1, [True])
    assert values["envkit_fleet_change_complete"] == 0  # n19 is gone
    assert values['envkit_fleet_change_nodes{verdict="slower"}'] == 1
    assert values['envkit_fleet_change_nodes{verdict="gone"}'] == 1
    (measured,) = (value for name, value in values.items() if name.startswith("envkit_fleet_change_measured_time"))
    assert measured == BEGUN


def test_for_prometheus_a_node_that_was_not_judged_is_not_one_that_is_as_fast_as_before(cli, then, tmp_path):
    for place in (then, fleet(tmp_path / "again", 20)):
        node(place, "other", fingerprint={"cpu_model": "Another CPU"})
    values, _ = changes(cli, tmp_path / "changes.prom", then, tmp_path / "again")
    judged = [name for name in values if name.startswith("envkit_node_became_slower")]
    assert len(judged) == 20
    assert not any("other" in name for name in judged)
    assert values["envkit_fleet_change_complete"] == 0
    shutil.rmtree(then / "other")
    assert changes(cli, tmp_path / "changes.prom", then, tmp_path / "again")[0]["envkit_fleet_change_complete"] == 1


def test_nothing_changed(cli, then, tmp_path):
    again = fleet(tmp_path / "again", 20, slower={"n03": 0.2}, began=BEGUN + 60)
    result = cli("fleet", "diff", then, again).ended(0)
    assert result.stdout.startswith("NONE SLOWER  none of 20 nodes is certain to have become slower")


def test_where_most_became_slower_the_first_line_says_so(cli, tmp_path):
    """Beside the middle node none of them stands out."""
    then = fleet(tmp_path / "then", 20)
    all_of_them = fleet(tmp_path / "all", 20, slower={f"n{number:02}": 1.0 for number in range(20)})
    result = cli("fleet", "diff", then, all_of_them).ended(0)
    assert words(result.stdout).startswith(
        "NONE SLOWER none of 20 nodes is certain to have become slower than others, "
        "but the middle node takes 2.000 times as long as in the first report"
    )
    half = fleet(tmp_path / "half", 20, slower={f"n{number:02}": 0.2 for number in range(10)})
    text = words(cli("fleet", "diff", then, half).stdout)
    assert "but the middle node takes 1.09" in text.split(" fleet ")[0]
    assert "(SD of changes 14" in text


def test_a_report_is_kept_and_takes_the_place_of_records_that_are_gone(cli, then, now):
    expected = cli("fleet", "diff", then, now).stdout
    for place in (then, now):
        cli("fleet", "report", place)
        for folder in place.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
    assert cli("fleet", "diff", then, now).stdout == expected
    assert cli("fleet", "diff", then / kept.FILE_NAME, now / kept.FILE_NAME).stdout == expected


def test_what_is_another_now_is_named(cli, then, tmp_path):
    again = fleet(tmp_path / "again", 20, fingerprint={"microcode": "0x2c"}, digest="sha256:b")
    node(again, "n05", 0.4, fingerprint={"microcode": "0x11"}, digest="sha256:b")
    text = words(cli("fleet", "diff", then, again).stdout)
    assert "microcode 0x11 (was" in text
    assert "image digest sha256:b" in text


def test_nodes_of_another_kind_or_workload_are_not_compared(cli, refused, then, tmp_path):
    other = fleet(tmp_path / "other", 20)
    node(other, "n04", fingerprint={"cpu_model": "Another CPU"})
    text = words(cli("fleet", "diff", then, other).stdout)
    assert "n04: is another kind of machine: Another CPU" in text
    assert "cpu model Another CPU (was Simulated CPU)" in text
    workload = fleet(tmp_path / "workload", 6, workload="transformer")
    assert "measured something else: workload transformer (was cnn)" in refused("fleet", "diff", then, workload)
    profile = fleet(tmp_path / "profile", 6, profiles=("theirs",))
    assert "measured something else: profile theirs (was mine)" in refused("fleet", "diff", then, profile)


@pytest.mark.parametrize(("options", "said"), [
    ({"options": {"precision": "bf16-autocast"}}, "mode bf16-autocast (was fp32)"),
    ({"options": {"scale": 4}}, "mode scale 4 (was fp32)"),
    ({"steps": 5}, "steps 5 (was 3)"),
    ({"warmup_steps": 7}, "warm-up steps 7 (was 1)"),
    ({"ranks": 2}, "ranks 2 (was none), scaling strong scaling (was none)"),
])  # fmt: skip
def test_nodes_that_measured_something_else_are_not_compared(refused, then, tmp_path, options, said):
    other = fleet(tmp_path / "other", 20, **options)
    line = refused("fleet", "diff", then, other)
    assert line.startswith(f"envkit: no node can be compared in the two reports; n00: measured something else: {said}")


def test_what_is_another_on_all_nodes_is_told_once(cli, then, tmp_path):
    again = fleet(tmp_path / "again", 20, digest="sha256:b", fingerprint={"kernel": "7.0"})
    node(again, "n05", 0.4, digest="sha256:b", fingerprint={"kernel": "7.0", "microcode": "0x11"})
    result = cli("fleet", "diff", then, again)
    (row,) = (line for line in result.stdout.splitlines() if line.startswith("n05"))
    assert "microcode 0x11" in row
    assert "kernel" not in row
    text = words(result.stdout)
    assert text.count("image digest sha256:b") == text.count("kernel 7.0") == 1


def test_the_submission_s_own_margin_holds(cli, then, tmp_path):
    now = fleet(tmp_path / "now", 20, slower={"n03": 0.2, "n07": 0.3})
    assert cli("fleet", "diff", then, now).returncode == 1
    submission_in(now, nodes=20, fleet=True, study=study("mine", margin=0.5))
    read = cli("fleet", "diff", then, now, "--json")
    assert (read.returncode, json.loads(read.stdout)["margin"]) == (0, 0.5)
    assert cli("fleet", "diff", then, report(now)).returncode == 0
    assert cli("fleet", "diff", then, now, "--margin", "2%").returncode == 1


def test_a_later_report_that_is_given_first_is_worth_a_line(cli, then, tmp_path):
    later = fleet(tmp_path / "later", 20, began=BEGUN + 86400)
    assert cli("fleet", "diff", then, later).stderr == ""
    assert cli("fleet", "diff", later, then).stderr == (
        f"envkit: warning: {later} was measured after {then}: swap them to see what became slower\n"
    )


def test_where_others_change_as_far_a_node_is_not_named_but_mentioned(cli, tmp_path):
    wild = {f"n{number:02}": 0.03 * number for number in range(20)}
    result = cli("fleet", "diff", fleet(tmp_path / "then", 20), fleet(tmp_path / "now", 20, slower=wild)).ended(0)
    text = words(result.stdout)
    assert text.startswith("NONE SLOWER none of 20 nodes is certain to have become slower")
    assert "n19 +2" in text[text.index("maybe") :]


def test_too_few_nodes_are_not_judged(cli, tmp_path):
    places = [fleet(tmp_path / name, 3, began=BEGUN + later) for later, name in enumerate(("then", "now"))]
    result = cli("fleet", "diff", *places).ended(0)
    assert result.stdout.startswith("NOT JUDGED  fewer than 6 nodes of one kind are in both reports")
    assert words(result.stdout).endswith("; 3 nodes of this kind, 6 are needed to judge")


def test_the_same_and_too_few_and_other_options(refused, then, now, tmp_path):
    said = f"envkit: fleet diff: {then} and {{}} are of the same measurements; give another one"
    assert refused("fleet", "diff", then, then) == said.format(then)
    copy = report(shutil.copytree(then, tmp_path / "copy"))
    assert refused("fleet", "diff", then, copy) == said.format(copy)
    assert "give: envkit fleet diff THEN NOW" in refused("fleet", "diff", then)
    assert refused("fleet", "diff", then, now, "--blocks", 6).startswith(
        "envkit: --blocks has no effect with fleet diff"
    )
    assert "leave --profile out" in refused("fleet", "diff", report(then), now, "--profile", "theirs")


def report(place):
    kept.write(place, *kept.read(place, None))
    return place / kept.FILE_NAME
