"""``envkit ablate``: what it measures of a profile, and what it says of its settings."""

from __future__ import annotations

import json

import pytest
from envkit.bench import record
from envkit.profiles import profile
from envkit.worker.request import Train

from tests.instant_engine import replace_engine
from tests.simulated_worker import sample
from tests.tuning.planted_engine import PlantedEngine
from tests.worker_runs import document_of

TWO = "env: {OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M}\n"
GROUP = "preload: [jemalloc]\nenv: {MALLOC_CONF: 'thp:always', OMP_WAIT_POLICY: passive}\n"


@pytest.fixture
def planted(simulation, monkeypatch):
    """Have the workers of an environment be as much faster as a function of its variables says, in logarithms."""

    def plant(gain):
        engine = PlantedEngine(simulation, gain)
        replace_engine(monkeypatch, "local", engine)
        return engine

    return plant


@pytest.fixture
def ablate(cli, simulation, write_profile, run_folder):
    """Take the profile ``mine`` apart, of which ``text`` is what it sets."""

    def run(text, *options):
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
        fixed += [] if {"--budget", "--blocks"} & set(options) else ["--blocks", 12]
        return cli("ablate", write_profile("mine", text), *fixed, "--output", run_folder, *options)

    return run


@pytest.fixture
def arms(run_folder):
    return lambda: [arm["name"] for arm in record.first(run_folder)["study"]["arms"]]


def settings(result):
    """The table's rows by the setting, as the JSON has them, and the first line of the report."""
    assert result.returncode == 0, result
    return {one["setting"]: one for one in json.loads(result.stdout)["settings"]}


def joined(result):
    return " ".join(result.stdout.split())


def test_one_setting_does_everything(ablate, planted, arms):
    planted(lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    result = ablate(TWO).ended(0)
    # of two settings, the one alone is the profile without the other
    assert arms() == ["baseline", "mine", "OMP_WAIT_POLICY alone", "OMP_STACKSIZE alone"]
    first = joined(result)
    assert first.startswith("FASTER mine: 1.4")
    assert "Why OMP_WAIT_POLICY gives the speedup alone; OMP_STACKSIZE " in first
    lines = result.stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("setting "))
    row = lines[begin + 1].split()
    assert (row[0], row[1][:3]) == ("OMP_WAIT_POLICY", "1.4")


def test_the_name_of_a_setting_stays_whole(ablate, planted):
    planted(lambda variables: 0.0)
    result = ablate("env: {OMP_MAX_ACTIVE_LEVELS: 1, MALLOC_MMAP_THRESHOLD_: 1000000}\n")
    names = [line.split()[0] for line in result.stdout.splitlines() if line]
    assert {"OMP_MAX_ACTIVE_LEVELS", "MALLOC_MMAP_THRESHOLD_"} <= {*names}


def test_two_that_only_help_together(ablate, planted):
    planted(lambda variables: 0.4 if {"OMP_WAIT_POLICY", "OMP_STACKSIZE"} <= variables.keys() else 0.0)
    found = settings(ablate(TWO, "--json"))
    assert {one["contribution"] for one in found.values()} == {"together"}
    assert all(one["worth_in_profile"]["low"] > 1.4 > one["worth_alone"]["high"] for one in found.values())


def test_one_that_costs_is_left_out_of_what_is_to_be_used(ablate, planted, run_folder):
    text = "env: {OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M, OMP_SCHEDULE: static}\n"
    planted(lambda variables: 0.4 * ("OMP_WAIT_POLICY" in variables) - 0.2 * ("OMP_SCHEDULE" in variables))
    result = ablate(text)
    said = joined(result)
    assert "OMP_SCHEDULE costs time" in said
    assert f"Use envkit exec {run_folder}/profiles/mine-without-OMP_SCHEDULE.yaml" in said
    left = profile.load(str(run_folder / "profiles/mine-without-OMP_SCHEDULE.yaml"))
    assert left.env == {"OMP_WAIT_POLICY": "passive", "OMP_STACKSIZE": "4M"}


def test_where_several_cost_less_of_it_is_to_be_measured(ablate, planted):
    text = "env: {OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M, OMP_SCHEDULE: static}\n"
    costs = ("OMP_STACKSIZE", "OMP_SCHEDULE")
    planted(lambda variables: 0.6 * ("OMP_WAIT_POLICY" in variables) - 0.2 * sum(name in variables for name in costs))
    said = joined(ablate(text))
    assert "; OMP_STACKSIZE and OMP_SCHEDULE cost time" in said
    assert "Use envkit exec " in said
    assert "measure a copy of mine without the settings that cost time: OMP_STACKSIZE and OMP_SCHEDULE" in said


