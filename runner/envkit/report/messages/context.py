"""Messages on what was measured, how and where. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE = Severity.NOTE


# --- what was compared ---


class Title(Message):
    """Names of what was compared, or how many ``things`` if these are many."""

    code = "report.title"
    severity = NOTE
    template = "[{names:list}][{many:count profile}][ on {workloads:count workload}][ against {reference}][, {scaling}]"

    names: tuple[str, ...]
    many: int | None = None
    workloads: int | None = None
    reference: str | None = None
    scaling: str | None = None


class ProfileTitle(Message):
    code = "report.profile-title"
    severity = NOTE
    template = "{profile}: {title}"

    profile: str
    title: str


class TitleOfAblation(Message):
    code = "report.title-of-ablation"
    severity = NOTE
    template = "{profile} ablated: {settings:count setting}"

    profile: str
    settings: int


class LoaderSettings(Message):
    code = "report.loader-settings"
    severity = NOTE
    template = "{number:count loader setting}[ under {profile}]"

    number: int
    profile: str | None = None


class InstancesOf(Message):
    code = "report.instances-of"
    severity = NOTE
    template = "{number:count instance} of {profile}"

    number: int
    profile: str


class BesideReference(Message):
    code = "report.beside-reference"
    severity = NOTE
    template = "{arm} beside {reference}"

    arm: str
    reference: str


# --- workload ---


class Workload(Message):
    code = "report.workload"
    severity = NOTE
    template = "workload {training}"

    training: str


class OwnCommand(Message):
    """The user's own command; ``name`` if it has another one than its own beginning."""

    code = "report.own-command"
    severity = NOTE
    template = "command [{name}: ]{argv:command}"

    argv: tuple[str, ...]
    name: str | None = None


class CommandInFolder(Message):
    code = "report.command-in-folder"
    severity = NOTE
    template = "[{name}: ]{argv:command}, in {folder}"

    argv: tuple[str, ...]
    name: str | None
    folder: str


class FreshProcesses(Message):
    """How the steps of a user's command are told apart."""

    code = "report.fresh-processes"
    severity = NOTE
    template = "{metric}; each sample a fresh process"

    metric: Message


class OptimizerSteps(Message):
    code = "report.optimizer-steps"
    severity = NOTE
    template = "{steps} steps of its optimizer, after {warmup}"

    steps: int
    warmup: int


class PacedSteps(OptimizerSteps):
    code = "report.paced-steps"
    template = "{steps} steps of its optimizer, after {warmup}, by the machine's pace"


class WholeCommand(Message):
    code = "report.whole-command"
    severity = NOTE
    template = "none: the whole command is one step"


class Readings(Message):
    code = "report.readings"
    severity = NOTE
    template = "{metric}[, {unit}][, without the first {left_out} readings]"

    metric: str
    unit: str | None = None
    left_out: int | None = None


class InPlace(Message):
    code = "report.in-place"
    severity = NOTE
    template = "itself (--in-place): each start finds what earlier ones wrote"


class FreshCopy(Message):
    code = "report.fresh-copy"
    severity = NOTE
    template = "a fresh copy for each start[, {links:list} linked]"

    links: tuple[str, ...] = ()


class TrackersOff(Message):
    code = "report.trackers-off"
    severity = NOTE
    template = "turned off by {variables:list}; --keep-env NAME keeps yours"

    variables: tuple[str, ...]


class TrainedSteps(Message):
    code = "report.trained-steps"
    severity = NOTE
    template = "{workload}, {steps} steps after {warmup} to warm up, each sample a fresh process"

    workload: str
    steps: int
    warmup: int


class TrainedEpochs(Message):
    code = "report.trained-epochs"
    severity = NOTE
    template = "{workloads:list}, {epochs:count epoch}[ at most, until {until}], each sample a fresh process"

    workloads: tuple[str, ...]
    epochs: int
    until: str | None = None


class SharedBatches(Message):
    code = "report.shared-batches"
    severity = NOTE
    template = "{ranks:list}; each on its share of the CPUs, splitting each batch[; {steps}]"

    ranks: tuple[Message, ...]
    steps: Message | None = None


class AllBatches(Message):
    code = "report.all-batches"
    severity = NOTE
    template = "{arms:list}; each on its share of the CPUs, training on all batches"

    arms: tuple[str, ...]


# --- machine and engines ---


class Machine(Message):
    """``kind``: bare metal, or the hypervisor."""

    code = "report.machine"
    severity = NOTE
    template = "{cpu}, {usable_cpus} usable CPUs on {cores:count core}[, quota {quota:g} CPUs][, {kind}]"

    cpu: str
    usable_cpus: int
    cores: int
    quota: float | None = None
    kind: str | None = None


class OperatingSystem(Message):
    code = "report.operating-system"
    severity = NOTE
    template = "{distribution}, Linux {kernel}, {libc}"

    distribution: str
    kernel: str
    libc: str


class Memory(Message):
    code = "report.memory"
    severity = NOTE
    template = "{bytes:size}, transparent huge pages {huge_pages}"

    bytes: int
    huge_pages: str


class Engine(Message):
    code = "report.engine"
    severity = NOTE
    template = "{name} {version}: {image}[ ({digest}…)], Python {python}, torch {torch}"

    name: str
    version: str
    image: str
    digest: str | None
    python: str
    torch: str


# --- reproduction ---


class NotYetEnded(Message):
    code = "report.not-yet-ended"
    severity = NOTE
    template = "not yet, or killed: continue with --resume"


class Seed(Message):
    code = "report.seed"
    severity = NOTE
    template = "{seed:d}: with --seed {seed:d} the blocks run in the same order"

    seed: int


class KitVersion(Message):
    code = "report.kit-version"
    severity = NOTE
    template = "{version} (record schema {schema:d})"

    version: str
    schema: int


class FileDigest(Message):
    """``file`` if the label does not name it."""

    code = "report.file-digest"
    severity = NOTE
    template = "[{file}, ]SHA-256 {digest}"

    digest: str
    file: str | None = None
