"""Messages of a report's last lines: what to use, what to do next, what to fix."""

from __future__ import annotations

from envkit.messages import Message, Severity

# The command that measures a profile.
BENCH = "envkit bench PROFILE"


class Advice(Message):
    code = "report.advice"
    severity = Severity.ADVICE
    template = "see --details"


class Use(Advice):
    """``command`` runs a training under the profile that is faster."""

    code = "report.use"
    template = "{command}"

    profile: str
    command: str


class UseAfterCheck(Use):
    """The same of a profile that may change results, or overrides a vendor's check."""

    code = "report.use-after-check"
    template = "if your results stay right with it: {command}"


class UseFaster(Advice):
    """A profile that is faster still, with a caution on results or a vendor's support."""

    code = "report.use-faster"
    template = "or, with its cautions ({speedup:ratio}x): {command}"

    speedup: float
    command: str


class UseCopy(Advice):
    """The same of a profile that was measured on ranks it does not ask for."""

    code = "report.use-copy"
    template = "copy {profile} to {copy}.yaml with 'name: {copy}' and 'ranks: {ranks}', then: {command}"

    profile: str
    copy: str
    ranks: int
    command: str


class UseInstances(Advice):
    code = "report.use-instances"
    template = "{instances} at once, each on its own CPUs: {command}"

    instances: int
    command: str


class UseFound(Advice):
    """After a search: ``shipped`` is what it wrote, unless ``tuned`` was faster than that."""

    code = "report.use-found"
    template = "{shipped}, unless {tuned} is faster still: {command}"

    shipped: str
    tuned: str
    command: str


class UseEverywhere(Advice):
    code = "report.use-everywhere"
    template = "{profile} is faster on every workload: {command}"

    profile: str
    command: str


class MeasureOwn(Advice):
    code = "report.measure-own"
    template = "the best profile depends on the training; measure yours: {command}"

    command: str


class MeasureProfile(Advice):
    code = "report.measure-profile"
    template = "measure a profile: {command}"

    command: str = BENCH


class OneAfterTheOther(Advice):
    code = "report.one-after-the-other"
    template = "train one after another under {profile}: {instances} at once have lower throughput"

    profile: str
    instances: int


class KeepReference(Advice):
    code = "report.keep-reference"
    template = "keep {reference}: it is faster here"

    reference: str


class ChooseFreely(Advice):
    code = "report.choose-freely"
    template = "keep {reference}: {arm} is neither faster nor slower here"

    reference: str
    arm: str


class MeasureLonger(Advice):
    """To find a difference of so many ``percent`` with a chance of 80%."""

    code = "report.measure-longer"
    template = (
        "[{arm}: ]to detect a {percent:g}% difference, repeat the command with {option} (about {minutes:count minute})"
    )

    percent: float
    blocks: int
    minutes: int
    option: str
    arm: str | None = None


class TryAdvise(Advice):
    code = "report.try-advise"
    template = "or try what fits your training: {command}"

    command: str


class FindOutWhy(Advice):
    code = "report.find-out-why"
    template = "find out why: {command}"

    command: str


class Preload(Advice):
    """``variables`` are read by ``library`` alone."""

    code = "report.preload"
    template = "add 'preload: [[{library}]]' to the profile; envkit show {profile} has an example"

    library: str
    profile: str
    variables: tuple[str, ...]


class KeepThreads(Advice):
    """A user's training changed the number of its threads, which the profile had set."""

    code = "report.keep-threads"
    template = "remove torch.set_num_threads (or the like) from your training"


class ExplainLosses(Advice):
    code = "report.explain-losses"
    template = "do not use {arm} yet; find what changes its losses[: {command}]"

    arm: str
    command: str | None = None


class QuieterMachine(Advice):
    """So many blocks were disturbed, by ``programs`` where these are known."""

    code = "report.quieter-machine"
    template = "measure again without this load[; stop {programs}]"

    blocks: int
    of: int
    programs: tuple[str, ...] = ()


class CalibrateAgain(Advice):
    code = "report.calibrate-again"
    template = "measure again: {rate:.0%} of runs find a difference by chance; if it stays, something favours a side"

    rate: float


class TrainLonger(Advice):
    code = "report.train-longer"
    template = "raise --epochs above {epochs}, or choose a nearer target with --until"

    epochs: int


class WithoutSettings(Advice):
    code = "report.without-settings"
    template = "measure a copy of {profile} without the settings that cost time: {settings}"

    profile: str
    settings: tuple[str, ...]


class GoOn(Advice):
    """A run that has too few blocks for a verdict."""

    code = "report.go-on"
    template = "about {seconds:duration} more: {command}"

    fewest: int
    blocks: int
    seconds: float
    command: str


class Resume(Advice):
    code = "report.resume"
    template = "{command}"

    command: str


class ResumeWithout(Advice):
    code = "report.resume-without"
    template = "measure without {arm}, or fix the problem that its worker printed, then: {command}"

    arm: str
    command: str


class MeasureWithout(Advice):
    code = "report.measure-without"
    template = "measure without {arm}, or find out why: {command}"

    arm: str
    command: str


class MendWorker(Advice):
    code = "report.mend-worker"
    template = "fix the problem that the worker printed, then: {command}"

    command: str


class FindMemory(Advice):
    """SIGKILL ended a worker, which most often means too little memory."""

    code = "report.find-memory"
    template = "check whether memory ran out (dmesg), then: {command}"

    command: str


class FreeMemory(Advice):
    """The kernel ended a worker because memory ran out. ``group`` reached its limit; ``retaining`` is the profile."""

    code = "report.free-memory"
    template = (
        "use fewer loader workers or smaller batches[, or raise the limit of {group} (--memory, --mem, MemoryMax)]"
        "[; or measure without {retaining}, which keeps freed memory]; then: {command}"
    )

    command: str
    group: str | None = None
    retaining: str | None = None


class RaiseLimit(Advice):
    code = "report.raise-limit"
    template = "repeat the command with {option}"

    option: str


class AddBlocks(Advice):
    code = "report.add-blocks"
    template = "for a confidence interval repeat the command with {option}"

    option: str