def test_what_others_make_up_for(ablate, planted):
    planted(lambda variables: 0.4 if variables.keys() & {"OMP_WAIT_POLICY", "OMP_STACKSIZE"} else 0.0)
    result = ablate(TWO)
    assert "OMP_WAIT_POLICY and OMP_STACKSIZE help alone, but others replace each" in joined(result)


def test_what_belongs_together_stays_together(ablate, planted, arms, simulation):
    planted(lambda variables: 0.1 * ("LD_PRELOAD" in variables) + 0.3 * ("MALLOC_CONF" in variables))
    found = settings(ablate(GROUP, "--json"))
    assert arms() == [
        "baseline", "mine", "jemalloc alone", "jemalloc + MALLOC_CONF", "OMP_WAIT_POLICY alone", "without MALLOC_CONF",
    ]  # fmt: skip
    assert all("LD_PRELOAD" in start["environment"] for start in simulation.starts() if "MALLOC_CONF" in
               start["environment"])  # fmt: skip
    assert found["jemalloc"]["without"] == "OMP_WAIT_POLICY alone"
    # beside the library alone, or it would be credited with what that is worth
    assert (found["MALLOC_CONF"]["needs"], found["MALLOC_CONF"]["beside"]) == ("jemalloc", "jemalloc alone")
    assert found["MALLOC_CONF"]["worth_alone"]["ratio"] == pytest.approx(1.35, abs=0.03)
    assert found["jemalloc"]["worth_alone"]["ratio"] == pytest.approx(1.105, abs=0.03)
    assert found["jemalloc"]["worth_in_profile"]["ratio"] == pytest.approx(1.49, abs=0.03)
    assert found["OMP_WAIT_POLICY"]["contribution"] in ("equivalent", "not-found")


def test_a_library_and_one_variable_of_its(ablate, planted, arms):
    planted(lambda variables: 0.3 if "MALLOC_CONF" in variables else 0.0)
    found = settings(ablate("preload: [jemalloc]\nenv: {MALLOC_CONF: 'thp:always'}\n", "--json"))
    assert arms() == ["baseline", "mine", "jemalloc alone"]
    conf = found["MALLOC_CONF"]
    assert (conf["alone"], conf["beside"], conf["without"]) == ("mine", "jemalloc alone", "jemalloc alone")
    assert conf["contribution"] == "alone"
    assert found["jemalloc"]["without"] == "baseline"


def seen(policy):
    """What a worker says that it runs with."""

    def other(variables):
        found = sample(document_of(Train("cnn", "synthetic", steps=3)), {"seconds": [1.0]}, 0, variables)["evidence"]
        found["openmp"]["wait_policy"] = policy(variables)
        return {"evidence": found}

    return other


EXPECTS = f"{TWO}expect: {{openmp.wait_policy: passive}}\n"


