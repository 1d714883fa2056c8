"""Messages of ``envkit advise``. Gains are speedups over the baseline, times in seconds."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ADVICE = Severity.NOTE, Severity.WARNING, Severity.ADVICE


# --- the answer, and how it was proved ---


class TryFirst(Message):
    code = "report.try-first"
    severity = ADVICE
    template = "Try {profile} first: {gain:.2f}x baseline speed is expected ({low:.2f} to {high:.2f})"

    profile: str
    gain: float
    low: float
    high: float


class FixFirst(Message):
    """A finding costs more than any profile gains."""

    code = "report.fix-first"
    severity = WARNING
    template = "Fix this first: {seen}"

    seen: Message


class NothingHelps(Message):
    code = "report.nothing-helps"
    severity = NOTE
    template = "No profile is expected to make this training faster"


class NothingKnown(Message):
    code = "report.nothing-known"
    severity = NOTE
    template = "No profile that was measured on other trainings applies to this machine"


class Range(Message):
    code = "report.range"
    severity = NOTE
    template = "{ratio:.2f}x ({low:.2f} to {high:.2f})"

    ratio: float
    low: float
    high: float


class Unproved(Message):
    """No speedup was found, or none above 1."""

    code = "report.unproved"
    severity = WARNING
    template = "NOT PROVED  {profile}: [{measured} measured, ]{expected} expected"

    profile: str
    expected: Message
    measured: Message | None = None


class UnprovedUnderLoad(Message):
    code = "report.unproved-under-load"
    severity = WARNING
    template = "NOT PROVED  {profile}: {measured} {load}, {expected} expected; measure again without that load"

    profile: str
    expected: Message
    measured: Message
    load: Message


class Proved(Message):
    code = "report.proved"
    severity = NOTE
    template = "PROVED  {profile}: {measured} measured, {expected} expected"

    profile: str
    expected: Message
    measured: Message


class MoreThanExpected(Proved):
    code = "report.more-than-expected"
    template = "FASTER THAN EXPECTED  {profile}: {measured} measured, {expected} expected"


class LessThanExpected(Proved):
    code = "report.less-than-expected"
    template = "FASTER, BUT LESS THAN EXPECTED  {profile}: {measured} measured, {expected} expected"


# --- what was seen ---


class Watched(Message):
    code = "report.watched"
    severity = NOTE
    template = "{steps} steps of {step_ms:,.1f} ms in {seconds:duration}; {busy:.1f} of {cpus} CPUs busy"

    steps: int
    step_ms: float
    seconds: float
    busy: float
    cpus: int


class WatchedFromOutside(Message):
    code = "report.watched-from-outside"
    severity = NOTE
    template = "{seconds:duration} from outside; {busy:.1f} of {cpus} CPUs busy"

    seconds: float
    busy: float
    cpus: int


class Operators(Message):
    """Where the time goes."""

    code = "report.operators"
    severity = NOTE
    template = "{shares:list}"

    shares: tuple[Message, ...]


class Share(Message):
    code = "report.share"
    severity = NOTE
    template = "{share:.0%} {operators}"

    share: float
    operators: str


class ReasonHolds(Message):
    """Why the training takes longer than it must; ``reason`` is a code."""

    code = "report.reason-holds"
    severity = NOTE
    template = "{seen}: {why} ({reason})"

    seen: Message
    why: Message
    reason: str


class FindingWithFix(Message):
    """A finding of ``envkit doctor``."""

    code = "report.finding-with-fix"
    severity = WARNING
    template = "{seen}: {why}; {fix}"

    seen: Message
    why: Message
    fix: Message


class FewThreads(Message):
    code = "report.few-threads"
    severity = NOTE
    template = (
        "it computes with {threads} of {cpus} possible threads; "
        "if the script sets that number (torch.set_num_threads), no profile changes it"
    )

    threads: int
    cpus: int


class CallersThreads(Message):
    """The caller's environment has a variable (NAME=VALUE) that envkit does not pass on."""

    code = "report.callers-threads"
    severity = WARNING
    template = (
        "your environment has {variable}, which envkit does not pass on: without envkit the training computes with "
        "{threads:d} of {cpus:d} possible threads"
    )

    variable: str
    threads: int
    cpus: int


class Idle(Message):
    """A process that does not use its CPUs, for a reason that is not known."""

    code = "report.idle"
    severity = NOTE
    template = (
        "it keeps {busy:.1f} CPUs busy and otherwise waits for input or for one thread; no profile changes "
        "that, but more DataLoader workers may"
    )

    busy: float


class IdleFromOutside(Idle):
    """The same, where its number of threads is not seen."""

    code = "report.idle-from-outside"
    template = (
        "it keeps {busy:.1f} CPUs busy: it waits for input, or has fewer threads than CPUs; envkit advise -- COMMAND "
        "tells which"
    )


class IdleBesideHelpers(Message):
    """A process that does not use its CPUs because it waits for other processes."""

    code = "report.idle-beside-helpers"
    severity = NOTE
    template = (
        "it keeps {busy:.1f} CPUs busy and its helper processes {helpers:.1f}: it waits for input or for "
        "other ranks; no profile changes that, but DataLoader settings may (envkit loader-grid)"
    )

    busy: float
    helpers: float


# --- where the ranges come from, and what to do next ---


class Ranges(Message):
    code = "report.ranges"
    severity = NOTE
    template = "from {trainings:count training} that were measured on {machine}"

    trainings: int
    machine: str


class RangesOfOther(Ranges):
    code = "report.ranges-of-other"
    template = (
        "from {trainings:count training} that were measured on {machine}; on another machine, such as this "
        "one, only the ranking is useful"
    )


class Unmeasured(Message):
    code = "report.unmeasured"
    severity = NOTE
    template = "{profiles:list}: not measured on these trainings; envkit matrix measures it here"

    profiles: tuple[str, ...]


class ProveIt(Message):
    code = "report.prove-it"
    severity = ADVICE
    template = "prove it: {command}"

    command: str
