"""A specification goes to JSON and back, and what is read from a file measures the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from envkit.bench import record
from envkit.bench.blocks import recorded_plan
from envkit.bench.plan import Ablated, Arm
from envkit.bench.specification import Specification
from envkit.bench.user_command import UserCommand
from envkit.common.errors import InputError
from envkit.engines.base import EngineOptions
from envkit.worker.modes import Options

ALL = Specification(
    title="mine", arms=(Arm("baseline", "baseline", "local"), Arm("mine", "/x/mine.yaml", "local", "cnn", 2, "i", 1)),
    budget_s=12.5, workload="python x.py",
    user_command=UserCommand(("python", "x.py"), "/x", "took (.*)", "ms", 3, "loss (.*)"),
    options=Options("bf16-autocast", compile=True, scale=2), engine_options=EngineOptions(python="/p", memory="4g"),
    nproc=2, nodes=3, data="/data", warmup_steps=4, steps=5, epochs=6, until="accuracy=0.9", open_ended=False, blocks=7,
    precision=0.01, margin=0.03, timeout_s=8.0, seed=9, keep_env=("A",), force=True, allow_unknown=True,
    ablated=(Ablated("X", "jemalloc", None, "baseline", "mine"),), weak=True,
)  # fmt: skip


@pytest.mark.parametrize("asked", [ALL, Specification(title="", arms=(Arm("a", "a", "local"),), budget_s=1.0)])
def test_to_json_and_back(asked):
    assert Specification.from_json(json.loads(json.dumps(asked.to_json()))) == asked


def test_nothing_is_left_at_its_default_in_this_test():
    usual = Specification(title="", arms=(), budget_s=0.0).to_json()
    assert not [name for name, value in ALL.to_json().items() if value == usual[name] and name != "schema"]


def own_with(**given):
    return json.dumps({**ALL.to_json(), "user_command": {**ALL.to_json()["user_command"], **given}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "can't be read: No such file or directory; write one with --dry-run"),
        ("{", "is no specification of a run: "),
        ("[]", "is no specification of a run: "),
        ("{}", "its schema is None, and this version reads envkit-specification-1"),
        (json.dumps({**ALL.to_json(), "bugdet_s": 1}), "unknown key 'bugdet_s'; write one with --dry-run"),
        (json.dumps({**ALL.to_json(), "arms": [{"nmae": "x"}]}), "arms.0: "),
        (json.dumps({**ALL.to_json(), "arms": []}), "arms: [] should be non-empty; write one with --dry-run"),
        (json.dumps({**ALL.to_json(), "budget_s": "3m"}), "budget_s: '3m' is not of type 'number'"),
        (json.dumps({**ALL.to_json(), "arms": ALL.to_json()["arms"][:1]}), "ablated: X: there is no arm 'mine'"),
        (json.dumps({**ALL.to_json(), "user_command": None, "workload": "cmm"}), "no workload 'cmm'; there are: cnn, "),
        (own_with(metric="took ("), "user_command.metric: 'took (' is no regular expression: missing ), "),
        (json.dumps({**ALL.to_json(), "until": "accuracy"}), "until: 'accuracy' is no METRIC=NUMBER; "),
        (json.dumps({**ALL.to_json(), "epochs": 0}), "until: means nothing without epochs; write one with --dry-run"),
        (own_with(optimizer_steps=9), "user_command.optimizer_steps: means nothing with a metric; write one with "),
        (own_with(optimizer_steps=-1, metric=None), "user_command.optimizer_steps: -1 is less than the minimum of 0"),
        (own_with(loss_metric="loss"), "user_command.loss_metric: 'loss' has no group that could be a loss; "),
    ],
)
def test_what_is_none(tmp_path, text, said):
    path = tmp_path / "asked.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as error:
        Specification.read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)


def test_one_of_an_earlier_version_has_no_loss_metric(tmp_path):
    document = ALL.to_json()
    del document["user_command"]["loss_metric"], document["user_command"]["optimizer_steps"]
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(document))
    assert Specification.read(path) == replace(ALL, user_command=replace(ALL.user_command, loss_metric=None))


def test_one_of_an_earlier_version_has_no_target(tmp_path):
    document = ALL.to_json()
    del document["until"]
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(document))
    assert Specification.read(path) == replace(ALL, until=None)


def test_what_a_dry_run_prints_measures_the_same(cli, bench_arguments, instant, run_folder, tmp_path):
    arguments = bench_arguments("mine", "--blocks", 2)
    dry = cli(*arguments, "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert not run_folder.exists()
    path = tmp_path / "asked.json"
    path.write_text(dry.stdout)
    assert cli(*arguments).returncode == 0
    assert cli("bench", "--specification", path, "--output", tmp_path / "again").returncode == 0
    plans = [recorded_plan(record.read(folder)) for folder in (run_folder, tmp_path / "again")]
    assert plans[0] == plans[1]


def test_files_are_named_in_full_for_elsewhere(cli, write_profile, tmp_path):
    write_profile("mine")
    (tmp_path / "pictures").mkdir()
    found = json.loads(cli("bench", "mine.yaml", "--data", "pictures", "--dry-run", cwd=tmp_path).stdout)
    assert (found["arms"][1]["profile"], found["data"]) == (str(tmp_path / "mine.yaml"), str(tmp_path / "pictures"))


def test_a_specification_is_measured_as_it_is(refused, tmp_path):
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(replace(ALL, nodes=1).to_json()))
    said = refused("bench", "mine", "--specification", path)
    assert said == "envkit: PROFILE can't be given with --specification: the file says what is measured"
