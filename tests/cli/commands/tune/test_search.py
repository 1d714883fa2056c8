"""``envkit tune``: what it tries, measures and says."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from envkit.bench import record
from envkit.engines.base import Outcome
from envkit.engines.messages import TimedOut
from envkit.profiles import profile
from envkit.tuning.messages import NotInEffect
from envkit.worker.request import Train
from envkit.worker.workloads import get

from tests.cli.commands.conftest import words
from tests.cli.commands.tune.conftest import events, written
from tests.simulated_worker import sample
from tests.worker_runs import document_of


def test_it_finds_confirms_and_writes_the_best(tuned, local, tmp_path):
    result = tuned("--details").ended(0)
    found = written(local)
    assert (found.env, found.preload) == ({"GOMP_SPINCOUNT": "1000"}, ("jemalloc",))
    assert "x baseline speed (95% CI " in found.reason
    assert "x the speed of known, the best shipped profile (95% CI " in found.reason
    assert str(tmp_path / "tuning/confirmation/record.jsonl, SHA-256 ") in found.source
    for said in (
        "FASTER tuned: 1.4", "x the speed of known, the best shipped profile (95% CI 1.1", "): faster Settings",
        f"Written {local / f'{profile.tuned_name()}.yaml'}: the tuned profile", "3 left out",
        "Left out allocator=mimalloc: preloads mimalloc, which is not installed",
        "profile tc: preloads tcmalloc, which is not installed",
        "profile other: may change the results; --numerics any tries it too",
        "Use envkit exec tuned -- python train.py",
    ):  # fmt: skip
        assert said in words(result.stdout), said
    # the finds are told as they come
    assert "; ahead after 1 trial: " in result.stderr
    assert "GOMP" not in result.stderr


def test_steps_that_were_given_are_warmed_up_for_as_usual(tuned, tmp_path):
    tuned("--steps", 30)
    length = events(tmp_path)[0]["study"]["workloads"]["cnn"]
    assert (length["steps"], length["warmup_steps"]) == (30, get("cnn").warmup_steps)


def test_where_the_same_fails_again_in_the_confirmation_there_is_another_way_on(tuned, cli, engine, tmp_path):
    lacks = {"GOMP_SPINCOUNT": "1000"}
    engine.misbehave = lambda variables: (
        "was killed" if engine.trained >= 75 and variables.items() >= lacks.items() else None
    )
    assert "failed before" not in tuned().stderr
    go_on = f"continue with: envkit tune --resume {tmp_path / 'tuning'}"
    said = "tuned failed before, too: start a new tuning with what its workers lacked or without what it sets, or "
    for _ in range(2):
        result = cli("tune", "--resume", tmp_path / "tuning").ended(1)
        assert result.stderr.splitlines()[-1].endswith(f"a worker failed; no profile was written; {said}{go_on}")


def test_the_confirmation_is_an_ordinary_run_of_fresh_samples(tuned, cli, tmp_path):
    tuned()
    folder = tmp_path / "tuning/confirmation"
    reported = json.loads(cli("report", folder, "--json").stdout)
    assert [arm["name"] for arm in reported["study"]["arms"]] == ["baseline", "known", "tuned"]
    assert reported["ended"] == "complete"
    # a third of the budget and more is kept for it, and all together fits
    searched = sum(event.get("worker_seconds", 0) for event in events(tmp_path))
    confirmed = sum(event.get("worker_seconds", 0) for event in record.read(folder))
    assert searched <= 65
    assert 90 <= searched + confirmed <= 100
    assert [one["role"] for one in reported["study"]["contrasts"]] == ["effect", "effect", "choice"]


def test_what_is_reported_and_listed_is_the_confirmation(tuned, cli, tmp_path, refused):
    tuned()
    line = refused("report", tmp_path / "tuning")
    assert "is the record of a search by envkit tune; what it found was measured in " in line
    assert line.endswith("tuning/confirmation")
    listed = json.loads(cli("history", tmp_path, "--json").stdout)
    assert [run["folder"] for run in listed["runs"]] == [str(tmp_path / "tuning/confirmation")]
    assert listed["unreadable"] == []


def test_it_tunes_for_another_workload_and_its_modes(tuned, local, tmp_path):
    result = tuned("--workload", "cnn-batch128", "--precision", "bf16-autocast").ended(0)
    study = events(tmp_path)[0]["study"]
    assert (study["workload"], study["options"]["precision"]) == ("cnn-batch128", "bf16-autocast")
    assert "workload cnn-batch128 (bf16-autocast)" in written(local).reason
    assert "Bench envkit bench tuned --workload cnn-batch128 --precision bf16-autocast" in words(result.stdout)


def test_json_has_what_a_script_needs(tuned, local):
    document = json.loads(tuned("--json").stdout)
    assert (document["best"], document["best_shipped"]) == ("tuned", "known")
    assert document["versus_best_shipped"]["verdict"] == "faster"
    assert document["written"] == str(local / f"{profile.tuned_name()}.yaml")
    assert {"allocator", "spin"} == {one["parameter"] for one in document["importance"][:2]}
    assert document["candidates"][0]["choice"]["spin"] == "1000"
    assert document["failed"] == []


def test_the_same_seed_tries_the_same(tuned, tmp_path):
    tried = []
    for number, seed in enumerate((5, 5, 6)):
        tuned("--seed", seed)
        tried.append([event["environment"] for event in events(tmp_path, "candidate")])
        (tmp_path / "tuning").rename(tmp_path / f"before-{number}")
    assert tried[0] == tried[1]
    assert tried[0] != tried[2]


def test_what_was_not_in_effect_in_the_confirmation_proves_nothing(tuned, cli, engine, local, tmp_path):
    nothing = {"variables": {"sensitive": {}, "preloaded": {}}, "openmp": {}, "malloc": {}}
    engine.other = lambda given: {"evidence": nothing} if "LD_PRELOAD" in given and engine.trained > 85 else {}
    result = tuned()
    assert "NOT IN EFFECT" in result.stdout
    assert "the best shipped profile" not in result.stdout
    engine.other = lambda given: {}  # what was seen stays in the record
    for one in (result, cli("tune", "--resume", tmp_path / "tuning")):
        assert one.returncode == 1
        assert "no profile was written; start a new tuning" in one.stderr.splitlines()[-1]
        assert not local.exists()


def test_candidates_that_fail_are_counted_and_not_tried_again(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3" if "OMP_DYNAMIC" in variables else None
    result = tuned("--details").ended(0)
    failed = [event["candidate"] for event in events(tmp_path, "failure")]
    assert len(failed) == len(set(failed)) > 0
    assert f"Failed {len(failed)} candidate" in words(result.stdout)
    assert "its worker ended with exit status 3" in words(result.stdout)
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_a_candidate_that_is_not_in_effect_fails(tuned, engine, local, tmp_path):
    tampered = {"variables": {"sensitive": {}, "preloaded": {}}, "openmp": {"runtime": "gnu"}, "malloc": {}}
    engine.other = lambda variables: {"evidence": tampered} if "GOMP_SPINCOUNT" in variables else {}
    assert tuned().returncode == 0
    problems = [event["problem"] for event in events(tmp_path, "failure")]
    assert problems
    assert {one["code"] for one in problems} == {NotInEffect.code}
    assert "GOMP_SPINCOUNT" not in written(local).env


def test_a_candidate_with_other_losses_is_rejected_unless_numerics_may_differ(tuned, engine, local, tmp_path):
    engine.other = lambda variables: {"losses": [2.3, 2.2, 2.1]} if "GOMP_SPINCOUNT" in variables else {}
    result = tuned("--details")
    assert "GOMP_SPINCOUNT" not in written(local).env
    assert "has other losses than the baseline, by up to " in words(result.stdout)
    (tmp_path / "tuning").rename(tmp_path / "before")
    assert tuned("--numerics", "any").returncode == 0
    assert written(local).env["GOMP_SPINCOUNT"] == "1000"
    assert written(local).numerics == "may-differ"  # though nothing that it sets is known for that


def test_a_candidate_whose_losses_are_no_numbers_is_always_rejected(tuned, engine, local):
    engine.other = lambda variables: {"losses": [2.3, math.nan, 2.1]} if "GOMP_SPINCOUNT" in variables else {}
    result = tuned("--numerics", "any", "--details")
    assert "GOMP_SPINCOUNT" not in written(local).env
    assert "diverged: the loss of step 7 is nan, so its speed is meaningless" in words(result.stdout)


def test_a_baseline_whose_losses_are_no_numbers_ends_the_search(tuned, engine, local):
    engine.other = lambda variables: {"losses": [math.inf] * 3}
    result = tuned()
    assert (result.returncode, result.stdout, local.exists()) == (1, "", False)
    assert (
        "the baseline's worker diverged: the loss of step 6 is inf, so its speed is meaningless"
        in result.stderr.splitlines()[-1]
    )


def test_one_run_of_a_command_does_not_tell_that_a_candidate_has_other_losses(cli, arguments, simulation, tmp_path):
    """Each may draw other random numbers."""
    arguments()
    simulation.worker("baseline", losses_in_turn=[[2.3, 2.0], [2.1, 1.5], [2.6, 2.2]])
    how = ("--space", tmp_path / "small.yaml", "--budget", "100s", "--output", tmp_path / "tuning")
    own = ("--whole-command", "--loss-metric", "loss (.*)", "--", "python", "train.py")
    (tmp_path / "train.py").touch()
    result = cli("tune", *how, *own, cwd=tmp_path)
    assert (result.returncode, events(tmp_path, "failure")) == (0, []), result


def test_a_command_that_writes_past_its_copy_ends_the_search_at_once(cli, arguments, simulation, tmp_path):
    arguments()
    simulation.worker("baseline", writes={"outside": {"files": 1, "bytes": 9, "names": ["last.pt"]}})
    how = ("--space", tmp_path / "small.yaml", "--budget", "100s", "--output", tmp_path / "tuning")
    (tmp_path / "train.py").touch()
    result = cli("tune", *how, "--", "python", "train.py", cwd=tmp_path).ended(1)
    assert len(events(tmp_path, "failure")) == 1
    assert "ran in a copy of it: 1 file (9 bytes), such as last.pt" in result.stderr.splitlines()[-1]


def test_where_every_candidate_fails_one_line_says_why_and_nothing_is_written(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "was killed by signal SIGSEGV" if set(variables) - {"ENVKIT_PADDING"} else None
    result = tuned().ended(1, stdout="")
    line = result.stderr.splitlines()[-1]
    assert " candidates failed, the first (known): was killed by signal SIGSEGV; no profile was written" in line
    assert not local.exists()
    assert not (tmp_path / "tuning/confirmation").exists()


def test_a_baseline_that_fails_ends_it_in_one_line(tuned, engine, local, tmp_path):
    engine.misbehave = lambda variables: "ended with exit status 3"
    result = tuned().ended(1, stdout="")
    (line,) = result.stderr.splitlines()
    assert line.startswith("envkit: the baseline's worker ended with exit status 3: simulated trouble; fix that and ")
    assert line.endswith(f"start again; the record is in {tmp_path / 'tuning'}")
    assert not local.exists()


@pytest.mark.parametrize("trainings", [9, 60])
def test_where_the_baseline_fails_later_what_failed_before_it_is_tried_again(
    tuned, cli, engine, local, tmp_path, trainings
):
    engine.misbehave = lambda variables: "was lost: the daemon went away" if engine.trained > trainings else None
    result = tuned().ended(1)
    assert result.stderr.splitlines()[-1].endswith(f"continue with: envkit tune --resume {tmp_path / 'tuning'}")
    assert len(events(tmp_path, "failure")) > 1  # others had their turn before the baseline
    engine.misbehave = lambda variables: None
    result = cli("tune", "--resume", tmp_path / "tuning", "--json")
    assert (result.returncode, json.loads(result.stdout)["failed"]) == (0, [])
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_the_first_trial_of_all_says_nothing_of_what_a_trial_costs(tuned, engine, local):
    """Files are then not in the page cache: it takes ten times as long here."""
    run = engine.run

    def cold(launch):
        outcome = run(launch)
        return replace(outcome, seconds=10.0) if engine.trained == 1 else outcome

    engine.run = cold
    assert tuned().returncode == 0
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


def test_the_space_alone_can_be_searched(tuned, local):
    document = json.loads(tuned("--space-only", "--json").stdout)
    assert (document["best"], document["best_shipped"], document["versus_best_shipped"]) == ("tuned", None, None)
    assert not any(one["shipped"] for one in document["candidates"])
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize("interrupted", [0, 9, 50, 70])
def test_ctrl_c_in_a_trial_loses_nothing(tuned, cli, engine, local, tmp_path, interrupted):
    """Also in the warm-up, in the finals and in the confirmation."""
    whole = tuned("--json")
    same = events(tmp_path, "candidate", "round", "trial")
    (tmp_path / "tuning").rename(tmp_path / "before")
    trained = engine.trained

    def misbehave(variables):
        if engine.trained == trained + interrupted + 1:
            raise KeyboardInterrupt

    engine.misbehave = misbehave
    result = tuned().ended(130, stdout="")
    line = result.stderr.splitlines()[-1]
    assert line == f"envkit: interrupted; continue with: envkit tune --resume {tmp_path / 'tuning'}"
    result = cli("tune", "--resume", tmp_path / "tuning", "--json").ended(0)
    # the interrupted worker alone was started once more; a run that goes on warms up its arms again
    assert engine.trained == trained * 2 + 1 + (3 if interrupted == 70 else 0)
    for one, other in zip(events(tmp_path, "candidate", "round", "trial"), same, strict=True):
        assert {**one, "time": 0} == {**other, "time": 0}
    before, after = json.loads(whole.stdout), json.loads(result.stdout)
    assert [one["speedup"] for one in before["candidates"]] == [one["speedup"] for one in after["candidates"]]
    assert before["confirmation"]["comparisons"] == after["confirmation"]["comparisons"]


def test_a_tuning_that_is_complete_is_told_again_without_measuring(tuned, cli, engine, tmp_path):
    first, trained = tuned(), engine.trained
    again = cli("tune", "--resume", tmp_path / "tuning")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert engine.trained == trained


def test_a_run_is_no_tuning_to_resume(bench, run_folder, refused):
    bench("baseline")
    assert "is not the record of a tune" in refused("tune", "--resume", run_folder)


def test_exhaustive_ranks_all_candidates_each_with_its_interval_and_writes_no_profile(tuned, local, tmp_path):
    result = tuned("--exhaustive", "--blocks", 6, budget=None)
    assert (result.returncode, local.exists()) == (0, False)
    # 6 of spin and wait, 2 of each of the others, where one of all is the baseline; and that itself
    assert len(events(tmp_path, "trial")) == 6 * (6 * 2 * 2)
    first = result.stdout.splitlines()[1]
    assert "allocator=jemalloc" in first
    assert "spin=1000" in first
    speedup, low, _, high = first.split()[:4]
    assert float(low) < float(speedup.removesuffix("x")) < float(high)
    assert profile.load(str(tmp_path / "tuning/chosen.yaml")).env["GOMP_SPINCOUNT"] == "1000"
    assert "the first of 23 was also lucky, and is not confirmed" in words(result.stdout)
    assert "not tried" not in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--blocks", 3), "--blocks has no effect without --exhaustive"),
        (("--exhaustive", "--budget", "9m"), "--budget has no effect with --exhaustive"),
        (("--exhaustive", "--space-only"), "--space-only has no effect with --exhaustive"),
        (("--exhaustive", "--profile", "x.yaml"), "--profile has no effect with --exhaustive"),
        (("--profile", "tuned"), "give a name that ends in .yaml"),
        (("--exhaustive", "--space", "default"), "more than 500 candidates one by one"),
        (
            ("--exhaustive", "--nodes", 2),
            "--nodes has no effect with --exhaustive, which only measures the space on this",
        ),
        (("--nodes", 0), "--nodes: '0' is not a whole number above 0"),
        (("--nodelist", ""), "--nodelist: '' names no node; write for example node1,node2"),
    ],
)
def test_what_does_not_go_together_is_refused(refused, arguments, tmp_path, options, said):
    assert said in refused(*arguments(*options, budget=None))
    assert not (tmp_path / "tuning").exists()


@pytest.mark.parametrize("option", ["--space-only", "--exhaustive"])
def test_a_space_of_which_nothing_can_be_tried_is_refused_before_anything_is_measured(
    refused, arguments, engine, tmp_path, option
):
    """Each parameter has two levels here, and all that they allow together is the baseline."""
    nothing = tmp_path / "nothing.yaml"
    nothing.write_text("""name: nothing
