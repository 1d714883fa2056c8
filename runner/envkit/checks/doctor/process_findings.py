"""Checks of a process that trains, from its evidence."""

from __future__ import annotations

from envkit.advice.expected import expected
from envkit.advice.reasons import REASONS, Reason
from envkit.advice.symptoms import Symptoms
from envkit.checks.doctor.finding import Finder, Finding, Situation, found
from envkit.checks.evidence import openmp_runtimes, variables
from envkit.checks.evidence import threads as threads_of
from envkit.checks.finding_messages import (
    CountedByMachine,
    CountedByMask,
    CountedByMkl,
    FewerThreads,
    FewProcessesLeft,
    Gain,
    LittleGain,
    NearMemoryLimit,
    NoMend,
    NumaCallsRefused,
    OneCpuForAllThreads,
    OneCpuForChildren,
    RemoteMemory,
    SeveralRuntimes,
    ThreadsShareCores,
    TooManyRunnable,
    TooManyThreads,
    UnmeasuredGain,
)
from envkit.checks.process_messages import IgnoredValue
from envkit.checks.profile_messages import HugePagesRefused, StartElsewhere
from envkit.messages import Message, from_json
from envkit.profiles import catalogue, needs, profile
from envkit.profiles.environment import capabilities
from envkit.profiles.setting_messages import BadValue
from envkit.profiles.values import SettingsError, refusal
from envkit.worker.evidence.cpu_use import chosen_by
from envkit.worker.host import expand_cpu_list
from envkit.worker.libraries import preloadable

# Threads that Python, PyTorch and a few DataLoader workers start besides OpenMP's.
SPARE_PROCESSES = 64
REMOTE_SHARE = 0.2
MEMORY_SHARE = 0.9
RUNNABLE_PER_CPU = 1.25
# The OpenMP runtimes complain of such a variable that is set and empty.
OPENMP = "OMP_"


def too_many_threads(situation: Situation) -> Finding | None:
    threads, usable = situation.number("openmp", "max_threads"), situation.facts["usable_cpus"]
    if threads is None or threads <= usable:
        return None
    facts = situation.facts
    chosen = situation.variable("OMP_NUM_THREADS") is not None
    return found(
        "too-many-threads",
        TooManyThreads(threads, usable, facts["affinity_cpus"], facts["cpu_quota"] or None, _default(situation)),
        severity="stop" if chosen else "warn",
    )


def _default(situation: Situation) -> Message | None:
    """Return PyTorch's rule for the number of threads; None if something else set the number."""
    threads, version = situation.number("torch", "num_threads"), str(situation.seen("torch", "version"))
    present = situation.seen("variables", "sensitive")
    if threads is None or not isinstance(present, dict) or chosen_by(present)[0] is not None:
        return None
    rule, of_mask = situation.seen("torch", "threads_rule"), threads <= situation.facts["affinity_cpus"]
    if rule == "machine":
        is_default = threads == situation.seen("cpu_use", "machine_cores")
        return CountedByMachine(version) if is_default else None
    if rule == "mkl" and of_mask:
        return CountedByMkl()
    return CountedByMask(version) if rule == "affinity" and of_mask else None


def too_many_runnable(situation: Situation) -> Finding | None:
    runnable, usable = situation.number("threads", "runnable"), situation.facts["usable_cpus"]
    if runnable is None or runnable <= usable * RUNNABLE_PER_CPU:
        return None
    return found("too-many-threads", TooManyRunnable(runnable, usable), FewerThreads(usable))


def siblings_as_cores(situation: Situation) -> Finding | None:
    threads, facts = situation.number("openmp", "max_threads"), situation.facts
    if threads is None or not facts["smt"] or not facts["physical_cores"] < threads <= facts["usable_cpus"]:
        return None
    return found("smt-siblings", ThreadsShareCores(threads, facts["physical_cores"]))


def two_runtimes(situation: Situation) -> Finding | None:
    mapped = openmp_runtimes(situation.evidence or {})
    preloaded = situation.environment.preload if situation.environment else {}
    # a preloaded one takes libgomp's place, which is loaded too, and nothing calls it
    if len(mapped) < 2 or preloadable("openmp").keys() & preloaded.keys():
        return None
    return found("two-openmp-runtimes", SeveralRuntimes(tuple(mapped)))


def pinned_to_one_core(situation: Situation) -> Finding | None:
    masks, threads = threads_of(situation.evidence or {}).get("masks") or {}, situation.number("openmp", "max_threads")
    usable = situation.facts["usable_cpus"]
    if sum(masks.values()) < 2 or len(masks) != 1 or usable < 2 or (threads is not None and threads < 2):
        return None
    cpus = expand_cpu_list(next(iter(masks)))
    if len(cpus) != 1:
        return None
    return found("pinned-to-one-core", OneCpuForAllThreads(sum(masks.values()), cpus.pop(), usable))


