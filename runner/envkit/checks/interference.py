"""Which samples were disturbed from outside, by a rule that looks at no timing of theirs.

Only that counts which a profile can hardly cause itself: CPU time that others used, CPU time that the hypervisor
withheld, swapping, and throttling of hot cores. Involuntary switches, page faults, pressure, a quota's throttling and
the CPUs' frequency are in each sample as well, but threads that spin or wide vector instructions cause them too: a
profile must not get rid of its slow samples by what it does itself. So they count for nothing.

The limits were set from such counters alone. In the 26 samples, of 4 to 6 s, of one run on a virtual machine with 2
CPUs and no other work known of, "others" (the kernel's own threads, interrupts and errors of the count) used -0.023 to
0.034 CPUs, and 0 to 0.004 CPUs were stolen.
"""

from __future__ import annotations

from envkit.checks.messages import CpusStolen, OthersUsed, Swapped, TooHot
from envkit.engines.measurement import Usage
from envkit.messages import Message

# CPU time of others, on the CPUs that the worker may run on: as a share of these, and at least in CPUs. An OpenMP team
# waits for its slowest thread, so that 0.05 of one CPU can cost 5%; on many CPUs the kernel's own threads take as much.
OTHERS_SHARE, OTHERS_CPUS = 0.025, 0.05
# The same of stolen time, which has no such background: five times what was seen on a machine at rest.
STEAL_SHARE, STEAL_CPUS = 0.01, 0.02
# A page that was swapped out takes from 0.1 ms on to come back: so much takes 25 ms or more of a sample's seconds.
SWAPPED_BYTES = 2**20
# A CPU's counters go up in ticks (proc_stat(5)): at either end of what is counted they may be wrong by one. In 750
# samples of 0.27 s on 2 CPUs "others" were below -4.1 ticks in 1%, which is error alone; so this can't be smaller.
TICK_S = 0.01


# What disturbs a sample: other programs used its CPUs, the hypervisor withheld CPU time, the machine swapped, or cores
# were too hot.
OTHERS, STOLEN, SWAPPED, HOT = KINDS = ("other-programs", "stolen", "swapping", "hot-cores")


def disturbances(usage: Usage, seconds: float) -> dict[str, float]:
    """Return what disturbed a sample of so many ``seconds``: the amount of each of KINDS that exceeds its limit.

    The amounts are CPUs for OTHERS and STOLEN, bytes for SWAPPED and events for HOT. A kind that the sample does not
    tell, because the kernel does not count it, is left out. CPUs are those in the timed steps, or those in the
    whole training if only these exceed the limit. In half a second the error of the count hides 0.1 of a CPU.
    """
    cpus = usage.worker_cpus
    amounts: dict[str, float] = {}
    if cpus:
        for stretch_s, others, stolen in ((seconds, *_taken(usage, seconds)), _in_training(usage)):
            uncertain = 2 * TICK_S * cpus / stretch_s
            if others is not None and others > max(OTHERS_SHARE * cpus, OTHERS_CPUS) + uncertain:
                amounts.setdefault(OTHERS, others)
            if stolen is not None and stolen > max(STEAL_SHARE * cpus, STEAL_CPUS) + uncertain:
                amounts.setdefault(STOLEN, stolen)
    swapped = usage.machine_swapped_bytes
    if swapped is not None and swapped > SWAPPED_BYTES:
        amounts[SWAPPED] = swapped
    if usage.throttle_events:
        amounts[HOT] = usage.throttle_events
    return amounts


def _taken(usage: Usage, seconds: float) -> tuple[float | None, float | None]:
    """Return the CPUs that others used, and those that were stolen, in the timed steps; None if unknown."""
    stolen = usage.worker_cpus_steal_s
    return others_cpus(usage, seconds), None if stolen is None else stolen / seconds


def _in_training(usage: Usage) -> tuple[float, float | None, float | None]:
    """Return the seconds of a training, and the CPUs that others used and that were stolen in them; None if unknown."""
    seconds, busy, stolen, used = usage.training_s, usage.training_busy_s, usage.training_steal_s, usage.training_used_s
    if not seconds:
        return 1.0, None, None
    others = None if busy is None or used is None else max(0.0, busy - used - (usage.engine_s or 0.0)) / seconds
    return seconds, others, None if stolen is None else stolen / seconds


def interference_in(usage: Usage, seconds: float) -> list[Message]:
    """Return why a sample counts as disturbed; nothing for one that does not."""
    return [_message(kind, amount) for kind, amount in disturbances(usage, seconds).items()]


def _message(kind: str, amount: float) -> Message:
    if kind == HOT:
        return TooHot(round(amount))
    return {OTHERS: OthersUsed, STOLEN: CpusStolen, SWAPPED: Swapped}[kind](amount)


def others_cpus(usage: Usage, seconds: float) -> float | None:
    """Return what other programs used on average of the CPUs that the worker may run on.

    A process that the engine runs for the worker (``engine_s``, of a user's own command in Apptainer, whose image
    squashfuse reads for it) does not count as another program. A little of it is of before and after: up to so much of
    others is overlooked.
    """
    busy = usage.worker_cpus_busy_s
    used = usage.user_s + usage.system_s + (usage.engine_s or 0.0)
    return None if busy is None else max(0.0, (busy - used) / seconds)