title: A test
parameters:
  wait: {variable: OMP_WAIT_POLICY, values: [unset, passive]}
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0]}
constraints:
  - {never: {wait: [passive]}, because: a test}
  - {never: {spin: [0]}, because: a test}
""")
    line = refused(*arguments("--space", nothing, option, budget=None))
    why = "each choice equals the baseline, sets a variable twice or can't have an effect"
    assert line == f"envkit: {nothing}: nothing of this space can be tried here: {why}; give another space"
    assert engine.trained == 0
    assert not (tmp_path / "tuning").exists()


def test_a_bad_space_is_refused_before_anything_is_started(refused, arguments, tmp_path, simulation):
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\ntitle: A test\nparameters:\n  a: {variable: OMP_DYNAMIK, values: [true]}\n")
    assert refused(*arguments("--space", bad)).startswith(f"envkit: {bad}:4: 'OMP_DYNAMIK' ")
    assert simulation.starts(all=True) == []
    assert not (tmp_path / "tuning").exists()


def test_a_budget_too_small_for_a_single_candidate_is_said_so(tuned, local, tmp_path):
    result = tuned(budget="4s").ended(1, stdout="")
    said = re.search(r"no room for a single candidate and its confirmation: give --budget (\d+s) or", result.stderr)
    assert said is not None
    assert not local.exists()
    assert "busy" not in result.stderr
    (tmp_path / "tuning").rename(tmp_path / "before")
    assert tuned(budget=said[1]).returncode == 0  # and so much is enough


def test_where_a_budget_is_too_small_on_a_busy_machine_that_is_said_too(tuned, engine):
    usage = sample(document_of(Train("cnn", "synthetic", steps=3)), {"seconds": [1.0]}, 0, {})["usage"]
    engine.other = lambda variables: {"usage": {**usage, "worker_cpus_busy_s": 3.0}}
    result = tuned(budget="4s")
    said = r" or more; the machine is busy \(others used 1\.\d\d CPUs\), and an idle one needs less; no profile was "
    assert re.search(said, result.stderr)


def test_a_candidate_that_is_stopped_for_being_hopeless_is_said_so(tuned, engine):
    run = engine.run

    def stopped(launch):
        slow = "OMP_DYNAMIC" in launch.variables and launch.timeout_s < 60
        return Outcome("", "", launch.timeout_s, TimedOut(launch.timeout_s)) if slow else run(launch)

    engine.run = stopped
    said = words(tuned("--exhaustive", "--blocks", 1, "--details", budget=None).stdout)
    assert "its worker was stopped after 20 s, at least 4 times the baseline's time" in said
    assert "--timeout" not in said
