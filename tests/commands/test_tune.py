"""``runner tune`` with workers whose times are planted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner import engines, profile, record
from runner.commands import tune
from runner.engines.base import Outcome
from runner.engines.process import timed_out
from runner.plan import Arm, OwnCommand, Plan
from runner.tuning import outcome
from tests.tuning.planted_engine import PlantedEngine

SPACE = """\
name: small
title: A test
knobs:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000, 10000]}
  wait: {variable: OMP_WAIT_POLICY, values: [unset, passive]}
  bind: {variable: OMP_DYNAMIC, values: [unset, true]}
  allocator: {choices: {glibc: , jemalloc: {preload: [jemalloc]}, mimalloc: {preload: [mimalloc]}}}
constraints:
  - {never: {wait: [passive], spin: [0, 1000, 5000, 10000]}, because: a test}
"""


def gain(variables):
    """jemalloc and one spin count are good; the shipped profile has the first of these only."""
    return 0.2 * ("LD_PRELOAD" in variables) + 0.15 * (variables.get("GOMP_SPINCOUNT") == "1000")


@pytest.fixture
def engine(simulation, monkeypatch):
    made = PlantedEngine(simulation, gain)
    monkeypatch.setitem(engines.ENGINES, "local", made)
    return made


@pytest.fixture
def local(tmp_path, monkeypatch):
    """Where the profile is written, in the place of envprofiles/local."""
    folder = tmp_path / "envprofiles/local"
    monkeypatch.setattr(tune, "LOCAL_FOLDER", folder)
    return folder


@pytest.fixture
def shipped(tmp_path, monkeypatch, write_profile):
    """The profiles that compete, in the place of the kit's."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    write_profile("baseline", folder=folder)
    write_profile("known", "preload: [jemalloc]\n", folder=folder)
    write_profile("tc", "preload: [tcmalloc]\n", folder=folder)
    write_profile("other", 'env: {OMP_NESTED: "true"}\nnumerics: may-differ\n', folder=folder)
    monkeypatch.setattr(tune, "SHIPPED_FOLDER", folder)
    return folder


@pytest.fixture
def arguments(tmp_path, engine, shipped, local):
    space = tmp_path / "small.yaml"
    space.write_text(SPACE)

    def make(*options, budget="100s"):
        fixed = ["--space", space, "--data", "synthetic", "--steps", 3, "--output", tmp_path / "tuning"]
        return ["tune", *fixed, *(["--budget", budget] if budget else []), *options]

    return make


@pytest.fixture
def tuned(cli, arguments):
    return lambda *options, **more: cli(*arguments(*options, **more))


def events(tmp_path):
    return record.read(tmp_path / "tuning", "tune")


def written(local):
    return profile.load(str(local / f"{profile.tuned_name()}.yaml"))


def test_it_finds_confirms_and_writes_the_best(tuned, local, tmp_path):
    result = tuned()
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result
    found = written(local)
    assert found.env == {"GOMP_SPINCOUNT": "1000"}
    assert found.preload == ("jemalloc",)
    assert "times as fast as the baseline" in found.reason
    assert "times as fast as known, the best shipped profile" in found.reason
    assert str(tmp_path / "tuning/confirmation/record.jsonl, SHA-256 ") in found.source
    words = " ".join(result.stdout.split())
    assert "against known, the best shipped profile: FASTER" in words
    assert "left out allocator=mimalloc: preloads mimalloc, which is not installed" in words
    assert "left out profile tc: preloads tcmalloc, which is not installed" in words
    assert "left out profile other: may change the results; --numerics any tries it too" in words
    assert "written the tuned profile was written" in words
    assert "runner exec tuned -- python train.py" in words
    assert "tuned 1.4" in words
    # the finds are told as they come
    assert "best so far 1.4" in result.stderr
    assert "GOMP" not in result.stderr


def test_its_evidence_lies_beside_it(tuned, local, tmp_path):
    tuned()
    path = local / f"{profile.tuned_name()}.evidence.json"
    evidence = json.loads(path.read_text())
    assert evidence["best"] == "tuned"
    assert evidence["environment"]["variables"]["GOMP_SPINCOUNT"] == "1000"
    assert [one["arm"] for one in evidence["comparisons"]] == ["known", "tuned"]
    assert evidence["versus_best_shipped"]["low"] > 1
    assert evidence["checks"] == [{"key": "preload.jemalloc", "expected": "mapped", "seen": "mapped"}]
    for place, sha256 in evidence["records"].items():
        assert hashlib.sha256(Path(place).read_bytes()).hexdigest() == sha256
    assert len(evidence["records"]) == 2


