"""Messages that several commands share, and those of commands that measure."""

from __future__ import annotations

from envkit.messages import Message, Severity

# --- several commands ---


class NoInterval(Message):
    """An option asks for one full training of each profile, of which a command can say nothing."""

    code = "cli.no-interval"
    template = "{command} takes no {option}: one run each has no confidence interval"

    command: str
    option: str


class DashesMissing(Message):
    """A command to run was given without the dashes that precede it."""

    code = "cli.dashes-missing"
    template = "{command}: the command comes after --, for example: {example:command}"

    command: str
    example: tuple[str, ...]


class SeveralRanks(Message):
    """A profile trains on several ranks, and a command looks at one process."""

    code = "cli.several-ranks"
    template = (
        "{profile}: trains on {ranks:count rank}, and envkit {command} measures one process; take a copy without "
        "'ranks'"
    )

    profile: str
    ranks: int
    command: str


class LeftOut(Message):
    """Something is not measured or written."""

    code = "cli.left-out"
    severity = Severity.NOTE
    template = "left out[ {names}]: {reason}"

    reason: Message
    names: str | None = None


class SettingsOff(Message):
    """A setting of a profile was not in effect in a process."""

    code = "cli.settings-off"
    template = "{profile} is NOT IN EFFECT: {key}: expected {expected}, seen {seen}"

    profile: str
    key: str
    expected: str
    seen: str


# --- ablate ---


class AblatesReference(Message):
    """The baseline was named, which sets nothing."""

    code = "cli.ablates-reference"
    template = "{profile}: there is nothing to take apart: it is the reference; envkit profiles lists them"

    profile: str


class AblatesNothing(Message):
    """The profile sets nothing."""

    code = "cli.ablates-nothing"
    template = "{profile}: there is nothing to take apart: it sets nothing; envkit profiles lists others"

    profile: str


class AblatesOneSetting(Message):
    """The profile has one setting, which ``envkit bench`` measures."""

    code = "cli.ablates-one-setting"
    template = "{profile}: there is nothing to take apart: it has one setting, {setting}; envkit bench {profile}"

    profile: str
    setting: str


class AblatesNoPart(Message):
    """All parts of a profile were left out."""

    code = "cli.ablates-no-part"
    template = "{profile}: no part of it can be measured alone; measure all of it: envkit bench {profile}"

    profile: str


class WholeFails(Message):
    """A worker of the whole profile fails, or the profile is not in effect there. ``file`` is how it was named."""

    code = "cli.whole-fails"
    template = "{profile}: {reason}; find out why: envkit doctor {file}"

    profile: str
    reason: Message
    file: str


class LibraryLeftOut(Message):
    """A setting that needs a library is compared with that library, which was left out."""

    code = "cli.library-left-out"
    severity = Severity.NOTE
    template = "{library}, which it is compared with, is left out"

    library: str


# --- advise ---


class EitherOr(Message):
    """A running process and a command to start were both given."""

    code = "cli.either-or"
    template = "{command}: give {subject}, or a command after --, and not both"

    command: str
    subject: str


class NothingToAdviseOn(Message):
    """Neither a running process nor a command was given."""

    code = "cli.nothing-to-advise-on"
    template = "advise: name the training after --, for example: envkit advise -- python train.py"


class ThreadsFirst(Message):
    """envkit expects no gain for a training with too few threads until it has them."""

    code = "cli.threads-first"
    severity = Severity.NOTE
    template = "measured on trainings with all their threads; give this one its threads, then ask again"


class ComputesOnGpu(Message):
    """The advice is fitted to trainings on CPUs."""

    code = "cli.computes-on-gpu"
    severity = Severity.NOTE
    template = "this training computes on a GPU, and all trainings behind the advice compute on CPUs"


class HasOpenMP(Message):
    """A profile would abort a training that loads an OpenMP runtime of Intel's or LLVM's itself."""

    code = "cli.has-openmp"
    severity = Severity.NOTE
    template = "the training loads {own}; {preloaded}, which the profile preloads, would abort it (OMP: Error #15)"

    own: str
    preloaded: str


class NotWithPid(Message):
    """A clause whose subject is an option that says how to start a training."""

    code = "cli.not-with-pid"
    template = "has no effect with --pid: that process runs already; leave it out"


# --- compare-engines ---


