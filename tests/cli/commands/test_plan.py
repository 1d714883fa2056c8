"""``envkit plan``: how long it takes to find a difference here, from a minute of measuring the noise."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from envkit.bench import record
from envkit.stats.power import blocks_needed

from tests.cli.commands.conftest import words
from tests.records import samples as recorded_samples
from tests.records import spent
from tests.simulation import times

# A ratio of blocks that varies by about 4%.
NOISY = [0.96, 1.03, 1.0, 1.05, 0.97, 1.01, 0.94, 1.02]


@pytest.fixture
def study(bench_arguments, cli, simulation, instant):
    """Plan for ``mine``, with simulated workers whose times are NOISY unless a test says otherwise."""
    simulation.worker("mine", seconds=NOISY)

    def run(*options, text=""):
        return cli("plan", *bench_arguments("mine", "--blocks", 5, *options, text=text)[1:])

    return run


def test_it_says_how_many_blocks_and_minutes_each_difference_takes(study, instant):
    instant.takes_s = 10.0
    result = study().ended(0)
    lines = result.stdout.splitlines()
    assert re.match(r"noise a block's ratio varies by [2-7]\.\d% \(standard deviation, by the ", words(result.stdout))
    assert "interval's width; from 5 blocks of 30 s)" in words(result.stdout)
    rows = [re.fullmatch(r"\s*(\d)%\s+([\d,]+)\s+([\d,]+)", line) for line in lines]
    needs = [(int(row[1]), int(row[2].replace(",", "")), int(row[3].replace(",", ""))) for row in rows if row]
    assert [difference for difference, _, _ in needs] == [1, 2, 5]
    blocks = [blocks for _, blocks, _ in needs]
    # to see a difference half as large takes four times as many blocks
    assert blocks[0] / blocks[1] == pytest.approx(4, rel=0.1)
    assert all(minutes == pytest.approx(blocks / 2, abs=2) for _, blocks, minutes in needs)
    # whole lines, which can be pasted
    commands = {line.split()[1]: line.split() for line in lines if line.startswith("for ")}
    minutes = {f"{difference}%": f"{minutes}m" for difference, _, minutes in needs}
    assert {name: words[words.index("--budget") + 1] for name, words in commands.items()} == minutes
    promise = "a difference of that size is found 80% of the time; false-positive rate: at most 5%"
    assert f"chance {promise}" in words(result.stdout)
    assert all(len(line) <= 80 or line.startswith(("for ", "details ")) for line in lines)


def test_longer_samples_are_advised_by_the_length_that_they_had(bench_arguments, cli, simulation, instant, monkeypatch):
    simulation.worker("mine", seconds=NOISY)
    monkeypatch.setattr("envkit.cli.commands.plan.NOTABLE_SHARE", -1.0)
    arguments = bench_arguments("mine", "--blocks", 5)[1:]
    at = arguments.index("--steps")
    said = words(cli("plan", *arguments[:at], *arguments[at + 2 :]).stdout)
    assert int(re.search(r"try longer ones, such as --steps (\d+)", said)[1]) >= 20


def test_json(study, run_folder):
    result = study("--json").ended(0, stderr="")
    found = json.loads(result.stdout)
    assert 0.02 < found["scale"] < 0.07
    assert (found["blocks"], found["seconds_per_block"], found["chance"]) == (5, pytest.approx(3.0, abs=0.1), 0.8)
    assert 0 <= found["within_share"] <= 1
    assert [need["difference"] for need in found["needs"]] == [0.01, 0.02, 0.05]
    assert found["record"] == str(run_folder)
    assert len(recorded_samples(record.read(run_folder))) == 10


def test_the_noise_that_is_printed_is_that_of_the_table(study, simulation):
    """One block far out doubles the standard deviation. The interval, and so the table, hardly widen."""
    simulation.worker("mine", seconds=[*NOISY, 1.6])
    result = study("--blocks", 9, "--json")
    found = json.loads(result.stdout)
    (comparison,) = found["comparisons"]
    assert comparison["deviation"] > 1.5 * found["scale"]
    assert [need["blocks"] for need in found["needs"]] == [
        blocks_needed(found["scale"], 9, difference) for difference in (0.01, 0.02, 0.05)
    ]


def test_less_noise_needs_less(study, simulation, tmp_path):
    needed = []
    for name, seconds in (("noisy", NOISY), ("calm", times(1)), ("still", [1.0])):
        simulation.worker("baseline", seconds=[1.0])
        simulation.worker("mine", seconds=seconds)
        document = json.loads(study("--json", "--output", tmp_path / name).stdout)
        needed.append(document["needs"][1]["blocks"])
    assert needed[0] > needed[1] > needed[2] == 6


def test_more_blocks_can_be_asked_for_and_the_usual_number_is_five(cli, bench_arguments, instant, run_folder, tmp_path):
    arguments = bench_arguments("mine", "--full")[1:]
    arguments.remove("--full")
    assert cli("plan", *arguments, "--steps", 3).returncode == 0
    assert len(recorded_samples(record.read(run_folder))) == 10
    assert cli("plan", *arguments, "--steps", 3, "--blocks", 8, "--output", tmp_path / "more").returncode == 0
    assert len(recorded_samples(record.read(tmp_path / "more"))) == 16


def test_the_commands_that_it_names_measure_the_same(study, simulation, cli, tmp_path):
    """The options that decide what is measured are repeated, and the command can be run."""
    needs = json.loads(study("--warmup-steps", 4, "--json").stdout)["needs"]
    command = needs[2]["command"].split()
    assert command[:2] == ["envkit", "bench"]
    for option in (["--python", str(simulation.python)], ["--steps", "3"], ["--warmup-steps", "4"]):
        assert command[command.index(option[0]) :][:2] == option
    assert command[-2] == "--budget"
    assert "--blocks" not in command
    assert cli(*command[1:-1], "60s", "--output", tmp_path / "next").returncode == 0
    plans = [record.first(folder)["study"] for folder in (tmp_path / "run", tmp_path / "next")]
    before, after = ({**one.pop("stopping"), **one} for one in plans)
    assert {name for name in before if before[name] != after[name]} == {
        "blocks", "budget_s", "open_ended", "seed", "title",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("margin", "named"), [(None, ["1%", None, None]), ("0.5%", ["0.5%"] * 3), ("3%", ["1%", None, "3%"])]
)
def test_the_commands_that_it_names_end_no_sooner_than_was_planned(study, margin, named):
    needs = json.loads(study(*(("--margin", margin) if margin else ()), "--json").stdout)["needs"]
    commands = [need["command"].split() for need in needs]
    assert [one[one.index("--margin") + 1] if "--margin" in one else None for one in commands] == named


@pytest.mark.parametrize(
    ("text", "status", "said"), [("expect: {openmp.runtime: intel}\n", None, "NOT IN EFFECT  mine"), ("", 3, "FAILED")]
)
def test_a_run_without_a_result_gets_the_usual_report(study, simulation, text, status, said):
    if status is not None:
        simulation.worker("mine", does="exit", status=status)
    result = study(text=text)
    assert (result.returncode, result.stdout.startswith(said)) == (1, True), result.stdout


def test_interrupted(study, simulation, run_folder, cli):
    simulation.worker("mine", does="interrupt", **{"from": 2})
    result = study().ended(130)
    assert result.stderr.splitlines()[-1] == f"envkit: interrupted; continue with: envkit plan --resume {run_folder}"
    simulation.worker("mine", seconds=NOISY)
    resumed = cli("plan", "--resume", run_folder).ended(0)
    assert "from 5 blocks of" in words(resumed.stdout)
    assert f"envkit bench {run_folder.parent}/mine.yaml --python {simulation.python} " in resumed.stdout


# --- without a profile: the baseline against itself, and that later runs find what it measured ---


@pytest.fixture
def noise(cli, simulation):
    """Measure the noise with simulated workers, into the results folder that runs look into."""

    def run(*options):
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
        fixed += [] if "--budget" in options else ["--blocks", 10]
        return cli("plan", *fixed, *options)

    return run


@pytest.fixture
def found(bench, cli, tmp_path):
    """Measure a profile; the noise floor that its record has, and the report's line on it."""

    def run(*options, name="run"):
        bench("mine", "--blocks", 6, *options, "--output", tmp_path / name).ended(0)
        text = words(cli("report", tmp_path / name, "--details").stdout)
        line = text[text.index(" floor ") : text.index(" noise ")].strip()
        return record.first(tmp_path / name)["calibration"], line

    return run


def test_baseline_is_measured_against_itself(noise, cli, simulation, instant, samples, run_folder):
    result = noise("--output", run_folder).ended(0)
    assert Counter(arm for _, arm in samples()) == {"baseline": 10, "again": 10}
    assert not any("SIMULATED" in start["environment"] for start in simulation.starts())
    assert "floor baseline against itself stays within " in words(cli("report", run_folder, "--details").stdout)
    lines = result.stdout.splitlines()
    assert re.match(r"NO DIFFERENCE (FOUND|ABOVE 2%)  baseline against itself: [\d.]+x", lines[0])
    assert "floor baseline against itself stays within " in words(result.stdout)
    assert [line.split()[1] for line in lines if " envkit bench PROFILE --python " in line] == ["1%", "2%", "5%"]
    assert lines[-1] == f"details   envkit report {run_folder} --details"


def test_it_takes_three_minutes_unless_it_is_told_otherwise(cli, noise, simulation, instant, tmp_path):
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
    simulation.worker("baseline", seconds=[1.0, 2.0, 0.7])
    assert cli("plan", *fixed, "--output", tmp_path / "usual").returncode == 0
    assert record.first(tmp_path / "usual")["study"]["stopping"]["budget_s"] == 180
    assert noise("--budget", "30s", "--output", tmp_path / "short").returncode == 0
    # less than a block and a reading of the reference kernel are left
    assert 26 < spent(record.read(tmp_path / "short")) <= 30


def test_a_later_run_shows_it_next_to_its_speedup(noise, found, instant, own_surroundings):
    floor, line = found(name="before")
    assert floor is None
    assert line.startswith("floor unknown; measure it with: envkit plan")
    assert noise().returncode == 0
    (folder,) = (own_surroundings / "results").iterdir()
    floor, line = found()
    assert folder.name.endswith("-plan-baseline")
    assert (floor["blocks"], floor["folder"]) == (10, str(folder))
    assert 0 < floor["scale"] < 0.1
    assert "(measured 20" in line


def test_a_run_of_another_length_does_not_show_it(noise, found, instant):
    assert noise().returncode == 0
    assert found("--steps", 4)[0] is None
