"""Messages of baselines: what is wrong with a file, why a run can't become one, and how two sessions differ."""

from __future__ import annotations

from envkit.messages import Advice, Message, Note

# Why a run can't become a baseline, and what to do about it.
WORKER_FAILED = "a worker failed in this run; measure again"
COMPARES_IMAGES = "compares images, and a baseline is of one; measure a profile in it"
FULL_TRAINING = "is a full training (--full), one sample each; measure without --full"
SEVERAL_WORKLOADS = "measured several workloads; measure the one to save a baseline of, by --workload"
SEVERAL_RANKS = "was trained on several ranks (--nproc); measure one process to save a baseline of"
SEVERAL_INSTANCES = "trained several at once (--instances); measure one process alone"
NO_KERNEL = "has no reference kernel; measure again"
OTHER_KERNEL = "was resumed with another reference kernel (Python or envkit changed); measure again"

# --- files ---


class DamagedBaseline(Message):
    """A baseline breaks its schema. ``problem`` says at which key."""

    template = "{file}: {problem}; restore the file, or save it again: envkit baseline save NAME --from DIR --replace"

    file: str
    problem: Message


class InvalidJson(Message):
    template = "is not valid JSON ({reason})"

    reason: Message


class EditedBaseline(Message):
    template = "was edited: its digest does not match its content"


class DanglingReference(Message):
    """``key`` of the study's arms names something that the baseline does not have."""

    template = "study.arms[[{index:d}]].{key}: there is no '{name}' further on"

    index: int
    key: str
    name: str


class OtherLength(Message):
    """An arm has times of another number of blocks than the reference kernel."""

    template = "arms.{arm}.step_s: must hold {blocks:d}, one per reference kernel"

    arm: str
    blocks: int


class NotABaseline(Message):
    template = "{file}: is not a baseline (it has no 'schema'); give a file of envkit baseline save"

    file: str


class BadBaselineName(Message):
    template = "'{name}' can't be a baseline's name; use letters, digits, '.', '_' and '-', as in cnn-epyc"

    name: str


class NoSuchFile(Message):
    template = "{file}: no such file"

    file: str


class BaselinesThere(Note):
    template = "choose one of: {known:list}"

    known: tuple[str, ...]


class NoBaselines(Note):
    template = "the folder has no baselines"


class UnknownBaseline(Message):
    """``there`` says which baselines the folder has."""

    template = (
        "no baseline '{name}' in {folder}[ (did you mean '{suggestion}'?)]; {there}; "
        "save one with: envkit baseline save {name} --from DIR"
    )

    name: str
    folder: str
    there: Message
    suggestion: str | None = None


class BaselineExists(Message):
    template = "{file}: already exists; give another name, or replace it with --replace"

    file: str


# --- runs ---


class NoRun(Message):
    template = "there is no run in {folder}; name one with --from DIR, or measure: envkit bench PROFILE"

    folder: str


class NoFitRun(Message):
    """None of the runs in a folder can become a baseline."""

    template = (
        "none of the {runs} runs in {folder} can become a baseline; name one with --from DIR, or measure: "
        "envkit bench PROFILE"
    )

    runs: int
    folder: str


class Unfit(Message):
    """Why the run in ``folder`` can't become a baseline."""

    template = "{folder}: {reason}"

    folder: str
    reason: str  # one of those above


class WasNotInEffect(Message):
    template = "{folder}: {arm} was not in effect in this run; see: envkit report"

    folder: str
    arm: str


class TakesApart(Message):
    template = "{folder}: takes a profile apart; measure the whole of it: envkit bench {profile}"

    folder: str
    profile: str


class FewBlocks(Message):
    template = "{folder}: has {complete} complete blocks, and {needed} are needed; {way_on}"

    folder: str
    complete: int
    needed: int
    way_on: Message


class MoreBlocks(Advice):
    template = "measure more --blocks"


class Resume(Advice):
    template = "continue with: {command:command}"

    command: tuple[str, ...]


# --- two sessions ---


class NotMeasured(Message):
    template = "'{arm}' was not measured"

    arm: str


class TooFewBlocks(Message):
    """Two sessions have too few blocks for intervals. ``confidence`` is a share."""

    template = (
        "{then} and {now} blocks are too few for intervals at {confidence:.2%}, which so many profiles need; "
        "measure more blocks"
    )

    then: int
    now: int
    confidence: float


# What two sessions may differ in, as a column says it.
WORKLOAD, MODES, USUAL = "the study's workload", "the mode of training", "as usual"
PLANNED_STEPS, PLANNED_WARM_UP = "the study's steps", "the study's warmup steps"
CPU, ARCHITECTURE, CPUS, GPUS = "the CPU", "the architecture", "the number of usable CPUs", "the GPUs"
WORKLOAD_DIGEST = "the digest of the workload's"
KIT, SKIPPED, KEPT = "kit version", "timed steps left out", "kept variables"
STEPS, WARM_UP_STEPS = "timed steps of a sample", "warm-up steps of a sample"
KERNEL_DIGEST, FINAL_LOSS = "reference kernel digest", "final loss"
