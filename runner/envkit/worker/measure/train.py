"""Run a workload once: warm up, time each step, then (and only then) look at what it ran with."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from envkit.worker import accelerator, distributed
from envkit.worker.accelerator import Clock
from envkit.worker.cgroup import throttled_seconds
from envkit.worker.evidence import collect
from envkit.worker.measure import helpers, machine_load, processor
from envkit.worker.measure.epochs import train_epochs
from envkit.worker.measure.meeting import Meeting
from envkit.worker.measure.quality_target import QualityTarget
from envkit.worker.measure.stretch import Stretch
from envkit.worker.measure.tester import Tester
from envkit.worker.modes import CPU, USUAL, Options
from envkit.worker.workloads import get


def counters(cpus: Collection[int]) -> dict[str, float | None]:
    """Return what is counted since this process began, or since the machine did; times in seconds.

    ``machine_`` is the whole machine, ``worker_cpus_`` the CPUs given; None is what the kernel does not tell. What
    children took that run or have ended, such as a compiler, is this process's.
    """
    helped = helpers.used()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    machine = machine_load.read()
    own = [machine.cpus[cpu] for cpu in cpus if cpu in machine.cpus]
    told = len(own) == len(cpus)
    return {
        "machine_busy_s": machine.busy_s,
        "machine_steal_s": machine.steal_s,
        "machine_swapped_bytes": machine.swapped_bytes,
        "worker_cpus_busy_s": sum(cpu.programs_s for cpu in own) if told else None,
        "worker_cpus_steal_s": sum(cpu.steal_s for cpu in own) if told else None,
        **{name: sum(getattr(one, field) for one in usage) + helped[name] for name, field in helpers.COUNTED.items()},
        "throttled_s": throttled_seconds() or 0.0,
        "throttle_events": processor.throttle_events(cpus),
        "cpu_pressure_s": machine.pressure_s,
    }


def increase(before: dict[str, float | None], after: dict[str, float | None]) -> dict[str, float | None]:
    """How much each counter grew; None where it is not known before or after."""
    return {
        name: None if now is None or (then := before[name]) is None else round(now - then, 6)
        for name, now in after.items()
    }


def timed(
    step: Callable[[], float | None], steps: int, clock: Clock, seconds: float = 0.0, meeting: Meeting | None = None
) -> tuple[list[float | None], list[float]]:
    """Take ``steps`` steps; the losses where they are known, and the time at the start and after each step.

    Times are in seconds, by ``clock``. Where ``seconds`` have not passed by then it goes on until they have; and in a
    ``meeting`` until the others have taken their steps, too.
    """
    losses: list[float | None] = []
    until = time.perf_counter() + seconds
    clock.mark()
    while (
        len(losses) < steps
        or (seconds and time.perf_counter() < until)
        or (meeting is not None and meeting.others_train(len(losses)))
    ):
        losses.append(step())
        clock.mark()
    return losses, clock.times()


def step_seconds(times: list[float]) -> list[float]:
    return [round(end - begin, 7) for begin, end in zip(times, times[1:])]


def _stretch(
    training: Any,
    steps: int,
    device: str,
    cpus: Collection[int],
    watch: accelerator.Watch | None,
    seconds: float = 0.0,
    meeting: Meeting | None = None,
) -> Stretch:
    """Take ``steps`` steps, or more of them (``timed``), and count what they use."""
    before = counters(cpus)
    # Between a reading and the steps nothing takes time: a GPU that waits cools, slows down, and still uses energy.
    began, read_before = time.perf_counter(), watch.read() if watch else None
    losses, times = timed(training.step, steps, accelerator.clock(device), seconds, meeting)
    ended, read_after = time.perf_counter(), watch.read() if watch else None
    after = counters(cpus)
    return Stretch(
        losses=losses,
        step_s=step_seconds(times),
        seconds=times[-1] - times[0],
        usage=increase(before, after),
        frequency_mhz=processor.frequency_mhz(cpus),
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        gpu=watch.told(read_before, read_after, ended - began) if watch else None,
        clock_s=ended - began,
    )


def _of_ranks(training: Any, options: Options, profiled: bool) -> dict[str, Any]:
    """Return what one of several ranks tells besides, for which it takes more steps."""
    backend = distributed.backend_of(options.device)
    communication = {"communication": distributed.communication(training.step, backend)} if profiled else {}
    return {"backend": backend, **communication, "final_weights": training.network.weights()}


def _test(training: Any, tester: Tester | None) -> dict[str, Any] | None:
    """Return what was learnt between two epochs, without a trace in those that follow where a ``tester`` finds it."""
    with helpers.paused():
        found: dict[str, Any] | None = tester.quality(training) if tester else training.quality()
    return found


def _taken(
    training: Any,
    steps: int,
    epochs: int,
    test: bool,
    until: QualityTarget | None,
    stretch: Callable[[int], Stretch],
    tester: Tester | None,
) -> tuple[Stretch, dict[str, Any]]:
    """All the timed steps, and what was learnt by them; ``stretch`` takes so many."""
    if not epochs:
        whole = stretch(steps)
        return whole, {"quality": training.quality() if test else None}  # which may need more memory than the steps
    epoch, test_now = partial(stretch, training.steps_per_epoch), partial(_test, training, tester)
    whole, curve = train_epochs(epochs, epoch, test_now, until)
    return whole, {"quality": curve[-1]["quality"], "curve": curve}


def train(
    workload: str,
    data: str,
    warmup_steps: int,
    steps: int,
    epochs: int,
    options: Options = USUAL,
    test: bool = False,
    cpus: Collection[int] | None = None,
    profiled: bool = True,
    seconds: float = 0.0,
    meeting: Meeting | None = None,
    until: QualityTarget | None = None,
) -> dict[str, Any]:
    """Train and return one sample: step times in seconds, losses, resource use, digests and evidence.

    It takes ``steps`` timed steps, and more of them where ``seconds`` have not passed by then; with ``epochs`` above 0
    that many whole epochs instead, or fewer where ``until`` is reached (``train_epochs``). After each epoch, or with
    ``test`` after the steps, it tests the quality. ``cpus`` are those that the worker may run on, where they had to be
    asked for earlier. One of several ranks takes more steps, if ``profiled``, for its ``communication``. One that
    trains at the same time as others meets them at the ``meeting``.
    """
    if cpus is None:
        cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer
    known = get(workload)
    alone = options.device == CPU and distributed.size() == 1
    tester = Tester(partial(known.prepare, data, options)) if epochs and alone else None
    training = known.prepare(data, options)
    if tester:
        tester.wait()
    _, warmup_times = timed(training.step, warmup_steps, accelerator.clock(options.device))
    if meeting is not None:
        meeting.begin()
    watch = accelerator.watch(options.device)
    stretch = partial(
        _stretch, training, device=options.device, cpus=cpus, watch=watch, seconds=seconds, meeting=meeting
    )
    whole, learnt = _taken(training, steps, epochs, test, until, stretch, tester)
    if tester:
        tester.end()
    return {
        **({"exchange": training.exchanged(len(whole.step_s))} if known.exchange else {}),
        # read right around the timed steps, whose usage has the little that this takes; and what some more steps tell
        **({"gpu": {**whole.gpu, **accelerator.profiled(training.step)}} if whole.gpu is not None else {}),
        **(_of_ranks(training, options, profiled) if distributed.size() > 1 else {}),
        **({"loader": training.workers_seen()} if known.epoch_steps else {}),
        "seconds": whole.seconds,
        "step_s": whole.step_s,
        "warmup_step_s": step_seconds(warmup_times),
        "losses": whole.losses,
        "images_per_step": training.images_per_step,
        "unit": training.unit,
        **learnt,
        "modes": training.network.seen(),
        # of the timed steps and what they started beside them; then how many CPUs it began with, and their speed now
        "usage": {**whole.usage, "worker_cpus": len(cpus), "frequency_mhz": whole.frequency_mhz},
        "peak_memory_bytes": whole.peak_memory_bytes,
        "digests": training.digests,
        "evidence": collect(),
    }
