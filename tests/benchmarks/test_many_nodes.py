"""The pages on many nodes: simulated fleets over time, and tunings by several nodes."""

from __future__ import annotations

import pytest
from optuna.study import StudyDirection

from benchmarks import fleet_diff, tune_nodes


def test_nodes_that_became_slower_are_found_and_no_others(benchmark_script, tmp_path):
    result = benchmark_script(fleet_diff, "--runs", 4, "--page", tmp_path / "page.md")
    assert (result.returncode, result.stderr) == (0, ""), result
    text = (tmp_path / "page.md").read_text()
    usual = f"| {fleet_diff.USUAL} | "
    unchanged, *single = [line for line in text.splitlines() if line.startswith(usual)]
    assert [cell.split()[0] for cell in unchanged.split("|")[2:-1]] == ["0", "0", "0"]
    assert [row.split("|")[2].strip() for row in single] == ["8", "64", "500"]
    for row in single:  # one node that became 10% slower
        many, _, of_all, *_ = row.split("|")[-2].split()
        assert int(many) >= int(of_all) - 1
    assert "No case has a share that is certain to be above 5%." in text


def test_a_case_in_which_the_rate_is_not_held_is_named():
    rows = {fleet_diff.USUAL: [2, 50, 4]}
    assert fleet_diff.held(rows, 100) == (
        "The rate of 5% is not held for nodes that change by 0.5%, normal; noise 1.0%, in a fleet of 64 (50.0%)."
    )


@pytest.mark.parametrize("scale", [0.0, 4.0])
def test_several_nodes_tune_in_simulated_time(scale):
    found = tune_nodes.tune(tune_nodes.COARSE, 3, 1, scale)
    assert found.candidates > 15
    assert found.twice < 0.1
    assert 250 < found.answered_s < 350  # of a budget of 300 s
    assert found.faster == (scale > 0)
    assert found.missed < 0.2


def test_nodes_say_things_one_after_the_other():
    shared = tune_nodes.SharedFile()
    study = shared.create_new_study([StudyDirection.MAXIMIZE], "many")

    def said(times):
        for number in range(times):
            shared.set_study_user_attr(study, str(number), number)

    said(2)
    assert shared.wait(1.0) == pytest.approx(2 * tune_nodes.WRITE_S)
    said(1)  # by another node, at the same time
    assert shared.wait(1.0) == pytest.approx(3 * tune_nodes.WRITE_S)
    said(1)
    assert shared.wait(9.0) == pytest.approx(tune_nodes.WRITE_S)


def test_the_interval_alone_is_sometimes_wrong_where_nodes_differ_by_far_more_than_it_takes_them_to(monkeypatch):
    monkeypatch.setattr(tune_nodes, "CONFIRMATIONS", 60)
    assert tune_nodes.misses(2, 0.0) <= 3
    assert tune_nodes.misses(2, 0.5) > 20
