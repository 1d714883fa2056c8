"""Several processes of one command, some of which compute on GPUs, or compile."""

from __future__ import annotations

import json

import pytest
from envkit.checks.effect_messages import Together, Value
from envkit.checks.process_messages import NotVerified, OtherValue
from envkit.checks.process_scan import Seen
from envkit.checks.sample_effect import check_sample
from envkit.cli.execution.messages import InEffectAsFarAsKnown
from envkit.cli.execution.process_checks import read, verdict
from envkit.profiles.environment import Environment
from envkit.worker.initial_environment import Block


def block(text):
    return Block(("1", "2"), text)


NCCL_LOG = Environment("nccl-log", "", {}, {}, (), {"nccl.log": "written", "openmp.runtime": "gnu"}, "same")
RANK = {"gpu": {"name": "a GPU"}, "nccl": {"log": "written"}}
LAUNCHER = {"gpu": {}, "nccl": {"log": "not written"}}


def evidence(found):
    return {"openmp": {"runtime": "gnu"}, "variables": {"sensitive": {}, "preloaded": {}}, **found}


def processes(*found, first=1):
    """Processes that found this, with numbers from ``first`` on."""
    return [{"pid": pid, "argv": ["python"], "evidence": evidence(one)} for pid, one in enumerate(found, first)]


@pytest.fixture
def judged(tmp_path):
    """What processes that left such evidence show of a profile."""

    def judge(environment, *found):
        for one in processes(*found):
            (tmp_path / f"{one['pid']}.json").write_text(json.dumps(one))
        return read(tmp_path, environment, {})[0]

    return judge


@pytest.mark.parametrize(("backends", "holds"), [(("none", "inductor"), True), (("none", "other"), False)])
def test_what_inductor_alone_reads_needs_one_process_that_compiles_by_it(judged, backends, holds):
    of_inductor = Environment("mine", "", {"TORCHINDUCTOR_SIZE_ASSERTS": "0"}, {}, (), {}, "same")
    sensitive = {"sensitive": of_inductor.variables, "preloaded": {}}
    settings = {"TORCHINDUCTOR_SIZE_ASSERTS": 0}
    found = [{"compiler": {"backend": one, "settings": settings}, "variables": sensitive} for one in backends]
    assert [process.holds for process in judged(of_inductor, *found)] == [holds, holds]


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        # what starts the ranks need show nothing of GPUs, but all else
        ((LAUNCHER, RANK, RANK), [True, True, True]),
        (({**LAUNCHER, "openmp": {"runtime": "intel"}}, RANK), [False, True]),
        # a rank without a log
        ((LAUNCHER, {**RANK, "nccl": {"log": "not written"}}), [True, False]),
        # where no process computed on a GPU nothing was in effect
        ((LAUNCHER, LAUNCHER), [False, False]),
    ],
)
def test_what_ranks_and_their_launcher_must_show(judged, found, holds):
    assert [one.holds for one in judged(NCCL_LOG, *found)] == holds


def test_a_sample_of_a_command_is_judged_alike():
    alone = {"evidence": evidence(LAUNCHER), "stderr": ""}
    assert [one.key for one in check_sample(NCCL_LOG, alone, {}) if not one.holds] == ["nccl.log"]
    sample = {**alone, "other_processes": processes(RANK, RANK, first=2)}
    assert {one.key: one.holds for one in check_sample(NCCL_LOG, sample, {})} == {"openmp.runtime": True}


def test_a_command_may_take_away_what_only_says_where_things_are():
    """Its main process as well as the others; what is left of it has to be as it was."""
    kept = {"CUDA_VISIBLE_DEVICES": "0", "OMP_DYNAMIC": "true"}
    seen = evidence(RANK)
    seen["variables"]["sensitive"] = {"OMP_DYNAMIC": "true"}
    sample = {"evidence": seen, "stderr": "", "other_processes": []}
    assert [one.key for one in check_sample(NCCL_LOG, sample, kept) if not one.holds] == []
    seen["variables"]["sensitive"] = {"CUDA_VISIBLE_DEVICES": "0"}
    assert [one.key for one in check_sample(NCCL_LOG, sample, kept) if not one.holds] == ["variable OMP_DYNAMIC"]


def test_a_profile_s_pythonpath_stands_behind_the_witness():
    mine = Environment("mine", "A test", {"PYTHONPATH": "/x", "OMP_DYNAMIC": "true"}, {}, (), {}, "same")
    seen = Seen(["./program"], block(b"PYTHONPATH=/witness:/x\0OMP_DYNAMIC=true\0"), frozenset())
    assert seen.wrong(mine) == []
    assert Seen(["./program"], block(b"PYTHONPATH=/witness:/x\0"), frozenset()).wrong(mine) == [
        OtherValue("OMP_DYNAMIC", "not set", "true")
    ]


ONE_QUEUE = Environment("gpu-one-queue", "", {}, {}, (), {"gpu.one_queue": True}, "same")
UNCLEAR = {"gpu": {"name": "a GPU", "not_verified": {"one_queue": "the times are not clear"}}}


def test_what_processes_could_not_tell_is_said_once(judged):
    judged_processes = judged(ONE_QUEUE, UNCLEAR, UNCLEAR)
    assert verdict(ONE_QUEUE, judged_processes) == [
        InEffectAsFarAsKnown("gpu-one-queue", processes=2, keys=(), variables=0),
        NotVerified("gpu.one_queue", Value("the times are not clear")),
    ]
    (only,) = judged_processes[0].to_json()["checks"]
    assert (only["holds"], only["verified"], only["seen"]) == (True, False, "the times are not clear")


def test_what_the_ranks_of_a_command_could_not_tell_is_kept():
    others = processes(UNCLEAR, UNCLEAR, first=2)
    sample = {"evidence": evidence(LAUNCHER), "stderr": "", "other_processes": others}
    (only,) = check_sample(ONE_QUEUE, sample, {})
    assert (only.key, only.holds, only.verified) == ("gpu.one_queue (processes 2, 3: python)", True, False)


def test_what_one_rank_could_not_tell_is_kept():
    found = [{"gpu": {"one_queue": True}}, UNCLEAR]
    ranks = [{"rank": one, "node": "here", "cpus": [one], "evidence": evidence(found[one])} for one in (0, 1)]
    checks = {one.key: one for one in check_sample(ONE_QUEUE, {"ranks": ranks, "stderr": ""}, {})}
    assert checks["gpu.one_queue"].verified
    assert not checks["gpu.one_queue (rank 1 on here)"].verified
    ranks[0]["evidence"] = evidence(UNCLEAR)
    alike = check_sample(ONE_QUEUE, {"ranks": ranks, "stderr": ""}, {})
    assert [one.key for one in alike if not one.verified] == ["gpu.one_queue"]


@pytest.mark.parametrize(
    ("uuids", "seen"),
    [
        (("GPU-1", "GPU-2"), "apart"),
        (("GPU-1", "GPU-1"), Together("rank", 0, 1, "GPU", "GPU-1", "here").to_json()),
        (("GPU-1", None), "apart"),
    ],
)
def test_ranks_have_a_gpu_each(uuids, seen):
    ranks = [
        {"rank": rank, "node": "here", "cpus": [rank], "evidence": evidence({"gpu": {"uuid": uuid} if uuid else {}})}
        for rank, uuid in enumerate(uuids)
    ]
    environment = Environment("mine", "", {}, {}, (), {}, "same")
    checks = {one.key: one.seen for one in check_sample(environment, {"ranks": ranks, "stderr": ""}, {})}
    assert checks == {"ranks.cpus": "apart", "ranks.gpus": seen}