def test_a_part_that_is_not_in_effect_when_tried_is_left_out(ablate, planted, cli, run_folder, arms):
    engine = planted(lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    engine.other = seen(lambda variables: "passive" if "OMP_STACKSIZE" in variables else "active")
    result = ablate(EXPECTS).ended(0)
    said = "left out OMP_WAIT_POLICY alone: it is not in effect: openmp.wait_policy: expected passive, seen active"
    assert said in result.stderr.splitlines()
    assert arms() == ["baseline", "mine", "OMP_STACKSIZE alone"]
    # it was not measured alone, and of the other it is not known what the profile loses without it
    found = {one["setting"]: one for one in json.loads(cli("report", run_folder, "--json").stdout)["settings"]}
    assert (found["OMP_WAIT_POLICY"]["alone"], found["OMP_WAIT_POLICY"]["contribution"]) == (None, "needed")
    assert (found["OMP_STACKSIZE"]["without"], found["OMP_STACKSIZE"]["worth_in_profile"]) == (None, None)
    assert "left out OMP_WAIT_POLICY alone: it is not in effect" in joined(cli("report", run_folder, "--details"))


def test_a_part_that_is_not_in_effect_later_has_no_result(ablate, planted, arms):
    engine = planted(lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    tried = []

    def policy(variables):
        tried.append("OMP_STACKSIZE" not in variables and "OMP_WAIT_POLICY" in variables)
        return "active" if sum(tried) > 2 and tried[-1] else "passive"

    engine.other = seen(policy)
    result = ablate(EXPECTS).ended(1)
    assert arms() == ["baseline", "mine", "OMP_WAIT_POLICY alone", "OMP_STACKSIZE alone"]
    said = joined(result)
    assert said.startswith("NOT IN EFFECT OMP_WAIT_POLICY alone")
    assert "openmp.wait_policy passive active" in said


def test_a_profile_that_is_not_in_effect_is_not_taken_apart(ablate, planted, run_folder):
    engine = planted(lambda variables: 0.0)
    engine.other = seen(lambda variables: "active")
    result = ablate(EXPECTS).ended(2, stdout="")
    said = "envkit: mine: it is not in effect: openmp.wait_policy: expected passive, seen active; find out why: envkit"
    assert result.stderr.splitlines()[-1].startswith(said)
    assert not run_folder.exists()


def test_where_the_baseline_fails_no_part_is_blamed(ablate, planted):
    engine = planted(lambda variables: 0.0)
    engine.misbehave = lambda variables: None if "OMP_STACKSIZE" in variables else "ended with exit status 3"
    result = ablate(TWO).ended(1)
    assert "left out" not in result.stderr
    assert "FAILED" in result.stdout


def test_results_name_what_they_are_compared_with(ablate, planted, cli, run_folder):
    planted(lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    ablate("env: {OMP_WAIT_POLICY: passive, OMP_STACKSIZE: 4M, OMP_SCHEDULE: static}\n")
    found = json.loads(cli("report", run_folder, "--json").stdout)
    assert found["references"]["without OMP_WAIT_POLICY"] == "mine"
    assert found["references"]["OMP_WAIT_POLICY alone"] == "baseline"
    (one,) = [one for one in found["comparisons"] if one["arm"] == "without OMP_WAIT_POLICY"]
    assert (one["verdict"], one["speedup"]["ratio"]) == ("slower", pytest.approx(0.67, abs=0.02))
    shown = joined(cli("report", run_folder, "--markdown"))
    assert "slower (against mine)" in shown


def test_ninety_seconds_for_each_unless_it_is_told_otherwise(ablate, planted, run_folder, cli, simulation):
    planted(lambda variables: 0.4 if "OMP_WAIT_POLICY" in variables else 0.0)
    path = ablate(TWO, "--budget", "60s") and record.first(run_folder)
    assert path["study"]["stopping"]["budget_s"] == 60
    (run_folder / record.FILE_NAME).unlink()
    mine = run_folder.parent / "mine.yaml"
    fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3, "--output", run_folder]
    assert cli("ablate", mine, *fixed).returncode == 0
    assert record.first(run_folder)["study"]["stopping"]["budget_s"] == 4 * 90


def test_there_are_eight_blocks_at_least(ablate, planted, arms, run_folder):
    engine = planted(lambda variables: 0.4 if "MALLOC_CONF" in variables else 0.0)
    engine.takes_s = 40.0  # three comparisons alone would have intervals from 7 on
    said = ablate("preload: [jemalloc]\nenv: {MALLOC_CONF: 'thp:always'}\n", "--budget", "60s").ended(2)
    assert "a verdict needs 8 blocks" in said.stderr


def test_a_command_of_one_s_own(cli, write_profile, run_folder, tmp_path):
    mine = write_profile("mine", "env: {MALLOC_ARENA_MAX: 1, MALLOC_TOP_PAD_: 131072}\n")
    (tmp_path / "training").mkdir()  # each start has a copy of the folder that it is called from
    script = tmp_path / "training/train.sh"
    script.write_text('test -z "$MALLOC_TOP_PAD_" || test -n "$MALLOC_ARENA_MAX" || exit 3\n')
    fixed = ("--whole-command", "--blocks", 1, "--output", run_folder)
    result = cli("ablate", mine, *fixed, "--", "sh", "train.sh", cwd=script.parent).ended(0)
    assert "left out MALLOC_TOP_PAD_ alone: its worker" in result.stderr
    assert [arm["name"] for arm in record.first(run_folder)["study"]["arms"]] == [
        "baseline", "mine", "MALLOC_ARENA_MAX alone",
    ]  # fmt: skip
