"""Run a workload once: warm up, time each step, then (and only then) look at what it ran with."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Collection
from functools import partial

from envkit.worker import accelerator, distributed
from envkit.worker.accelerator import Clock
from envkit.worker.cgroup import throttled_seconds
from envkit.worker.evidence import collect
from envkit.worker.measure import helpers, machine_load
from envkit.worker.measure.epochs import Stretch, train_epochs
from envkit.worker.measure.meeting import Meeting
from envkit.worker.measure.quality_target import QualityTarget
from envkit.worker.measure.tester import Tester
from envkit.worker.modes import CPU, USUAL, Options
from envkit.worker.sample import Epoch, Sample, SampleDetails
from envkit.worker.workloads import Training, all_reduce, get, loader_epochs


def counters(cpus: Collection[int]) -> dict[str, float | None]:
    """Return what is counted since this process began, or since the machine did; times in seconds.

    ``machine_`` is the whole machine, ``worker_cpus_`` the CPUs given; None is what the kernel does not tell. What
    children took that run or have ended, such as a compiler, is this process's.
    """
    helped = helpers.used()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    machine = machine_load.read()
    busy_s, steal_s = _of_cpus(machine, cpus)
    return {
        "machine_busy_s": machine.busy_s,
        "machine_steal_s": machine.steal_s,
        "machine_swapped_bytes": machine.swapped_bytes,
        "worker_cpus_busy_s": busy_s,
        "worker_cpus_steal_s": steal_s,
        **{
            name: sum(getattr(of_process, field) for of_process in usage) + helped[name]
            for name, field in helpers.COUNTED.items()
        },
        "throttled_s": throttled_seconds() or 0.0,
        "throttle_events": machine_load.throttle_events(cpus),
        "cpu_pressure_s": machine.pressure_s,
    }


def _of_cpus(machine: machine_load.Counters, cpus: Collection[int]) -> tuple[float | None, float | None]:
    """Return the seconds that programs had of these ``cpus``, and the stolen ones; None where one CPU is unknown."""
    times = [machine.cpus[cpu] for cpu in cpus if cpu in machine.cpus]
    if len(times) != len(cpus):
        return None, None
    return sum(cpu.programs_s for cpu in times), sum(cpu.steal_s for cpu in times)


def cpu_times(cpus: Collection[int]) -> dict[str, float | None]:
    """Return the CPU time so far, in seconds: that on ``cpus`` (None if unknown), and this process's with its children.

    ``counters`` has the same for the timed steps. In half a second the clock's ticks hide a tenth of a CPU, so marks of
    interference also need what a longer time shows (``envkit.checks.interference``).
    """
    helped = helpers.used()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    busy_s, steal_s = _of_cpus(machine_load.read(), cpus)
    return {
        "training_s": time.perf_counter(),
        "training_busy_s": busy_s,
        "training_steal_s": steal_s,
        "training_used_s": sum(of.ru_utime + of.ru_stime for of in usage) + helped["user_s"] + helped["system_s"],
    }


def increase(before: dict[str, float | None], after: dict[str, float | None]) -> dict[str, float | None]:
    """How much each counter grew; None where it is not known before or after."""
    return {
        name: None if value is None or (earlier := before[name]) is None else round(value - earlier, 6)
        for name, value in after.items()
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
    training: Training,
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
        frequency_mhz=machine_load.frequency_mhz(cpus),
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        gpu=watch.between(read_before, read_after, ended - began) if watch else None,
        clock_s=ended - began,
    )


def _details(
    training: Training, options: Options, profiled: bool, timed_steps: Stretch, curve: list[Epoch]
) -> SampleDetails:
    """Return what only some samples have. A GPU's share of idle time, and communication, take more steps."""
    details: SampleDetails = {"curve": curve} if curve else {}
    if isinstance(training, all_reduce.Exchange):
        details["exchange"] = training.exchanged(len(timed_steps.step_s))
    if timed_steps.gpu is not None:
        # read right around the timed steps, whose usage has the little that this takes; and in some more steps
        details["gpu"] = {**timed_steps.gpu, **accelerator.profiled(training.step)}
    if distributed.size() > 1:
        details["backend"] = distributed.backend_of(options.device)
        if profiled:
            details["communication"] = distributed.communication(training.step, details["backend"])
        details["final_weights"] = training.network.weights()
    if isinstance(training, loader_epochs.Training):
        details["loader"] = training.worker_report()
    return details


