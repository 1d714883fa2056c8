"""Checks of a process that trains, from its evidence."""

from __future__ import annotations

from envkit.advice.expected import expected
from envkit.advice.reasons import REASONS, Reason
from envkit.advice.symptoms import Symptoms
from envkit.checks.doctor.finding import Finder, Finding, Situation
from envkit.messages import from_json
from envkit.profiles import needs, profile
from envkit.profiles.environment import capabilities
from envkit.rendering import text
from envkit.worker.host import expand_cpu_list

# Threads that Python, PyTorch and a few DataLoader workers start besides OpenMP's.
SPARE_PROCESSES = 64
REMOTE_SHARE = 0.2
MEMORY_SHARE = 0.9
RUNNABLE_PER_CPU = 1.25
# Runtimes that take libgomp's place where they are preloaded: it is loaded too, and nothing calls it.
REPLACING = {"intel-openmp", "llvm-openmp"}


def too_many_threads(situation: Situation) -> Finding | None:
    threads, usable = situation.seen("openmp", "max_threads"), situation.facts["usable_cpus"]
    if threads is None or threads <= usable:
        return None
    facts = situation.facts
    quota = f" and a quota of {facts['cpu_quota']:g}" if facts["cpu_quota"] else ""
    chosen = situation.variable("OMP_NUM_THREADS") is not None
    return Finding(
        "too-many-threads", "stop" if chosen else "warn",
        f"{threads} OpenMP threads for {usable} usable CPUs (a mask of {facts['affinity_cpus']}{quota})",
        "threads that spin take the cores from those they wait for: training can get tens of times slower",
        "OMP_NUM_THREADS: ${usable_cpus}",
    )  # fmt: skip


def too_many_runnable(situation: Situation) -> Finding | None:
    runnable, usable = situation.seen("threads", "runnable"), situation.facts["usable_cpus"]
    if runnable is None or runnable <= usable * RUNNABLE_PER_CPU:
        return None
    return Finding(
        "too-many-threads", "stop",
        f"typically {runnable} threads want to run at a time, on {usable} usable CPUs",
        "threads that spin take the cores from those they wait for: training can get tens of times slower",
        f"OMP_NUM_THREADS={usable}, and torch.set_num_threads no higher; fewer DataLoader workers",
    )  # fmt: skip


def siblings_as_cores(situation: Situation) -> Finding | None:
    threads, facts = situation.seen("openmp", "max_threads"), situation.facts
    if threads is None or not facts["smt"] or not facts["physical_cores"] < threads <= facts["usable_cpus"]:
        return None
    return Finding(
        "smt-siblings", "note",
        f"{threads} OpenMP threads on {facts['physical_cores']} cores: two hardware threads share one core's units",
        "matrix kernels keep a core's units busy alone; a second thread on it mostly gets in the way",
        "OMP_NUM_THREADS: ${physical_cores}",
    )  # fmt: skip


def two_runtimes(situation: Situation) -> Finding | None:
    mapped = situation.seen("openmp", "mapped") or []
    preloaded = situation.environment.preload if situation.environment else {}
    if len(mapped) < 2 or REPLACING & preloaded.keys():
        return None
    return Finding(
        "two-openmp-runtimes", "warn",
        f"{len(mapped)} OpenMP runtimes are loaded: {', '.join(mapped)}",
        "each has threads of its own, and they fight for the same cores",
        "preload: [intel-openmp] makes all of them one",
    )  # fmt: skip


def pinned_to_one_core(situation: Situation) -> Finding | None:
    masks, threads = situation.seen("threads", "masks") or {}, situation.seen("openmp", "max_threads")
    usable = situation.facts["usable_cpus"]
    if sum(masks.values()) < 2 or len(masks) != 1 or usable < 2 or (threads is not None and threads < 2):
        return None
    cpus = expand_cpu_list(next(iter(masks)))
    if len(cpus) != 1:
        return None
    return Finding(
        "pinned-to-one-core", "stop",
        f"all {sum(masks.values())} threads may run on CPU {cpus.pop()} only, and {usable} are usable",
        "they take turns on one core while the others idle",
        "remove the binding (KMP_AFFINITY, OMP_PROC_BIND, GOMP_CPU_AFFINITY, taskset), or bind to distinct cores",
    )  # fmt: skip


