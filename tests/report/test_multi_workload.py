"""Profiles on several workloads: each beside the baseline of its own, and one table that says which wins where."""

from __future__ import annotations

import json

import pytest
from envkit.bench.decide import FAILED
from envkit.bench.study import Study, WorkloadSpec
from envkit.report import advice, certainty, html, judgement
from envkit.report.exports.rows import results
from envkit.report.messages import advice as messages
from envkit.report.messages.verdicts import TooFewBlocks
from envkit.report.pictures import png
from envkit.report.verdict import headline

from tests import records
from tests.records import conclude
from tests.report.planted import OTHER_LOSSES, disturbed
from tests.reports import details, events_of, markdown_of, printed
from tests.simulation import STEADY, times

TRANSLATION = "baseline on translation"
WORKLOADS = {"baseline": "cnn", "mine": "cnn", "slow": "cnn",
             **dict.fromkeys((TRANSLATION, "mine on translation", "slow on translation"), "translation")}  # fmt: skip
PROFILES = {TRANSLATION: "baseline", "mine on translation": "mine", "slow on translation": "slow"}
LEARNS_OTHERWISE = {"mine on translation": {"losses": [3.0, 3.0, 3.0, 3.0]}}
EACH = {"cnn": WorkloadSpec(1, 3), "translation": WorkloadSpec(2, 4)}


def events(blocks=12, mine=0.5, mine_there=1.0, slow=1.5, slow_there=1.25, there=10.0, study=None, baseline=None,
           **behaviours):  # fmt: skip
    """A run on two workloads; all of the second take ``there`` times as long."""
    sentences = {"unit": "sentences", "images_per_step": 32}
    others = {
        TRANSLATION: {"seconds": STEADY, **sentences, "quality": {"token accuracy": 0.25, "BLEU": 12.34}},
        "mine on translation": {"seconds": times(mine_there), **sentences},
        "slow": {"seconds": times(slow)},
        "slow on translation": {"seconds": times(slow_there), **sentences},
    }
    for name in PROFILES:
        others[name]["seconds"] = [there * second for second in others[name]["seconds"]]
    for name, behaviour in behaviours.pop("others", {}).items():
        others[name] |= behaviour
    settings = {
        "workload": "all", "references": (TRANSLATION,), "workloads": EACH,
        **(study or {}),
    }  # fmt: skip
    first = {"quality": {"accuracy": 0.5}, **(baseline or {})}
    return events_of(
        blocks, {"seconds": times(mine)}, others, first, workloads=WORKLOADS, profiles=PROFILES, study=settings,
        **behaviours,
    )  # fmt: skip


def test_a_profile_whose_losses_match_is_advised_before_one_whose_losses_differ():
    quick = {"slow": OTHER_LOSSES, "slow on translation": {}}
    found = events(mine=0.7, mine_there=0.7, slow=0.5, slow_there=0.5, others=quick, numerics="may-differ")
    (use,) = [row.text for row in advice.rows(conclude(found))]
    assert (type(use), use.profile) == (messages.UseEverywhere, "mine")


def cells(text, first):
    """The words of the lines of the first table that begin with ``first``."""
    lines = text.partition("workload ")[2].split("\n\n")[0].splitlines()
    return [line.split() for line in lines if line.startswith(first)]


# --- what is compared with what ---


def test_each_arm_is_compared_with_the_reference_of_its_own_workload():
    found = events()
    study = Study.from_json(found[0]["study"])
    pairs = {arm.name: study.reference_of(arm).name for arm in study.compared}
    assert pairs == {"mine": "baseline", "slow": "baseline",
                     "mine on translation": TRANSLATION, "slow on translation": TRANSLATION}  # fmt: skip
    ratios = {one.arm: one.speedup.ratio for one in conclude(found).comparisons}
    assert ratios == pytest.approx(
        {"mine": 2.0, "slow": 1 / 1.5, "mine on translation": 1.0, "slow on translation": 0.8}, rel=0.02
    )


def test_all_comparisons_share_one_error_rate():
    result = conclude(events())
    assert result.study.sharing == result.design.comparisons == 4
    alone = conclude(events_of(12)).comparisons[0].speedup
    together = next(one for one in result.comparisons if one.arm == "mine").speedup
    assert together.low < alone.low < alone.high < together.high


def test_what_is_compared_runs_one_after_the_other_in_random_order():
    study = Study.from_json(events(1)[0]["study"])
    orders = [[arm.name for arm in study.order(block)] for block in range(40)]
    for names in orders:
        workloads = [WORKLOADS[name] for name in names]
        assert workloads in (["cnn"] * 3 + ["translation"] * 3, ["translation"] * 3 + ["cnn"] * 3)
        assert sorted(names) == sorted(WORKLOADS)
    assert len({tuple(names) for names in orders}) > 20
    assert orders == [[arm.name for arm in study.order(block)] for block in range(40)]


def test_what_is_left_out_is_said_workload_by_workload():
    found = events()
    lengths = next(event for event in found if event["event"] == "lengths")
    assert conclude(found).left_out == {"cnn": 1, "translation": 2}
    lengths |= {"warm_up": {"baseline": 0}}
    assert "warm-up steps left out at the start of each sample: cnn 1, translation 2" in " ".join(
        details(found).split()
    )


