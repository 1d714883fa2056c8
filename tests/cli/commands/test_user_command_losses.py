"""Losses of a command of one's own: read, compared between profiles, and what reports say of them."""

from __future__ import annotations

import json
import math

import pytest
from envkit.bench import record

from tests.cli.commands.conftest import words
from tests.simulation import times

TIMES = ("--metric", r"time ([\d.]+) ms", "--unit", "ms", "--warmup-lines", 2)
OWN = ("--", "python", "train.py", "--epochs", "1")
LOSS = ("--loss-metric", r"loss (\S+)")
SEEDED = [[2.31, 2.05, 1.87]]
# Each run draws other random numbers.
UNSEEDED = [[2.31, 2.05, 1.87], [2.2, 2.15, 1.99], [2.45, 2.0, 1.75], [2.28, 1.96, 1.9], [2.36, 2.1, 1.8]]


@pytest.fixture
def losses(simulation):
    """What the workers of baseline and mine read."""

    def given(baseline, mine):
        simulation.worker("baseline", losses_in_turn=baseline)
        simulation.worker("mine", seconds=times(0.5), losses_in_turn=mine)

    return given


def scaled(factor, every):
    return [[round(factor * loss, 4) for loss in one] for one in every]


@pytest.mark.parametrize(
    ("baseline", "mine", "said"),
    [
        (SEEDED, SEEDED, "Losses equal within the last printed digit (3 in each sample)"),
        (SEEDED, [[2.31, 2.06, 1.86]], "Losses equal within the last printed digit (3 in each sample)"),
        (SEEDED, scaled(1.003, SEEDED), "Losses within 0.3% of baseline's; its own runs vary by 0.0%"),
        (UNSEEDED, UNSEEDED[::-1], "Losses within 1.5% of baseline's; its own runs vary by 7.2%"),
    ],
)  # fmt: skip
def test_losses_that_do_not_differ(own, losses, baseline, mine, said):
    losses(baseline, mine)
    result = own(*TIMES, *LOSS)
    text = words(result.stdout)
    assert result.returncode == 0
    assert said in text
    assert "DIFFER" not in text
    assert "FASTER" in text


@pytest.mark.parametrize(
    ("baseline", "mine", "said"),
    [
        (SEEDED, scaled(1.2, SEEDED), "22%"),
        (UNSEEDED, scaled(1.2, UNSEEDED), "22%"),
        # a profile under which runs differ that repeat each other without it
        (SEEDED, [*SEEDED, [2.31, 2.05, 2.37]], "12%"),
    ],
)  # fmt: skip
def test_losses_that_differ(own, losses, baseline, mine, said):
    losses(baseline, mine)
    text = words(own(*TIMES, *LOSS).stdout)
    assert f"Losses DIFFER by up to {said}: results change" in text
    assert text.startswith("FASTER, BUT LOSSES DIFFER mine: ")
    assert "Next do not use mine yet; find what changes its losses" in text


def test_a_profile_that_may_change_numerics_is_not_blamed(own, losses):
    losses(SEEDED, scaled(1.2, SEEDED))
    text = words(own(*TIMES, *LOSS, sets="numerics: may-differ\n").stdout)
    assert "Losses DIFFER by up to 22%" in text
    assert "Use " in text


def test_several_profiles_share_a_line(own, cli, losses, write_profile, simulation, run_folder, tmp_path):
    losses(UNSEEDED, UNSEEDED[::-1])
    names = []
    for name, factor in (("a", 1.0), ("b", 1.001), ("c", 1.5)):
        simulation.worker(name, losses_in_turn=scaled(factor, UNSEEDED))
        names.append(write_profile(name, f"env:\n  SIMULATED: {name}\n"))
    own("--data", "synthetic", command="plan", blocks=5, training=())  # which writes mine
    (tmp_path / "train.py").touch()
    fixed = ("--python", simulation.python, "--seed", 7, "--blocks", 8, "--output", tmp_path / "several")
    text = words(cli("bench", tmp_path / "mine.yaml", *names, *fixed, *TIMES, *LOSS, *OWN, cwd=tmp_path).stdout)
    assert "for c, not counted as faster: results change" in text
    assert "equal within the last printed digit (3 in each sample) for mine, a" in text
    assert "(b)" in text


def test_what_is_recorded_and_reported(own, cli, losses, simulation, run_folder, tmp_path, events, undrawn):
    losses(SEEDED, scaled(1.003, SEEDED))
    result = own(*TIMES, *LOSS, "--json")
    (comparison,) = json.loads(result.stdout)["comparisons"]
    assert comparison["losses"]["steps"] == 3
    assert comparison["losses"]["agree"] is True
    assert comparison["losses"]["largest_difference"] == pytest.approx(0.003, rel=0.2)
    assert comparison["losses"]["own_difference"] == 0
    assert json.loads(result.stdout)["measured"][0]["final_loss"] == 1.87
    assert record.first(run_folder)["study"]["user_command"]["loss_metric"] == LOSS[1]
    asked = [start["work"] for start in simulation.starts(all=True) if start["work"]["kind"] == "command"]
    assert {work["command"]["loss_metric"] for work in asked} == {LOSS[1]}
    assert events("sample")[0]["losses"]
    assert r"losses loss (\S+)" in words(cli("report", run_folder, "--details").stdout)
    page, markdown = tmp_path / "page.html", tmp_path / "report.md"
    cli("report", run_folder, "--html", page, "--markdown", markdown)
    assert all("within 0.3% of baseline" in path.read_text() for path in (page, markdown))
    assert cli("history", run_folder).returncode == 0
    for kind in ("csv", "json", "openmetrics"):
        assert cli("export", run_folder, "--format", kind).returncode == 0


def test_a_plan_names_commands_that_read_them(own, losses):
    losses(SEEDED, SEEDED)
    planned = own(*TIMES, *LOSS, "--json", command="plan", blocks=5)
    assert r"--loss-metric 'loss (\S+)'" in json.loads(planned.stdout)["needs"][0]["command"]


def test_a_calibration_without_it_counts_for_runs_with_it(own, cli, losses, own_surroundings):
    losses(SEEDED, SEEDED)
    results = own_surroundings / "results"
    assert own(*TIMES, "--output", results / "one", command="plan", profile=False).returncode == 0
    own(*TIMES, *LOSS, "--output", results / "two")
    text = words(cli("report", results / "two", "--details").stdout)
    assert "floor baseline against itself stays within" in text


# --- what ends a run ---


@pytest.mark.parametrize(("loss", "shown"), [(math.nan, "nan"), (math.inf, "inf")])
def test_losses_that_are_no_numbers(own, losses, loss, shown):
    losses(SEEDED, [[2.31, 2.05, loss]])
    result = own(*TIMES, *LOSS).ended(1)
    fix = "lower its learning rate or, where it happens under one profile alone, leave this out"
    why = f"diverged: the loss of step 3 is {shown}, so its speed is meaningless; {fix} (warming up)"
    assert f"Failed block 1, mine: the worker {why}" in words(result.stdout)
    assert "FASTER" not in result.stdout


def test_another_number_of_losses_than_before(own, losses):
    losses(SEEDED, [[2.31, 2.05]])
    result = own(*TIMES, *LOSS).ended(1)
    text = words(result.stdout)
    assert " had 2; print equally many" in text or " had 3; print equally many" in text
    assert "losses, and earlier samples had " in text
    assert "FASTER" not in result.stdout
