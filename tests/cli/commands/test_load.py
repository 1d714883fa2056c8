"""What is measured beside other programs: said in the first words and in fields, and nothing is recommended from it."""

from __future__ import annotations

import json

import pytest
from envkit.bench import neighbours, record
from envkit.bench.neighbours import Process
from envkit.report.exports.rows import results

from tests.cli.commands.conftest import words
from tests.sessions import session
from tests.simulation import times

LOAD = "beside other programs that used 1.8 of 2 CPUs"


@pytest.fixture
def beside(simulation, monkeypatch):
    """Have all samples of ``baseline``, and of ``names``, which take half the time, see others use 1.8 of 2 CPUs.

    Two programs of other users are at work then, and one of them does little.
    """

    def plant(*names, **behaviour):
        for name in ("baseline", *names):
            factor = 1.0 if name == "baseline" else 0.5
            usage = {"worker_cpus": 2, "worker_cpus_busy_s": (1.25 + 1.8) * factor}
            simulation.worker(name, seconds=[factor], usage=usage, **behaviour)

    looks = iter(range(1000))

    def processes():
        ticks, second = next(looks), 1000 * neighbours.TICKS_PER_S
        return {
            1: Process("init", 0, 1, 5),
            71: Process("spin one", 1, 10, ticks * second),
            72: Process("spin two", 1, 11, ticks * second // 2),
            73: Process("shell", 1, 12, 3),
        }

    monkeypatch.setattr(neighbours, "processes", processes)
    return plant


def test_the_first_words_say_under_which_load_it_holds(bench, beside, instant, cli, run_folder, undrawn):
    beside("mine")
    result = bench("mine")
    shown = words(result.stdout)
    assert result.returncode == 0
    assert shown.startswith(f"FASTER UNDER LOAD mine: 2.00x baseline speed (95% CI 2.00 to 2.00), measured {LOAD} ")
    assert "envkit exec" not in shown
    assert "Next measure again without this load; stop spin one (71) and spin two (72)" in shown
    page = run_folder.parent / "page.html"
    cli("report", run_folder, "--html", page)
    assert f"measured {LOAD}" in page.read_text()
    assert "envkit exec mine" not in page.read_text()


def test_scripts_get_the_load_as_a_field(bench, beside, instant, cli, run_folder):
    beside("mine")
    (found,) = json.loads(bench("mine", "--json").stdout)["comparisons"]
    assert found["verdict"] == "faster"
    assert found["load"] == {
        "blocks": 6, "of": 6, "kind": "other-programs", "cpus": 1.8, "usable_cpus": 2.0,
        "programs": ["spin one (71)", "spin two (72)"],
    }  # fmt: skip
    (line,) = [one for one in words(cli("history", run_folder).stdout).split(";") if "faster" in one]
    assert "faster, under load" in line
    reference, mine = results(run_folder, record.read(run_folder))
    assert (mine["load"], mine["load_cpus"]) == ("other-programs", 1.8)
    assert (reference["load"], reference["load_cpus"]) == (None, None)


def test_without_a_load_the_field_is_empty_and_the_profile_is_recommended(bench, simulation, instant):
    simulation.worker("mine", seconds=times(0.5))
    result = bench("mine", "--json")
    assert json.loads(result.stdout)["comparisons"][0]["load"] is None


def test_it_is_said_at_once_by_whom_the_blocks_are_disturbed(bench, beside, instant, events):
    beside("mine")
    said = bench("mine").stderr.splitlines()
    (told,) = [line for line in said if line.startswith("envkit: ")]
    assert told.startswith("envkit: other programs use 1.8 of 2 CPUs during this run: spin one (71) ")
    assert ", spin two (72) " in told
    assert "shell" not in told
    assert told.endswith("; stop them, or the result holds only under that load")
    (event,) = events("load")
    assert (event["block"], [one["name"] for one in event["programs"]]) == (1, ["spin one", "spin two"])


def test_the_load_of_a_run_that_compares_nothing_is_said_too(bench, beside, instant, cli, run_folder):
    beside()
    assert words(bench("baseline").stdout).startswith(
        f"ONE PROFILE baseline: nothing was compared with it; measured {LOAD}"
    )


def under_load(folder):
    """Have other programs use 1.8 of 2 CPUs beside all samples of a record."""
    path = folder / record.FILE_NAME
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        if event["event"] == "sample":
            own = event["usage"]["user_s"] + event["usage"]["system_s"]
            event["usage"] |= {"worker_cpus": 2, "worker_cpus_busy_s": own + 1.8 * event["seconds"]}
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def test_a_baseline_that_was_measured_beside_a_load_says_so_wherever_it_is_used(save, cli, folder, tmp_path, diff):
    said = "10 of 10 blocks were disturbed, so its times hold only under that load"
    save("old")
    loaded = under_load(session(tmp_path / "loaded", seed=3))
    saved = cli("baseline", "save", "new", "--from", loaded, "--folder", folder)
    assert f"note {said}" in words(saved.stdout)
    document = json.loads(cli("baseline", "save", "more", "--from", loaded, "--folder", folder, "--json").stdout)
    assert (document["blocks_with_interference"], document["is_under_load"]) == (10, True)
    assert f"Caution now: {said}" in words(diff().stdout)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_what_is_faster_than_a_baseline_is_not_to_be_saved_from_under_a_load(
    save, cli, folder, tmp_path, diff, is_loaded
):
    save("old")
    quick = session(tmp_path / "quick", seed=3, slower={"mine": 0.5})
    cli("baseline", "save", "new", "--from", under_load(quick) if is_loaded else quick, "--folder", folder)
    shown = words(diff().stdout)
    assert "FASTER mine: " in shown
    assert ("save a new baseline to keep the gain" in shown) is not is_loaded
