"""``envkit advise``: the best profiles race, and the winner is compared with the baseline; with simulated workers."""

from __future__ import annotations

import json

import pytest
from envkit.advice import expected
from envkit.advice.expected import Fit, Fitted
from envkit.bench import decide, race, record
from envkit.cli.commands import advise as advise_command
from envkit.worker.messages.user_command import FewerStepsThanAsked

from tests.advice.trainings import observed
from tests.cli.commands.advice_document import parsed
from tests.cli.commands.conftest import words
from tests.sessions import rewrite
from tests.simulation import times

# How much longer than the baseline's workers those of each profile take.
FACTORS = {"near": 0.52, "slow": 0.9, "fast": 0.5, "worse": 1.2}


@pytest.fixture(autouse=True)
def candidates(monkeypatch, tmp_path, write_profile):
    """Four profiles of a project can race, or those that are given."""
    (tmp_path / "envprofiles").mkdir()
    for name in FACTORS:
        write_profile(name, f"env: {{SIMULATED: {name}}}\n", tmp_path / "envprofiles")
    (tmp_path / "train.py").touch()
    fits = {"glibc-retain": [Fit({}, 0.1, 0.1)]}
    monkeypatch.setattr(expected, "fitted", lambda: Fitted(["A CPU"], "2026-11-01", ["one", "two"], fits))

    def race(*names):
        monkeypatch.setattr(advise_command, "candidates", lambda *of: [*names])

    race(*FACTORS)
    return race


@pytest.fixture
def planted(simulation):
    """Have workers of the baseline and of each profile take so long."""
    sample = observed()
    seen = {"observed": {**sample["observed"], "helpers": None}, "evidence": sample["evidence"]}

    def plant(**changes):
        for name, factor in {"baseline": 1.0, **FACTORS}.items():
            simulation.worker(name, **{"seconds": times(factor), "full_steps": 10, **seen, **changes.get(name, {})})

    plant()
    return plant


@pytest.fixture
def advise(cli, instant, simulation, planted, tmp_path, run_folder):
    def run(*options, command=("python", "train.py")):
        fixed = ["--python", simulation.python, "--output", run_folder]
        return cli("advise", *fixed, *options, "--", *command, cwd=tmp_path)

    return run


@pytest.fixture
def raced(run_folder):
    """Return the events of the race, of some kinds only if they are named."""
    return lambda *kinds: [event for event in record.read(run_folder / "race") if not kinds or event["event"] in kinds]


def test_the_fastest_is_compared_with_the_baseline(advise, cli, tmp_path):
    result = advise().ended(0)
    said = words(result.stdout)
    assert "Try glibc-retain first: 1.11x baseline speed is expected" in said
    assert "FASTEST IN THE RACE fast, of 4 profiles; few samples chose it, so this claims nothing yet" in said
    table = "fast 1.00 18 near 0.96 18 after block 18 slow 0.56 6 after block 6 worse 0.42 6 after block 6"
    assert f"profile speed blocks left {table} speed: a share of fast's" in said
    assert "FASTER fast: 2.00x baseline speed (95% CI" in said
    assert said.index("FASTEST IN THE RACE") < said.index("FASTER fast")
    assert "Use envkit exec fast --python" in said
    assert "Keep a file to commit, baselines/train.json: envkit baseline save train --from run" in said
    assert "NOT FOUND" not in said
    assert cli("baseline", "save", "train", "--from", "run", cwd=tmp_path).returncode == 0
    assert (tmp_path / "baselines/train.json").exists()
    # the time is said before anything races
    said = words(result.stderr)
    assert (
        "envkit: 4 profiles race now, and the slower half leaves after block 6, 18; the fastest is then compared with "
        "the baseline; all this takes about 3 minutes (--budget TIME changes that)"
    ) in said
    assert said.index("race now") < said.index("dropped after 6 blocks, as slower: slow and worse")


def test_samples_of_the_race_claim_nothing(advise, run_folder, raced):
    document = parsed(advise("--json").stdout)
    assert [racer["arm"] for racer in document["race"]] == ["fast", "near", "slow", "worse"]
    assert [racer["left_after"] for racer in document["race"]] == [None, 18, 6, 6]
    assert document["record"] == str(run_folder)
    (comparison,) = document["confirmation"]["comparisons"]
    assert (comparison["arm"], comparison["verdict"]) == ("fast", "faster")
    confirmed = [event for event in record.read(run_folder) if event["event"] == "sample"]
    assert {event["arm"] for event in confirmed} == {"baseline", "fast"}
    assert comparison["speedup"]["blocks"] == len(confirmed) / 2
    assert {event["arm"] for event in raced("sample")} == {*FACTORS}
    assert raced("design", "warm-up", "reference-kernel") == []


def test_a_race_s_report_has_no_verdict(advise, cli, run_folder):
    advise()
    result = cli("report", run_folder / "race").ended(0)
    said = words(result.stdout)
    assert said.startswith("FASTEST IN THE RACE fast, of 4 profiles; few samples chose it, so this claims nothing yet ")
    assert "CI" not in said
    assert f"Next its comparison with the baseline: envkit report {run_folder}" in said
    assert "--resume" not in said
    document = json.loads(cli("report", run_folder / "race", "--json").stdout)
    assert (document["comparisons"], document["verdicts"]) == ([], {})
    for options in (["--details"], ["--html", run_folder / "page.html"], ["--markdown"]):
        assert cli("report", run_folder / "race", *options).returncode == 0, options


def test_the_report_of_a_race_whose_winner_was_not_compared_offers_that(advise, cli, run_folder):
    advise()
    (run_folder / "record.jsonl").unlink()
    said = words(cli("report", run_folder / "race").stdout)
    assert f"Next compare the fastest with the baseline: envkit advise --resume {run_folder}/race" in said


def test_a_single_candidate_is_compared_at_once(advise, candidates, run_folder):
    candidates("near")
    assert parsed(advise("--json", "--output", f"{run_folder}-json").stdout)["race"] == []
    result = advise().ended(0)
    assert "near is compared with the baseline now; all this takes about 3 minutes" in words(result.stderr)
    assert "FASTER near: 1.9" in words(result.stdout)
    assert not (run_folder / "race").exists()


def test_no_candidate_applies(advise, candidates, run_folder, instant):
    candidates()
    assert parsed(advise("--json").stdout)["race"] is None
    result = advise()
    assert (result.returncode, "race now" in result.stderr) == (0, False)
    assert not run_folder.exists()


def test_one_that_starts_slowly_is_told_the_time_first(advise, instant):
    instant.takes_s = 40.0  # of which its steps take one second
    result = advise("--budget", "10m")
    said = words(result.stderr)
    assert "slower half leaves after block 2, 4; " in said
    assert "all this takes about 18 minutes" in said, "of 1 + 12 + 14 starts"
    assert result.returncode == 0


def test_a_budget_that_is_far_too_short_is_refused_with_the_advice(advise, instant, run_folder):
    instant.takes_s = 40.0
    result = advise("--budget", "2m", "--json")
    document = parsed(result.stdout, failed=True)
    assert (result.returncode, document["error"]["code"]) == (2, "bench.budget-too-short")
    assert document["expected"][0]["profile"] == "glibc-retain"
    assert "--budget 2m is too short" in result.stderr.replace("120s", "2m")
    assert not run_folder.exists()


def test_a_long_budget_has_a_longer_confirmation_and_no_longer_race_than_the_longest(advise, raced):
    advise("--budget", "1h")
    assert [event["block"] for event in raced("dropped")] == [6, 18]


def test_one_that_fails_leaves_the_race(advise, planted, raced):
    planted(near={"does": "exit", "status": 3, "stderr": "it aborts"})
    result = advise().ended(0)
    assert "near - 0 failed" in words(result.stdout)
    assert "FASTER fast" in words(result.stdout)
    assert [event["arm"] for event in raced("failure")] == ["near"]
    assert words(result.stderr).count("envkit: near left the race: the worker ended with exit status 3") == 1


def test_one_that_is_not_in_effect_leaves_the_race(advise, write_profile, tmp_path):
    write_profile("near", "env: {SIMULATED: near}\nexpect: {openmp.runtime: intel}\n", tmp_path / "envprofiles")
    result = advise().ended(0)
    assert "near - 1 not in effect" in words(result.stdout)
    assert words(result.stderr).count("envkit: near left the race: openmp.runtime was not in effect") == 1


def test_a_training_that_has_no_second_start_ends_the_race(advise, planted):
    """Such as one that is complete where its first start has left a checkpoint (--in-place)."""
    ends = {"does": "print", "status": 1,
            "text": json.dumps({"problem": FewerStepsThanAsked(13, 3).to_json()})}  # fmt: skip
    planted(**dict.fromkeys(FACTORS, ends))
    result = advise().ended(1)
    assert "FAILED" in result.stdout


def test_a_race_in_which_all_fail_leaves_the_advice(advise, planted):
    planted(**{name: {"does": "exit", "status": 1} for name in FACTORS})
    document = parsed(advise("--json").stdout, failed=True)
    assert document["expected"]
    assert [racer["failed"] for racer in document["race"]] == [True] * len(FACTORS)
    assert document["error"]
    assert document["record"].endswith("race")


