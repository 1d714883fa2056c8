"""The plan of a run: settings that are fixed when it starts and kept when it is resumed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from envkit.bench.user_command import PACE_S, PACE_STEPS, UserCommand
from envkit.common import codec
from envkit.common.file_messages import ManyEntries
from envkit.stats.sequential import fewest_blocks
from envkit.worker.modes import USUAL, Options

REFERENCE_PROFILE = "baseline"
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
# How the batch goes with the number of ranks: it stays what one process trains, or grows with them.
STRONG, WEAK = "strong scaling", "weak scaling"


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: a profile under an engine. None stands for the value of the specification and the
    plan.
    """

    name: str  # what records and reports call it
    profile: str
    engine: str
    workload: str | None = None
    ranks: int | None = None  # processes that train together, on one node
    image: str | None = None  # the name of an OCI image, or the file of one
    cpu_shares: int | None = None  # one process that ranks are held against: on the first of so many shares of the CPUs
    instances: int | None = None  # above 1: so many at once, each a training of its own on its share of the CPUs

    @property
    def target(self) -> str:
        """Return what its workers run in, as records call it: the engine, with the arm's own image where it has one."""
        return f"{self.engine} {self.image}" if self.image else self.engine


def own_ranks(ranks: int) -> int | None:
    """Return what an arm has as ``ranks`` whose profile, or environment, trains on so many: one is as the plan says."""
    return ranks if ranks > 1 else None


@dataclass(frozen=True)
class Ablated:
    """A setting of a profile that is taken apart, and the arms that tell what it is worth; None is not measured."""

    setting: str
    needs: str | None  # the library without which nothing reads it
    alone: str | None  # the arm that has it alone, with the library that it needs
    beside: str  # what that is compared with: the reference, or the arm that has the library alone
    without: str | None  # the arm that has all but it, with which the whole profile is compared

    def pairs(self, whole: str) -> list[tuple[str, str]]:
        """Return what is compared with what to tell it; ``whole`` is the arm with all settings."""
        alone = [(self.alone, self.beside)] if self.alone is not None else []
        return [*alone, (whole, self.without)] if self.without is not None else alone


@dataclass(frozen=True)
class WorkloadSpec:
    """How a workload is trained. Steps of 0 follow from the machine's pace (``Plan.sized``)."""

    warmup_steps: int
    steps: int
    data: str  # a folder, or what stands for one


@dataclass(frozen=True)
class StoppingRule:
    """When a run ends. Times are in seconds."""

    budget_s: float
    blocks: int  # above 0: so many, however long they take
    precision: float  # precise enough: half of the interval's width, as a share of the ratio
    margin: float  # the smallest difference that matters, as a share
    timeout_s: float  # of one worker
    open_ended: bool = False  # nobody gave the budget: take longer where an interval does


