"""The study of a run: settings that are fixed when it starts and kept when it is resumed."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.bench.arms import Ablated, Arm, Contrast, Role, View, effects, of_instances, of_ranks
from envkit.bench.study_messages import (
    BelowLeast,
    NoArms,
    NoSettings,
    StepsBesideMetric,
    UnknownArm,
    UnknownStudyKey,
    UnusableText,
)
from envkit.common import codec
from envkit.common.file_messages import ManyEntries, OtherType
from envkit.common.messages import UnknownWord
from envkit.engines.base import EngineOptions
from envkit.messages import message_of
from envkit.stats.sequential import fewest_blocks
from envkit.worker.measure.quality_target import TargetError
from envkit.worker.measure.quality_target import parse as parse_target
from envkit.worker.modes import USUAL, Options
from envkit.worker.request import FullTraining, UserCommand
from envkit.worker.user_command.losses import parse_losses
from envkit.worker.user_command.metric import MetricError, parse
from envkit.worker.workloads import DEFAULT, GENERATED, WORKLOADS, find

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REFERENCE_PROFILE = "baseline"
# In the place of a workload's name: each of those that `envkit bench` measures together.
EVERY = "all"
TIMEOUT_S = 300.0
FULL_TIMEOUT_S = 7200.0
# The smallest difference that matters, unless the user says otherwise.
MARGIN = 0.02
# From so many timed steps on what was learnt is tested, which takes seconds.
LEARNT_STEPS = 3
# In that block, from 0: not the first, so that there is a ratio soon.
LEARNT_BLOCK = 2
# A page: by then every alignment of the stack that there is has come up.
MOST_PADDING = 4096
# At least so many blocks of a profile that is taken apart: few comparisons would be content with less.
LEAST_ABLATED = 8
# More profiles, or workloads, than that nobody compares, and a report would take minutes.
MOST_ENTRIES = 500
# Up to so many workloads are named one by one.
MOST_WORKLOADS = 4
# How the batch goes with the number of ranks: it stays what one process trains, or grows with them.
STRONG, WEAK = "strong scaling", "weak scaling"


@dataclass(frozen=True)
class WorkloadSpec:
    """How long a sample of a workload is. Steps of 0 follow from the machine's pace (``Study.sized``)."""

    warmup_steps: int
    steps: int


# A sample is as long as the machine's pace allows.
FROM_PACE = WorkloadSpec(0, 0)


@dataclass(frozen=True)
class StoppingRule:
    """When a run ends. Times are in seconds."""

    budget_s: float
    blocks: int = 0  # above 0: so many, however long they take
    precision: float | None = None  # the largest half-width to stop at, as a share of the ratio; None: by the gain
    margin: float = MARGIN  # the smallest difference that matters, as a share
    timeout_s: float = TIMEOUT_S  # of one worker
    drop_arms: bool = False  # profiles that can't be the fastest leave at a look
    max_memory: float | None = None  # above its reference's peak memory by more than this share an arm is out
    most_memory_bytes: float | None = None  # of a race, which has no baseline: a racer above it leaves first
    halvings: tuple[int, ...] = ()  # of a race: after so many blocks the slower half leaves; the last of them ends it
    open_ended: bool = False  # nobody gave the budget: take longer where an interval does


