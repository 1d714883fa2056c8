"""Whatever processes leave in the place of evidence, it takes nothing with it that others left."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from envkit.checks.sample_effect import check_sample
from envkit.cli.commands import exec
from envkit.cli.execution import process_checks
from envkit.cli.execution.resolving import other_machine
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.worker import left
from envkit.worker.evidence import nccl
from envkit.worker.messages.cpus import BoundByTool, SetByParent
from envkit.worker.messages.left import (
    BadJson,
    LinkLeft,
    NotAFile,
    OtherForm,
    SomeUnread,
    TooDeep,
    TooLarge,
    Unreadable,
)
from envkit.worker.user_command.metric import NotMeasured, parse
from envkit.worker.user_command.optimizer_steps import StepRequest, chosen
from hypothesis import given, settings

from tests.mutations import damaged, jsons
from tests.simulated_worker import inspection

EVIDENCE = {
    "pid": 7, "argv": ["python", "train.py"], "seconds": 0.5,
    "evidence": {
        "openmp": {
            "runtime": "gnu", "settings": {"OMP_WAIT_POLICY": "passive"},
            "not_verified": {"max_threads": {"code": "worker.mkl-silent", "severity": "error"}},
        },
        "malloc": {"allocator": "glibc", "settings": {}}, "memory": {"thp": "always"},
        "threads": {"started_on": "0-3", "masks": {"0-3": 4}}, "gpu": None,
        "cpu_use": {
            "threads": 1, "pid": 7, "cpus": 1, "cores": 4, "machine_cpus": 8, "machine_cores": 8, "ranks": 1,
            "cpu_s": 9.5, "helper_cpu_s": 0.0, "on_gpu": False, "above": [3, 1], "forked_bound": 0,
            "threads_by": SetByParent("OMP_NUM_THREADS=1", "bash", 3).to_json(),
            "cpus_by": BoundByTool("taskset").to_json(),
        },
        "torch": {"version": "2.0"},
        "variables": {
            "sensitive": {"OMP_NUM_THREADS": "4"}, "named": {"X": None}, "preloaded": {"/lib/x.so": "mapped"},
            "changed": {"OMP_NUM_THREADS": {"now": "3", "at_torch": "4"}},
        },
        "seconds": 0.1,
    },
}  # fmt: skip
STEPS = {
    "pid": 7, "rank": 0, "complete": True, "optimizer": "SGD", "threads": 2, "warmup_step_s": [0.5],
    "step_s": [0.5] * 6, "usage": {"user_s": 1.0}, "waited_s": 0.1, "operators": None, "operators_missing": None,
}  # fmt: skip
NCCL_LOG = (
    b"h:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\nNCCL version 2.18.1\n"
    b"NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0\nrank 0 nranks 2 x Init COMPLETE\n"
    b"NCCL INFO AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}\n"
)
ENVIRONMENT = Environment(
    "mine", "A test", {"OMP_NUM_THREADS": "4", "LD_PRELOAD": "/lib/x.so", "OMP_PROC_BIND": "true"},
    {"x": "/lib/x.so"}, (), {"openmp.runtime": "gnu", "openmp.max_threads": 4, "memory.thp": "always"}, "same",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all examples, with what a good process left."""
    made = tmp_path_factory.mktemp("evidence")
    (made / "9.json").write_text(json.dumps({**EVIDENCE, "pid": 9}))
    return made


@settings(max_examples=300)
@given(content=jsons(EVIDENCE))
def test_evidence(folder, content):
    (folder / "7.json").write_bytes(content)
    judged, found = process_checks.read(folder, ENVIRONMENT, {"KMP_AFFINITY": "x"})
    assert 9 in [one.pid for one in judged]
    assert len(judged) + len(found.unread) == 2
    cpu_use = exec._findings(ENVIRONMENT, [one.evidence for one in judged])
    for line in (*process_checks.verdict(ENVIRONMENT, judged), *cpu_use, *filter(None, [found.problem])):
        assert len(text(line).splitlines()) == 1
    assert json.dumps([one.to_json() for one in judged], indent=1)
    documents = left.evidence(folder).documents
    for one in documents:
        assert check_sample(ENVIRONMENT, {**one, "other_processes": documents, "stderr": ""}, {})


