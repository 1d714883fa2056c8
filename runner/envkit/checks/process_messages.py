"""Messages about running processes: whether they can be watched, and whether a profile is in effect in them."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

# --- a process to watch ---


class EndedWhileWatched(Message):
    """A process ended before much could be seen."""

    template = "--pid {pid:d}: it ended after {seconds:.1f} s of watching: too short to observe much"

    pid: int
    seconds: float


class NoSuchProcess(Message):
    """No process has this number."""

    template = "--pid {pid:d}: there is no such process"

    pid: int


class ProcessOfOther(Message):
    """The kernel does not let this user look at a process."""

    template = "--pid {pid:d}: it belongs to another user, or can't be read (/proc/{pid:d}/maps): run this as that user"

    pid: int


class ProcessWithoutTorch(Message):
    """A process, and all that it started, have not loaded PyTorch."""

    template = "--pid {pid:d}: has not loaded PyTorch; give the process that trains"

    pid: int


# --- processes of a command, seen from outside ---


class NotMapped(Message):
    """A process has not mapped a library that the profile preloads."""

    template = "{library} is not mapped"

    library: str


class OtherValue(Message):
    """A process was started with another value of a variable than the profile sets."""

    template = "{variable} is {seen}, not {wanted}"

    variable: str
    seen: str
    wanted: str


class OfProcess(Message):
    """A problem of one process."""

    template = "{problem} (process {pid:d}: {command})"

    problem: Message
    pid: int
    command: str


class NoProcessSeen(Caution):
    """Nothing can be told of a command, because no process of it was seen."""

    template = "{profile}: can't be checked: no Python process with torch ended in it, and none could be watched"

    profile: str


class HadVariables(Note):
    """All processes had what can be seen from outside. ``preloads`` are the libraries among that."""

    template = (
        "{profile}: no Python process with torch ended in it; seen from outside, {good} of "
        "{seen:count process|processes} had its variables[ and its preloads: {preloads:list}] "
        "(nothing more can be seen)"
    )

    profile: str
    good: int
    seen: int
    preloads: tuple[str, ...]


class SomeLacked(Caution):
    """Some processes lacked a part of the profile. The one that trained may be among them."""

    template = (
        "{profile}: not known whether it was in effect: no Python process with torch ended in it; seen from outside, "
        "{wrong} of {seen:count process|processes} did not have all of it"
    )

    profile: str
    wrong: int
    seen: int


class NoneHad(Message):
    """No process had all that the profile sets."""

    template = "{profile} was NOT in effect (seen from outside)"

    profile: str


# --- this very process ---


class InEffectHere(Note):
    """A profile is in effect in this process."""

    template = "{profile} is in effect in this process (checked: [{keys:list}, ]{variables:count variable})"

    profile: str
    keys: tuple[str, ...]
    variables: int


class InEffectAsFarAsVerified(InEffectHere):
    """A profile is in effect in this process, except for what could not be verified."""

    template = (
        "{profile} is in effect, as far as it could be verified, in this process "
        "(checked: [{keys:list}, ]{variables:count variable})"
    )


class NotInEffectHere(Message):
    """A profile is not in effect in this process."""

    template = "{profile} is NOT in effect in this process"

    profile: str


class NotVerified(Caution):
    """Nothing tells whether a setting is in effect."""

    template = "{key} was not verified: {reason}"

    key: str
    reason: Message


class SetHere(Caution):
    """Nothing tells whether variables were set in time."""

    template = (
        "not verified: {variables:list}; set in this process, and nothing tells whether that was before torch was "
        "imported"
    )

    variables: tuple[str, ...]


class SetBesides(Caution):
    """Other variables, as NAME=VALUE, can change the outcome."""

    template = "also set, and can change the outcome: {variables:list}"

    variables: tuple[str, ...]


class NoGpuYet(Advice):
    """Only a process that has computed on a GPU can show what was expected."""

    template = "nothing was computed on a GPU in this process yet: do that, and check again"


class SetAfterTorch(Message):
    """Libraries had read variables before they were set."""

    template = (
        "set too late, after torch was imported: {variables:list}; restart the kernel, and set it before anything "
        "imports torch"
    )

    variables: tuple[str, ...]


class SetAfterStart(Message):
    """Variables are read when a process starts, and were set in the process."""

    template = (
        "set too late, as it is read when a process starts: {variables:list}; start a kernel that has it "
        "(envkit env {profile} --format jupyter)"
    )

    variables: tuple[str, ...]
    profile: str


# --- with how many threads, and on which CPUs, a process computes ---


class TooFewThreads(Caution):
    """A training leaves half of the cores idle, or more. ``ranks`` are its processes on this machine, if several."""

    template = (
        "it computes with {threads:d} of {cores:d} possible threads[ in each of {ranks:d} processes], because {by}"
    )

    threads: int
    cores: int
    by: Message
    ranks: int | None = None


class FewCpus(Caution):
    """A training may use a single core of a machine that has more."""

    template = "{cpus:d} of this machine's {machine:d} CPUs may be used[ by each of {ranks:d} processes], because {by}"

    cpus: int
    machine: int
    by: Message
    ranks: int | None = None


class StartWithMore(Advice):
    """Set variables where the program starts, as ``profile`` does; without one that was of no use."""

    template = (
        "[start it with {cores:d} in {names}, or under a profile that sets it (envkit exec {profile}): Ray, Lightning "
        "and os.environ.setdefault keep that; else ]remove what sets {names}"
    )

    names: tuple[str, ...]
    cores: int
    profile: str | None = None


class StartThreads(Advice):
    template = "start it with {name}={cores:d}"

    name: str
    cores: int


class CallWithMore(Advice):
    template = "remove torch.set_num_threads, or call it with {cores:d}: no variable and no profile changes that"

    cores: int


class SetMoreThere(Advice):
    """Change variables where they are set: in ``starter`` or on the command line."""

    template = "remove {names}[ in {starter}], or set {cores:d} there"

    names: tuple[str, ...]
    cores: int
    starter: str | None = None


class TorchrunKeeps(Advice):
    template = "set {name}={cores:d} before torchrun, which keeps it, or raise --nproc-per-node"

    name: str
    cores: int


class AccelerateOption(Advice):
    template = "accelerate launch --num_cpu_threads_per_process {cores:d}"

    cores: int


class WidenTool(Advice):
    template = "leave out {tool}, or give it more CPUs, such as: taskset -c 0-{last:d}"

    tool: str
    last: int


class WidenSlurm(Advice):
    template = "srun --cpus-per-task={cpus:d}; for CPUs that the job has already, srun --cpu-bind=none"

    cpus: int


class WidenMpi(Advice):
    template = "mpirun --bind-to none (Open MPI), -bind-to none (MPICH), or I_MPI_PIN=0 (Intel MPI)"


class WidenGroup(Advice):
    template = "raise it: --cpuset-cpus of a container, AllowedCPUs of systemd, or the CPUs of the job"


class WidenProgram(Advice):
    """Change the program that binds itself or what it starts. ``variable`` is what has it bind."""

    template = "remove [{variable} in ]what binds it, or give the CPUs back: os.sched_setaffinity(0, range({cpus:d}))"

    cpus: int
    variable: str | None = None


class WidenParent(Advice):
    template = "find what binds {starter}, or start the training with: taskset -c 0-{last:d}"

    starter: str
    last: int


# --- with which variables a process was started ---


class IgnoredValue(Caution):
    """A process has a variable whose value no library takes. ``default`` is what they take instead."""

    template = "{variable}: {wrong}; GNU OpenMP and most libraries take their default then: {default}"

    variable: str
    wrong: Message
    default: str
