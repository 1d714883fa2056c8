"""Messages of ``envkit advise``. Gains are speedups over the baseline, times in seconds."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

FROM_OUTSIDE = "from outside"

# --- the answer ---


class TryFirst(Advice):
    template = "Try {profile} first: {gain:.2f}x baseline speed is expected ({low:.2f} to {high:.2f})"

    profile: str
    gain: float
    low: float
    high: float


class TryFirstUnmeasured(Advice):
    """No profile with a number is expected to gain; ``profile`` removes an observed cause, and has no number."""

    template = "Try {profile} first: it removes an observed cause, and its gain is not known"

    profile: str


class TryFirstDisturbed(Advice):
    """The watching was disturbed."""

    template = "Try {profile} first; how much it gains is not told, because the watching was disturbed"

    profile: str


class NothingKnownDisturbed(Caution):
    template = "The watching was disturbed, so it is not known whether a profile makes this training faster"


class FixFirst(Caution):
    """A finding costs more than any profile gains."""

    template = "Fix this first: {seen}"

    seen: Message


class NothingHelps(Note):
    template = "No profile is expected to make this training faster"


class NothingKnown(Note):
    template = "No profile that was measured on other trainings applies to this machine"


# --- what was seen ---


class WatchedDisturbed(Caution):
    """Why only the order of profiles is of use: ``causes`` disturbed the watching."""

    template = "while it was watched, {causes:list}: only the order of profiles is of use; watch again without that"

    causes: tuple[Message, ...]


class OtherMachine(Caution):
    """Gains were measured on ``machine``, and this is another one."""

    template = "gains were measured on {machine}: on this machine only the order of profiles is of use"

    machine: str


class Watched(Note):
    """A training was observed. ``place`` is FROM_OUTSIDE where its steps are unknown."""

    template = "[{steps} steps of {step_ms:,.1f} ms in ]{seconds:duration}[ {place}]; {busy:.1f} of {cpus} CPUs busy"

    seconds: float
    busy: float
    cpus: int
    steps: int | None = None
    step_ms: float | None = None
    place: str | None = None


class Operators(Note):
    """Where the time goes."""

    template = "{shares:list}"

    shares: tuple[Message, ...]


class Share(Note):
    template = "{share:.0%} {operators}"

    share: float
    operators: str


class ReasonHolds(Note):
    """Why the training takes longer than it must; ``reason`` is a code."""

    template = "{seen}: {why} ({reason})"

    seen: Message
    why: Message
    reason: str


class FindingWithFix(Caution):
    """A finding of ``envkit doctor``."""

    template = "{seen}: {why}; {fix}"

    seen: Message
    why: Message
    fix: Message


class FewThreads(Note):
    template = (
        "it computes with {threads} of {cpus} possible threads; "
        "if the script sets that number (torch.set_num_threads), no profile changes it"
    )

    threads: int
    cpus: int


class CallersThreads(Caution):
    """The caller's environment has a variable (NAME=VALUE) that envkit does not pass on."""

    template = (
        "your environment has {variable}, which envkit does not pass on: without envkit the training computes with "
        "{threads:d} of {cpus:d} possible threads"
    )

    variable: str
    threads: int
    cpus: int


class Idle(Note):
    """A process that does not use its CPUs, for a reason that is not known."""

    template = (
        "it keeps {busy:.1f} CPUs busy and otherwise waits for input or for one thread; no profile changes "
        "that, but more DataLoader workers may"
    )

    busy: float


class IdleFromOutside(Idle):
    """The same, where its number of threads is not seen."""

    template = (
        "it keeps {busy:.1f} CPUs busy: it waits for input, or has fewer threads than CPUs; envkit advise -- COMMAND "
        "tells which"
    )


class IdleBesideHelpers(Note):
    """A process that does not use its CPUs because it waits for other processes."""

    template = (
        "it keeps {busy:.1f} CPUs busy and its helper processes {helpers:.1f}: it waits for input or for "
        "other ranks; no profile changes that, but DataLoader settings may (envkit loader-grid)"
    )

    busy: float
    helpers: float


# --- where the ranges come from, and what to do next ---


class Ranges(Note):
    template = "from {trainings:count training} that were measured on {machine}"

    trainings: int
    machine: str


class NoRaceFromOutside(Note):
    """A process that runs already was watched."""

    template = "a running process can't be started again; start the training: {command}"

    command: str


class Keep(Advice):
    """``command`` writes ``file``, which later runs are checked against."""

    template = "a file to commit, {file}: {command}"

    file: str
    command: str


class LibrariesMissing(Note):
    """Profiles that preload libraries which the machine lacks."""

    template = "{profiles:list}; not installed: {libraries:list}"

    profiles: tuple[str, ...]
    libraries: tuple[str, ...]


class InstallLibraries(Advice):
    """The command that installs all of them, but for ``excepted`` ones."""

    template = "{command}[ (not {excepted:list})]"

    command: str
    excepted: tuple[str, ...] | None = None


class Unmeasured(Note):
    template = "{profiles:list}: not measured on these trainings"

    profiles: tuple[str, ...]
