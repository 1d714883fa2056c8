"""What the evidence hook leaves of an optimizer's steps, in programs with a stand-in for torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from envkit.messages import from_json
from envkit.worker.messages.cpus import BoundByProgram, SetByCall, SetByProgram, SharedByMkl
from envkit.worker.messages.user_command import TorchTooOld

from tests.conftest import PROJECT
from tests.worker import stand_in_torch

HOOK = PROJECT / "runner/envkit/worker/evidence_hook"
TRAIN = """
import torch
sgd = torch.optim.SGD()
for step in range(1, {} + 1):
    sgd.step()
    print(step)
print("end")
"""


@pytest.fixture
def run(tmp_path):
    """Run a script under the hook: its output, what it left by kind, and the documents of steps."""
    folder = tmp_path / "evidence"
    folder.mkdir()

    def program(how, script, status=0, **torch):
        (stand_in_torch.write(tmp_path, **torch) / "train.py").write_text(script)
        variables = {"ENVKIT_STEPS": how, "ENVKIT_EVIDENCE": str(folder), "PYTHONPATH": str(HOOK)}
        process = subprocess.run(
            [sys.executable, "train.py"], cwd=tmp_path, env=os.environ | variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == status, process.stderr
        documents = [json.loads(path.read_text()) for path in folder.glob("*.steps")]
        kinds = sorted({path.suffix for path in folder.iterdir()} - {".started"})  # which every process leaves
        return SimpleNamespace(printed=process.stdout.split(), kinds=kinds, documents=documents)

    return program


def test_a_program_ends_at_the_step_after_so_many(run):
    """When it has printed what it prints of the last one."""
    found = run("steps:2:3", TRAIN.format(100))
    assert found.printed == ["1", "2", "3", "4", "5"]
    (steps,) = found.documents
    assert [len(steps[name]) for name in ("warmup_step_s", "step_s")] == [1, 3]
    assert all(step > 0 for step in steps["step_s"])
    assert {name: steps[name] for name in ("rank", "optimizer", "threads", "complete", "operators")} == {
        "rank": 0, "optimizer": "SGD", "threads": 3, "complete": True, "operators": None,
    }  # fmt: skip
    assert steps["usage"].keys() == {
        "user_s", "system_s", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches",
    }  # fmt: skip
    assert min(steps["usage"].values()) >= 0


SLOW = TRAIN.replace("print(step)", "__import__('time').sleep(0.01); print(step)")


def test_with_a_least_time_it_goes_on_until_that_has_passed(run):
    (steps,) = run("steps:1:3:0.3", SLOW.format(1000)).documents
    assert steps["complete"]
    assert sum(steps["step_s"]) >= 0.3
    assert len(steps["step_s"]) > 3


def test_with_a_least_time_it_takes_so_many_steps_all_the_same(run):
    (steps,) = run("steps:1:7:0.001", SLOW.format(1000)).documents
    assert len(steps["step_s"]) == 7


def test_slow_steps_are_enough_after_a_longest_time(run):
    script = """
import sys
finder = next(one for one in sys.meta_path if type(one).__name__ == "Finder")
finder._steps._agree.__globals__["LONGEST_S"] = 0.0
"""
    (steps,) = run("steps:1:900:800", script + SLOW.format(1000)).documents
    assert len(steps["step_s"]) == 5


def test_all_ranks_end_at_the_same_step(run):
    """Each waits for the other in every step, and would fail without it."""
    script = """
import os, socket, subprocess, sys, time
if len(sys.argv) == 1:
    ends = socket.socketpair()
    ranks = [
        subprocess.Popen(
            [sys.executable, "train.py", str(end.fileno())], pass_fds=[end.fileno()],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"},
        )
        for rank, end in enumerate(ends)
    ]
    for end in ends:
        end.close()
    sys.exit(max(rank.wait() for rank in ranks))
import torch
peer, sgd = socket.socket(fileno=int(sys.argv[1])), torch.optim.SGD()
while True:
    peer.send(b"x")
    assert peer.recv(1), "the other rank has ended"
    time.sleep(0.02 * int(os.environ["RANK"]))
    sgd.step()