def children_on_one_core(situation: Situation) -> Finding | None:
    outside, usable = situation.number("children", "on_one_cpu") or 0, situation.facts["usable_cpus"]
    # of those that are seen from outside, a single one may be bound on purpose
    children = max(outside if outside > 1 else 0, situation.number("cpu_use", "forked_bound") or 0)
    if not children or usable < 2:
        return None
    return found("workers-on-one-core", OneCpuForChildren(children, usable))


def few_processes(situation: Situation) -> Finding | None:
    free = situation.number("limits", "processes_free")
    if free is None or free >= SPARE_PROCESSES + situation.facts["usable_cpus"]:
        return None
    limit = situation.seen("limits", "processes_limit")
    return found("process-limit", FewProcessesLeft(free, from_json(limit) if isinstance(limit, dict) else None))


def remote_memory(situation: Situation) -> Finding | None:
    share = situation.seen("memory", "remote_share")
    if not isinstance(share, int | float) or share < REMOTE_SHARE:
        return None
    if situation.seen("memory", "numa_policy") != "default":
        return None
    return found("remote-memory", RemoteMemory(share))


def numa_calls_refused(situation: Situation) -> Finding | None:
    wanted = situation.environment is not None and capabilities(situation.environment.prefix)
    if situation.seen("limits", "numa_calls") is not False or not (wanted or situation.numa_nodes > 1):
        return None
    return found("numa-calls-refused", NumaCallsRefused())


def near_memory_limit(situation: Situation) -> Finding | None:
    limit, peak = situation.number("limits", "memory_bytes"), situation.number("limits", "peak_memory_bytes")
    if limit is None or peak is None or peak < MEMORY_SHARE * limit:
        return None
    return found("near-memory-limit", NearMemoryLimit(peak, limit))


def ignored_values(situation: Situation) -> list[Finding]:
    """Return each variable of the process whose value its library can't read, but for those that the profile sets."""
    evidence = situation.evidence or {}
    present = (variables(evidence).get("sensitive") or {}) if "variables" in evidence else {}
    return [
        found("ignored-value", IgnoredValue(name, *problem))
        for name, value in present.items()
        if value not in (situation.variable(name), f"${name}")  # a record has a kept value's name in its place
        and (problem := _unreadable(name, value)) is not None
    ]


def _unreadable(name: str, value: str) -> tuple[Message, str] | None:
    """Return why no library takes the value of a known variable, and what it takes instead; None if one may take it."""
    variable = catalogue.load().get(name)
    if variable is None or not (value or name.startswith(OPENMP)):  # else an empty value is as good as no variable
        return None
    try:
        refused = refusal(variable.kind, value)
    except SettingsError as error:
        return error.message, variable.default
    return None if refused is None else (BadValue(value, refused), variable.default)


def huge_pages_refused(situation: Situation) -> Finding | None:
    expected = situation.environment.expect if situation.environment else {}
    if "memory.huge_pages" not in expected or situation.seen("memory", "thp_refused") is not True:
        return None
    return found("huge-pages-off", HugePagesRefused(), StartElsewhere())


def of_reasons(situation: Situation) -> list[Finding]:
    """Return why a training takes longer than it must, each with the profile that is expected to gain the most."""
    symptoms = situation.symptoms
    if symptoms is None:
        return []
    return [
        Finding(reason.code, "note", reason.seen(symptoms), reason.why, _mend(reason, symptoms, situation))
        for reason in REASONS
        if reason.holds(symptoms)
    ]


def _mend(reason: Reason, symptoms: Symptoms, situation: Situation) -> Message:
    """Return the advice to measure the profile that is expected to gain the most, as far as that is known."""
    facts = needs.from_facts(situation.facts)
    mends = [name for name in reason.mends if needs.unmet(profile.load(name).needs, facts) is None]
    first = next(iter(expected(symptoms, mends)), None)
    if first is None:
        return UnmeasuredGain(mends[0]) if mends else NoMend()
    kind = Gain if first.is_worth_trying else LittleGain
    return kind(first.profile, first.gain, first.low, first.high)


PROCESS_CHECKS: tuple[Finder, ...] = (
    too_many_threads, too_many_runnable, pinned_to_one_core, children_on_one_core, two_runtimes, few_processes,
    remote_memory, numa_calls_refused, near_memory_limit, siblings_as_cores, huge_pages_refused,
)  # fmt: skip
