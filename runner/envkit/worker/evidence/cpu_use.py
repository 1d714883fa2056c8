"""The threads with which a process computes, the CPUs that each may run on, and who decided that."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from envkit.messages import Message
from envkit.worker import ancestry, initial_environment
from envkit.worker.cgroup import cpu_quota
from envkit.worker.evidence import openmp
from envkit.worker.evidence.symbols import function
from envkit.worker.host import core_of, expand_cpu_list
from envkit.worker.messages.cpus import BoundByProgram, SetByCall, SetByProgram, SharedByMkl
from envkit.worker.readings import matching, text_of

# PyTorch takes its number of threads from these, the strongest first: where it is built with MKL it has OpenMP use as
# many threads as MKL (aten/src/ATen/ParallelOpenMP.cpp).
VARIABLES = ("MKL_NUM_THREADS", "MKL_DOMAIN_NUM_THREADS", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT")
HOOKS_FOLDER = ""  # where the evidence hook leaves ``PID.started``
TORCH = "libtorch"  # in the names of the files that a process with PyTorch has mapped
GPU_DEVICES = ("/dev/nvidia", "/dev/kfd")  # what a process that computes on one has mapped
# Libraries that set a number of threads for the processes that they run in or start.
LIBRARIES = ("ray", "lightning", "pytorch_lightning", "accelerate", "joblib", "threadpoolctl", "dask", "mpi4py")
# By these MKL takes a process for a rank, one of several: it then divides the cores even where there is one of them
# (seen in the MKL of PyTorch's builds for x86-64).
MKL_RANKS = ("MKL_MPI_PPN", "I_MPI_NUMBER_OF_MPI_PROCESSES_PER_NODE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
# How many ranks share this machine, in the variables of each: torchrun, Open MPI, MPICH's descendants, PALS, Slurm.
LOCAL_RANKS = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
               "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE")  # fmt: skip


def is_few(units: int, cores: int) -> bool:
    """Return whether so many threads, or processes with one CPU each, leave half of the cores idle, or more."""
    return 2 * units <= cores


class CpuUseDocument(TypedDict, total=False):
    """How a process computes, with the reasons where it uses half of what it could, or less."""

    threads: int | None  # of one operation of PyTorch
    pid: int
    cpus: int  # that the process began with
    cores: int  # of these CPUs, no more than a quota has
    machine_cores: int
    machine_cpus: int
    cpu_s: float  # this process's CPU time so far
    helper_cpu_s: float  # that of its children
    on_gpu: bool  # whether it computes on one
    above: list[int]  # the processes above it
    ranks: int  # that share this machine, as far as a launcher says it
    forked_bound: int  # the command's processes that a bound thread has forked: they have its CPU alone
    threads_by: dict[str, object]  # a message (JSON)
    cpus_by: dict[str, object]  # a message (JSON)


def probe() -> CpuUseDocument:
    """Return how this process computes."""
    pid, begun = os.getpid(), frozenset(openmp.STARTED_ON)
    torch, limit = sys.modules.get("torch"), function("omp_get_thread_limit")
    threads = None if torch is None else torch.get_num_threads()
    if threads is not None and limit is not None:
        threads = min(threads, limit())
    ranks = _local_ranks(initial_environment.started_variables())
    document: CpuUseDocument = {"threads": threads, **_place(pid, begun), "ranks": ranks}
    if HOOKS_FOLDER:
        document["forked_bound"] = sum(text_of(path) == "bound" for path in Path(HOOKS_FOLDER).glob("*.started"))
    if threads is not None and is_few(threads, document["cores"]):
        document["threads_by"] = _threads_by(threads, begun).to_json()
    return document


def of_process(pid: int) -> CpuUseDocument | None:
    """Return the same of another process, as far as it shows from outside; None where it has ended, or has no PyTorch.

    Its number of threads is what the variables that it was started with say, None where they say nothing.
    """
    process = ancestry.process(pid)
    if process is None or not process.cpus or TORCH not in text_of(Path(f"/proc/{pid}/maps")):
        return None
    variables = process.variables or {}
    name, threads = chosen_by(variables)
    document: CpuUseDocument = {"threads": threads, **_place(pid, process.cpus), "ranks": _local_ranks(variables)}
    if name is not None and threads is not None and is_few(threads, document["cores"]):
        by = ancestry.set_by(pid, name, variables[name])
        document["threads_by"] = by.replace(variable=_all(variables, threads)).to_json()
    return document


def chosen_by(variables: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Return which of these variables has the number of threads, and the number; None without one."""
    for name in VARIABLES:
        if (threads := _number(variables.get(name))) is not None:
            return name, threads
    return None, None


