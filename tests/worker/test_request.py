"""The worker's request as a document: what is written is read back, and what is not valid is named."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys

import pytest
from envkit.engines.base import WORKER, EngineOptions, Launch
from envkit.engines.container import request as inside
from envkit.engines.local import LocalEngine
from envkit.messages import from_json
from envkit.worker.errors import WorkerError
from envkit.worker.messages import InvalidRequest
from envkit.worker.modes import Options
from envkit.worker.request import (
    KINDS,
    FullTraining,
    HostFolder,
    Inspect,
    Instance,
    Instances,
    Invalid,
    Operators,
    Phases,
    Rank,
    Ranks,
    ReferenceKernel,
    RunCommand,
    Train,
    UserCommand,
    WorkerRequest,
    read,
)
from hypothesis import given
from hypothesis import strategies as st

from tests import mutations
from tests.simulation import PROJECT

TRAIN = Train(
    "cnn", HostFolder("/data set"), 2, 5, Options("bf16-autocast", scale=2), FullTraining(3, "loss=0.4"), least_s=1.5
)
OWN = UserCommand(("python", "a b.py", "-", "\udcff"), "/home/me", r"-t=(\d+)", links=("data",))
COMMAND = RunCommand(OWN, 3, 12, 5.0)
EVERY = (
    Inspect(("numactl",), contents=True, gpus=True), ReferenceKernel(), TRAIN, Train("loader", "generated", steps=1),
    Operators(TRAIN, forward=True), Phases(TRAIN), COMMAND, Ranks(2, TRAIN, nodes=3), Rank(TRAIN), Instances(2, TRAIN),
    Instance(2, TRAIN, "/tmp/here"),
)  # fmt: skip


@pytest.mark.parametrize("work", EVERY, ids=lambda work: work.kind)
def test_what_is_written_is_read_back(work, tmp_path):
    request = WorkerRequest(work, waits=True, parent=17)
    (tmp_path / "request.json").write_text(request.line())
    assert read(str(tmp_path / "request.json")) == request
    assert request.line().count("\n") == 1


def test_every_kind_of_work_is_among_these():
    assert {work.kind for work in EVERY} == KINDS.keys()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (("work", "steps"), True, ("work.steps", ("integer",))),
        (("work", "least_s"), "1", ("work.least_s", ("number", "integer"))),
        (("work", "data"), {"path": 1}, ("work.data.path", ("string",))),
        (("work", "options", "precision"), "fp8", ("work.options.precision", ("fp32", "bf16-autocast"))),
        (("work", "full"), 3, ("work.full", ("object",))),
        (("work", "stepz"), 1, ("work.stepz", ("absent",))),
        (("work", "kind"), "trian", ("work.kind", tuple(KINDS))),
        (("parent",), 1.5, ("parent", ("integer", "null"))),
        (("work",), [], ("work.kind", tuple(KINDS))),
    ],
)
def test_the_key_that_is_wrong_is_named(tmp_path, key, value, said):
    document = WorkerRequest(TRAIN).to_json()
    *outer, last = key
    place = document
    for name in outer:
        place = place[name]
    place[last] = value
    file = tmp_path / "request.json"
    file.write_text(json.dumps(document))
    with pytest.raises(WorkerError) as caught:
        read(str(file))
    assert caught.value.message == InvalidRequest(str(file), *said)


def test_what_is_left_out_is_as_usual_but_for_what_must_be_there():
    assert WorkerRequest.from_json({"work": {"kind": "reference-kernel"}}) == WorkerRequest(ReferenceKernel())
    with pytest.raises(Invalid) as caught:
        WorkerRequest.from_json({"work": {"kind": "train", "data": "synthetic"}})
    assert (caught.value.key, caught.value.wanted) == ("work.workload", ("string",))


@given(st.sampled_from(EVERY).flatmap(lambda work: mutations.documents(WorkerRequest(work).to_json())))
def test_a_damaged_document_is_read_or_refused(document):
    with contextlib.suppress(Invalid):
        assert isinstance(WorkerRequest.from_json(document), WorkerRequest)


def test_a_worker_refuses_what_is_no_request(tmp_path):
    argv = [sys.executable, str(WORKER), str(tmp_path / "none.json")]
    refused = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (refused.returncode, refused.stderr) == (2, "")
    problem = from_json(json.loads(refused.stdout)["problem"])
    assert problem == InvalidRequest(argv[-1], reason="No such file or directory")
    argv[-1] = "-"
    refused = subprocess.run(argv, capture_output=True, text=True, check=False, input="{")
    assert from_json(json.loads(refused.stdout)["problem"]) == InvalidRequest("-", "document", ("JSON",))


def test_of_standard_input_one_line_is_read(monkeypatch):
    """What follows gives a worker its turn."""
    ours, theirs = os.pipe()
    os.write(theirs, WorkerRequest(TRAIN, waits=True).line().encode())
    saved = os.dup(0)
    try:
        os.dup2(ours, 0)
        assert read("-") == WorkerRequest(TRAIN, waits=True)
        os.write(theirs, b"1")
        assert os.read(0, 10) == b"1"
    finally:
        os.dup2(saved, 0)
        for descriptor in (saved, ours, theirs):
            os.close(descriptor)


# --- paths ---


@pytest.mark.parametrize("made", [lambda one: one, lambda one: Ranks(2, one), Phases, lambda one: Instances(2, one)])
def test_an_engine_that_mounts_a_folder_names_it_as_it_is_inside(made):
    launch = Launch(made(TRAIN))
    assert launch.data == "/data set"
    there = Train("cnn", HostFolder("/data"), 2, 5, TRAIN.options, TRAIN.full, least_s=1.5)
    assert inside(launch) == WorkerRequest(made(there))
    assert LocalEngine(EngineOptions()).request(launch) == WorkerRequest(made(TRAIN))


def test_only_what_is_marked_as_a_folder_of_the_host_is_relocated():
    """A command may have such a word among its own."""
    named = RunCommand(UserCommand(("python", "train.py", "/data set"), "/data set"))
    for work in (named, Train("cnn", "synthetic")):
        assert (Launch(work).data, inside(Launch(work))) == (None, WorkerRequest(work))


def test_the_step_that_set_up_trains_is_a_request():
    """It compiles what a worker imports; without it the first measurement would do that."""
    (line,) = re.findall(r"compiled -m envkit\.worker - <<<'(.*)'", (PROJECT / "images/setup").read_text())
    assert WorkerRequest.from_json(json.loads(line)) == WorkerRequest(Train("cnn", "synthetic", steps=1))