@dataclass(frozen=True)
class Plan:
    """The plan of a run. The first arm is the reference that the others are compared with."""

    arms: tuple[Arm, ...]
    workload: str  # of the arms that have none of their own; the name of a user's command
    workloads: dict[str, WorkloadSpec]  # by name, all that are trained
    stopping: StoppingRule
    seed: int
    engine_options: dict[str, str] = field(default_factory=dict)  # those of EngineOptions that were given
    user_command: UserCommand | None = None
    options: Options = USUAL  # the modes in which everything is trained
    epochs: int = 0  # above 0: the full training, in one block unless the stopping rule has more
    until: str | None = None  # with epochs: what a training ends after, as accuracy=0.85
    ranks: int = 1  # processes that train together on each node
    nodes: int = 1
    # Names of further arms to compare with: an arm is compared with the one of all references that trains the same.
    more_references: tuple[str, ...] = ()
    more_comparisons: int = 0  # between other arms than the reference: they share the error rate too
    # Where a profile is taken apart: its settings. The second arm is the whole profile.
    ablated: tuple[Ablated, ...] = ()
    weak: bool = False  # the batch grows with the ranks (WEAK)

    @property
    def reference(self) -> Arm:
        return self.arms[0]

    @property
    def references(self) -> tuple[Arm, ...]:
        """The arms that others are compared with; but for a run of several workloads it is one."""
        return (self.arms[0], *(arm for arm in self.arms[1:] if arm.name in self.more_references))

    def reference_of(self, arm: Arm) -> Arm:
        """Return what ``arm`` is compared with."""
        if self.ablated:
            return self._beside(arm)
        same = (one for one in self.references if self.workload_of(one) == self.workload_of(arm))
        return next(same, self.reference)

    @property
    def whole(self) -> Arm:
        """Return the arm with all settings of a profile that is taken apart."""
        return self.arms[1]

    def _beside(self, arm: Arm) -> Arm:
        """What an arm is compared with where a profile is taken apart; one with all but a setting, with all of it.

        One that is two things is compared as what it is first: the whole, a setting alone, all but one.
        """
        if arm in (self.reference, self.whole):
            return self.reference
        return self.arm(next((one.beside for one in self.ablated if one.alone == arm.name), self.whole.name))

    @property
    def across(self) -> bool:
        """Whether profiles are compared on several workloads, each with a reference of its own."""
        return bool(self.more_references)

    @property
    def compares_images(self) -> bool:
        """Whether arms differ in their images."""
        return len({arm.image for arm in self.arms}) > 1

    @property
    def compared(self) -> tuple[Arm, ...]:
        """The arms that are compared with a reference."""
        more = (*self.more_references, *(arm.name for arm in self.single_processes))
        return tuple(arm for arm in self.arms[1:] if arm.name not in more)

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
    def one_process(self) -> Arm | None:
        """The one that all ranks are compared with: it has all CPUs, or in weak scaling as many as a rank; or None."""
        wanted = self.ranks if self.weak else 1
        return next((arm for arm in self.single_processes if arm.cpu_shares == wanted), None)

    @property
    def scaling(self) -> str:
        """STRONG or WEAK; empty where nothing is trained on several ranks."""
        return "" if not self.distributed else WEAK if self.weak else STRONG

    @property
    def at_once(self) -> tuple[Arm, ...]:
        """The arms in which several train at once, each by itself."""
        return tuple(arm for arm in self.arms if arm.instances)

    def alone(self, arm: Arm) -> Arm | None:
        """One process under the profile of several at once, where that is not the reference."""
        alike = (one for one in self.compared if (one.profile, one.target) == (arm.profile, arm.target))
        return next((one for one in alike if not one.instances), None)

    @property
    def contrasts(self) -> tuple[tuple[Arm, Arm], ...]:
        """All that share the error rate: an arm, and what it is compared with."""
        pairs = ((arm, one) for arm in self.distributed for one in self.single_processes)
        scaling = ((arm, one) for arm, one in pairs if one == self.one_process or one.profile == arm.profile)
        alone = ((arm, one) for arm in self.at_once if (one := self.alone(arm)))
        return (*((arm, self.reference_of(arm)) for arm in self.compared), *scaling, *alone, *self._of_settings)

    @property
    def _of_settings(self) -> tuple[tuple[Arm, Arm], ...]:
        """What else is compared to tell what settings are worth: pairs that are not among those with a reference."""
        known = {frozenset((arm.name, self.reference_of(arm).name)) for arm in self.compared}
        pairs = dict.fromkeys(pair for one in self.ablated for pair in one.pairs(self.whole.name))
        more = {frozenset(pair): pair for pair in pairs if frozenset(pair) not in known}
        return tuple((self.arm(one), self.arm(other)) for one, other in more.values())

    @property
    def sharing(self) -> int:
        """How many comparisons share the error rate; at least 1."""
        return max(1, len(self.contrasts) + self.more_comparisons)

    @property
    def fewest_blocks(self) -> int:
        """The fewest in which each comparison can have an interval; of a profile that is taken apart a few at least."""
        return max(fewest_blocks(self.sharing), LEAST_ABLATED if self.ablated else 0)

    @property
    def one_run_each(self) -> bool:
        """Whether it is one full training per arm, which gives a ratio and no interval."""
        return self.epochs > 0 and self.stopping.blocks <= 1

    @property
    def step_name(self) -> str:
        """Return what reports call a step: the whole command is one where no metric tells its steps."""
        return "run" if self.user_command is not None and self.user_command.is_one_step else "step"

    def order(self, block: int) -> list[Arm]:
        """The arms in the order in which block ``block`` (from 0) runs them: random, and the same for one seed.

        Arms that are compared with each other run one after the other where there are several references: a block is
        long then, and a machine may change in the course of it.
        """
        shuffled = list(self.arms)
        chance = random.Random(f"{self.seed}:{block}")
        chance.shuffle(shuffled)
        if not self.across:
            return shuffled
        turns = list(self.workloads)
        chance.shuffle(turns)
        return sorted(shuffled, key=lambda arm: turns.index(self.workload_of(arm)))

    def padding(self, block: int, arm: Arm) -> int:
        """How many bytes to add to the environment of this sample's process, from 0 up to MOST_PADDING.

        A profile's variables change the size of the environment, which moves the stack, which alone can change how fast
        code runs (Mytkowicz, Diwan, Hauswirth, Sweeney: Producing wrong data without doing anything obviously wrong,
        ASPLOS 2009). With a size that is drawn for each sample this is noise, and no longer takes one profile's side.
        """
        return random.Random(f"{self.seed}:{block}:{arm.name}").randrange(MOST_PADDING + 1)

    @property
    def how(self) -> str:
        """Modes and ranks in words: ``bf16-autocast, 2 ranks``; empty where nothing was said."""
        ranks = f"{self.ranks * self.nodes} ranks" if self.ranks * self.nodes > 1 else ""
        return ", ".join(filter(None, (self.options.text(), ranks, WEAK if self.weak else "")))

    def arm(self, name: str) -> Arm:
        """The arm of that name. Raises KeyError if it is missing."""
        return {arm.name: arm for arm in self.arms}[name]

    def workload_of(self, arm: Arm) -> str:
        return arm.workload or self.workload

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

    def with_steps(self, steps: int) -> Plan:
        """The plan with samples of so many steps, of all workloads; a command that is paced keeps its pace."""
        if self.user_command is not None and self.user_command.is_paced:
            return self
        return replace(self, workloads={name: replace(one, steps=steps) for name, one in self.workloads.items()})

    def sized(self, steps: Mapping[str, int], warmup_steps: Mapping[str, int]) -> Plan:
        """The plan with the lengths of samples as they were fixed, by the workload's name."""
        sized = {
            name: replace(one, steps=steps[name], warmup_steps=warmup_steps[name])
            for name, one in self.workloads.items()
        }
        return replace(self, workloads=sized)

    def worker_arguments(self, arm: Arm, block: int | None = None) -> tuple[str, ...]:
        """Return what follows ``python -m envkit.worker`` in a sample of ``arm``.

        In one block of the references what was learnt is tested too, if it is something: it is the same in all others,
        where losses are.
        """
        if self.user_command is not None:
            return self._of_command(self.workload_spec(arm))
        trained = self.workload_spec(arm)
        length = self._whole_training if self.epochs else ("--steps", str(trained.steps))
        tested = block == LEARNT_BLOCK and arm in self.references and trained.steps >= LEARNT_STEPS
        test = ("--quality",) if tested and not self.epochs else ()
        warmup = ("--warmup-steps", str(trained.warmup_steps))
        return self._launched(arm, (*self._training(arm), *warmup, *length, *test))

    def first_arguments(self, arm: Arm, steps: int = 1, seconds: float = 0.0) -> tuple[str, ...]:
        """The same training, to see its pace: ``steps`` steps and more until ``seconds`` have passed, without a look at
        what ranks say to each other; all of it for a command of the user's.

        Several ranks take just so many steps: by clocks of their own they could take different numbers.
        """
        if self.user_command is not None:
            return self.user_command.worker_arguments(max(1, self.user_command.warmup_lines), steps, seconds)
        ranked = self.ranks_of(arm) > 1
        longer = ("--unprofiled",) if ranked else ("--seconds", f"{seconds:g}") if seconds else ()
        return self._launched(arm, (*self._training(arm), "--steps", str(steps), *longer))

    def _of_command(self, trained: WorkloadSpec) -> tuple[str, ...]:
        """Return the arguments of a sample of the user's command; before its steps are fixed those that show its pace.

        A command that is not paced has its own number of steps.
        """
        assert self.user_command is not None, "there is one"
        if trained.steps:
            return self.user_command.worker_arguments(trained.warmup_steps, trained.steps)
        return self.user_command.worker_arguments(max(1, trained.warmup_steps), PACE_STEPS, PACE_S)

    @property
    def _whole_training(self) -> tuple[str, ...]:
        until = ("--until", self.until) if self.until is not None else ()
        return ("--epochs", str(self.epochs), *until)

    def _training(self, arm: Arm) -> tuple[str, ...]:
        data = self.workload_spec(arm).data
        return ("train", "--workload", self.workload_of(arm), "--data", data, *self.options_of(arm).arguments())

    def _launched(self, arm: Arm, training: tuple[str, ...]) -> tuple[str, ...]:
        """The same on the ranks, or the part of the CPUs, that ``arm`` has; or several times at once."""
        if arm.instances:
            return ("instances", "--number", str(arm.instances), "--", *training)
        shares = arm.cpu_shares or 1
        if self.ranks_of(arm) == 1 and shares == 1:
            return training
        part = ("--of", str(shares)) if shares > 1 else ()
        nodes = ("--nodes", str(self.nodes)) if self.nodes > 1 and arm.ranks is None else ()
        return ("ranks", "--nproc", str(arm.ranks or self.ranks), *part, *nodes, "--", *training)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Plan:
        """Parse a document. Raise KeyError, TypeError or ValueError if it is invalid."""
        for name in ("arms", "workloads", "more_references", "ablated"):
            if len(document[name]) > MOST_ENTRIES:
                raise codec.Misfit(ManyEntries(f"plan.{name}", MOST_ENTRIES))
        found = {
            "arms": tuple(Arm(**arm) for arm in document["arms"]),
            "workloads": {name: WorkloadSpec(**one) for name, one in document["workloads"].items()},
            "stopping": StoppingRule(**document["stopping"]),
            "user_command": UserCommand.from_json(document["user_command"]),
            "options": Options(**document["options"]),
            "more_references": tuple(document["more_references"]),
            "ablated": tuple(Ablated(**one) for one in document["ablated"]),
        }
        return codec.checked(Plan(**{**document, **found}))
