"""Messages on what was measured, how and where. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from envkit.messages import Message, Note

NOT_YET_ENDED = "not yet, or killed: continue with --resume"

COMMAND = "command"

# --- what was compared ---


class Title(Note):
    """Names of what was compared, or how many ``things`` if these are many."""

    template = "[{names:list}][{many:count profile}][ on {workloads:count workload}][ against {reference}][, {scaling}]"

    names: tuple[str, ...]
    many: int | None = None
    workloads: int | None = None
    reference: str | None = None
    scaling: str | None = None


class TitleOfAblation(Note):
    template = "{profile} ablated: {settings:count setting}"

    profile: str
    settings: int


class LoaderSettings(Note):
    template = "{number:count loader setting}[ under {profile}]"

    number: int
    profile: str | None = None


class InstancesOf(Note):
    template = "{number:count instance} of {profile}"

    number: int
    profile: str


class BesideReference(Note):
    template = "{arm} beside {reference}"

    arm: str
    reference: str


# --- workload ---


class Workload(Note):
    template = "workload {training}"

    training: str


class OwnCommand(Note):
    """A user's command, with its name if that is not its beginning. ``label`` is COMMAND in the middle of a line."""

    template = "[{label} ][{name}: ]{argv:command}[, in {folder}]"

    argv: tuple[str, ...]
    name: str | None = None
    folder: str | None = None
    label: str | None = None


class FreshProcesses(Note):
    """How the steps of a user's command are told apart."""

    template = "{metric}; each sample a fresh process"

    metric: Message


class OptimizerSteps(Note):
    template = "{steps} steps of its optimizer, after {warmup}"

    steps: int
    warmup: int


class PacedSteps(OptimizerSteps):
    template = "{steps} steps of its optimizer, after {warmup}, by the machine's pace"


class WholeCommand(Note):
    template = "none: the whole command is one step"


class Readings(Note):
    template = "{metric}[, {unit}][, without the first {left_out} readings]"

    metric: str
    unit: str | None = None
    left_out: int | None = None


class InPlace(Note):
    template = "itself (--in-place): each start finds what earlier ones wrote"


class FreshCopy(Note):
    template = "a fresh copy for each start[, {links:list} linked]"

    links: tuple[str, ...] = ()


class TrackersOff(Note):
    template = "turned off by {variables:list}; --keep-env NAME keeps yours"

    variables: tuple[str, ...]


class TrainedSteps(Note):
    template = "{workload}, {steps} steps after {warmup} to warm up, each sample a fresh process"

    workload: str
    steps: int
    warmup: int


class TrainedEpochs(Note):
    template = "{workloads:list}, {epochs:count epoch}[ at most, until {until}], each sample a fresh process"

    workloads: tuple[str, ...]
    epochs: int
    until: str | None = None


class SharedBatches(Note):
    template = "{ranks:list}; each on its share of the CPUs, splitting each batch[; {steps}]"

    ranks: tuple[Message, ...]
    steps: Message | None = None


class AllBatches(Note):
    template = "{arms:list}; each on its share of the CPUs, training on all batches"

    arms: tuple[str, ...]


# --- machine and engines ---


class Machine(Note):
    """``kind``: bare metal, or the hypervisor. ``measured``: the day on which the cores were measured, if they were."""

    template = (
        "{cpu}, {usable_cpus} usable CPUs on {cores:count core}[, measured {measured}]"
        "[, quota {quota:g} CPUs][, {kind}]"
    )

    cpu: str
    usable_cpus: int
    cores: int
    quota: float | None = None
    kind: str | None = None
    measured: str | None = None


class OperatingSystem(Note):
    template = "{distribution}, Linux {kernel}, {libc}"

    distribution: str | None
    kernel: str
    libc: str | None


class Memory(Note):
    template = "{bytes:size}, transparent huge pages {huge_pages}"

    bytes: int
    huge_pages: str | None


class Engine(Note):
    template = "{name} {version}: {image}[ ({digest}…)], Python {python}, torch {torch}"

    name: str
    version: str
    image: str
    digest: str | None
    python: str
    torch: str | None


# --- reproduction ---


class Seed(Note):
    template = "{seed:d}: with --seed {seed:d} the blocks run in the same order"

    seed: int


class KitVersion(Note):
    template = "{version} (record schema {schema:d})"

    version: str
    schema: int


class FileDigest(Note):
    """``file`` if the label does not name it."""

    template = "[{file}, ]SHA-256 {digest}"

    digest: str
    file: str | None = None
