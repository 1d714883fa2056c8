"""Messages of doctor's findings: observations, and for each finding's code its reason and its fix."""

from __future__ import annotations

from envkit.checks.messages import Reason, Remedy
from envkit.messages import Advice, Caution, Message, Note

# Why a finding matters, by its code.
WHY = {
    "aten-above-cpu": "PyTorch does not ask the CPU then, and the process ends at the first instruction that it lacks",
    "cores-differ": "threads may be bound to CPUs that share a core, while other cores idle",
    "cores-unmeasured": "what a virtual machine calls two cores may be one, so the number of cores may be wrong",
    "few-cpus": "all its threads and DataLoader workers take turns there, whatever the profile",
    "fixed-addresses": "every sample has the same memory layout: a lucky layout looks like an effect of the profile",
    "fpmath-above-cpu": "oneDNN keeps computing in float32, as without the variable",
    "governor": "cores stay at their lowest frequency whatever the load",
    "gpu-missing": "training would run on fewer GPUs than were named, or find none",
    "hidden-topology": "two of its CPUs may be one core: a binding to cores can put two threads on one of them",
    "huge-pages-off": "memory comes in pages of 4 KiB, each with its own page fault",
    "ignored-value": "a library ignores a value that it can't read, with one line of warning or none",
    "interface-missing": "NCCL ends with an error when ranks begin to connect",
    "isa-above-cpu": "oneDNN takes the best that the CPU has, as it would without the variable",
    "isa-already-the-best": "oneDNN uses AVX2 and its 256-bit registers here, as it would without the variable",
    "memory-ran-out": "the kernel ends the largest process of a group that reached its limit, and so the training",
    "mixed-versions": "a program that finds the other one runs with other code than what was measured",
    "near-memory-limit": (
        "near the limit the kernel takes back page cache on every fault, and beyond it kills the process"
    ),
    "no-gpu": "nothing reads them, so the profile measures nothing",
    "not-in-effect": "the profile would be measured without it",
    "not-verified": "it may or may not be in effect",
    "numa-calls-refused": "numactl and allocators can't place memory",
    "numa-node-missing": "numactl refuses to start training",
    "of-x86-alone": "nothing reads that here",
    "other-load": "an OpenMP team waits for its slowest thread, so one busy core slows all of them",
    "pinned-to-one-core": "they take turns on one core while the others idle",
    "process-limit": "OpenMP and DataLoader workers fail to start, or use fewer threads without a message",
    "ranks-only": "only ranks that communicate show it, and this trial had one process",
    "remote-memory": "each access goes through another socket, at about half the bandwidth",
    "small-shm": "DataLoader workers pass batches through it, and die with a bus error when it is full",
    "smt-siblings": (
        "one thread with matrix kernels keeps a core's units busy; a second thread there mostly gets in the way"
    ),
    "steal": "other virtual machines share these cores; timings drift with their load",
    "store-bypass-off": "each load waits for the addresses of earlier stores, in all of the program",
    "swapping": "a page that was swapped out takes milliseconds to come back",
    "too-few-threads": "the other cores idle, unless other processes use them",
    "too-many-threads": (
        "threads that spin take the cores from those they wait for: training can get tens of times slower"
    ),
    "two-openmp-runtimes": "each has its own threads, and they compete for the same cores",
    "workers-on-one-core": (
        "DataLoader workers inherit the mask of the thread that starts them, and then take turns on one core"
    ),
    "would-be-ignored": "the profile would be measured without it",
}

