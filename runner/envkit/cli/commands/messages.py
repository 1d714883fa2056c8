"""Messages that several commands share, and those of commands that measure."""

from __future__ import annotations

from envkit.messages import Advice, Message, Note

IS_REFERENCE, SETS_NOTHING = "is the reference", "sets nothing"

# --- several commands ---


class NoInterval(Message):
    """An option asks for one full training of each profile, of which a command can say nothing."""

    template = "{command} takes no {option}: one run each has no confidence interval"

    command: str
    option: str


class DashesMissing(Message):
    """A command to run was given without the dashes that precede it."""

    template = "{command}: the command comes after --, for example: {example:command}"

    command: str
    example: tuple[str, ...]


class SeveralRanks(Message):
    """A profile trains on several ranks, and a command looks at one process."""

    template = (
        "{profile}: trains on {ranks:count rank}, and envkit {command} measures one process; take a copy without "
        "'ranks'"
    )

    profile: str
    ranks: int
    command: str


class LeftOut(Note):
    """Something is not measured or written."""

    template = "left out[ {names}]: {reason}"

    reason: Message
    names: str | None = None


class SettingsOff(Message):
    """A setting of a profile was not in effect in a process."""

    template = "{profile} is NOT IN EFFECT: {key}: expected {expected}, seen {seen}"

    profile: str
    key: str
    expected: str
    seen: str


# --- ablate ---


class NothingToAblate(Message):
    """A profile has no settings. ``reason`` is IS_REFERENCE or SETS_NOTHING."""

    template = "{profile}: there is nothing to take apart: it {reason}; envkit profiles lists others"

    profile: str
    reason: str


class AblatesOneSetting(Message):
    """The profile has one setting, which ``envkit bench`` measures."""

    template = "{profile}: there is nothing to take apart: it has one setting, {setting}; envkit bench {profile}"

    profile: str
    setting: str


class AblatesNoPart(Message):
    """All parts of a profile were left out."""

    template = "{profile}: no part of it can be measured alone; measure all of it: envkit bench {profile}"

    profile: str


class WholeFails(Message):
    """A worker of the whole profile fails, or the profile is not in effect there. ``file`` is how it was named."""

    template = "{profile}: {reason}; find out why: envkit doctor {file}"

    profile: str
    reason: Message
    file: str


class LibraryLeftOut(Note):
    """A setting that needs a library is compared with that library, which was left out."""

    template = "{library}, which it is compared with, is left out"

    library: str


# --- advise ---


class EitherOr(Message):
    """A running process and a command to start were both given."""

    template = "{command}: give {subject}, or a command after --, and not both"

    command: str
    subject: str


class NothingToAdviseOn(Message):
    """Neither a running process nor a command was given."""

    template = "advise: name the training after --, for example: envkit advise -- python train.py"


class ThreadsFirst(Note):
    """envkit expects no gain for a training with too few threads until it has them."""

    template = "measured on trainings with all their threads; give this one its threads, then ask again"


class ComputesOnGpu(Note):
    """The advice is fitted to trainings on CPUs."""

    template = "this training computes on a GPU, and all trainings behind the advice compute on CPUs"


class HasOpenmp(Note):
    """A profile would abort a training that loads an OpenMP runtime of Intel's or LLVM's itself."""

    template = "the training loads {own}; {preloaded}, which the profile preloads, would abort it (OMP: Error #15)"

    own: str
    preloaded: str


class Race(Note):
    """So many ``profiles`` are about to race. The slower half leaves after each of ``blocks``."""

    template = (
        "{profiles} profiles race now, and the slower half leaves after block {blocks:list}; the fastest is then "
        "compared with the baseline; all this takes about {takes} (--budget TIME changes that)"
    )

    profiles: int
    blocks: tuple[int, ...]
    takes: str  # with the watching, as "3 minutes"


class ConfirmingOne(Note):
    """A single profile applies here, so that nothing races."""

    template = "{profile} is compared with the baseline now; all this takes about {takes} (--budget TIME changes that)"

    profile: str
    takes: str


class NoRaceThere(Message):
    """A record of another kind was to be continued as a race."""

    template = "{folder}: holds a run that is no race; continue it with: {command}"

    folder: str
    command: str


class RaceOfAnother(Message):
    """The record of a race does not carry this user's seal, so nothing that it names is started."""

    template = "{folder}: the record does not carry your seal; begin a new race: envkit advise -- COMMAND"

    folder: str


# --- compare-engines ---


class TooFewEngines(Message):
    """--engines names one engine."""

    template = "--engines {given}: name two or more, for example {example}"

    given: str
    example: str


# --- loader-grid ---


class TooLargeSettings(Message):
    """No workload of this name exists, because a number in it is too large."""

    template = "{workload}: too large a number; give fewer workers, or smaller batches"

    workload: str


class OneCell(Message):
    """The options describe one setting, and there is nothing to compare it with."""

    template = "loader-grid compares settings, and this is only one; give more {options:or}"

    options: tuple[str, ...]


class FewBatchesInEpoch(Message):
    """A batch is so large that an epoch has too few of them."""

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

    template = "none of these profiles is left to measure: {profiles:list}; name others"

    profiles: tuple[str, ...]


class SameName(Message):
    """Two profiles have one name."""

    template = "{file}: another profile is called '{name}' too; rename it"

    file: str
    name: str


class SetsNothingHere(Note):
    """A profile comes to no setting on this machine."""

    template = "it sets nothing here, and so is the same as {reference}"

    reference: str


# --- plan ---


class TooFewBlocksForNoise(Message):
    """--blocks is less than what an estimate of the noise takes."""

    template = "--blocks {blocks}: the noise can't be estimated from fewer than {least} blocks"

    blocks: int
    least: int


class NoiseFound(Note):
    """The noise of a block's ratio that the blocks needed follow from, as a share (``stats.power.interval_scale``)."""

    template = (
        "a block's ratio varies by {scale:.1%} (standard deviation, by the interval's width; from {blocks} blocks of "
        "{seconds:.0f} s)"
    )

    scale: float
    blocks: int
    seconds: float


class NoiseWithin(Note):
    """The share of the noise that longer samples would reduce, and what to do about it."""

    template = "{share:.0%} of that comes from the steps within samples: {then}"

    share: float
    then: Message


class TryLonger(Advice):
    """Advice: longer samples of a workload."""

    template = "try longer ones, such as --steps {steps:d}"

    steps: int


class TrainLonger(Advice):
    """Advice: longer samples of a user's command."""

    template = "let the command train for longer"


class LongerInVain(Note):
    """Longer samples would not reduce the noise."""

    template = "longer ones would not help"


class Chance(Note):
    """The error rates that the numbers of blocks are for."""

    template = (
        "a difference of that size is found {power:.0%} of the time; false-positive rate: at most {error_rate:.0%}"
    )

    power: float
    error_rate: float