@dataclass(frozen=True)
class Study:
    """The study of a run. The first arm is the reference of the run."""

    title: str  # a part of the name of the record's folder
    stopping: StoppingRule
    arms: tuple[Arm, ...] = ()  # ``with_arms`` adds them, and what follows from them
    contrasts: tuple[Contrast, ...] = ()  # what is compared, and shares the error rate
    view: View = View.EFFECTS  # the question, which decides what reports show
    workload: str = DEFAULT  # of the arms that have none of their own; EVERY, or the name of a user's command
    workloads: dict[str, WorkloadSpec] = field(default_factory=dict)  # by name, all that are trained
    data: str | None = None  # a folder, or what stands for one; None: what is found
    seed: int | None = None  # None: one is drawn when the run begins
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    user_command: UserCommand | None = None
    options: Options = USUAL  # the modes in which everything is trained
    full: FullTraining | None = None  # in one block unless the stopping rule has more
    ranks: int = 1  # processes that train together on each node
    nodes: int = 1
    weak: bool = False  # the batch grows with the ranks (WEAK)
    ablated: tuple[Ablated, ...] = ()  # where a profile is taken apart: its settings; the second arm is all of it
    keep_env: tuple[str, ...] = ()
    force: bool = False
    allow_unknown: bool = False

    @property
    def epochs(self) -> int:
        """Return how many epochs a full training has at most; 0 where samples have a number of steps."""
        return self.full.epochs if self.full else 0

    @property
    def until(self) -> str | None:
        """Return the target after which a full training ends, as accuracy=0.85; None without one."""
        return self.full.until if self.full else None

    @property
    def reference(self) -> Arm:
        return self.arms[0]

    @property
    def references(self) -> tuple[Arm, ...]:
        """Return the arms beside which others have their effect: one, or one for each of several workloads."""
        compared = self.compared
        return tuple(arm for arm in self.arms if arm not in compared and arm.cpu_shares is None)

    def contrasts_of(self, role: Role) -> tuple[Contrast, ...]:
        return tuple(contrast for contrast in self.contrasts if contrast.role is role)

    def contrast(self, arm: Arm, role: Role) -> Contrast | None:
        """Return the first contrast of an arm in a role."""
        return next((contrast for contrast in self.contrasts_of(role) if contrast.arm == arm.name), None)

    def reference_of(self, arm: Arm) -> Arm:
        """Return the arm that ``arm`` has its effect beside; a reference itself where it is one."""
        contrast = self.contrast(arm, Role.EFFECT)
        if contrast is not None:
            return self.arm(contrast.reference)
        return arm if arm in self.references else self.reference

    @property
    def whole(self) -> Arm:
        """Return the arm with all settings of a profile that is taken apart."""
        return self.arms[1]

    @property
    def compared(self) -> tuple[Arm, ...]:
        """The arms whose effect is measured."""
        names = {contrast.arm for contrast in self.contrasts_of(Role.EFFECT)}
        return tuple(arm for arm in self.arms if arm.name in names)

    @property
    def subjects(self) -> tuple[Arm, ...]:
        """The arms that a run is about: those that are compared, or the reference where nothing is compared with it."""
        return self.compared or tuple(arm for arm in self.arms if arm.cpu_shares is None)

    @property
    def distributed(self) -> tuple[Arm, ...]:
        """The arms in which several ranks train together."""
        return tuple(arm for arm in self.arms if self.ranks_of(arm) > 1)

    @property
    def single_processes(self) -> tuple[Arm, ...]:
        """The arms of one process that those are compared with: on all CPUs, and on as many as a rank has."""
        return tuple(arm for arm in self.arms if arm.cpu_shares is not None)

    @property
    def scaling(self) -> str:
        """STRONG or WEAK; empty where nothing is trained on several ranks."""
        return "" if not self.distributed else WEAK if self.weak else STRONG

    @property
    def weak_ranks(self) -> int | None:
        """Return how many ranks the batch grows with in weak scaling, on all nodes; None in another study."""
        return self.ranks * self.nodes if self.weak else None

    @property
    def at_once(self) -> tuple[Arm, ...]:
        """The arms in which several train at once, each by itself."""
        return tuple(arm for arm in self.arms if arm.instances)

    @property
    def pairs(self) -> tuple[tuple[Arm, Arm], ...]:
        """Return the arms that are compared, each two once: their intervals share the error rate."""
        first = {contrast.pair: contrast for contrast in reversed(self.contrasts)}
        distinct = dict.fromkeys(contrast.pair for contrast in self.contrasts)
        return tuple((self.arm(first[pair].arm), self.arm(first[pair].reference)) for pair in distinct)

    @property
    def sharing(self) -> int:
        """How many comparisons share the error rate; at least 1."""
        return max(1, len(self.pairs))

    @property
    def drops_arms(self) -> bool:
        """Return whether arms can be dropped, at looks: of single processes that share a reference, by the rule."""
        plain = self.view is View.EFFECTS and not (self.distributed or self.at_once or self.stopping.blocks)
        effects_only = all(contrast.role is Role.EFFECT for contrast in self.contrasts)
        return self.stopping.drop_arms and plain and effects_only and len(self.compared) > 1 == len(self.references)

    @property
    def is_race(self) -> bool:
        """Return whether the arms race, which chooses one of them and claims nothing."""
        return self.view is View.RACE

    @property
    def fewest_blocks(self) -> int:
        """The fewest in which each comparison can have an interval; of a profile that is taken apart a few at least."""
        return max(fewest_blocks(self.sharing), LEAST_ABLATED if self.view is View.SETTINGS else 0)

    @property
    def lacks_blocks(self) -> bool:
        """Return whether fewer blocks were ordered than a verdict takes."""
        return 0 < self.stopping.blocks < self.fewest_blocks and bool(self.contrasts) and not self.one_run_each

    @property
    def one_run_each(self) -> bool:
        """Return whether it is one full training per arm, which gives a ratio and no interval."""
        return self.epochs > 0 and self.stopping.blocks <= 1

    @property
    def step_name(self) -> str:
        """Return what reports call a step: the whole command is one where no metric tells its steps."""
        return "run" if self.user_command is not None and self.user_command.is_one_step else "step"

    def order(self, block: int) -> list[Arm]:
        """Return the arms in the order in which block ``block`` (from 0) runs them: random, and the same for one seed.

        With several references, arms that are compared run one after the other, as a machine may change in long blocks.
        """
        shuffled = list(self.arms)
        chance = random.Random(f"{self.seed}:{block}")
        chance.shuffle(shuffled)
        if self.view is not View.WORKLOADS:
            return shuffled
        turns = list(self.workloads)
        chance.shuffle(turns)
        return sorted(shuffled, key=lambda arm: turns.index(self.workload_of(arm)))

    def padding(self, block: int, arm: Arm) -> int:
        """Return how many bytes to add to the environment of this sample's process, from 0 up to MOST_PADDING.

        The size of the environment moves the stack, which alone can change how fast code runs (Mytkowicz, Diwan,
        Hauswirth, Sweeney: Producing wrong data without doing anything obviously wrong, ASPLOS 2009). A size that is
        drawn for each sample makes this noise, which takes no profile's side.
        """
        return random.Random(f"{self.seed}:{block}:{arm.name}").randrange(MOST_PADDING + 1)

    @property
    def how(self) -> str:
        """Modes and ranks in words: ``bf16-autocast, 2 ranks``; empty where nothing was said."""
        ranks = f"{self.ranks * self.nodes} ranks" if self.ranks * self.nodes > 1 else ""
        return ", ".join(filter(None, (self.options.text(), ranks, WEAK if self.weak else "")))

    @property
    def trained(self) -> str:
        """Return what is trained and in which modes: ``cnn (bf16-autocast)``. Many workloads are settings of one."""
        few = len(self.workloads) <= MOST_WORKLOADS
        shown = ", ".join(self.workloads) if few else f"{self.workload}, {len(self.workloads)} settings"
        return f"{shown} ({self.how})" if self.how else shown

    def arm(self, name: str) -> Arm:
        """The arm of that name. Raises KeyError if it is missing."""
        return {arm.name: arm for arm in self.arms}[name]

    def workload_of(self, arm: Arm) -> str:
        return arm.workload or self.workload

    def names(self, name: str) -> tuple[str, str]:
        """Return the names of an arm and of its reference in a sentence."""
        arm = self.arm(name)
        reference = self.reference_of(arm)
        if self.view is View.WORKLOADS:
            return f"{arm.profile} on {self.workload_of(arm)}", reference.profile
        if self.view is View.CALIBRATION:
            return f"{self.with_ranks(reference)} against itself", self.with_ranks(reference)
        kind = "image " if self.view is View.IMAGES else ""
        return f"{kind}{self.with_ranks(arm)}", f"{kind}{reference.name}"

    def with_ranks(self, arm: Arm) -> str:
        """Return the name of an arm, with its number of ranks if there are several."""
        ranks = self.ranks_of(arm)
        return f"{arm.name} on {ranks} ranks" if ranks > 1 else arm.name

    def trains_otherwise(self, arm: Arm) -> bool:
        """Return whether ``arm`` trains another workload than its reference."""
        return self.workload_of(arm) != self.workload_of(self.reference_of(arm))

    def ranks_of(self, arm: Arm) -> int:
        """How many processes train together, on all nodes."""
        return arm.ranks or self.ranks * self.nodes

    def options_of(self, arm: Arm) -> Options:
        """How ``arm`` is trained: in weak scaling with a batch so many times as large as it has ranks."""
        return replace(self.options, scale=self.options.scale * self.ranks_of(arm)) if self.weak else self.options

    def parts_of(self, arm: Arm) -> int:
        """How many processes a node's CPUs are divided among."""
        return arm.cpu_shares or arm.instances or arm.ranks or self.ranks

    def workload_spec(self, arm: Arm) -> WorkloadSpec:
        """How what ``arm`` trains is trained."""
        return self.workloads[self.workload_of(arm)]

    @property
    def training(self) -> WorkloadSpec:
        """How what the reference trains is trained."""
        return self.workload_spec(self.reference)

    def with_steps(self, steps: int) -> Study:
        """Return the study with samples of so many steps; a command that is paced keeps its pace."""
        if self.user_command is not None and self.user_command.is_paced:
            return self
        return replace(self, workloads={name: replace(length, steps=steps) for name, length in self.workloads.items()})

    def sized(self, steps: Mapping[str, int] | None, warmup_steps: Mapping[str, int] | None) -> Study:
        """Return the study with the lengths of samples as they were fixed, by the workload's name; None leaves them."""
        if steps is None or warmup_steps is None:
            return self
        sized = {
            name: replace(length, steps=steps[name], warmup_steps=warmup_steps[name])
            for name, length in self.workloads.items()
        }
        return replace(self, workloads=sized)

    @property
    def own_workloads(self) -> list[str]:
        """The kit's own workloads that are trained; none where a user's command is measured."""
        return [] if self.user_command else list(dict.fromkeys(map(self.workload_of, self.arms)))

    @property
    def instances(self) -> int:
        """The most that an arm has at once, each a training of its own."""
        return max(arm.instances or 1 for arm in self.arms)

    def data_of(self, arm: Arm) -> str:
        """Return the folder of the data that ``arm`` trains on, or what stands for one."""
        workload = None if self.user_command else find(self.workload_of(arm))  # a record's may be unknown here
        return GENERATED if workload is not None and workload.generated else self.data or ""

    def with_arms(self, arms: Iterable[Arm]) -> Study:
        """The study with other arms, and the effect of each: of several workloads beside the baseline on its own."""
        arms = tuple(arms)
        several = self.view is View.WORKLOADS
        references = [arm.name for arm in arms if arm.profile == REFERENCE_PROFILE] if several else []
        made = replace(self, arms=arms, contrasts=tuple(effects(arms, references)))
        return made.with_lengths(next(iter(self.workloads.values()), FROM_PACE))

    def with_lengths(self, length: WorkloadSpec) -> Study:
        """The study with samples of one length of all workloads; a user's command has its own."""
        if self.user_command is not None:
            length = WorkloadSpec(self.user_command.warmup_lines, 0 if self.user_command.is_paced else 1)
        return replace(self, workloads=dict.fromkeys(map(self.workload_of, self.arms), length))

    def with_stopping(self, budget_s: float | None = None, blocks: int | None = None) -> Study:
        """Return the study with another budget, in seconds, or number of blocks; None leaves what there is."""
        rule = self.stopping
        budget_s, blocks = rule.budget_s if budget_s is None else budget_s, rule.blocks if blocks is None else blocks
        return replace(self, stopping=replace(rule, budget_s=budget_s, blocks=blocks))

    def completed(self, data: str) -> Study:
        """Return the study with all that is compared, a seed, and the place where its ``data`` was found.

        The arms have the ranks of their profiles.
        """
        more = (*of_ranks(self.arms, self.ranks, self.nodes, self.weak), *of_instances(self.arms))
        contrasts = tuple(dict.fromkeys((*self.contrasts, *more)))
        seed = secrets.randbelow(2**31) if self.seed is None else self.seed
        return replace(self, contrasts=contrasts, data=data, seed=seed)

    def anywhere(self) -> Study:
        """The same with files named in full, to be measured from another folder."""
        arms = tuple(
            replace(arm, profile=str(Path(arm.profile).absolute())) if arm.profile.endswith((".yaml", ".yml")) else arm
            for arm in self.arms
        )
        data = str(Path(self.data).absolute()) if self.data and Path(self.data).is_dir() else self.data
        return replace(self, arms=arms, data=data)

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "engine_options": self.engine_options.to_json()}

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Study:
        """Parse a document. Raise KeyError, TypeError or ValueError if it is invalid."""
        for where, kind, part in _parts(document):
            names = {field.name for field in fields(kind)}
            if isinstance(part, dict) and (unknown := part.keys() - names):
                raise codec.Misfit(UnknownStudyKey(f"{where}{min(unknown)}"))
        if missing := {field.name for field in fields(Study)} - document.keys():
            raise KeyError(min(missing))
        command = document["user_command"]
        if not isinstance(command, dict | None):
            raise codec.Misfit(OtherType("user_command"))
        made = codec.parse({**document, "user_command": UserCommand.from_json(command)}, Study)
        made._require_numbers()
        if made.view is View.SETTINGS and not made.ablated:
            raise codec.Misfit(NoSettings())
        _require_arms(made.arms, made.contrasts, made.ablated)
        _require_target(made.until)
        if made.user_command is not None:
            _require_metrics(made.user_command)
        return made

    def _require_numbers(self) -> None:
        """Raise Misfit for a number that is too small."""
        stopping, first = self.stopping, min(self.stopping.halvings, default=0)
        from_0 = ("budget_s", "blocks", "precision", "margin", "timeout_s", "max_memory", "most_memory_bytes")
        least: dict[str, tuple[float, int]] = {f"stopping.{key}": (getattr(stopping, key) or 0, 0) for key in from_0}
        least |= {
            "ranks": (self.ranks, 1), "nodes": (self.nodes, 1), "options.scale": (self.options.scale, 1),
            "stopping.halvings": (first, 1 if self.is_race else 0),
        }  # fmt: skip
        if self.full is not None:
            least["full.epochs"] = (self.full.epochs, 1)
        if self.user_command is not None and self.user_command.optimizer_steps is not None:
            least["user_command.optimizer_steps"] = (self.user_command.optimizer_steps, 0)
        for key, (value, lowest) in least.items():
            if value < lowest:
                raise codec.Misfit(BelowLeast(key, value, lowest))