def _test(training: Training, tester: Tester | None) -> dict[str, object] | None:
    """Return what was learnt between two epochs, without a trace in those that follow where a ``tester`` finds it."""
    with helpers.paused():
        return tester.quality(training) if tester else training.quality()


def _timed_steps(
    training: Training,
    steps: int,
    epochs: int,
    test: bool,
    until: QualityTarget | None,
    stretch: Callable[[int], Stretch],
    tester: Tester | None,
) -> tuple[Stretch, dict[str, object] | None, list[Epoch]]:
    """Take all timed steps; ``stretch`` takes so many. Return them, the figures of the last test, and all epochs."""
    if not epochs:
        timed_steps = stretch(steps)
        return timed_steps, training.quality() if test else None, []  # a test may need more memory than the steps
    epoch, test_now = partial(stretch, training.steps_per_epoch), partial(_test, training, tester)
    timed_steps, curve = train_epochs(epochs, epoch, test_now, until)
    return timed_steps, curve[-1]["quality"], curve


def _usage(
    timed_steps: Stretch, of_training: dict[str, float | None], cpus: Collection[int]
) -> dict[str, float | None]:
    """Return the resources that the timed steps and their processes used, and the CPU time ``of_training``.

    ``worker_cpus`` is how many CPUs it began with, ``frequency_mhz`` their speed after the timed steps.
    """
    now = {"worker_cpus": len(cpus), "frequency_mhz": timed_steps.frequency_mhz}
    return {**timed_steps.usage, **of_training, **now}


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
) -> Sample:
    """Train and return one sample: step times in seconds, losses, resource use, digests and evidence.

    It takes ``steps`` timed steps, and more of them where ``seconds`` have not passed by then; with ``epochs`` above 0
    that many whole epochs instead, or fewer where ``until`` is reached (``train_epochs``). After each epoch, or with
    ``test`` after the steps, it tests the quality. ``cpus`` are those that the worker may run on, where they had to be
    asked for earlier. One of several ranks takes more steps, if ``profiled``, for its ``communication``. One that
    trains at the same time as others meets them at the ``meeting``.
    """
    if cpus is None:
        cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer
    prepare = get(workload).prepare
    alone = options.device == CPU and distributed.size() == 1
    # tests between epochs, other ranks and compilers that still run would look like other programs
    is_uncounted = epochs or options.compile or meeting is not None or distributed.size() > 1
    before = {} if is_uncounted else cpu_times(cpus)
    tester = Tester(partial(prepare, data, options)) if epochs and alone else None
    training = prepare(data, options)
    if tester:
        tester.wait()
    _, warmup_times = timed(training.step, warmup_steps, accelerator.clock(options.device))
    if meeting is not None:
        meeting.begin()
    watch = accelerator.watch(options.device)
    stretch = partial(
        _stretch, training, device=options.device, cpus=cpus, watch=watch, seconds=seconds, meeting=meeting
    )
    timed_steps, quality, curve = _timed_steps(training, steps, epochs, test, until, stretch, tester)
    if tester:
        tester.end()
    of_training = increase(before, cpu_times(cpus)) if before else {}
    details = _details(training, options, profiled, timed_steps, curve)
    return {
        **details,
        "seconds": timed_steps.seconds,
        "step_s": timed_steps.step_s,
        "warmup_step_s": step_seconds(warmup_times),
        "losses": timed_steps.losses,
        "images_per_step": training.images_per_step,
        "unit": training.unit,
        "quality": quality,
        "modes": training.network.modes(),
        "usage": _usage(timed_steps, of_training, cpus),
        "peak_memory_bytes": timed_steps.peak_memory_bytes,
        "digests": training.digests,
        "evidence": collect(),
    }