def test_where_the_confirmation_fails_nothing_is_written_and_it_can_go_on(tuned, cli, engine, local, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3" if engine.trained == 75 else None
    result = tuned()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "runner: the confirmation ended: a worker failed; no profile was written; go on with: "
        f"runner tune --resume {tmp_path / 'tuning'}"
    )
    assert "FAILED" in result.stdout
    assert not local.exists()
    assert cli("tune", "--resume", tmp_path / "tuning").returncode == 0
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_the_confirmation_is_an_ordinary_run_of_fresh_samples(tuned, cli, tmp_path):
    tuned()
    folder = tmp_path / "tuning/confirmation"
    reported = json.loads(cli("report", folder, "--json").stdout)
    assert [arm["name"] for arm in reported["plan"]["arms"]] == ["baseline", "known", "tuned"]
    assert reported["ended"] == "complete"
    # a third of the budget and more is kept for it, and all together fits
    searched = sum(event.get("worker_seconds", 0) for event in events(tmp_path))
    confirmed = sum(event.get("worker_seconds", 0) for event in record.read(folder))
    assert searched <= 65
    assert 90 <= searched + confirmed <= 100
    assert reported["plan"]["more_comparisons"] == 1


def test_what_is_reported_and_listed_is_the_confirmation(tuned, cli, tmp_path, refused):
    tuned()
    line = refused("report", tmp_path / "tuning")
    assert "is the record of a search by runner tune; what it found was measured in " in line
    assert line.endswith("tuning/confirmation")
    listed = json.loads(cli("history", tmp_path, "--json").stdout)
    assert [run["folder"] for run in listed["runs"]] == [str(tmp_path / "tuning/confirmation")]
    assert listed["unreadable"] == []


def test_json_has_what_a_script_needs(tuned, local, tmp_path):
    document = json.loads(tuned("--json").stdout)
    assert document["best"] == "tuned"
    assert document["best_shipped"] == "known"
    assert document["versus_best_shipped"]["verdict"] == "faster"
    assert document["written"] == str(local / f"{profile.tuned_name()}.yaml")
    assert {"allocator", "spin"} == {one["knob"] for one in document["importance"][:2]}
    assert document["candidates"][0]["choice"]["spin"] == "1000"
    assert document["failed"] == []


def test_the_same_seed_tries_the_same(tuned, tmp_path, cli, arguments):
    tuned("--seed", 5)
    first = [event["environment"] for event in events(tmp_path) if event["event"] == "candidate"]
    (tmp_path / "tuning").rename(tmp_path / "before")
    tuned("--seed", 5)
    assert [event["environment"] for event in events(tmp_path) if event["event"] == "candidate"] == first
    (tmp_path / "tuning").rename(tmp_path / "before that")
    tuned("--seed", 6)
    assert [event["environment"] for event in events(tmp_path) if event["event"] == "candidate"] != first


def test_where_nothing_betters_the_shipped_profile_a_copy_of_it_is_written(tuned, engine, local):
    engine.gain = lambda variables: 0.2 * ("LD_PRELOAD" in variables)
    result = tuned()
    assert result.returncode == 0
    found = written(local)
    assert (found.preload, found.env) == (("jemalloc",), {})
    assert found.reason.startswith("A copy of the shipped profile known, which runner tune could not better on ")
    assert "a copy of " in " ".join(result.stdout.split()).partition("written ")[2]


def test_where_nothing_betters_the_baseline_the_profile_sets_nothing(tuned, engine, local):
    engine.gain = lambda variables: -0.3 * bool(set(variables) - {"ENVKIT_PADDING"})
    result = tuned()
    assert result.returncode == 0
    found = written(local)
    assert (found.preload, found.env) == ((), {})
    assert "nothing that is surely faster than the baseline" in found.reason
    assert "nothing is surely faster than the baseline" in " ".join(result.stdout.split())


def test_candidates_that_fail_are_counted_and_not_tried_again(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3" if "OMP_DYNAMIC" in variables else None
    result = tuned()
    assert result.returncode == 0
    failed = [event["candidate"] for event in events(tmp_path) if event["event"] == "failure"]
    assert len(failed) == len(set(failed)) > 0
    words = " ".join(result.stdout.split())
    assert f"failed {len(failed)} candidate" in words
    assert "its worker ended with exit status 3" in words
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_a_candidate_that_is_not_in_effect_fails(tuned, engine, local, tmp_path):
    tampered = {"variables": {"sensitive": {}, "preloaded": {}}, "openmp": {"runtime": "gnu"}, "malloc": {}}
    engine.other = lambda variables: {"evidence": tampered} if "GOMP_SPINCOUNT" in variables else {}
    assert tuned().returncode == 0
    problems = [event["problem"] for event in events(tmp_path) if event["event"] == "failure"]
    assert problems
    assert all("was not in effect: " in one for one in problems)
    assert "GOMP_SPINCOUNT" not in written(local).env


def test_a_candidate_with_other_losses_is_rejected_unless_numerics_may_differ(tuned, engine, local, tmp_path):
    engine.other = lambda variables: {"losses": [2.3, 2.2, 2.1]} if "GOMP_SPINCOUNT" in variables else {}
    result = tuned()
    assert "GOMP_SPINCOUNT" not in written(local).env
    assert "has other losses than the baseline, by up to " in " ".join(result.stdout.split())
    (tmp_path / "tuning").rename(tmp_path / "before")
    assert tuned("--numerics", "any").returncode == 0
    assert written(local).env["GOMP_SPINCOUNT"] == "1000"
    assert written(local).numerics == "may-differ"  # though nothing that it sets is known for that


def test_where_every_candidate_fails_one_line_says_why_and_nothing_is_written(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "was killed by signal SIGSEGV" if set(variables) - {"ENVKIT_PADDING"} else None
    result = tuned()
    assert (result.returncode, result.stdout) == (1, "")
    line = result.stderr.splitlines()[-1]
    assert " candidates failed, the first (known): was killed by signal SIGSEGV; no profile was written" in line
    assert not local.exists()
    assert not (tmp_path / "tuning/confirmation").exists()


def test_a_baseline_that_fails_ends_it_in_one_line(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3"
    result = tuned()
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("runner: the baseline's worker ended with exit status 3: simulated trouble; mend that and ")
    assert line.endswith(f"start again; the record is in {tmp_path / 'tuning'}")
    assert not local.exists()


def test_a_baseline_that_fails_later_can_be_gone_on_with(tuned, engine, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3" if engine.trained > 9 else None
    result = tuned()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith(f"go on with: runner tune --resume {tmp_path / 'tuning'}")


@pytest.mark.parametrize("interrupted", [0, 9, 50, 70])
def test_ctrl_c_in_a_trial_loses_nothing(tuned, cli, engine, local, tmp_path, interrupted):
    """Also in the warm-up, in the finals and in the confirmation."""
    whole = tuned("--json")
    same = [event for event in events(tmp_path) if event["event"] in ("candidate", "round", "look")]
    (tmp_path / "tuning").rename(tmp_path / "before")
    trained = engine.trained

    def misbehave(variables):
        if engine.trained == trained + interrupted + 1:
            raise KeyboardInterrupt

    engine.misbehave = misbehave
    result = tuned()
    assert (result.returncode, result.stdout) == (130, "")
    line = result.stderr.splitlines()[-1]
    assert line == f"runner: interrupted; go on with: runner tune --resume {tmp_path / 'tuning'}"
    result = cli("tune", "--resume", tmp_path / "tuning", "--json")
    assert result.returncode == 0, result
    # the interrupted worker alone was started once more; a run that goes on warms up its arms again
    assert engine.trained == trained * 2 + 1 + (3 if interrupted == 70 else 0)
    again = [event for event in events(tmp_path) if event["event"] in ("candidate", "round", "look")]
    for one, other in zip(again, same, strict=True):
        assert {**one, "time": 0} == {**other, "time": 0}
    before, after = json.loads(whole.stdout), json.loads(result.stdout)
    assert [one["speedup"] for one in before["candidates"]] == [one["speedup"] for one in after["candidates"]]
    assert before["confirmation"]["comparisons"] == after["confirmation"]["comparisons"]


def test_a_tuning_that_is_complete_is_told_again_without_measuring(tuned, cli, engine, tmp_path):
    first, trained = tuned(), engine.trained
    again = cli("tune", "--resume", tmp_path / "tuning")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert engine.trained == trained


def test_settings_are_not_given_again_with_resume(refused, tmp_path):
    line = refused("tune", "--resume", tmp_path, "--budget", "3m")
    assert line == "runner: --budget can't be given with --resume: a tuning keeps the settings it was started with"


def test_a_run_is_no_tuning_to_resume(bench, run_folder, refused):
    bench("baseline")
    assert "is not the record of a tune" in refused("tune", "--resume", run_folder)


def test_exhaustive_ranks_all_candidates_and_writes_no_profile(tuned, local, tmp_path):
    result = tuned("--exhaustive", "--blocks", 3, budget=None)
    assert (result.returncode, local.exists()) == (0, False)
    looks = [event for event in events(tmp_path) if event["event"] == "look"]
    # 6 of spin and wait, 2 of each of the others, where one of all is the baseline; and that itself
    assert len(looks) == 3 * (6 * 2 * 2)
    assert "allocator=jemalloc" in result.stdout.splitlines()[1]
    assert "spin=1000" in result.stdout.splitlines()[1]
    assert profile.load(str(tmp_path / "tuning/chosen.yaml")).env["GOMP_SPINCOUNT"] == "1000"
    assert "the first of 23 was lucky too, and is not confirmed" in " ".join(result.stdout.split())
    assert "not seen" not in result.stdout


def test_each_candidate_s_interval_is_shown_where_it_has_enough_looks(tuned):
    result = tuned("--exhaustive", "--blocks", 6, budget=None)
    first = result.stdout.splitlines()[1].split()
    assert float(first[1]) < float(first[0]) < float(first[3])


def test_options_that_mean_nothing_are_refused(refused, arguments):
    assert "--blocks means nothing without --exhaustive" in refused(*arguments("--blocks", 3))
    assert "--budget means nothing with --exhaustive" in refused(*arguments("--exhaustive"))
    assert "--profile means nothing with --exhaustive" in refused(
        *arguments("--exhaustive", "--profile", "x.yaml", budget=None)
    )
    assert "give a name that ends in .yaml" in refused(*arguments("--profile", "tuned"))


def test_a_bad_space_is_refused_before_anything_is_started(refused, arguments, tmp_path, simulation):
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\ntitle: A test\nknobs:\n  a: {variable: OMP_DYNAMIK, values: [true]}\n")
    line = refused(*arguments("--space", bad))
    assert line.startswith(f"runner: {bad}:4: 'OMP_DYNAMIK' is not in the catalogue of variables")
    assert simulation.starts(all=True) == []
    assert not (tmp_path / "tuning").exists()


def test_a_budget_too_small_for_a_single_candidate_is_said_so(tuned, local):
    result = tuned(budget="2s")
    assert (result.returncode, result.stdout) == (1, "")
    assert "the budget has no room for a single candidate and its confirmation; raise --budget" in result.stderr
    assert not local.exists()


def test_an_earlier_tuned_profile_is_kept_as_a_copy(tuned, engine, local, tmp_path):
    tuned()
    first = written(local)
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain = lambda variables: 0.2 * ("LD_PRELOAD" in variables)
    result = tuned()
    (copy,) = (path for path in local.glob("*.yaml") if path.stem != profile.tuned_name())
    kept = profile.load(str(copy))
    assert (kept.name, kept.env, kept.reason) == (copy.stem, first.env, first.reason)
    assert copy.stem.startswith(f"{profile.tuned_name()}-20")
    assert json.loads((local / f"{copy.stem}.evidence.json").read_text())["best"] == "tuned"
    assert written(local).env == {}
    assert f"the earlier one is kept as {copy.name} beside it" in " ".join(result.stdout.split())


def test_an_earlier_tuned_profile_stays_where_nothing_betters_the_baseline(tuned, engine, local, tmp_path):
    tuned()
    before = {path.name: path.read_bytes() for path in local.iterdir()}
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain = lambda variables: -0.3 * bool(set(variables) - {"ENVKIT_PADDING"})
    result = tuned()
    assert result.returncode == 0
    assert {path.name: path.read_bytes() for path in local.iterdir()} == before
    assert "the profile of an earlier tuning stays as it is" in " ".join(result.stdout.split())


def test_a_profile_that_no_tuning_wrote_is_never_replaced(refused, arguments, write_profile, tmp_path, simulation):
    path = write_profile("mine", folder=tmp_path)
    line = refused(*arguments("--profile", path))
    assert line == f"runner: --profile {path}: it is there already, and no tuning wrote it; give another name"
    assert simulation.starts(all=True) == []


def test_a_place_that_can_t_be_written_is_found_before_anything_is_measured(refused, arguments, tmp_path, simulation):
    (tmp_path / "file").write_text("")
    line = refused(*arguments("--profile", tmp_path / "file/deep/mine.yaml"))
    assert line.endswith(f"{tmp_path / 'file'} can't be written to: Not a directory; give another place")
    assert simulation.starts(all=True) == []


def test_another_place_can_be_given_when_it_goes_on(tuned, cli, engine, local, tmp_path):
    def misbehave(variables):
        if engine.trained == 30:
            raise KeyboardInterrupt

    engine.misbehave = misbehave
    tuned()
    assert cli("tune", "--resume", tmp_path / "tuning", "--profile", tmp_path / "mine.yaml").returncode == 0
    assert profile.load(str(tmp_path / "mine.yaml")).env == {"GOMP_SPINCOUNT": "1000"}
    assert not local.exists()
    # and it is remembered
    result = cli("tune", "--resume", tmp_path / "tuning", "--json")
    assert json.loads(result.stdout)["written"] == str(tmp_path / "mine.yaml")


def test_shipped_profiles_for_which_there_was_no_time_are_counted(tuned, shipped, local, write_profile):
    for number in range(40):
        write_profile(f"more-{number:02}", f'env: {{OMP_THREAD_LIMIT: "{100 + number}"}}\n', folder=shipped)
    write_profile("zz", 'preload: [jemalloc]\nenv: {OMP_THREAD_LIMIT: "9", OMP_NESTED: "true"}\n', folder=shipped)
    words = " ".join(tuned(budget="60s").stdout.split())
    assert "shipped profiles were not looked at, for want of time: " in words
    assert "more-39" in words
    # what sets more comes first
    assert written(local).reason.startswith("A copy of the best shipped profile looked at, ")
    assert written(local).preload == ("jemalloc",)


def test_how_to_use_it_is_said_for_the_engine_and_the_command_that_it_was_tuned_for(tuned):
    plan = Plan(
        arms=(Arm("baseline", "baseline", "docker"),), engine_options={"image": "my image", "cpuset_cpus": "0-3"},
        workload="x", warmup_steps=0, steps=1, epochs=0, data="none", budget_s=1.0, blocks=0, precision=0.1, margin=0.1,
        timeout_s=1.0, seed=1,
    )  # fmt: skip
    options = "--engine docker --image 'my image' --cpuset-cpus 0-3"
    assert outcome.usage(plan) == (
        f"runner exec tuned {options} -- python train.py, or bench it: runner bench tuned {options}"
    )
    own = replace(plan, own=OwnCommand(("python", "my train.py"), "/x"), engine_options={})
    assert outcome.usage(own) == "runner exec tuned --engine docker -- python 'my train.py'"


def test_a_candidate_that_is_stopped_for_being_hopeless_is_said_so(tuned, engine, tmp_path):
    run = engine.run

    def stopped(task):
        slow = "OMP_DYNAMIC" in task.variables and task.timeout_s < 60
        return Outcome("", "", task.timeout_s, timed_out(task.timeout_s)) if slow else run(task)

    engine.run = stopped
    words = " ".join(tuned("--exhaustive", "--blocks", 1, budget=None).stdout.split())
    assert "its worker was stopped after 20 s, at least 4 times what the baseline's took" in words
    assert "--timeout" not in words


def test_the_profile_names_its_record_so_that_it_is_found_from_anywhere(tuned, local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tuned("--output", "near")
    assert str(tmp_path / "near/confirmation/record.jsonl") in written(local).source


def test_a_place_that_is_lost_meanwhile_can_be_given_anew(tuned, engine, local, tmp_path, cli):
    def misbehave(variables):
        if engine.trained == 70:
            local.parent.write_text("")

    engine.misbehave = misbehave
    result = tuned()
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)
    assert result.stderr.splitlines()[-1].endswith(f"runner tune --resume {tmp_path / 'tuning'} --profile FILE.yaml")
    assert cli("tune", "--resume", tmp_path / "tuning", "--profile", tmp_path / "mine.yaml").returncode == 0
    assert profile.load(str(tmp_path / "mine.yaml")).env == {"GOMP_SPINCOUNT": "1000"}


def test_the_profile_can_be_written_elsewhere(tuned, local, tmp_path):
    result = tuned("--profile", tmp_path / "elsewhere/mine.yaml")
    assert profile.load(str(tmp_path / "elsewhere/mine.yaml")).name == "mine"
    assert not local.exists()
    assert "use it" not in result.stdout