# The documents inside a study: one each, and several in a list or by name.
SINGLE: dict[str, type[DataclassInstance]] = {
    "stopping": StoppingRule, "engine_options": EngineOptions, "options": Options, "full": FullTraining,
}  # fmt: skip
SEVERAL: dict[str, type[DataclassInstance]] = {
    "arms": Arm, "contrasts": Contrast, "ablated": Ablated, "workloads": WorkloadSpec,
}  # fmt: skip


def _parts(document: Mapping[str, object]) -> Iterator[tuple[str, type[DataclassInstance], object]]:
    """Yield the documents inside a study, and the study, each with where it stands and its class.

    Raise KeyError for a missing one, and Misfit for too many.
    """
    for name, kind in SEVERAL.items():
        entries = document[name]
        if not isinstance(entries, list | tuple | dict):
            raise codec.Misfit(OtherType(name))
        if len(entries) > MOST_ENTRIES:
            raise codec.Misfit(ManyEntries(f"study.{name}", MOST_ENTRIES))
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield f"{name}.", kind, entry
    for name, kind in SINGLE.items():
        yield f"{name}.", kind, document[name]
    yield "", Study, document


def _require_arms(arms: Sequence[Arm], contrasts: Iterable[Contrast], settings: Iterable[Ablated]) -> None:
    """Raise Misfit if there are no arms, or if a contrast or a setting names an arm that is missing."""
    if not arms:
        raise codec.Misfit(NoArms())
    names = {None, *(arm.name for arm in arms)}
    for contrast in contrasts:
        for name in (contrast.arm, contrast.reference):
            if name not in names:
                raise codec.Misfit(UnknownArm("contrasts", name))
    for setting in settings:
        for wanted in (setting.alone, setting.beside, setting.without):
            if wanted not in names:
                raise codec.Misfit(UnknownArm(f"ablated: {setting.setting}", str(wanted)))


def require_workloads(made: Study) -> None:
    """Raise Misfit for a workload that this kit does not have."""
    for workload in made.own_workloads:
        if workload != EVERY and find(workload) is None:
            raise codec.Misfit(UnknownWord("workload", workload, tuple(WORKLOADS)))


def _require_target(until: str | None) -> None:
    """Raise Misfit for an invalid target, with which each worker would fail."""
    if until is None:
        return
    try:
        parse_target(until)
    except TargetError as error:
        raise codec.Misfit(UnusableText("full.until", until, message_of(error))) from None


def _require_metrics(command: UserCommand) -> None:
    """Raise Misfit for an invalid metric, with which each worker would fail."""
    metrics = (("metric", command.metric, parse), ("loss_metric", command.loss_metric, parse_losses))
    for name, text, read in metrics:
        if text is not None:
            try:
                read(text)
            except MetricError as error:
                raise codec.Misfit(UnusableText(f"user_command.{name}", text, message_of(error))) from None
    if command.metric is not None and command.optimizer_steps is not None:
        raise codec.Misfit(StepsBesideMetric())
