"""Messages about running processes: whether they can be watched, and whether a profile is in effect in them."""

from __future__ import annotations

from envkit.messages import Message, Severity

# --- a process to watch ---


class EndedWhileWatched(Message):
    """A process ended before much could be seen."""

    code = "checks.ended-while-watched"
    template = "--pid {pid:d}: it ended after {seconds:.1f} s of watching: too short to observe much"

    pid: int
    seconds: float


class NoSuchProcess(Message):
    """No process has this number."""

    code = "checks.no-such-process"
    template = "--pid {pid:d}: there is no such process"

    pid: int


class ProcessOfOther(Message):
    """The kernel does not let this user look at a process."""

    code = "checks.process-of-other"
    template = "--pid {pid:d}: it belongs to another user, or can't be read (/proc/{pid:d}/maps): run this as that user"

    pid: int


class ProcessWithoutTorch(Message):
    """A process, and all that it started, have not loaded PyTorch."""

    code = "checks.process-without-torch"
    template = "--pid {pid:d}: has not loaded PyTorch; give the process that trains"

    pid: int


# --- processes of a command, seen from outside ---


class NotMapped(Message):
    """A process has not mapped a library that the profile preloads."""

    code = "checks.not-mapped"
    template = "{library} is not mapped"

    library: str


class OtherValue(Message):
    """A process was started with another value of a variable than the profile sets."""

    code = "checks.other-value"
    template = "{variable} is {seen}, not {wanted}"

    variable: str
    seen: str
    wanted: str


class OfProcess(Message):
    """A problem of one process."""

    code = "checks.of-process"
    template = "{problem} (process {pid:d}: {command})"

    problem: Message
    pid: int
    command: str


class NoProcessSeen(Message):
    """Nothing can be told of a command, because no process of it was seen."""

    code = "checks.no-process-seen"
    severity = Severity.WARNING
    template = "{profile}: can't be checked: no Python process with torch ended in it, and none could be watched"

    profile: str


class HadVariables(Message):
    """All processes had what can be seen from outside. ``preloads`` are the libraries among that."""

    code = "checks.had-variables"
    severity = Severity.NOTE
    template = (
        "{profile}: no Python process with torch ended in it; seen from outside, {good} of "
        "{seen:count process|processes} had its variables[ and its preloads: {preloads:list}] "
        "(nothing more can be seen)"
    )

    profile: str
    good: int
    seen: int
    preloads: tuple[str, ...]


class SomeLacked(Message):
    """Some processes lacked a part of the profile. The one that trained may be among them."""

    code = "checks.some-lacked"
    severity = Severity.WARNING
    template = (
        "{profile}: not known whether it was in effect: no Python process with torch ended in it; seen from outside, "
        "{wrong} of {seen:count process|processes} did not have all of it"
    )

    profile: str
    wrong: int
    seen: int


class NoneHad(Message):
    """No process had all that the profile sets."""

    code = "checks.none-had"
    template = "{profile} was NOT in effect (seen from outside)"

    profile: str


# --- this very process ---


class InEffectHere(Message):
    """A profile is in effect in this process."""

    code = "checks.in-effect-here"
    severity = Severity.NOTE
    template = "{profile} is in effect in this process (checked: [{keys:list}, ]{variables:count variable})"

    profile: str
    keys: tuple[str, ...]
    variables: int


class InEffectAsFarAsVerified(InEffectHere):
    """A profile is in effect in this process, except for what could not be verified."""

    code = "checks.in-effect-as-far-as-verified"
    template = (
        "{profile} is in effect, as far as it could be verified, in this process "
        "(checked: [{keys:list}, ]{variables:count variable})"
    )


class NotInEffectHere(Message):
    """A profile is not in effect in this process."""

    code = "checks.not-in-effect-here"
    template = "{profile} is NOT in effect in this process"

    profile: str


class NotVerified(Message):
    """Nothing tells whether a setting is in effect."""

    code = "checks.not-verified"
    severity = Severity.WARNING
    template = "{key} was not verified: {reason}"

    key: str
    reason: Message


class SetHere(Message):
    """Nothing tells whether variables were set in time."""

    code = "checks.set-here"
    severity = Severity.WARNING
    template = (
        "not verified: {variables:list}; set in this process, and nothing tells whether that was before torch was "
        "imported"
    )

    variables: tuple[str, ...]


class SetBesides(Message):
    """Other variables, as NAME=VALUE, can change the outcome."""

    code = "checks.set-besides"
    severity = Severity.WARNING
    template = "also set, and can change the outcome: {variables:list}"

    variables: tuple[str, ...]


class NoGpuYet(Message):
    """Only a process that has computed on a GPU can show what was expected."""

    code = "checks.no-gpu-yet"
    severity = Severity.ADVICE
    template = "nothing was computed on a GPU in this process yet: do that, and check again"