class TooFewEngines(Message):
    """--engines names one engine."""

    code = "cli.too-few-engines"
    template = "--engines {given}: name two or more, for example {example}"

    given: str
    example: str


# --- loader-grid ---


class HalfWidthOfBlocks(Message):
    """A number of blocks is fixed, so that no interval ends the run."""

    code = "cli.half-width-of-blocks"
    template = "--half-width has no effect on {blocks:count block}, which never stop early; add --budget"

    blocks: int


class PrefetchWithoutWorkers(Message):
    """--prefetch was given, and no setting has workers."""

    code = "cli.prefetch-without-workers"
    template = "--prefetch has no effect without workers; leave it out, or give more --workers"


class TooLargeSettings(Message):
    """No workload of this name exists, because a number in it is too large."""

    code = "cli.too-large-settings"
    template = "{workload}: too large a number; give fewer workers, or smaller batches"

    workload: str


class OneCell(Message):
    """The options describe one setting, and there is nothing to compare it with."""

    code = "cli.one-cell"
    template = "loader-grid compares settings, and this is only one; give more {options:or}"

    options: tuple[str, ...]


class WorkersMissing(Message):
    """An option of DataLoader's workers was given with --workers 0."""

    code = "cli.workers-missing"
    template = "{option} is for DataLoader's workers, and --workers 0 starts no worker; leave the 0 out"

    option: str


class FewBatchesInEpoch(Message):
    """A batch is so large that an epoch has too few of them."""

    code = "cli.few-batches-in-epoch"
    template = (
        "--batches {batch:d}: an epoch has {images:d} images, and needs {least} batches or more with {option}; "
        "give at most {most:d}"
    )

    batch: int
    images: int
    least: int
    option: str
    most: int


class FewStepsInSample(Message):
    """A sample would end before an epoch does."""

    code = "cli.few-steps-in-sample"
    template = (
        "--steps {steps:d}: an epoch of batches of {batch:d} has {needed:d} steps, and a sample must see one end; "
        "give at least {needed:d}"
    )

    steps: int
    batch: int
    needed: int


# --- matrix ---


class NoneLeft(Message):
    """All profiles were left out."""

    code = "cli.none-left"
    template = "none of these profiles is left to measure: {profiles:list}; name others"

    profiles: tuple[str, ...]


class SameName(Message):
    """Two profiles have one name."""

    code = "cli.same-name"
    template = "{file}: another profile is called '{name}' too; rename it"

    file: str
    name: str


class SetsNothingHere(Message):
    """A profile comes to no setting on this machine."""

    code = "cli.sets-nothing-here"
    severity = Severity.NOTE
    template = "it sets nothing here, and so is the same as {reference}"

    reference: str


# --- plan ---


class TooFewBlocksForNoise(Message):
    """--blocks is less than what a standard deviation takes."""

    code = "cli.too-few-blocks-for-noise"
    template = "--blocks {blocks}: the noise can't be estimated from fewer than {least} blocks"

    blocks: int
    least: int


class NoiseFound(Message):
    """The standard deviation of a block's ratio, as a share."""

    code = "cli.noise-found"
    severity = Severity.NOTE
    template = "a block's ratio varies by {deviation:.1%} (standard deviation, from {blocks} blocks of {seconds:.0f} s)"

    deviation: float
    blocks: int
    seconds: float


class NoiseWithin(Message):
    """Which share of the noise longer samples would reduce, and what to do about it."""

    code = "cli.noise-within"
    severity = Severity.NOTE
    template = "{share:.0%} of that comes from the steps within samples: {then}"

    share: float
    then: Message


class TryLonger(Message):
    """Advice: longer samples of a workload."""

    code = "cli.try-longer"
    severity = Severity.ADVICE
    template = "try longer ones, such as --steps {steps:d}"

    steps: int


class TrainLonger(Message):
    """Advice: longer samples of a user's command."""

    code = "cli.train-longer"
    severity = Severity.ADVICE
    template = "let the command train for longer"


class LongerInVain(Message):
    """Longer samples would not reduce the noise."""

    code = "cli.longer-in-vain"
    severity = Severity.NOTE
    template = "longer ones would not help"


class Chance(Message):
    """The error rates that a plan's numbers of blocks are for."""

    code = "cli.chance"
    severity = Severity.NOTE
    template = (
        "a difference of that size is found {power:.0%} of the time; false-positive rate: at most {error_rate:.0%}"
    )

    power: float
    error_rate: float