def _place(pid: int, cpus: frozenset[int]) -> CpuUseDocument:
    """Return the part that is the same whoever looks at a process, which began on these CPUs."""
    root, quota = Path("/"), cpu_quota()
    online = expand_cpu_list(text_of(root / "sys/devices/system/cpu/online")) or set(cpus)
    cores, machine = ({core_of(cpu, root) for cpu in group} for group in (cpus, online))
    document: CpuUseDocument = {
        "pid": pid,
        "cpus": len(cpus),
        "cores": len(cores) if quota is None else max(1, min(len(cores), int(quota))),
        "machine_cores": len(machine),
        "machine_cpus": len(online),
        "cpu_s": _times(pid)[0],
        "helper_cpu_s": _helpers_s(pid),
        "on_gpu": any(device in text_of(Path(f"/proc/{pid}/maps")) for device in GPU_DEVICES),
        "above": [process.pid for process in ancestry.above(pid)],
    }
    if len(cores) == 1 and is_few(1, len(machine)):
        document["cpus_by"] = ancestry.bound_by(pid, cpus).to_json()
    return document


def _threads_by(threads: int, begun: frozenset[int]) -> Message:
    """Return who had this process compute with so many ``threads``."""
    changed, started = initial_environment.changed(), initial_environment.started_variables()
    libraries = tuple(name for name in LIBRARIES if name in sys.modules)
    now = {name: changed[name]["now"] if name in changed else started.get(name) for name in VARIABLES}
    for name in VARIABLES:
        if name in started and _number(started[name]) == threads:
            by = ancestry.set_by(os.getpid(), name, started[name])
            return by.replace(variable=_all(started, threads))
        for value in (changed.get(name, {}).get(when) for when in ("at_torch", "now")):
            if value is not None and _number(value) == threads:
                return SetByProgram(_all({**now, name: value}, threads), libraries)
    of_mkl = [f"{name}={_number(started[name])}" for name in MKL_RANKS if _number(started.get(name)) is not None]
    if of_mkl:
        return SharedByMkl(of_mkl[0])
    if len(os.sched_getaffinity(0)) < len(begun):
        return BoundByProgram()
    return SetByCall(libraries)


def _all(variables: Mapping[str, str | None], threads: int) -> str:
    """Return the variables that ask for so many threads, as ``NAME=1, NAME=1``, without the rest of their values."""
    return ", ".join(f"{name}={threads}" for name in VARIABLES if _number(variables.get(name)) == threads)


def _number(value: str | None) -> int | None:
    """Return the first number in a value: ``4``, ``4,2`` or ``MKL_DOMAIN_ALL=4``. None for ``1.0`` and ``all``."""
    match = re.search(r"\d+(\.)?", value or "")
    return int(match[0]) if match and not match[1] else None


def _local_ranks(variables: Mapping[str, str]) -> int:
    """Return how many ranks a launcher has started on this machine, 1 where none says it; Slurm has ``2(x3),1``."""
    return max((_number(variables.get(name)) or 1 for name in LOCAL_RANKS), default=1)


def _helpers_s(pid: int) -> float:
    """Return the CPU time of a process's children: of those that run, and of those that it has waited for."""
    tasks = matching(Path(f"/proc/{pid}/task"), "*/children")
    children = [child for path in tasks for child in text_of(path).split()]
    return round(_times(pid)[1] + sum(sum(_times(int(child))) for child in children), 3)


def _times(pid: int) -> tuple[float, float]:
    """Return the CPU time of a process, and that of the children that it has waited for (proc(5), seconds)."""
    fields = text_of(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    own_time, children = (sum(map(int, fields[at : at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13))
    return own_time, children


def threads() -> dict[str, object]:
    """Return the threads of this process: ``masks`` counts them by CPU list.

    ``pinned_cpus`` counts the CPUs that some thread is bound to alone. ``started_on`` are those that the process began
    with, before a runtime bound any thread. A process that began with one CPU, as a rank of several may, has bound no
    thread.
    """
    masks = thread_masks()
    alone = {mask for mask in masks if len(expand_cpu_list(mask)) == 1 and len(openmp.STARTED_ON) > 1}
    return {
        "count": sum(masks.values()),
        "masks": dict(sorted(masks.items())),
        "pinned_cpus": len(alone),
        "started_on": ",".join(map(str, sorted(openmp.STARTED_ON))),
    }


def thread_masks() -> Counter[str]:
    """Count the threads of this process by the list of CPUs that each may run on."""
    masks: Counter[str] = Counter()
    for status in Path("/proc/self/task").glob("*/status"):
        with contextlib.suppress(OSError):  # the thread has just ended
            lines = status.read_text().splitlines()
            masks[next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:"))] += 1
    return masks