def test_a_race_in_which_all_fail_says_so_once_and_what_to_do(advise, planted):
    planted(**{name: {"does": "exit", "status": 1, "stderr": "No space left on device"} for name in FACTORS})
    result = advise()
    assert result.returncode == 1
    said = words(result.stdout)
    assert "FAILED none of 4 profiles is left in the race: 4 failed profile" in said
    assert "| No space left on device" in said
    assert "Fix fix the problem that the workers printed, then begin again: envkit advise -- python train.py" in said
    assert "--resume" not in said + result.stderr


def test_a_race_in_which_no_profile_is_in_effect(advise, write_profile, tmp_path):
    for name in FACTORS:
        text = f"env: {{SIMULATED: {name}}}\nexpect: {{openmp.runtime: intel}}\n"
        write_profile(name, text, tmp_path / "envprofiles")
    result = advise()
    assert result.returncode == 1
    said = words(result.stdout)
    assert "FAILED none of 4 profiles is left in the race: 4 not in effect" in said
    assert "Fix find out why: envkit exec " in said


def test_a_training_that_writes_much_is_told_before_it_races(advise, planted):
    """Each start has a copy of the folder, and room for what it writes there."""
    inside = {"files": 12, "bytes": 5 * 2**30, "names": ["checkpoint.pt", "log.txt"]}
    planted(baseline={"writes": {"inside": inside}})
    said = words(advise().stderr)
    told = "each start writes 12 files (5.0 GiB), such as checkpoint.pt, log.txt into its copy of the folder"
    assert told in said
    assert said.index(told) < said.index("race now")


def test_a_race_that_takes_far_longer_than_planned_ends_early(advise, instant, raced):
    instant.slower_after(1 + 4 * 6 + 2, 30.0)  # the watching, the blocks before the first halving, and one more
    advise()
    assert raced("end")[-1]["reason"] == decide.BUDGET
    assert len({event["block"] for event in raced("sample")}) < 18


def test_a_race_that_is_interrupted_shows_what_it_has_and_goes_on(advise, cli, planted, raced, run_folder, tmp_path):
    planted(near={"does": "interrupt", "from": 5})
    result = advise().ended(130)
    said = words(result.stdout)
    assert "RACE UNFINISHED fast is the fastest after 5 complete blocks; this claims nothing" in said
    assert "fast 1.00" in said
    assert "interrupted; continue with: envkit advise --resume run/race" in words(result.stderr)
    before = raced("sample")
    planted()
    resumed = cli("advise", "--resume", run_folder / "race", cwd=tmp_path).ended(0)
    assert raced("sample")[: len(before)] == before
    assert len({(event["block"], event["arm"]) for event in raced("sample")}) == len(raced("sample"))
    assert "FASTEST IN THE RACE fast" in words(resumed.stdout)
    assert "FASTER fast" in words(resumed.stdout)
    assert record.read(run_folder)[-1]["event"] == "end"


def test_scripts_get_the_advice_of_a_race_that_was_interrupted(advise, planted, run_folder):
    planted(near={"does": "interrupt", "from": 5})
    result = advise("--json")
    document = parsed(result.stdout, failed=True)
    assert (result.returncode, document["race"][0]["arm"]) == (130, "fast")
    assert document["expected"][0]["profile"] == "glibc-retain"
    assert (document["confirmation"], document["record"]) == (None, str(run_folder / "race"))


def test_scripts_get_the_same_document_of_a_race_that_goes_on(advise, cli, planted, run_folder, tmp_path):
    planted(near={"does": "interrupt", "from": 5})
    advise("--json")
    planted()
    resumed = parsed(cli("advise", "--resume", run_folder / "race", "--json", cwd=tmp_path).stdout)
    assert resumed["expected"][0]["profile"] == "glibc-retain"
    assert resumed["race"][0]["arm"] == "fast"
    assert resumed["confirmation"]["comparisons"][0]["arm"] == "fast"
    assert resumed["record"] == str(run_folder)


def test_scripts_get_the_race_of_a_comparison_that_was_interrupted(advise, planted, run_folder):
    planted(baseline={"does": "interrupt", "from": 3})
    result = advise("--json")
    document = parsed(result.stdout, failed=True)
    assert (result.returncode, document["race"][0]["arm"], document["record"]) == (130, "fast", str(run_folder))
    assert document["confirmation"]["ended"] == decide.INTERRUPTED


@pytest.mark.parametrize("before", ["race_of", "confirmation"])
def test_scripts_get_the_advice_if_it_is_interrupted_between_two_measurements(advise, monkeypatch, before):
    def interrupt(*ignored):
        raise KeyboardInterrupt

    monkeypatch.setattr(race, before, interrupt)
    result = advise("--json")
    document = parsed(result.stdout, failed=True)
    assert (result.returncode, document["error"]["code"]) == (130, "cli.interrupted")
    assert document["expected"][0]["profile"] == "glibc-retain"
    assert (document["race"] is None) == (before == "race_of")


@pytest.mark.parametrize("begins_in", ["race", "."])
def test_scripts_get_the_advice_if_a_record_can_not_be_written(advise, monkeypatch, run_folder, begins_in):
    append = record.Record.append

    def full(self, event, **fields):
        if self.path.parent == (run_folder / begins_in) and event == "sample":
            raise record.RecordFull(self.path.parent, "no space left on device")
        return append(self, event, **fields)

    monkeypatch.setattr(record.Record, "append", full)
    result = advise("--json")
    document = parsed(result.stdout, failed=True)
    assert (result.returncode, document["expected"][0]["profile"]) == (2, "glibc-retain")
    assert (document["race"] is None) == (begins_in == "race")


def test_one_that_is_interrupted_in_its_first_block_has_no_order(advise, planted):
    planted(near={"does": "interrupt"})
    result = advise().ended(130)
    assert "speed: a share" not in words(result.stdout)


def test_a_neighbour_that_comes_in_the_confirmation_is_named(advise, planted):
    """The first starts of both sides, and of the race, were alone."""
    beside = {"usage": {"worker_cpus": 4, "worker_cpus_busy_s": 5.0}}
    planted(baseline=beside, fast=beside)
    said = words(advise().stdout)
    assert "UNDER LOAD fast: 2.00x baseline speed" in said
    assert "Keep" not in said


def test_nothing_is_started_by_another_run_or_by_the_record_of_another(advise, refused, run_folder, simulation):
    advise()
    assert refused("advise", "--resume", run_folder) == (
        f"envkit: {run_folder}: holds a run that is no race; continue it with: envkit bench --resume {run_folder}"
    )
    path = run_folder / "race/record.jsonl"
    path.write_text(path.read_text().replace("train.py", "other.py"))
    started = len(simulation.starts(all=True))
    assert refused("advise", "--resume", run_folder / "race") == (
        f"envkit: {run_folder}/race: the record does not carry your seal; begin a new race: envkit advise -- COMMAND"
    )
    assert len(simulation.starts(all=True)) == started


def test_a_record_with_other_halvings_is_refused_in_one_line(advise, refused, run_folder):
    advise()
    for halvings in ([], [0, 2]):
        rewrite(run_folder / "race", lambda run, halvings=halvings: run["study"]["stopping"].update(halvings=halvings))
        assert "halvings" in refused("report", run_folder / "race")


@pytest.mark.parametrize("inner", ["", "race"])
def test_a_folder_that_holds_a_run_is_refused_before_anything_is_watched(advise, simulation, run_folder, inner):
    (run_folder / inner).mkdir(parents=True)
    (run_folder / inner / "record.jsonl").write_text("{}\n")
    result = advise().ended(2, stdout="")
    assert "already holds a run" in result.stderr
    assert simulation.starts(all=True) == []


@pytest.mark.parametrize(("limit", "winner"), [("100%", "fast"), ("99%", "near")])
def test_a_profile_above_the_memory_limit_does_not_win(advise, planted, raced, limit, winner):
    planted(fast={"peak_memory_bytes": 2**30})
    document = parsed(advise("--max-memory", limit, "--json").stdout)
    assert document["race"][0]["arm"] == winner
    over = [racer["arm"] for racer in document["race"] if racer["over_memory"]]
    assert over == (["fast"] if winner == "near" else [])
    assert [comparison["arm"] for comparison in document["confirmation"]["comparisons"]] == [winner]
    assert document["confirmation"]["study"]["stopping"]["max_memory"] == float(limit[:-1]) / 100
    assert document["confirmation"]["over_memory"] == []


def test_the_winner_of_a_race_is_not_called_the_fastest_of_all_where_a_limit_left_one_out(advise, planted):
    planted(fast={"peak_memory_bytes": 2**30})
    assert "FASTEST IN THE RACE WITHIN THE MEMORY LIMIT near, of 4 profiles; " in words(
        advise("--max-memory", "99%").stdout
    )


def test_if_all_are_above_the_limit_the_winner_is_shown_and_not_recommended(advise, planted):
    planted(**{name: {"peak_memory_bytes": 2**30} for name in FACTORS})
    result = advise("--max-memory", "10%").ended(0)
    shown = words(result.stdout)
    assert "FASTEST IN THE RACE, BUT OVER THE MEMORY LIMIT fast, of 4 profiles; " in shown
    assert "out: fast 1.0 GiB against 512 MiB (+100%)" in shown
    assert "keep baseline: fast needs 100% more memory, and --max-memory allows 10%; to allow that: " in shown
    assert "--max-memory 105%" in shown
    assert "Keep " not in shown
    assert "envkit exec" not in shown.split("FASTER, BUT OVER THE MEMORY LIMIT fast", 1)[1]
