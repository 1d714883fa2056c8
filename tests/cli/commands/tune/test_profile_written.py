"""The profile that ``envkit tune`` writes: where, when, and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from envkit.bench.arms import Arm
from envkit.common import atomic
from envkit.common.errors import InputError
from envkit.common.messages import Unwritable
from envkit.engines.base import EngineOptions
from envkit.profiles import profile
from envkit.rendering import text
from envkit.tuning import conclusion
from envkit.worker.modes import Options
from envkit.worker.request import Train, UserCommand

from tests.cli.commands.conftest import words
from tests.cli.commands.tune.conftest import written
from tests.plans import study_of
from tests.simulated_worker import answer
from tests.worker_runs import document_of


def test_its_evidence_lies_beside_it(tuned, local, tmp_path):
    tuned()
    path = local / f"{profile.tuned_name()}.evidence.json"
    evidence = json.loads(path.read_text())
    assert evidence["best"] == "tuned"
    assert evidence["machine_kind"].keys() == {"cpu", "usable_cpus"}
    assert evidence["environment"]["variables"]["GOMP_SPINCOUNT"] == "1000"
    assert [one["arm"] for one in evidence["comparisons"]] == ["known", "tuned"]
    assert evidence["versus_best_shipped"]["low"] > 1
    assert {one["key"]: (one["expected"], one["seen"], one["verified"]) for one in evidence["checks"]} == {
        "malloc.allocator": ("jemalloc", "jemalloc", True), "preload.jemalloc": ("mapped", "mapped", True),
    }  # fmt: skip
    for place, sha256 in evidence["records"].items():
        assert hashlib.sha256(Path(place).read_bytes()).hexdigest() == sha256
    assert len(evidence["records"]) == 2


def test_where_nothing_betters_the_shipped_profile_a_copy_of_it_is_written(tuned, engine, local):
    engine.gain = lambda variables: 0.2 * ("LD_PRELOAD" in variables)
    result = tuned().ended(0)
    found = written(local)
    assert (found.preload, found.env) == (("jemalloc",), {})
    assert found.reason.startswith("A copy of known, the best shipped profile. envkit tune found none faster on ")
    assert "a copy of known, which no candidate beats" in words(result.stdout).partition("Written ")[2]


def test_where_nothing_betters_the_baseline_the_profile_sets_nothing(tuned, engine, local):
    engine.gain = lambda variables: -0.3 * bool(set(variables) - {"ENVKIT_PADDING"})
    result = tuned().ended(0)
    found = written(local)
    assert (found.preload, found.env) == ((), {})
    assert found.reason.startswith("This sets nothing. ")
    assert "no profile is faster than the baseline" in found.reason
    assert "no profile is faster than the baseline" in words(result.stdout)
    assert "envkit exec" not in result.stdout


def beside_a_load(variables):
    """What a sample says beside other programs that used 1.5 of 2 CPUs."""
    usage = answer("baseline", document_of(Train("cnn", "synthetic", steps=3)), {"workers": {}}, 0, {})["usage"]
    return {"usage": {**usage, "worker_cpus": 2, "worker_cpus_busy_s": 100.0}}


def test_what_was_confirmed_beside_a_load_says_so_and_is_not_recommended(tuned, engine, local, cli, tmp_path):
    engine.other = beside_a_load
    result = tuned()
    said = words(result.stdout)
    assert result.returncode == 0
    assert "FASTER UNDER LOAD tuned: " in said
    assert ", measured beside other programs that used" in said
    assert "envkit exec" not in said
    assert "it holds only under load (measured beside other programs that used" in said
    assert "measure it again before you use it" in written(local).reason
    evidence = json.loads((local / f"{profile.tuned_name()}.evidence.json").read_text())
    document = json.loads(cli("tune", "--resume", tmp_path / "tuning", "--json").stdout)
    for told in (evidence, document):
        assert (told["best"], told["load"]["kind"]) == (None, "other-programs")


def test_what_was_confirmed_beside_a_load_replaces_no_earlier_profile(tuned, engine, local, tmp_path):
    tuned()
    before = written(local)
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.other = beside_a_load
    result = tuned("--seed", 5)
    assert written(local) == before
    assert "the result holds only under load (measured beside other programs" in words(result.stdout)


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
    assert f"the earlier one is kept as {copy.name}" in words(result.stdout)


def test_an_earlier_tuned_profile_stays_where_nothing_betters_the_baseline(tuned, engine, local, tmp_path):
    tuned()
    before = {path.name: path.read_bytes() for path in local.iterdir()}
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain = lambda variables: -0.3 * bool(set(variables) - {"ENVKIT_PADDING"})
    result = tuned().ended(0)
    assert {path.name: path.read_bytes() for path in local.iterdir()} == before
    assert f"{local / f'{profile.tuned_name()}.yaml'} stays as it is" in words(result.stdout)


def test_a_profile_that_no_tuning_wrote_is_never_replaced(refused, arguments, write_profile, tmp_path, simulation):
    path = write_profile("mine", folder=tmp_path)
    line = refused(*arguments("--profile", path))
    assert line == f"envkit: --profile {path}: it already exists, and no tuning wrote it; give another name"
    assert simulation.starts(all=True) == []


def test_a_place_that_can_t_be_written_is_found_before_anything_is_measured(refused, arguments, tmp_path, simulation):
    (tmp_path / "file").write_text("")
    line = refused(*arguments("--profile", tmp_path / "file/deep/mine.yaml"))
    assert f"{tmp_path / 'file'} can't be written to: Not a directory; name another file with --profile" in line
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
    again = cli("tune", "--resume", tmp_path / "tuning", "--json")
    assert json.loads(again.stdout)["written"] == str(tmp_path / "mine.yaml")  # it is remembered


def test_shipped_profiles_for_which_there_was_no_time_are_counted(tuned, shipped, local, write_profile):
    for number in range(40):
        write_profile(f"more-{number:02}", f'env: {{OMP_THREAD_LIMIT: "{100 + number}"}}\n', folder=shipped)
    write_profile("zz", 'preload: [jemalloc]\nenv: {OMP_THREAD_LIMIT: "9", OMP_NESTED: "true"}\n', folder=shipped)
    said = words(tuned("--details", budget="60s").stdout)
    assert "shipped profiles not tried for lack of time: " in said
    assert "more-39" in said
    # what sets more comes first
    assert written(local).reason.startswith("A copy of zz, the best shipped profile tried. ")
    assert written(local).preload == ("jemalloc",)


def test_how_to_use_it_is_said_for_the_engine_and_the_command_that_it_was_tuned_for():
    options = {"image": "my image", "cpuset_cpus": "0-3"}
    study = study_of((Arm("baseline", "baseline", "docker"),), engine_options=options)
    options = "--engine docker --image 'my image' --cpuset-cpus 0-3"
    assert [text(row.text) for row in conclusion.usage(study, "tuned")] == [
        f"envkit exec tuned {options} -- python train.py", f"envkit bench tuned {options}",
    ]  # fmt: skip
    own = replace(study, user_command=UserCommand(("python", "my train.py"), "/x"), engine_options=EngineOptions())
    (said,) = (text(row.text) for row in conclusion.usage(own, "the best.yaml"))
    assert said == "cd /x && envkit exec 'the best.yaml' --engine docker -- python 'my train.py'"
    on_gpus = replace(own, options=Options(device="cuda"))
    (said,) = (text(row.text) for row in conclusion.usage(on_gpus, "tuned", kept=("CUDA_VISIBLE_DEVICES", "MY_KEY")))
    assert said == "cd /x && envkit exec tuned --engine docker --keep-env MY_KEY --gpus -- python 'my train.py'"


def test_the_profile_names_its_record_so_that_it_is_found_from_anywhere(tuned, local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tuned("--output", "near")
    assert str(tmp_path / "near/confirmation/record.jsonl") in written(local).source


def test_a_place_that_is_lost_meanwhile_can_be_given_anew(tuned, engine, local, tmp_path, cli):
    def misbehave(variables):
        if engine.trained == 70:
            local.parent.write_text("")

    engine.misbehave = misbehave
    result = tuned().ended(2)
    assert result.stderr.splitlines()[-1].endswith(f"envkit tune --resume {tmp_path / 'tuning'} --profile FILE.yaml")
    assert cli("tune", "--resume", tmp_path / "tuning", "--profile", tmp_path / "mine.yaml").returncode == 0
    assert profile.load(str(tmp_path / "mine.yaml")).env == {"GOMP_SPINCOUNT": "1000"}


def test_what_could_not_be_written_is_written_when_it_goes_on(tuned, cli, engine, local, tmp_path, monkeypatch):
    """Also where an earlier tuning's profile is there, which stays until then."""
    gain, engine.gain = engine.gain, lambda variables: 0.2 * ("LD_PRELOAD" in variables)
    tuned()
    older, path = written(local), local / f"{profile.tuned_name()}.yaml"
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain, write = gain, atomic.write

    def full(place, content, private=False):
        if place == path:
            raise InputError(Unwritable(str(place), "No space left on device"))
        write(place, content, private)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write", full)
        result = tuned()
    assert result.returncode == 2
    assert f"envkit tune --resume {tmp_path / 'tuning'} --profile FILE.yaml" in result.stderr.splitlines()[-1]
    assert written(local) == older
    result = cli("tune", "--resume", tmp_path / "tuning").ended(0)
    assert written(local).env == {"GOMP_SPINCOUNT": "1000"}
    assert "the earlier one is kept as" in words(result.stdout)
    # and to read it again replaces nothing
    newest = path.read_bytes()
    assert cli("tune", "--resume", tmp_path / "tuning").returncode == 0
    assert path.read_bytes() == newest