# What to do about it, by the finding's code: an instruction, a command or a line of a profile.
FIX = {
    "aten-above-cpu": "remove it: PyTorch then takes the best that the CPU has",
    "cores-differ": "compare with a profile that does not bind threads",
    "cores-unmeasured": "repeat it while nothing else runs: envkit doctor --measure-cores",
    "fixed-addresses": "sudo sysctl kernel.randomize_va_space=2",
    "fpmath-above-cpu": "remove it, or choose a mode that the CPU computes in",
    "governor": "sudo cpupower frequency-set -g performance",
    "gpu-missing": "name GPUs that nvidia-smi lists",
    "hidden-topology": "measure the cores: envkit doctor --measure-cores; or compare with a profile that does not bind",
    "huge-pages-off": "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    "ignored-value": "set it to a value that the library reads, or remove it",
    "interface-missing": "name one of these, or its beginning",
    "isa-above-cpu": "remove it, or name an instruction set below the CPU's best",
    "isa-already-the-best": "remove it",
    "memory-ran-out": "raise that limit (--memory, --mem, MemoryMax), or use fewer loader workers or smaller batches",
    "mixed-versions": "remove one of them",
    "near-memory-limit": "raise --memory, or free memory",
    "no-gpu": "choose a profile for CPUs",
    "not-in-effect": "see envkit show, and what the profile preloads",
    "not-verified": "remove the cause, or measure anyway: the report says so too",
    "numa-calls-refused": "docker run --cap-add SYS_NICE",
    "of-x86-alone": "remove it, or choose a profile for this architecture",
    "other-load": "find them with: top -o %CPU; stop them, or measure when the machine is idle",
    "pinned-to-one-core": (
        "remove the binding (KMP_AFFINITY, OMP_PROC_BIND, GOMP_CPU_AFFINITY, taskset), or bind to distinct cores"
    ),
    "process-limit": "ulimit -u unlimited; docker run --pids-limit -1",
    "remote-memory": "prefix: [numactl, --localalloc] together with a binding to one node",
    "small-shm": "docker run --shm-size 2g",
    "smt-siblings": "OMP_NUM_THREADS: ${physical_cores}",
    "steal": "use a machine with dedicated CPUs, or a longer --budget",
    "store-bypass-off": (
        "a kernel from 5.16 on, or its parameter spec_store_bypass_disable=prctl;"
        " for code that you trust, docker run --security-opt seccomp=unconfined"
    ),
    "swapping": "free memory, or: sudo swapoff -a",
    "too-many-threads": "OMP_NUM_THREADS: ${usable_cpus}",
    "two-openmp-runtimes": "preload: [intel-openmp] makes all of them one",
    "worker-failed": "see the message",
    "workers-on-one-core": (
        "start them before OpenMP binds its threads, or give them back their CPUs in worker_init_fn"
    ),
}


def reason(code: str) -> Reason:
    """Return why the finding of this code matters."""
    return Reason(WHY[code])


def remedy(code: str) -> Remedy:
    """Return the change that removes the finding of this code."""
    return Remedy(FIX[code])


class ThreadsAsked(Message):
    """A profile asks for more OpenMP threads than there are CPUs."""

    template = "OMP_NUM_THREADS={threads:d} for {usable:count usable CPU}"

    threads: int
    usable: int


class TooManyThreads(Caution):
    """A process has more OpenMP threads than CPUs."""

    template = (
        "{threads:count OpenMP thread} for {usable:count usable CPU} (a mask of {mask:d}[ and a quota of {quota:g}])"
        "[; {default}]"
    )

    threads: int
    usable: int
    mask: int  # CPUs
    quota: float | None = None  # CPUs
    default: Message | None = None  # the rule by which PyTorch counted, where no variable sets the number


class CountedByMkl(Note):
    """PyTorch took the number from MKL."""

    template = "no variable sets the number, and PyTorch takes MKL's, which counts no quota"


class CountedByMachine(Note):
    """PyTorch counted the machine's cores."""

    template = "no variable sets the number, and torch {version} takes the machine's cores; torch 2.14 counts the mask"

    version: str


class CountedByMask(Note):
    """PyTorch counted the CPUs of the affinity mask."""

    template = "no variable sets the number, and torch {version} takes the CPUs of the mask, and counts no quota"

    version: str


class TooManyRunnable(Message):
    """More threads want to run than there are CPUs."""

    template = "typically {threads} threads want to run at a time, on {usable:count usable CPU}"

    threads: int
    usable: int


class FewerThreads(Advice):
    """Start no more threads than there are CPUs."""

    template = "OMP_NUM_THREADS={usable:d}, and torch.set_num_threads no higher; fewer DataLoader workers"

    usable: int


class ThreadsShareCores(Note):
    """There are more OpenMP threads than cores."""

    template = "{threads} OpenMP threads on {cores:count core}: two hardware threads share one core's units"

    threads: int
    cores: int


class SeveralRuntimes(Caution):
    """A process has loaded several OpenMP runtimes."""

    template = "several OpenMP runtimes are loaded: {runtimes:list}"

    runtimes: tuple[str, ...]


