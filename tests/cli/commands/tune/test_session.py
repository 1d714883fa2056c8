"""``envkit tune`` from its beginning to its end, in the few ways that the quick tests are to have."""

from __future__ import annotations

import pytest
from envkit.profiles import profile

from tests.cli.commands.tune.conftest import events, written


def test_a_search_that_measures_every_candidate_has_neither_an_order_nor_a_share_of_a_budget(tuned, tmp_path):
    result = tuned("--exhaustive", "--blocks", 1, budget=None).ended(0)
    assert result.stderr.startswith("round 1, grid: 23 candidates; ahead after 1 trial: ")
    assert events(tmp_path, "order") == []


@pytest.mark.parametrize("moved", [False, True], ids=["the same place", "another place"])
def test_where_the_confirmation_fails_nothing_is_written_and_it_can_go_on(tuned, cli, engine, local, tmp_path, moved):
    engine.misbehave = lambda variables: "ended with exit status 3" if engine.trained == 75 else None
    result = tuned().ended(1)
    assert " for the search; ahead " in result.stderr  # the search's share of the budget
    assert result.stderr.splitlines()[-1] == (
        "envkit: the confirmation ended: a worker failed; no profile was written; continue with: "
        f"envkit tune --resume {tmp_path / 'tuning'}"
    )
    assert "Failed" in result.stdout
    assert not local.exists()
    elsewhere = ("--profile", tmp_path / "mine.yaml") if moved else ()
    assert cli("tune", "--resume", tmp_path / "tuning", *elsewhere).returncode == 0
    chosen = profile.load(str(tmp_path / "mine.yaml")) if moved else written(local)
    assert chosen.env == {"GOMP_SPINCOUNT": "1000"}