"""
    found = run("steps:1:3:0.3", script).documents
    assert sorted(one["rank"] for one in found) == [0, 1]
    assert all(one["complete"] for one in found)
    assert len({len(one["step_s"]) for one in found}) == 1


def test_one_that_catches_all_is_ended_again(run):
    script = TRAIN.format(5).replace("    sgd.step()\n", "    try: sgd.step()\n    except BaseException: print('no')\n")
    found = run("steps:1:1", script)
    assert found.printed == ["1", "2", "no", "3", "no", "4", "no", "5", "end"]
    assert [one["complete"] for one in found.documents] == [True]


@pytest.mark.parametrize(("steps", "complete"), [(4, False), (5, True)])
def test_a_program_that_ends_by_itself_leaves_what_it_has(run, steps, complete):
    found = run("steps:2:3", TRAIN.format(steps))
    assert found.printed[-1] == "end"
    assert [(one["complete"], len(one["step_s"])) for one in found.documents] == [(complete, steps - 2)]


def test_the_optimizer_that_steps_first_counts(run):
    script = "import torch\na, b = torch.optim.Adam(), torch.optim.SGD()\nwhile True:\n    a.step(); b.step(); print(1)"
    found = run("steps:1:2", script)
    assert (len(found.printed), found.documents[0]["optimizer"]) == (3, "Adam")


def test_where_it_is_gone_another_takes_its_place(run):
    script = "import torch\none = torch.optim.Adam()\none.step(); one.step()\none = torch.optim.SGD()\nwhile True: "
    (steps,) = run("steps:1:3", script + "one.step(); print(1)").documents
    assert (len(steps["step_s"]), steps["optimizer"]) == (3, "SGD")


def test_a_forked_child_counts_nothing(run):
    script = f"{TRAIN.format(2)}\nimport os, sys\nif not os.fork():\n    [sgd.step() for _ in range(9)]; sys.exit()\n"
    (steps,) = run("steps:1:9", f"{script}os.wait(); sgd.step()").documents
    assert len(steps["step_s"]) == 2


def test_a_rank_says_which_it_is(run):
    (steps,) = run("steps:1:1", f"import os; os.environ['RANK'] = '5'\n{TRAIN.format(4)}").documents
    assert steps["rank"] == 5


# --- watched for some seconds ---


def test_a_program_that_is_watched_goes_on(run):
    found = run("seconds:1:0.2", TRAIN.format(600).replace("print(step)", "__import__('time').sleep(0.001)"))
    assert found.printed == ["end"]
    (steps,) = found.documents
    assert sum(steps["step_s"]) >= 0.2
    assert (steps["complete"], len(steps["warmup_step_s"])) == (True, 0)
    assert steps["operators"].pop("seconds") > 0
    assert steps["operators"] == {"steps": 3, "self_s": {"aten::mm": 3.0}, "calls": {"aten::mm": 6}}
    assert steps["operators_missing"] is None
    assert {".torch", ".begin", ".end"} <= {*found.kinds}


@pytest.mark.parametrize(
    ("steps", "counted", "profiled"),
    [(3, 2, None), (4, 3, None), (5, 4, None), (6, 4, 1), (7, 4, 2), (8, 4, 3), (20, 4, 3)],
)
def test_a_short_one_leaves_what_it_has(run, steps, counted, profiled):
    (found,) = run("seconds:1:0", TRAIN.format(steps)).documents
    assert len(found["step_s"]) == counted
    assert (found["operators"] and found["operators"]["steps"]) == profiled
    assert found["operators_missing"] == (None if profiled else "ended-first")
    assert found["complete"] == (profiled == 3)


def test_a_profiler_that_can_not_run_is_told_of(run):
    script = f"from torch import profiler\nprofiler.profile.is_busy = True\n{TRAIN.format(9)}"
    (steps,) = run("seconds:1:0", script).documents
    assert (steps["operators"], steps["operators_missing"]) == (None, "RuntimeError: the profiler is busy")
    assert (steps["complete"], len(steps["step_s"])) == (True, 4)


# --- a short look, in a program that goes on ---


@pytest.fixture
def cpu_use(run, tmp_path):
    """What a program with so many threads says after its second step of how it computes."""

    def program(before="", after="", threads=1, how="look:2:0"):
        script = f"import os\n{before}\nimport torch\ntorch.get_num_threads = lambda: {threads}\n{after}"
        found = run(how, script + TRAIN.format(3))
        assert found.printed[-1] == "end"
        (evidence,) = tmp_path.glob("evidence/*.json")
        seen = json.loads(evidence.read_text())["evidence"]
        return seen, {name: from_json(seen["cpu_use"][name]) for name in ("threads_by", "cpus_by")
                      if name in seen["cpu_use"]}  # fmt: skip

    return program


SEVERAL = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs 2 CPUs")
SETS = "os.environ['OMP_NUM_THREADS'] = '1'"


def test_a_short_look_is_at_threads_and_cpus_alone(cpu_use):
    seen, _ = cpu_use()
    assert seen.keys() == {"cpu_use", "seconds"}
    assert seen["cpu_use"]["threads"] == 1


@SEVERAL
@pytest.mark.parametrize(
    ("before", "by"),
    [
        (SETS, SetByProgram("OMP_NUM_THREADS=1")),
        ("os.environ['MKL_NUM_THREADS'] = '1'", SetByProgram("MKL_NUM_THREADS=1")),
        (f"import sys; sys.modules['ray'] = os; {SETS}", SetByProgram("OMP_NUM_THREADS=1", ("ray",))),
        ("", SetByCall()),
        ("os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])", BoundByProgram()),
    ],
)
def test_the_program_itself_has_one_thread(cpu_use, before, by):
    assert cpu_use(before)[1] == {"threads_by": by}


def test_ranks_that_a_launcher_started_beside_it(cpu_use, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert cpu_use()[0]["cpu_use"]["ranks"] == 2


@SEVERAL
def test_all_variables_that_ask_for_one_thread_are_named(cpu_use, monkeypatch):
    """As joblib sets them: to change one of them would change nothing."""
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cpu_use()[1]["threads_by"].variable == "MKL_NUM_THREADS=1, OMP_NUM_THREADS=1"


@SEVERAL
def test_mkl_divides_the_cores_among_ranks_of_mpi(cpu_use, monkeypatch):
    monkeypatch.setenv("MPI_LOCALNRANKS", "1")
    assert cpu_use()[1]["threads_by"] == SharedByMkl("MPI_LOCALNRANKS=1")


@SEVERAL
def test_it_was_started_with_one_thread(cpu_use, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cpu_use()[1]["threads_by"].variable == "OMP_NUM_THREADS=1"


def test_as_many_threads_as_cores(cpu_use):
    assert "threads_by" not in cpu_use(threads=len(os.sched_getaffinity(0)))[1]


@SEVERAL
def test_what_an_unbound_thread_forks_is_not_bound(cpu_use):
    fork = "if os.fork() == 0: os._exit(0)\nos.wait()\n"
    assert cpu_use(after=fork)[0]["cpu_use"]["forked_bound"] == 0


@SEVERAL
def test_what_a_bound_thread_forks_is_bound_too(cpu_use):
    bind = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    fork = "if os.fork() == 0: os._exit(0)\nos.wait()\n"
    assert cpu_use(after=bind + 2 * fork)[0]["cpu_use"]["forked_bound"] == 2


# --- what is no training ---


def test_a_torch_that_is_too_old_is_told_of(run):
    found = run("steps:1:1", TRAIN.format(3), registers=False)
    assert found.printed[-1] == "end"
    assert from_json(found.documents[0]["problem"]) == TorchTooOld()


def test_programs_that_take_no_step(run):
    assert run("steps:1:1", "import json").kinds == []
    assert run("steps:1:1", "import torch").kinds == [".torch"]


def test_the_program_s_own_modules_are_its_own(run, tmp_path):
    (tmp_path / "optimizer_steps.py").write_text("MINE = 'mine'")
    (tmp_path / "runner.py").write_text("MINE = 'and mine'")
    more = "import optimizer_steps, runner, torch.optim.optimizer as module\nprint(optimizer_steps.MINE, runner.MINE)"
    printed = run("seconds:1:0", f"import envkit\n{TRAIN.format(9)}{more}\nprint(module.__file__)").printed
    assert printed[-4:] == ["mine", "and", "mine", str(tmp_path / "torch/optim/optimizer.py")]


LEAVES = TRAIN.format(4) + "import os, threading\n"


@pytest.mark.parametrize(
    ("script", "leaves_steps"),
    [
        (f"{LEAVES}os._exit(7)", True),
        # the main thread may hang with a lock that evidence needs
        (f"{LEAVES}threading.Thread(target=os._exit, args=(7,)).start(); threading.Event().wait()", False),
        # a forked child is not the program
        (f"{LEAVES}if not os.fork(): os._exit(0)\nos.wait(); os.kill(os.getpid(), 9)", False),
    ],
)
def test_what_leaves_without_exit_functions_testifies_first(run, script, leaves_steps):
    """With the stand-in no evidence can be had, which neither keeps the program alive nor changes its exit status."""
    found = run("steps:2:30", script, status=-9 if "kill" in script else 7)
    assert found.printed == ["1", "2", "3", "4", "end"]
    assert (".steps" in found.kinds) == leaves_steps