def children_on_one_core(situation: Situation) -> Finding | None:
    children, usable = situation.seen("children", "on_one_cpu"), situation.facts["usable_cpus"]
    if children is None or children < 2 or usable < 2:
        return None
    return Finding(
        "workers-on-one-core", "stop",
        f"{children} processes that it started may run on one and the same CPU only, and {usable} are usable",
        "DataLoader workers inherit the mask of the thread that starts them, and then take turns on one core",
        "start them before OpenMP binds its threads, or give them back their CPUs in worker_init_fn",
    )  # fmt: skip


def few_processes(situation: Situation) -> Finding | None:
    free = situation.seen("limits", "processes_free")
    if free is None or free >= SPARE_PROCESSES + situation.facts["usable_cpus"]:
        return None
    limit = situation.seen("limits", "processes_limit")
    return Finding(
        "process-limit", "warn",
        f"only {free} more processes or threads may be started{f': {text(from_json(limit))}' if limit else ''}",
        "OpenMP and DataLoader workers fail to start, or use fewer threads in silence",
        "ulimit -u unlimited; docker run --pids-limit -1",
    )  # fmt: skip


def remote_memory(situation: Situation) -> Finding | None:
    share = situation.seen("memory", "remote_share")
    if not share or share < REMOTE_SHARE or situation.seen("memory", "numa_policy") != "default":
        return None
    return Finding(
        "remote-memory", "warn",
        f"{share:.0%} of the memory is on NUMA nodes where none of its threads may run",
        "each access goes through another socket, at about half the bandwidth",
        "prefix: [numactl, --localalloc] together with a binding to one node",
    )  # fmt: skip


def numa_calls_refused(situation: Situation) -> Finding | None:
    wanted = situation.environment is not None and capabilities(situation.environment.prefix)
    if situation.seen("limits", "numa_calls") is not False or not (wanted or situation.numa_nodes > 1):
        return None
    return Finding(
        "numa-calls-refused", "warn",
        "the kernel refuses NUMA system calls here (a container's seccomp filter)",
        "numactl and allocators can't place memory",
        "docker run --cap-add SYS_NICE",
    )  # fmt: skip


def near_memory_limit(situation: Situation) -> Finding | None:
    limit, peak = situation.seen("limits", "memory_bytes"), situation.seen("limits", "peak_memory_bytes")
    if limit is None or peak is None or peak < MEMORY_SHARE * limit:
        return None
    return Finding(
        "near-memory-limit", "warn",
        f"the process took {peak / 2**20:,.0f} MiB of the {limit / 2**20:,.0f} MiB it may have",
        "near the limit the kernel takes back page cache on every fault, and beyond it kills the process",
        "raise --memory, or free memory",
    )  # fmt: skip


def of_reasons(situation: Situation) -> list[Finding]:
    """Why a training takes longer than it must, each with the profile that is expected to gain the most."""
    symptoms = situation.symptoms
    if symptoms is None:
        return []
    return [
        Finding(reason.code, "note", reason.seen(symptoms), reason.why, _mend(reason, symptoms, situation))
        for reason in REASONS
        if reason.holds(symptoms)
    ]


def _mend(reason: Reason, symptoms: Symptoms, situation: Situation) -> str:
    facts = needs.known(situation.facts)
    mends = [name for name in reason.mends if needs.unmet(profile.load(name).needs, facts) is None]
    first = next(iter(expected(symptoms, mends)), None)
    if first is None:
        return f"envkit bench {mends[0]}" if mends else "no shipped profile that mends it applies to this machine"
    gain = f"{first.gain:.2f} times as fast is expected ({first.low:.2f} to {first.high:.2f})"
    if not first.is_worth_trying:
        return f"no profile is known to help here; the best of them is {first.profile}, with which {gain}"
    return f"envkit bench {first.profile}: {gain}"


PROCESS_CHECKS: tuple[Finder, ...] = (
    too_many_threads, too_many_runnable, pinned_to_one_core, children_on_one_core, two_runtimes, few_processes,
    remote_memory, numa_calls_refused, near_memory_limit, siblings_as_cores,
)  # fmt: skip