class OneCpuForAllThreads(Message):
    """All threads are bound to one CPU."""

    template = "all {threads} threads may run on CPU {cpu:d} only, although {usable:count CPU} are usable"

    threads: int
    cpu: int
    usable: int


class OneCpuForChildren(Message):
    """Processes that a training started are bound to one CPU."""

    template = (
        "{children:count process|processes} that it started may run on one CPU only, although {usable} are usable"
    )

    children: int
    usable: int


class FewProcessesLeft(Caution):
    """A limit leaves no room for more processes or threads. ``limit`` names it and the present use."""

    template = "only {free} more processes or threads may be started[: {limit}]"

    free: int
    limit: Message | None = None


class RemoteMemory(Caution):
    """Memory is on NUMA nodes where no thread runs."""

    template = "{share:percent} of the memory is on NUMA nodes where none of its threads may run"

    share: float


class NumaCallsRefused(Caution):
    """A container forbids NUMA system calls."""

    template = "the kernel refuses NUMA system calls here (a container's seccomp filter)"


class NearMemoryLimit(Caution):
    """A training has used almost all memory that it may have."""

    template = "the training took {peak_bytes:size} of the {limit_bytes:size} that it may have"

    peak_bytes: int
    limit_bytes: int


class Gain(Advice):
    """A profile removes the cause of a slow training. ``gain`` is a speedup, ``low`` to ``high`` its range."""

    template = "envkit bench {profile}: {gain:.2f}x baseline speed is expected ({low:.2f} to {high:.2f})"

    profile: str
    gain: float
    low: float
    high: float


class LittleGain(Advice):
    """No profile removes the cause of a slow training; the best is ``profile``."""

    template = (
        "no profile is expected to help much here; the best is {profile}, with an expected {gain:.2f}x "
        "baseline speed ({low:.2f} to {high:.2f})"
    )

    profile: str
    gain: float
    low: float
    high: float


class UnmeasuredGain(Advice):
    """A profile removes the cause of a slow training, and nobody measured by how much."""

    template = "envkit bench {profile}"

    profile: str


class NoMend(Advice):
    """No shipped profile that removes the cause of a slow training applies here."""

    template = "no shipped profile that fixes it applies to this machine"


class WorkerFailed(Message):
    """The trial of a profile failed. ``cause`` is the limit that stopped it, if that is known."""

    template = "a worker {failure}[; {cause}]"

    failure: Message
    cause: Message | None = None


class Unmet(Message):
    """A trial observed something else than the profile expects."""

    template = "{key}: expected {expected}, seen {seen}"

    key: str
    expected: Message
    seen: Message


class RanksOnly(Note):
    """A trial of one process can't observe what several ranks show."""

    template = "not checked: {keys:list}"

    keys: tuple[str, ...]


class MeasureRanks(Advice):
    """Measure the profile with two ranks."""

    template = "{command:command}"

    command: tuple[str, ...]


class Loaded(Caution):
    """Other processes use CPUs."""

    template = "other processes use {busy_cpus:.1f} of {online:count CPU}"

    busy_cpus: float
    online: int


class Stolen(Caution):
    """The hypervisor withholds CPU time."""

    template = "the hypervisor withholds {stolen_cpus:.2f} of {online:count CPU} (steal)"

    stolen_cpus: float
    online: int


class Swaps(Caution):
    """The machine swaps."""

    template = "the machine swaps {bytes_per_s:size}/s"

    bytes_per_s: float


class PowersaveGovernor(Caution):
    """The CPU frequency governor is powersave."""

    template = "the CPU frequency governor is powersave"


class SmallShm(Note):
    """Shared memory is small."""

    template = "/dev/shm has {size_bytes:size}"

    size_bytes: int


class StoreBypassOff(Caution):
    """The kernel holds back speculative loads (SSBD) of this process. ``state`` is what its status says."""

    template = "Speculation_Store_Bypass of this process is '{state}'"

    state: str


class FixedAddresses(Caution):
    """Address space randomisation is off. ``aslr`` says for whom."""

    template = "address space randomisation is {aslr}"

    aslr: str


class StartWithoutSetarch(Advice):
    """Start the training so that its addresses are random."""

    template = "start it without setarch -R or a debugger"
