"""A study goes to JSON and back, and one that can't be measured is refused."""

from __future__ import annotations

import json
from unittest.mock import ANY

import pytest
from envkit.bench import record
from envkit.bench.arms import Ablated, Arm, Contrast, Role, View
from envkit.bench.study import StoppingRule, Study, WorkloadSpec, require_workloads
from envkit.bench.study_messages import (
    BelowLeast,
    NoArms,
    NoSettings,
    StepsBesideMetric,
    UnknownArm,
    UnknownStudyKey,
    UnusableText,
)
from envkit.common import codec
from envkit.common.errors import MISFITS
from envkit.common.file_messages import OtherType
from envkit.common.messages import UnknownWord
from envkit.engines.base import EngineOptions
from envkit.worker.modes import Options
from envkit.worker.request import FullTraining, UserCommand
from envkit.worker.workloads import WORKLOADS

ALL = Study(
    title="mine",
    stopping=StoppingRule(12.5, 7, 0.01, 0.03, 8.0, open_ended=True),
    arms=(Arm("baseline", "baseline", "local"), Arm("mine", "/x/mine.yaml", "local", "cnn", 2, "i", 1)),
    contrasts=(Contrast("mine", "baseline", Role.SPEEDUP, 2, "X"),),
    view=View.IMAGES,
    workload="python x.py",
    workloads={"python x.py": WorkloadSpec(4, 5)},
    data="/data",
    seed=9,
    engine_options=EngineOptions(python="/p", memory="4g"),
    user_command=UserCommand(("python", "x.py"), "/x", "took (.*)", "ms", 3, "loss (.*)"),
    options=Options("bf16-autocast", compile=True, scale=2),
    full=FullTraining(6, "accuracy=0.9"),
    ranks=2,
    nodes=3,
    weak=True,
    ablated=(Ablated("X", "jemalloc", None, "baseline", "mine"),),
    keep_env=("A",),
    force=True,
    allow_unknown=True,
)


@pytest.mark.parametrize("asked", [ALL, Study("", StoppingRule(1.0), (Arm("a", "a", "local"),))])
def test_to_json_and_back(asked):
    assert Study.from_json(json.loads(json.dumps(asked.to_json()))) == asked


def test_nothing_is_left_at_its_default_in_this_test():
    usual = Study(title="", stopping=StoppingRule(0.0)).to_json()
    assert not [name for name, value in ALL.to_json().items() if value == usual[name]]


DOCUMENT = json.loads(json.dumps(ALL.to_json()))
RULE = DOCUMENT["stopping"]


def own_with(**given):
    return {**DOCUMENT, "user_command": {**DOCUMENT["user_command"], **given}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**DOCUMENT, "bugdet_s": 1}, UnknownStudyKey("bugdet_s")),
        ({**DOCUMENT, "arms": []}, NoArms()),
        ({**DOCUMENT, "view": "settings", "ablated": []}, NoSettings()),
        ({**DOCUMENT, "seed": "3m"}, OtherType("seed")),
        ({**DOCUMENT, "nodes": 0}, BelowLeast("nodes", 0, 1)),
        ({**DOCUMENT, "stopping": {**RULE, "budget_s": -1.0}}, BelowLeast("stopping.budget_s", -1.0, 0)),
        ({**DOCUMENT, "arms": DOCUMENT["arms"][:1], "contrasts": []}, UnknownArm("ablated: X", "mine")),
        ({**DOCUMENT, "arms": DOCUMENT["arms"][:1]}, UnknownArm("contrasts", "mine")),
        (own_with(metric="took ("), UnusableText("user_command.metric", "took (", ANY)),
        ({**DOCUMENT, "full": {"epochs": 6, "until": "accuracy"}}, UnusableText("full.until", "accuracy", ANY)),
        ({**DOCUMENT, "full": {"epochs": 0}}, BelowLeast("full.epochs", 0, 1)),
        (own_with(optimizer_steps=9), StepsBesideMetric()),
        (own_with(optimizer_steps=-1, metric=None), BelowLeast("user_command.optimizer_steps", -1, 0)),
        (own_with(loss_metric="loss"), UnusableText("user_command.loss_metric", "loss", ANY)),
    ],
)  # fmt: skip
def test_what_is_none(document, said):
    with pytest.raises(codec.Misfit) as error:
        Study.from_json(document)
    assert error.value.message == said


def test_a_workload_that_this_kit_does_not_have():
    """A record of another kit may have one; it is refused before it is trained."""
    made = Study.from_json({**DOCUMENT, "user_command": None, "workload": "cmm"})
    with pytest.raises(codec.Misfit) as error:
        require_workloads(made)
    assert error.value.message == UnknownWord("workload", "cmm", tuple(WORKLOADS))


@pytest.mark.parametrize("name", ["full", "ablated", "contrasts", "title", "view"])
def test_every_key_is_there(name):
    with pytest.raises(MISFITS):
        Study.from_json({key: value for key, value in DOCUMENT.items() if key != name})


@pytest.mark.parametrize("arm", [{"nmae": "x"}, {"name": "x"}, {"name": 1, "profile": "x", "engine": "local"}, 5])
def test_an_arm_that_is_none(arm):
    with pytest.raises(MISFITS):
        Study.from_json({**DOCUMENT, "arms": [*DOCUMENT["arms"], arm]})


def test_a_dry_run_prints_what_the_record_says_and_leaves_nothing(cli, bench_arguments, instant, run_folder):
    arguments = bench_arguments("mine", "--blocks", 2)
    dry = cli(*arguments, "--dry-run").ended(0, stderr="")
    assert not run_folder.exists()
    assert cli(*arguments).returncode == 0
    recorded, printed = record.first(run_folder)["study"], json.loads(dry.stdout)
    later = ("seed", "data", "arms")  # the run draws the seed, finds the data and reads the profiles
    assert {key: value for key, value in printed.items() if key not in later} == {
        key: value for key, value in recorded.items() if key not in later
    }
    assert [arm["profile"] for arm in printed["arms"]] == [arm["file"] or arm["profile"] for arm in recorded["arms"]]


def test_files_are_named_in_full_for_elsewhere(cli, write_profile, tmp_path):
    write_profile("mine")
    (tmp_path / "pictures").mkdir()
    found = json.loads(cli("bench", "mine.yaml", "--data", "pictures", "--dry-run", cwd=tmp_path).stdout)
    assert (found["arms"][1]["profile"], found["data"]) == (str(tmp_path / "mine.yaml"), str(tmp_path / "pictures"))
