"""A package called torch with optimizers that learn nothing, for programs that are to start quickly."""

from __future__ import annotations

from pathlib import Path

TORCH = """
from torch import optim, profiler
class cuda:
    is_available = staticmethod(lambda: False)
get_num_threads = lambda: 3
"""
OPTIMIZER = """
hooks = []
class Optimizer:
    def step(self):
        for hook in hooks:
            hook(self, (), {})
class SGD(Optimizer): pass
class Adam(Optimizer): pass
"""
REGISTER = """
def register_optimizer_step_post_hook(hook):
    hooks.append(hook)
"""
PROFILER = """
import os, signal
class ProfilerActivity:
    CPU = "cpu"
class Average:
    def __init__(self, key, count, self_cpu_time_total):
        self.key, self.count, self.self_cpu_time_total = key, count, self_cpu_time_total
running = []
class Library:  # as PyTorch's does, it kills a program that exits under the profiler
    def __del__(self, running=running, kill=os.kill, process=os.getpid(), signal=signal.SIGSEGV):
        if running:
            kill(process, signal)
library = Library()
class profile:
    is_busy = False
    def __init__(self, activities):
        assert activities == ["cpu"]
    def __enter__(self):
        if self.is_busy:
            raise RuntimeError("the profiler is busy")
        running.append(self)
    def __exit__(self, *error):
        running.remove(self)
    def key_averages(self):
        return [Average("aten::mm", 6, 3e6), Average("kernel", 6, 0)]
"""


def write(folder: Path, registers: bool = True) -> Path:
    """Into ``folder``, from which a script there imports it; one that is too old registers no hooks."""
    optimizer = OPTIMIZER + (REGISTER if registers else "")
    modules = {
        "__init__.py": TORCH, "profiler.py": PROFILER, "optim/__init__.py": "from torch.optim.optimizer import *\n",
        "optim/optimizer.py": optimizer,
    }  # fmt: skip
    for name, text in modules.items():
        path = folder / "torch" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder
