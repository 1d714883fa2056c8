"""Messages of a report's last lines: what to use, what to do next, what to fix."""

from __future__ import annotations

from envkit.messages import Advice

INTERVAL = "a confidence interval"

# The command that measures a profile.
BENCH = "envkit bench PROFILE"
# What commands are for.
MEASURE_YOURS = "the best profile depends on the training; measure yours"
MEASURE = "measure a profile"
TRY_ADVISE = "or try what fits your training"
RACE = "measure which is the fastest"
CONFIRM = "compare the fastest with the baseline"
CONFIRMED = "its comparison with the baseline"
FIND_REST = "for the rest"
FIND_CAUSE = "find the cause"


class Use(Advice):
    """``command`` runs a training under the profile that is faster."""

    template = "{command}"

    profile: str
    command: str


class UseAfterCheck(Use):
    """The same of a profile that may change results, or overrides a vendor's check."""

    template = "if your results stay right with it: {command}"


class UseFaster(Advice):
    """A profile that is faster still, with a caution on results or a vendor's support."""

    template = "or, with its cautions ({speedup:ratio}x): {command}"

    speedup: float
    command: str


class UseCopy(Advice):
    """The same of a profile that was measured on ranks it does not ask for."""

    template = "copy {profile} to {copy}.yaml with 'name: {copy}' and 'ranks: {ranks}', then: {command}"

    profile: str
    copy: str
    ranks: int
    command: str


class UseInstances(Advice):
    template = "{instances} at once, each on its own CPUs: {command}"

    instances: int
    command: str


class UseFound(Advice):
    """After a search: ``shipped`` is what it wrote, unless ``tuned`` was faster than that."""

    template = "{shipped}, unless {tuned} is faster still: {command}"

    shipped: str
    tuned: str
    command: str


class UseEverywhere(Advice):
    template = "{profile} is faster on every workload: {command}"

    profile: str
    command: str


class RunFor(Advice):
    """A command, and what it is for: one of those above."""

    template = "{purpose}: {command}"

    purpose: str
    command: str


class OneAfterTheOther(Advice):
    template = "train one after another under {profile}: {instances} at once have lower throughput"

    profile: str
    instances: int


class KeepReference(Advice):
    template = "keep {reference}: it is faster here"

    reference: str


class StayWithin(Advice):
    """``arm`` needs so much memory that it is above the limit of the run. The limit ``enough`` would allow it."""

    template = (
        "keep {reference}: {arm} needs {share:percent} more memory, and --max-memory allows {limit:exact_percent}; "
        "to allow that: --max-memory {enough:exact_percent}"
    )

    reference: str
    arm: str
    share: float
    limit: float
    enough: float


class ChooseFreely(Advice):
    template = "keep {reference}: {arm} is neither faster nor slower here"

    reference: str
    arm: str


class MeasureLonger(Advice):
    """To find a difference of so many ``percent`` with a chance of 80%."""

    template = (
        "[{arm}: ]to detect a {percent:g}% difference, repeat the command with {option} (about {minutes:count minute})"
    )

    percent: float
    blocks: int
    minutes: int
    option: str
    arm: str | None = None


class FindOutWhy(Advice):
    """``command`` shows why a profile is not in effect; or ``arm`` is left out."""

    template = "[measure without {arm}, or ]find out why: {command}"

    command: str
    arm: str | None = None


class Preload(Advice):
    """``variables`` are read by ``library`` alone."""

    template = "add 'preload: [[{library}]]' to the profile; envkit show {profile} has an example"

    library: str
    profile: str
    variables: tuple[str, ...]


class KeepThreads(Advice):
    """A user's training changed the number of its threads, which the profile had set."""

    template = "remove torch.set_num_threads (or the like) from your training"


class ExplainLosses(Advice):
    template = "do not use {arm} yet; find what changes its losses[: {command}]"

    arm: str
    command: str | None = None


class QuieterMachine(Advice):
    """So many blocks were disturbed, by ``programs`` where these are known."""

    template = "measure again without this load[; stop {programs}]"

    blocks: int
    of: int
    programs: tuple[str, ...] = ()


class CalibrateAgain(Advice):
    template = "measure again: {rate:.0%} of runs find a difference by chance; if it stays, something favours a side"

    rate: float


class TrainLonger(Advice):
    template = "raise --epochs above {epochs}, or choose a nearer target with --until"

    epochs: int


class WithoutSettings(Advice):
    template = "measure a copy of {profile} without the settings that cost time: {settings}"

    profile: str
    settings: tuple[str, ...]


class GoOn(Advice):
    """A run that has too few blocks for a verdict."""

    template = "about {seconds:duration} more: {command}"

    fewest: int
    blocks: int
    seconds: float
    command: str


class Resume(Advice):
    template = "{command}"

    command: str


class MendWorker(Advice):
    """A worker failed. ``arm`` is the arm to leave out, where others remain to be measured."""

    template = "[measure without {arm}, or ]fix the problem that the worker printed, then: {command}"

    command: str
    arm: str | None = None


class BeginAgain(Advice):
    """All profiles of a race failed, which leaves nothing to go on with."""

    template = "fix the problem that the workers printed, then begin again: {command}"

    command: str


class FindMemory(Advice):
    """SIGKILL ended a worker, which most often means too little memory."""

    template = "check whether memory ran out (dmesg), then: {command}"

    command: str


class FreeMemory(Advice):
    """The kernel ended a worker because memory ran out. ``group`` reached its limit; ``retaining`` is the profile."""

    template = (
        "use fewer loader workers or smaller batches[, or raise the limit of {group} (--memory, --mem, MemoryMax)]"
        "[; or measure without {retaining}, which keeps freed memory]; then: {command}"
    )

    command: str
    group: str | None = None
    retaining: str | None = None


class RaiseLimit(Advice):
    """A longer run. ``gain`` is what it brings, where the report does not say so."""

    template = "[for {gain} ]repeat the command with {option}"

    option: str
    gain: str | None = None
