"""Several trainings at once on this machine, which know nothing of each other, each on CPUs of its own.

They are placed as ranks are (``envkit.worker.ranks``), and begin their timed steps together. Where one has taken its
own it goes on until all have, so that each step which counts was taken beside others.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from envkit.worker import distributed, ranks, scratch
from envkit.worker.child import adopt, kill_children
from envkit.worker.errors import WorkerError
from envkit.worker.measure.meeting import Meeting, documents
from envkit.worker.readings import text_of
from envkit.worker.request import Instance, Instances, WorkerRequest

# Of each in its sample.
OF_EACH = ("instance", "node", "cpus", "evidence")


def launch(asked: Instances) -> int:
    """Train in several processes at once, print one sample of all of them, and return the exit status.

    When one fails the others are ended.
    """
    with scratch.folder("envkit-instances") as folder:
        adopt()
        try:
            failed = _first_to_fail(_started(asked, folder))
        finally:
            kill_children()
        if failed is not None:
            instance, status = failed
            log = text_of(folder / str(instance) / ranks.LOG)[-ranks.LOG_CHARACTERS :]
            print(log or f"instance {instance} printed nothing", file=sys.stderr, flush=True)
            return ranks.problem(ranks.lost(f"instance {instance}", status))
        ranks.pass_on(folder)
        try:
            sample = merged(documents(folder))
        except WorkerError as error:
            return ranks.problem(error.message)
    print(json.dumps(sample), flush=True)
    return 1 if "problem" in sample else 0


def _started(asked: Instances, folder: Path) -> list[subprocess.Popen[bytes]]:
    """The processes, which are killed when this one ends, and whose logs are in a folder for each."""
    environment = ranks.variables(os.environ, ranks.own_settings())
    request = WorkerRequest(Instance(asked.number, asked.training, str(folder)), parent=os.getpid())
    command = [*ranks.WORKER, ranks.written(request, folder)]
    processes = []
    for instance, cpus in enumerate(ranks.places(asked.number, os.sched_getaffinity(0))):
        (folder / str(instance)).mkdir()
        with (folder / str(instance) / ranks.LOG).open("wb") as log:
            # before it becomes another program: an allocator that is preloaded counts CPUs before Python runs
            take = partial(os.sched_setaffinity, 0, cpus)
            processes.append(
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    preexec_fn=take,  # noqa: PLW1509 - there is one thread only
                )
            )  # fmt: skip
    return processes


def _first_to_fail(processes: Sequence[subprocess.Popen[bytes]]) -> tuple[int, int] | None:
    """The number and the status of the first that fails, as soon as it does; None where all end well."""
    running = {process.pid: (instance, process) for instance, process in enumerate(processes)}
    while running:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        if ended.si_pid not in running:  # one that another left behind
            os.waitpid(ended.si_pid, 0)
            continue
        instance, process = running.pop(ended.si_pid)
        if status := process.wait():
            return instance, status
    return None


def as_instance(train: Callable[..., dict[str, Any]], parties: int, folder: Path) -> None:
    """Run ``train`` as one of so many ``parties`` that meet in ``folder``, and leave its sample there.

    ``train`` takes ``cpus``, those that this process may run on, and a ``meeting``.
    """
    cpus = os.sched_getaffinity(0)  # before torch, whose OpenMP runtime may bind this thread to fewer
    meeting = Meeting(folder, parties)
    meeting.leave({**train(cpus=cpus, meeting=meeting), "node": platform.node(), "cpus": sorted(cpus)})


def merged(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One sample of those of all instances; or what the ``problem`` is.

    A step of it is as many steps as there are instances, whoever took them. Losses are means over instances, and what
    they used is of all the steps that they took.
    """
    each = sorted(found, key=lambda one: list(one["cpus"]))
    steps = min(one["own_steps"] for one in each)
    own = [
        {**one, "rank": number, "final_weights": "",  # which each has learnt by itself
         "step_s": one["step_s"][:steps], "losses": one["losses"][:steps]}
        for number, one in enumerate(each)
    ]  # fmt: skip
    together = distributed.merged(own)
    if "problem" in together:
        return together
    numbered = [{**one, "instance": number} for number, one in enumerate(each)]
    return {
        **{name: value for name, value in together.items() if name not in ("ranks", "own_steps")},
        "step_s": steps_of_all([one["step_s"] for one in each], steps),
        "images_per_step": len(each) * together["images_per_step"],
        "usage_steps": sum(len(one["step_s"]) for one in each) / len(each),
        "instances": [{name: one[name] for name in OF_EACH} for one in numbered],
    }


def steps_of_all(step_s: Sequence[Sequence[float]], steps: int) -> list[float]:
    """How long it took until as many steps were taken as there are instances, and so on for ``steps`` times as many.

    ``step_s`` has the steps of each, in seconds, from a beginning that they have in common; each took as many,
    so that all of them trained for as long as that took. Of a step under way the part that is over counts.
    """
    import numpy

    ends = [[0.0, *accumulate(one)] for one in step_s]
    times = sorted({end for one in ends for end in one})
    taken = numpy.array([numpy.interp(times, one, range(len(one))) for one in ends]).sum(axis=0)
    of_all: Any = numpy.interp(numpy.arange(steps + 1) * len(ends), taken, times)
    return [round(float(second), 7) for second in numpy.diff(of_all)]