def test_what_can_not_be_kept_of_the_search_is_told_with_the_way_on(tuned, tmp_path, monkeypatch, local):
    write = atomic.write

    def full(place, content, private=False):
        if place.name == "chosen.yaml":
            raise InputError(Unwritable(str(place), "No space left on device"))
        write(place, content, private)

    monkeypatch.setattr(atomic, "write", full)
    result = tuned().ended(2)
    said = f"No space left on device; continue with: envkit tune --resume {tmp_path / 'tuning'}"
    assert result.stderr.splitlines()[-1].endswith(said)


def test_the_profile_can_be_written_elsewhere(tuned, local, tmp_path):
    result = tuned("--profile", tmp_path / "elsewhere/mine.yaml")
    assert profile.load(str(tmp_path / "elsewhere/mine.yaml")).name == "mine"
    assert not local.exists()
    assert f"Useenvkitexec{tmp_path / 'elsewhere/mine.yaml'}--python" in "".join(result.stdout.split())


def test_an_old_tuning_that_is_read_again_does_not_replace_a_newer_one(tuned, engine, cli, local, tmp_path):
    tuned()
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain = lambda variables: 0.3 * (variables.get("OMP_DYNAMIC") == "true")
    tuned()
    newer = written(local)
    assert newer.env["OMP_DYNAMIC"] == "true"
    result = cli("tune", "--resume", tmp_path / "before").ended(0)
    assert "this tuning wrote its profile when it ended, and another one is there now; " in words(result.stdout)
    assert written(local) == newer


def test_the_profile_of_a_tuning_that_has_ended_can_be_written_over_an_earlier_one(tuned, engine, cli, local, tmp_path):
    tuned("--profile", tmp_path / "mine.yaml")
    (tmp_path / "tuning").rename(tmp_path / "before")
    engine.gain = lambda variables: 0.3 * (variables.get("OMP_DYNAMIC") == "true")
    tuned()
    result = cli("tune", "--resume", tmp_path / "tuning", "--profile", tmp_path / "mine.yaml").ended(0)
    assert profile.load(str(tmp_path / "mine.yaml")).env["OMP_DYNAMIC"] == "true"
    assert "the earlier one is kept as" in words(result.stdout)
    (earlier,) = tmp_path.glob("mine-*.yaml")
    assert profile.load(str(earlier)).env == {"GOMP_SPINCOUNT": "1000"}
