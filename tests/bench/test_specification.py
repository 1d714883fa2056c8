"""A specification goes to JSON and back, and one that can't be measured is refused."""

from __future__ import annotations

import json
from unittest.mock import ANY

import pytest
from envkit.bench import record
from envkit.bench.plan import Ablated, Arm
from envkit.bench.specification import Specification, SpecificationError
from envkit.bench.specification_messages import (
    InvalidValue,
    StepsBesideMetric,
    TargetWithoutEpochs,
    UnknownArm,
    UnknownSpecificationKey,
    UnusableText,
)
from envkit.common.messages import UnknownWord
from envkit.engines.base import EngineOptions
from envkit.worker.modes import Options
from envkit.worker.request import UserCommand
from envkit.worker.workloads import WORKLOADS

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
    assert not [name for name, value in ALL.to_json().items() if value == usual[name]]


DOCUMENT = json.loads(json.dumps(ALL.to_json()))


def own_with(**given):
    return {**DOCUMENT, "user_command": {**DOCUMENT["user_command"], **given}}


def lacking(name):
    return {key: value for key, value in DOCUMENT.items() if key != name}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, InvalidValue("", "'title' is a required property")),
        (lacking("until"), InvalidValue("", "'until' is a required property")),
        (lacking("ablated"), InvalidValue("", "'ablated' is a required property")),
        ({**DOCUMENT, "bugdet_s": 1}, UnknownSpecificationKey("bugdet_s")),
        ({**DOCUMENT, "arms": [{"nmae": "x"}]}, InvalidValue("arms.0", ANY)),
        ({**DOCUMENT, "arms": []}, InvalidValue("arms", "[] should be non-empty")),
        ({**DOCUMENT, "budget_s": "3m"}, InvalidValue("budget_s", "'3m' is not of type 'number'")),
        ({**DOCUMENT, "arms": DOCUMENT["arms"][:1]}, UnknownArm("X", "mine")),
        ({**DOCUMENT, "user_command": None, "workload": "cmm"}, UnknownWord("workload", "cmm", tuple(WORKLOADS))),
        (own_with(metric="took ("), UnusableText("user_command.metric", "took (", ANY)),
        ({**DOCUMENT, "until": "accuracy"}, UnusableText("until", "accuracy", ANY)),
        ({**DOCUMENT, "epochs": 0}, TargetWithoutEpochs()),
        (own_with(optimizer_steps=9), StepsBesideMetric()),
        (own_with(optimizer_steps=-1, metric=None),
         InvalidValue("user_command.optimizer_steps", "-1 is less than the minimum of 0")),
        (own_with(loss_metric="loss"), UnusableText("user_command.loss_metric", "loss", ANY)),
    ],
)  # fmt: skip
def test_what_is_none(document, said):
    with pytest.raises(SpecificationError) as error:
        Specification.from_json(document)
    assert error.value.message == said


def test_a_dry_run_prints_what_the_record_says_and_leaves_nothing(cli, bench_arguments, instant, run_folder):
    arguments = bench_arguments("mine", "--blocks", 2)
    dry = cli(*arguments, "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert not run_folder.exists()
    assert cli(*arguments).returncode == 0
    asked = Specification.from_json(record.first(run_folder)["specification"])
    assert json.loads(dry.stdout) == json.loads(json.dumps(asked.anywhere().to_json()))


def test_files_are_named_in_full_for_elsewhere(cli, write_profile, tmp_path):
    write_profile("mine")
    (tmp_path / "pictures").mkdir()
    found = json.loads(cli("bench", "mine.yaml", "--data", "pictures", "--dry-run", cwd=tmp_path).stdout)
    assert (found["arms"][1]["profile"], found["data"]) == (str(tmp_path / "mine.yaml"), str(tmp_path / "pictures"))