class SetAfterTorch(Message):
    """Libraries had read variables before they were set."""

    code = "checks.set-after-torch"
    template = (
        "set too late, after torch was imported: {variables:list}; restart the kernel, and set it before anything "
        "imports torch"
    )

    variables: tuple[str, ...]


class SetAfterStart(Message):
    """Variables are read when a process starts, and were set in the process."""

    code = "checks.set-after-start"
    template = (
        "set too late, as it is read when a process starts: {variables:list}; start a kernel that has it "
        "(envkit env {profile} --format jupyter)"
    )

    variables: tuple[str, ...]
    profile: str


# --- with how many threads, and on which CPUs, a process computes ---


class TooFewThreads(Message):
    """A training leaves half of the cores idle, or more. ``ranks`` are its processes on this machine, if several."""

    code = "checks.too-few-threads"
    severity = Severity.WARNING
    template = (
        "it computes with {threads:d} of {cores:d} possible threads[ in each of {ranks:d} processes], because {by}"
    )

    threads: int
    cores: int
    by: Message
    ranks: int | None = None


class FewCpus(Message):
    """A training may use a single core of a machine that has more."""

    code = "checks.few-cpus"
    severity = Severity.WARNING
    template = "{cpus:d} of this machine's {machine:d} CPUs may be used[ by each of {ranks:d} processes], because {by}"

    cpus: int
    machine: int
    by: Message
    ranks: int | None = None


class StartWithMore(Message):
    """Set variables where the program starts, as ``profile`` does; without one that was of no use."""

    code = "checks.start-with-more"
    severity = Severity.ADVICE
    template = (
        "[start it with {cores:d} in {names}, or under a profile that sets it (envkit exec {profile}): Ray, Lightning "
        "and os.environ.setdefault keep that; else ]remove what sets {names}"
    )

    names: tuple[str, ...]
    cores: int
    profile: str | None = None


class StartThreads(Message):
    code = "checks.start-threads"
    severity = Severity.ADVICE
    template = "start it with {name}={cores:d}"

    name: str
    cores: int


class CallWithMore(Message):
    code = "checks.call-with-more"
    severity = Severity.ADVICE
    template = "remove torch.set_num_threads, or call it with {cores:d}: no variable and no profile changes that"

    cores: int


class SetMoreThere(Message):
    """Change variables where they are set: in ``starter`` or on the command line."""

    code = "checks.set-more-there"
    severity = Severity.ADVICE
    template = "remove {names}[ in {starter}], or set {cores:d} there"

    names: tuple[str, ...]
    cores: int
    starter: str | None = None


class TorchrunKeeps(Message):
    code = "checks.torchrun-keeps"
    severity = Severity.ADVICE
    template = "set {name}={cores:d} before torchrun, which keeps it, or raise --nproc-per-node"

    name: str
    cores: int


class AccelerateOption(Message):
    code = "checks.accelerate-option"
    severity = Severity.ADVICE
    template = "accelerate launch --num_cpu_threads_per_process {cores:d}"

    cores: int


class WidenTool(Message):
    code = "checks.widen-tool"
    severity = Severity.ADVICE
    template = "leave out {tool}, or give it more CPUs, such as: taskset -c 0-{last:d}"

    tool: str
    last: int


class WidenSlurm(Message):
    code = "checks.widen-slurm"
    severity = Severity.ADVICE
    template = "srun --cpus-per-task={cpus:d}; for CPUs that the job has already, srun --cpu-bind=none"

    cpus: int


class WidenMpi(Message):
    code = "checks.widen-mpi"
    severity = Severity.ADVICE
    template = "mpirun --bind-to none (Open MPI), -bind-to none (MPICH), or I_MPI_PIN=0 (Intel MPI)"


class WidenGroup(Message):
    code = "checks.widen-group"
    severity = Severity.ADVICE
    template = "raise it: --cpuset-cpus of a container, AllowedCPUs of systemd, or the CPUs of the job"


class WidenProgram(Message):
    """Change the program that binds itself or what it starts. ``variable`` is what has it bind."""

    code = "checks.widen-program"
    severity = Severity.ADVICE
    template = "remove [{variable} in ]what binds it, or give the CPUs back: os.sched_setaffinity(0, range({cpus:d}))"

    cpus: int
    variable: str | None = None


class WidenParent(Message):
    code = "checks.widen-parent"
    severity = Severity.ADVICE
    template = "find what binds {starter}, or start the training with: taskset -c 0-{last:d}"

    starter: str
    last: int


# --- with which variables a process was started ---


class IgnoredValue(Message):
    """A process has a variable whose value no library takes. ``default`` is what they take instead."""

    code = "checks.ignored-value"
    severity = Severity.WARNING
    template = "{variable}: {wrong}; GNU OpenMP and most libraries take their default then: {default}"

    variable: str
    wrong: Message
    default: str
