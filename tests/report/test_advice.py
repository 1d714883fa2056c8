"""What a report says to do next."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from envkit.analysis import ranking
from envkit.analysis.summary import summarise
from envkit.report import advice
from envkit.stats.verdict import Verdict

from tests.reports import events_of, printed, said
from tests.simulation import STEADY, times


@pytest.mark.parametrize(
    ("engine", "options", "named"),
    [
        ("local", {"python": "/opt/my torch/python"}, "mine.yaml --python '/opt/my torch/python'"),
        ("local", {"image": "another"}, "mine.yaml"),
        ("docker", {"image": "envkit-cuda", "cpuset_cpus": "0-3"},
         "mine.yaml --engine docker --image envkit-cuda --cpuset-cpus 0-3"),
        ("apptainer", {"sif": "x.sif", "python": "/other"}, "mine.yaml --engine apptainer --sif x.sif"),
        ("podman", {}, "mine.yaml --engine podman"),
    ],
)  # fmt: skip
def test_advice_names_where_it_was_measured(engine, options, named):
    arms = [{"name": name, "profile": name, "engine": engine} for name in ("baseline", "mine")]
    events = events_of(plan={"engine_options": options})
    events[0]["plan"]["arms"] = arms
    events[0]["engines"] = {engine: events[0]["engines"]["local"]}
    assert f"use mine: envkit exec {named} -- your command" in said(events)


SPECIFIED = {
    "command": ["envkit", "submit", "--resume=/x"],
    "specification": {"arms": [{"profile": "baseline"}, {"profile": "/a/mine.yaml"}], "allow_unknown": True},
}


@pytest.mark.parametrize(
    ("profile", "run", "named"),
    [
        ("mine", {"command": ["envkit", "bench", "my profiles/mine.yml", "--blocks", "7"]}, "'my profiles/mine.yml'"),
        ("mine", {"command": ["envkit", "bench", "mine.yaml"], "cwd": "/my profiles"}, "'/my profiles/mine.yaml'"),
        ("mine", {"command": ["envkit", "bench", "mine.yaml"], "cwd": str(Path.cwd())}, "mine.yaml"),
        ("mine", SPECIFIED, "/a/mine.yaml --allow-unknown"),
        # a file that is called like a shipped profile is meant where one was given
        ("jemalloc-retain", {}, "jemalloc-retain"),
        ("jemalloc-retain", {"command": ["envkit", "bench", "/a/jemalloc-retain.yaml"]}, "/a/jemalloc-retain.yaml"),
    ],
)
def test_advice_names_the_file_that_was_given(profile, run, named):
    assert f"use {profile}: envkit exec {named} -- your command" in said(events_of(profile=profile, **run))


def test_a_command_to_paste_is_one_line_however_long_it_is():
    events = events_of(command=["envkit", "bench", f"/a/{'long ' * 30}folder/mine.yaml"])
    (line,) = [line for line in printed(events).splitlines() if line.startswith("next ")]
    assert line.endswith("folder/mine.yaml' -- your command")


def test_advice_after_ranks_on_several_nodes_starts_as_many_on_each():
    summary = summarise(events_of())
    plan = replace(summary.plan, ranks=4, nodes=2)
    (row,) = advice.rows(replace(summary, plan=plan))
    use = "envkit exec mine-4.yaml -- torchrun --nnodes 2 --nproc-per-node 4 train.py"
    assert row.text == f"use mine, copied to mine-4.yaml with 'name: mine-4' and 'ranks: 4': {use}"
    own = tuple(replace(arm, ranks=2) if arm.name == "mine" else arm for arm in plan.arms)
    (row,) = advice.rows(replace(summary, plan=replace(plan, arms=own, ranks=1, nodes=1)))
    assert row.text == "use mine: envkit exec mine.yaml -- torchrun --nproc-per-node 2 train.py"


def test_of_many_the_best_that_is_known_to_be_faster_is_advised():
    """Not the one with the largest estimate, which may be the noisiest."""
    noise = [0.2, 0.2, 1.3, 1.3]
    others = {"noisy": {"seconds": noise}, "quick": {"seconds": times(0.7)}, "slow": {"seconds": times(1.6)}}
    summary = summarise(events_of(12, mine={"seconds": times(0.9)}, others=others))
    first = ranking.ranked(summary)[0]
    assert (first.arm, first.verdict) == ("noisy", Verdict.NOT_FOUND)
    assert [row.text.partition(":")[0] for row in advice.rows(summary)] == ["use quick"]


def test_where_the_margin_was_not_found_in_enough_blocks_a_smaller_one_is_looked_for():
    unlike = {"seconds": [0.933, 1.049, 0.989, 0.943, 1.043, 0.993]}
    text = said(events_of(60, mine=unlike))
    assert ": NO DIFFERENCE FOUND" in text
    found = re.search(r"to find a difference of (.*?)% takes about (\d+) blocks: --budget \d+m --margin \1%", text)
    assert found is not None, text
    assert (found[1], int(found[2]) > 60) == ("1", True)
    assert " blocks: --blocks " in said(events_of(60, mine=unlike, plan={"blocks": 60}))


def test_a_gain_that_does_not_matter_hides_nothing():
    noise = [0.776, 1.2125, 0.873, 1.1155, 0.873, 1.0185]
    others = {"tiny": {"seconds": [0.995 * one for one in STEADY]}, "noisy": {"seconds": noise}, "slow": {}}
    summary = summarise(events_of(60, mine={"seconds": times(1.6)}, others=others))
    verdicts = {one.arm: one.verdict for one in summary.comparisons}
    assert (verdicts["tiny"], verdicts["noisy"]) == (Verdict.FASTER, Verdict.NOT_FOUND)
    assert any("to find a difference of" in row.text for row in advice.rows(summary))


def test_what_it_takes_to_find_the_margin():
    """Per block 4.5 s; with another margin it takes fewer blocks."""
    noise = {"seconds": [1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05]}

    def needed(margin):
        text = said(events_of(mine=noise, plan={"margin": margin}))
        found = re.search(rf"to find a difference of {margin:.0%} takes about ([\d,]+) blocks: --budget (\d+)m", text)
        return int(found[1].replace(",", "")), int(found[2])

    blocks, minutes = needed(0.02)
    assert blocks > 100
    assert blocks * 4.5 / 60 <= minutes <= blocks * 4.5 / 60 + 2
    assert needed(0.05)[0] < blocks / 4
