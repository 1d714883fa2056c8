"""``envkit tune --max-memory``: candidates whose peak memory is above the limit are not chosen."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands.tune.conftest import events, written

LARGE, USUAL = 2**30, 2**29


@pytest.fixture
def large_jemalloc(engine):
    """Have jemalloc, which is worth most, need twice the memory."""
    engine.other = lambda variables: {"peak_memory_bytes": LARGE if "LD_PRELOAD" in variables else USUAL}


def test_what_needs_more_is_not_chosen(large_jemalloc, tuned, local, tmp_path):
    result = tuned("--max-memory", "50%", "--json").ended(0)
    assert (written(local).env, written(local).preload) == ({"GOMP_SPINCOUNT": "1000"}, ())
    failed = json.loads(result.stdout)["failed"]
    assert {one["problem"]["code"] for one in failed} == {"tuning.over-memory"}
    assert failed[0]["text"] == (
        "needs 1.0 GiB at its peak, 100% more than the baseline's 512 MiB; --max-memory allows 50%"
    )
    assert events(tmp_path)[0]["study"]["stopping"]["max_memory"] == 0.5


def test_exactly_at_the_limit_it_is_chosen(large_jemalloc, tuned, local):
    assert tuned("--max-memory", "100%").returncode == 0
    assert written(local).preload == ("jemalloc",)


def test_an_unknown_peak_rules_nothing_out(engine, tuned, local):
    engine.other = lambda variables: {"peak_memory_bytes": 0 if "LD_PRELOAD" in variables else USUAL}
    assert tuned("--max-memory", "0%").returncode == 0
    assert written(local).preload == ("jemalloc",)


def test_what_needs_more_in_the_confirmation_alone_does_not_win(engine, tuned, tmp_path):
    """Longer samples may need more than trials."""
    engine.other = lambda variables: {
        "peak_memory_bytes": LARGE if engine.trained > 75 and "LD_PRELOAD" in variables else USUAL
    }
    document = json.loads(tuned("--max-memory", "50%", "--json").stdout)
    assert {one["arm"] for one in document["confirmation"]["over_memory"]} >= {"tuned"}
    assert document["best"] == "baseline"


def test_a_search_that_goes_on_keeps_the_limit(large_jemalloc, tuned, cli, tmp_path, local, engine):
    engine.misbehave = lambda variables: "was killed" if engine.trained == 40 else None
    tuned("--max-memory", "50%")
    assert cli("tune", "--resume", tmp_path / "tuning").returncode == 0
    assert written(local).preload == ()