@settings(max_examples=150)
@given(content=jsons(STEPS))
def test_steps_of_an_optimizer(folder, content):
    (folder / "7.steps").write_bytes(content)
    try:
        found = chosen(StepRequest(1, steps=5), folder, {"pid": 7}, None, 9.0)
    except NotMeasured as error:
        found = {"step_s": [0.5] * 5, "said": text(error.message)}
    assert found.get("said") != ""
    assert len(found["step_s"]) >= 5
    assert all(step >= 0 for step in found["step_s"])


@settings(max_examples=100)
@given(content=jsons({"machine_kind": {"cpu": "Z80", "usable_cpus": 1}}))
def test_the_machine_that_a_profile_won_on(folder, content):
    (folder / "won.evidence.json").write_bytes(content)
    found = other_machine("won", folder / "won.yaml", inspection([], {}))
    assert found is None or text(found)


@settings(max_examples=150)
@given(content=damaged(NCCL_LOG))
def test_a_log_of_nccl(content):
    assert nccl.parse(content.decode(errors="replace"))


@settings(max_examples=200)
@given(content=jsons({"a": {"b": 1.5}, "loss": [1]}) | damaged(b'step=1.5\n{"a": ' + b"[" * 50_000 + b"\nstep=1,5\n"))
def test_a_log_with_metrics(content):
    for line in content.decode(errors="replace").splitlines():
        for metric in (parse("$.a.b", "s"), parse(r"step=([0-9.]+)", "ms"), parse("$.a", "auto")):
            with contextlib.suppress(NotMeasured):
                metric.find(line)


def a_link(path):
    (path.parent / "elsewhere").write_text(json.dumps(EVIDENCE))
    path.symlink_to("elsewhere")


def forbidden(path):
    path.touch(mode=0)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b""), BadJson()),
        (lambda path: path.write_bytes(b"junk"), BadJson()),
        (lambda path: path.write_bytes(json.dumps(EVIDENCE).encode("utf-16")), BadJson()),
        (lambda path: path.write_bytes(b"9" * 5000), BadJson()),
        (lambda path: path.write_bytes(b"[" * 100_000), TooDeep(left.DEEPEST)),
        (lambda path: path.write_bytes(b'{"a":' * 200 + b"0" + b"}" * 200), TooDeep(left.DEEPEST)),
        (lambda path: path.write_bytes(b"[]"), OtherForm()),
        (lambda path: path.write_bytes(b'{"pid": 7}'), OtherForm()),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**40), TooLarge(left.MOST_BYTES)),
        (os.mkfifo, NotAFile()),
        (lambda path: path.mkdir(), Unreadable("Is a directory")),
        (a_link, LinkLeft()),
        (forbidden, Unreadable("Permission denied")),
    ],
)
def test_what_stands_in_the_place_of_evidence(monkeypatch, tmp_path, make, reason):
    (tmp_path / "9.json").write_text(json.dumps({**EVIDENCE, "pid": 9}))
    make(tmp_path / "7.json")
    monkeypatch.chdir(tmp_path)
    is_root = os.geteuid() == 0
    if make is forbidden and is_root:  # who reads everything
        tmp_path.chmod(0o755)
        os.seteuid(65534)
    try:
        found = left.evidence(Path())
    finally:
        if is_root:
            os.seteuid(0)
    assert [one["pid"] for one in found.documents] == [9]
    assert found.problem == SomeUnread(1, "7.json", reason)


def test_evidence_has_a_limit_in_all(monkeypatch, tmp_path):
    monkeypatch.setattr(left, "MOST_IN_ALL", 2 * len(json.dumps(EVIDENCE)) + 20)
    for pid in (1, 2, 3):
        Path(tmp_path, f"{pid}.json").write_text(json.dumps({**EVIDENCE, "pid": pid}))
    found = left.evidence(tmp_path)
    assert [one["pid"] for one in found.documents] == [1, 2]
    assert found.unread == ["3.json"]
