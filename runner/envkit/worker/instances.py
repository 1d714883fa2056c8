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
from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from envkit.worker import distributed, ranks, scratch
from envkit.worker.child import adopt, kill_children
from envkit.worker.errors import WorkerError
from envkit.worker.measure.meeting import Meeting, samples
from envkit.worker.readings import text_of
from envkit.worker.request import Instance, Instances, WorkerRequest
from envkit.worker.sample import Sample

# Of each in its sample.
OF_EACH = ("node", "cpus", "evidence")


def launch(work: Instances) -> int:
    """Train in several processes at once, print one sample of all of them, and return the exit status.

    When one fails the others are ended.
    """
    with scratch.folder("envkit-instances") as folder:
        adopt()
        try:
            failed = _first_to_fail(_started(work, folder))
        finally:
            kill_children()
        if failed is not None:
            instance, status = failed
            log = text_of(folder / str(instance) / ranks.LOG)[-ranks.LOG_CHARACTERS :]
            print(log or f"instance {instance} printed nothing", file=sys.stderr, flush=True)
            return ranks.problem(ranks.lost(f"instance {instance}", status))
        ranks.pass_on(folder)
        try:
            sample = merged(samples(folder))
        except WorkerError as error:
            return ranks.problem(error.message)
    print(json.dumps(sample), flush=True)
    return 1 if "problem" in sample else 0


def _started(work: Instances, folder: Path) -> list[subprocess.Popen[bytes]]:
    """The processes, which are killed when this one ends, and whose logs are in a folder for each."""
    environment = ranks.variables(os.environ, ranks.own_settings())
    request = WorkerRequest(Instance(work.number, work.training, str(folder)), parent=os.getpid())
    command = [*ranks.WORKER, ranks.written(request, folder)]
    processes = []
    for instance, cpus in enumerate(ranks.places(work.number, os.sched_getaffinity(0), work.cores)):
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


class TrainsAtMeeting(Protocol):
    """Trains on some CPUs at the same time as others, and returns the sample."""

    def __call__(self, *, cpus: Collection[int], meeting: Meeting) -> Sample: ...


def as_instance(train: TrainsAtMeeting, parties: int, folder: Path) -> None:
    """Run ``train`` as one of so many ``parties`` that meet in ``folder``, and leave its sample there.

    ``train`` takes ``cpus``, those that this process may run on, and a ``meeting``.
    """
    cpus = os.sched_getaffinity(0)  # before torch, whose OpenMP runtime may bind this thread to fewer
    meeting = Meeting(folder, parties)
    meeting.leave({**train(cpus=cpus, meeting=meeting), "node": platform.node(), "cpus": sorted(cpus)})


def merged(of_instances: Sequence[Sample]) -> dict[str, object]:
    """One sample of the samples ``of_instances``, all instances; or what the ``problem`` is.

    A step of it is as many steps as there are instances, whoever took them. Losses are means over instances, and what
    they used is of all the steps that they took.
    """
    ordered = sorted(of_instances, key=lambda sample: list(sample["cpus"]))
    steps = min(sample["own_steps"] for sample in ordered)
    cut: list[Sample] = [
        {**sample, "rank": number, "final_weights": "",  # which each has learnt by itself
         "step_s": sample["step_s"][:steps], "losses": sample["losses"][:steps]}
        for number, sample in enumerate(ordered)
    ]  # fmt: skip
    together = distributed.merged(cut)
    if "problem" in together:
        return together
    return {
        **{name: value for name, value in together.items() if name not in ("ranks", "own_steps")},
        "step_s": steps_of_all([sample["step_s"] for sample in ordered], steps),
        "images_per_step": len(ordered) * ordered[0]["images_per_step"],
        "usage_steps": sum(len(sample["step_s"]) for sample in ordered) / len(ordered),
        "instances": [
            {"instance": number, **{name: value for name, value in sample.items() if name in OF_EACH}}
            for number, sample in enumerate(ordered)
        ],
    }


def steps_of_all(step_s: Sequence[Sequence[float]], steps: int) -> list[float]:
    """How long it took until as many steps were taken as there are instances, and so on for ``steps`` times as many.

    ``step_s`` has the steps of each, in seconds, from a beginning that they have in common; each took as many,
    so that all of them trained for as long as that took. Of a step under way the part that is over counts.
    """
    import numpy

    ends = [[0.0, *accumulate(seconds)] for seconds in step_s]
    times = sorted({end for of_instance in ends for end in of_instance})
    steps_by = [numpy.interp(times, of_instance, range(len(of_instance))) for of_instance in ends]
    steps_together = numpy.array(steps_by).sum(axis=0)
    ends_of_all = [float(numpy.interp(step * len(ends), steps_together, times)) for step in range(steps + 1)]
    return [round(end - begin, 7) for begin, end in zip(ends_of_all, ends_of_all[1:])]
