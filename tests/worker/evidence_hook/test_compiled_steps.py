"""The hook that times an optimizer's steps, where torch.compile has compiled them: with the real torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.conftest import PROJECT

HOOK = PROJECT / "runner/envkit/worker/evidence_hook"
KINDS = ("update", "full", "whole", "epoch", "frozen")
# The counters are those of torch: how many graphs it compiled, and why it broke them.
TRAIN = """
import atexit, json, os, sys
import torch
from torch._dynamo.utils import counters

*others, kind = sys.argv[1].split(",")
steps = int(sys.argv[2])
for other in others:
    if os.fork() == 0:
        kind = other
        break
    os.wait()
torch.manual_seed(1)
model = torch.nn.Linear(8, 4)
x, y = torch.randn(16, 8), torch.randint(4, (16,))

class Plain(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    one.add_(one.grad, alpha=-group["lr"])

optimizer = Plain(model.parameters()) if kind in ("full", "frozen") else torch.optim.Adam(model.parameters())

def backward():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()

@torch.compile(backend="eager", fullgraph=kind in ("full", "frozen"))
def update():
    optimizer.step()

@torch.compile(backend="eager")
def whole():
    backward()
    optimizer.step()

@torch.compile(backend="eager")
def epoch():
    for step in range(1, steps + 1):
        backward()
        optimizer.step()
        print("step", step)

atexit.register(lambda: print(json.dumps([counters["stats"], counters["graph_break"]])))
if kind == "epoch":
    epoch()
else:
    for step in range(1, steps + 1):
        if kind == "frozen" and step == 3:
            torch.compiler.set_stance("fail_on_recompile")
        if kind == "whole":
            whole()
        else:
            backward()
            update()
        print("step", step)
print("end")
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return what the script printed and counted without the hook, by kind: one process after the other has it."""
    script = tmp_path_factory.mktemp("alone") / "train.py"
    script.write_text(TRAIN)
    argv, variables = [sys.executable, script, ",".join(KINDS), "8"], {**os.environ, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(argv, env=variables, capture_output=True, text=True, check=True).stdout
    *parts, after = printed.split("end\n")
    counted = [json.loads(part.partition("\n")[0]) for part in [*parts[1:], after]]
    assert [part.splitlines()[-1] for part in parts] == ["step 8"] * len(KINDS)
    return dict(zip(KINDS, counted, strict=True))


@pytest.fixture
def run(tmp_path):
    """Run the script under the hook, which times steps by ``how``. Return what the script printed, counted and left."""
    (tmp_path / "train.py").write_text(TRAIN)
    folder = tmp_path / "evidence"
    folder.mkdir()

    def program(kind, steps, how):
        told = {"ENVKIT_STEPS": how, "ENVKIT_EVIDENCE": str(folder), "PYTHONPATH": str(HOOK)}
        process = subprocess.run(
            [sys.executable, "train.py", kind, str(steps)], cwd=tmp_path, stdin=subprocess.DEVNULL,
            env=os.environ | told | {"TORCH_LOGS": "recompiles", "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        *printed, counted = process.stdout.splitlines()
        left = [json.loads(path.read_text()) for path in folder.glob("*.steps")]
        return SimpleNamespace(printed=printed, counted=json.loads(counted), stderr=process.stderr, left=left)

    return program


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_step_is_compiled_as_without_the_hook(run, alone, kind):
    """``full`` allows no break of its graph, and ``frozen`` no compilation either after its second step."""
    under = run(kind, 40, "steps:3:5")
    assert under.counted == alone[kind]
    assert "Recompiling" not in under.stderr
    assert under.printed == [f"step {step}" for step in range(1, 9)]
    (steps,) = under.left
    assert [steps["complete"], len(steps["warmup_step_s"]), len(steps["step_s"])] == [True, 2, 5]


def test_one_that_is_watched_is_profiled_and_goes_on(run):
    under = run("full", 30, "seconds:3:0")
    assert under.printed[-1] == "end"
    (steps,) = under.left
    assert (steps["complete"], len(steps["step_s"]), steps["operators"]["steps"]) == (True, 4, 3)