def test_losses_are_compared_with_those_of_the_same_workload():
    other = {"losses": [9.0, 8.0, 7.0, 6.0]}
    found = events(others={TRANSLATION: other, "mine on translation": other, "slow on translation": other})
    known = {one.arm: one.losses.agree for one in conclude(found).comparisons}
    assert known == dict.fromkeys(("mine", "slow", "mine on translation", "slow on translation"), True)


def test_a_disturbance_marks_the_workload_that_it_hit():
    result = conclude(disturbed(events(16), 3, arm=TRANSLATION))
    by_arm = {one.arm: one for one in result.comparisons}
    assert by_arm["mine"].without_interference is None
    assert by_arm["mine on translation"].without_interference.blocks == 15


# --- what is said ---


def test_what_was_trained_and_learnt():
    lines = details(events()).splitlines()
    assert any(line.split()[:6] == ["cnn", "64", "images", "333.33", "192", "2.298"] for line in lines)
    (there,) = (line for line in lines if "32 sentences" in line)
    assert there.split()[3:5] == ["2500.00", "13"]
    assert "token accuracy" in there


def test_winners():
    result = conclude(events())
    assert judgement.winners(result) == {"cnn": ["mine"], "translation": []}
    assert judgement.everywhere(result) == []
    assert any(getattr(row.text, "purpose", None) == messages.MEASURE_YOURS for row in advice.rows(result))


def test_a_profile_that_wins_everywhere_and_learns_otherwise_is_not_recommended():
    found = events(mine_there=0.5, others=LEARNS_OTHERWISE)
    told = [row.text for row in advice.rows(conclude(found))]
    assert told[0] == messages.ExplainLosses("mine on translation")
    commands = [getattr(one, "command", "") or "" for one in told]
    assert not any("envkit exec mine" in text or "envkit bench mine" in text for text in commands)


def test_a_profile_that_wins_everywhere_is_recommended():
    result = conclude(events(mine_there=0.8, slow=0.9))
    assert judgement.everywhere(result) == ["mine"]
    assert judgement.winners(result)["cnn"] == ["mine", "slow"]
    (first, *_) = advice.rows(result)
    assert first.text == messages.UseEverywhere("mine", "envkit exec mine.yaml -- python train.py")


def test_losses_that_differ_stand_out():
    text = printed(events(others=LEARNS_OTHERWISE))
    assert [words[-2:] for words in cells(text, "translation")] == [["losses", "differ"], ["0.81", "slower"]]


def test_too_few_blocks_say_how_many_it_takes():
    result = conclude(events(4))
    assert [row.text for row in advice.rows(result)] == [messages.RaiseLimit("--budget 5m")]
    assert headline(result).text == TooFewBlocks("4 combinations", 4, 8)


def test_a_failure_leaves_a_table_without_verdicts():
    text = printed(events(8, ended=FAILED))
    assert [words[2:4] for words in cells(text, "cnn")] == [["-", "failed"]] * 2


def test_other_reports_tell_the_same(recorded):
    given = recorded(events())
    page = html.page(*given)
    for text in (markdown_of(*given), page):
        assert "mine on translation" in text
        assert "FASTER  1 of 4 combinations, best mine on cnn" in text
    assert "envkit report: mine, slow on 2 workloads against baseline" in page
    assert png(given[-1]).startswith(b"\x89PNG")
    long = details(events())
    assert "4 steps after 2 to warm up" in long
    assert "left out at the start" not in long


def test_scripts_get_the_reference_of_each():
    document = conclude(events()).to_json()
    assert document["references"]["mine on translation"] == TRANSLATION
    assert document["measured"][0]["quality"] == {"accuracy": 0.5}
    assert document["measured"][0]["accuracy"] == 0.5


def test_the_baseline_alone_has_a_table_of_what_was_trained():
    """`bench baseline --workload all`: nothing is compared."""
    found = events()
    alone = ("baseline", TRANSLATION)
    found[0]["study"]["arms"] = [arm for arm in found[0]["study"]["arms"] if arm["name"] in alone]
    found[0]["study"]["contrasts"] = []
    kept = [event for event in found if event.get("arm") in (None, *alone)]
    assert "32 sentences" in details(kept)
    assert certainty.rows(conclude(kept)) is not None


def test_the_history_has_its_profiles_once(cli, tmp_path):
    records.write(tmp_path / "run", events())
    text = " ".join(cli("history", tmp_path).stdout.split())
    assert "local, cnn, translation, 12 blocks" in text
    (one,) = json.loads(cli("history", tmp_path, "--json").stdout)["runs"]
    assert (one["profiles"], one["workload"], one["modes"]) == (["mine", "slow"], "all", "")


def test_exports_have_the_reference_of_each(tmp_path):
    rows = {row["arm"]: row for row in results(tmp_path, events())}
    assert (rows["mine on translation"]["reference"], rows["mine on translation"]["workload"]) == (
        TRANSLATION, "translation"
    )  # fmt: skip
    assert rows["mine"]["reference"] == "baseline"
