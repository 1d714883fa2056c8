"""Candidates shared by nodes that search one space: an Optuna study in a shared folder.

Each candidate is one trial of the study, whose number is the candidate's on all nodes. The node that claims it measures
it first. After each round a node says all that it has found so far, of its own and of other nodes' candidates: the
logarithms of its own baseline's time over the candidate's, both of one round. So no ratio mixes nodes. That is an
attribute of the study, said at once, because nodes have to write one after the other. What each worker measured in full
is in the record of its node.

The study is kept as Optuna's journal, a file that grows (``journal``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct, ValidationError, convert, to_builtins

from envkit.common.errors import MISFITS, InputError
from envkit.messages import from_json
from envkit.tuning.messages import NotShared
from envkit.tuning.space import Choice, Space
from envkit.tuning.trial_store import Entry, TrialStore

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

FILE_NAME = "trials.journal"
STUDY = "envkit"
# Names of a trial's attributes; that of a rung is followed by its number.
NODE, KEY, TITLE, SHIPPED, CHOICE, RUNG = "node", "key", "title", "shipped", "choice", "rung "
FOUND = "found"  # the topic of ``Results``
Made = TypeVar("Made")


class Results(Struct, frozen=True, kw_only=True):
    """The log speedups of a node's candidates, and messages (as JSON) on those that failed, by number as text."""

    ratios: dict[str, list[float]] = {}
    problems: dict[str, dict[str, object]] = {}


def storage_in(folder: Path) -> BaseStorage:
    """Return the storage in ``folder`` that nodes share. Raise InputError if the folder can't hold one."""
    import optuna
    from optuna.storages import JournalStorage

    from envkit.tuning.journal import Journal

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / FILE_NAME
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            storage = JournalStorage(Journal(path))
            if not storage.get_all_studies():
                optuna.create_study(storage=storage, study_name=STUDY, direction="maximize", load_if_exists=True)
            storage.get_study_id_from_name(STUDY)
        except InputError:
            raise
        except (*MISFITS, AssertionError):  # lines of JSON that are no journal's
            raise InputError(NotShared(str(path))) from None
    return storage


def publish(storage: BaseStorage, node: str, topic: str, value: object) -> None:
    """Share a node's plain data on a topic with all nodes. It takes the place of the node's earlier data."""
    study = storage.get_study_id_from_name(STUDY)
    storage.set_study_user_attr(study, f"{topic} {node}", value)


def published(storage: BaseStorage, topic: str, kind: type[Made]) -> dict[str, Made]:
    """Return what nodes have published on a topic, by node, the first node first. Raise InputError for other data."""
    attributes = storage.get_study_user_attrs(storage.get_study_id_from_name(STUDY))
    prefix = f"{topic} "
    values = {name.removeprefix(prefix): value for name, value in attributes.items() if name.startswith(prefix)}
    try:
        return {node: convert(value, kind) for node, value in values.items()}
    except ValidationError:
        raise InputError(NotShared(FILE_NAME)) from None


class Peers(Protocol):
    """``nodes`` is how many search, this one among them."""

    @property
    def nodes(self) -> int: ...

    def rejoin(self, store: TrialStore, space: Space) -> Sequence[int]:
        """Begin, or go on after an interruption, with what others have found.

        ``space`` is what can be chosen from here. Return the numbers of the candidates that this node is to measure,
        which its record need not have.
        """
        ...

    def take_in(self, store: TrialStore) -> Mapping[str, int]:
        """Put into ``store`` what others have found since; return the numbers of all candidates by their identity."""
        ...

    def claim(self, store: TrialStore, key: str, choice: Choice | None, shipped: str | None, title: str) -> int | None:
        """The number of a new candidate, which this node then measures; None where another was faster."""
        ...

    def is_own(self, number: int) -> bool:
        """Return whether it is this node that gives a candidate the trials that it lacks."""
        ...

    def promote(self, rungs: Mapping[int, int]) -> None:
        """Say that this node gives these candidates the trials of their next rungs."""
        ...

    def tell(self, store: TrialStore) -> None:
        """Say what was measured here so far: what holds no longer is taken back."""
        ...


class Alone:
    """One node has all to itself, and counts its candidates."""

    nodes = 1

    def rejoin(self, store: TrialStore, space: Space) -> Sequence[int]:
        return ()

    def take_in(self, store: TrialStore) -> Mapping[str, int]:
        return {}

    def claim(self, store: TrialStore, key: str, choice: Choice | None, shipped: str | None, title: str) -> int | None:
        return len(store.entries)

    def is_own(self, number: int) -> bool:
        return True

    def promote(self, rungs: Mapping[int, int]) -> None:
        pass

    def tell(self, store: TrialStore) -> None:
        pass


class SharedTrials:
    """One node's view of the study; ``nodes`` is how many there are. The others are its peers."""

    def __init__(self, storage: BaseStorage, node: str, nodes: int, space: Space) -> None:
        self.node, self.nodes = node, nodes
        self._space, self._storage = space, storage
        self._study = storage.get_study_id_from_name(STUDY)
        self._ids: dict[int, int] = {}  # Optuna's own of each trial
        self._own: set[int] = set()

    def rejoin(self, store: TrialStore, space: Space) -> Sequence[int]:
        self._space = space
        self.take_in(store)
        return [number for number in store.entries if self.is_own(number)]

    def take_in(self, store: TrialStore) -> Mapping[str, int]:
        numbers: dict[str, int] = {}
        levels = {parameter.name: parameter.levels for parameter in self._space.parameters}
        for trial in self._storage.get_all_trials(self._study, deepcopy=False):
            self._ids[trial.number] = trial._trial_id
            attributes = trial.user_attrs
            number = numbers.setdefault(attributes[KEY], trial.number)  # two nodes may have claimed it at once
            choice, shipped = attributes[CHOICE], attributes[SHIPPED]
            applies = all(level in levels.get(name, ()) for name, level in (choice or {}).items())
            if applies or shipped is not None:  # else it has what only others have, as a library of theirs
                entry = Entry(number, choice if applies else None, shipped, attributes[TITLE])
                store.entries.setdefault(number, entry)
            rungs = {int(name.removeprefix(RUNG)): node for name, node in attributes.items() if name.startswith(RUNG)}
            store.rung_of[number] = max([store.rung_of.get(number, 0), *rungs])
            if number == trial.number:
                owner = rungs.get(store.rung_of[number], attributes[NODE])
                (self._own.add if owner == self.node else self._own.discard)(number)
        store.elsewhere = {}
        for node, results in published(self._storage, FOUND, Results).items():
            if node == self.node:
                continue
            for text, ratios in results.ratios.items():
                store.elsewhere.setdefault(int(text), []).extend(ratios)
            for text, problem in results.problems.items():
                store.problems.setdefault(int(text), from_json(problem))
        return numbers

    def claim(self, store: TrialStore, key: str, choice: Choice | None, shipped: str | None, title: str) -> int | None:
        import optuna

        levels = {
            parameter.name: tuple(parameter.levels)
            for parameter in self._space.parameters
            if parameter.name in (choice or {})
        }
        distributions: dict[str, optuna.distributions.BaseDistribution] = {
            name: optuna.distributions.CategoricalDistribution(choices) for name, choices in levels.items()
        }
        trial = optuna.create_trial(
            state=optuna.trial.TrialState.RUNNING, params=choice or {}, distributions=distributions,
            user_attrs={NODE: self.node, KEY: key, TITLE: title, SHIPPED: shipped, CHOICE: choice},
        )  # fmt: skip
        identity = self._storage.create_new_trial(self._study, template_trial=trial)
        number = self._storage.get_trial_number_from_id(identity)
        first = next(
            other_trial
            for other_trial in self._storage.get_all_trials(self._study, deepcopy=False)
            if other_trial.user_attrs[KEY] == key
        )
        if first.number != number:
            return None
        self._ids[number] = identity
        self._own.add(number)
        return number

    def is_own(self, number: int) -> bool:
        return number in self._own

    def promote(self, rungs: Mapping[int, int]) -> None:
        for number, rung in rungs.items():
            self._storage.set_trial_user_attr(self._ids[number], f"{RUNG}{rung}", self.node)
            self._own.add(number)

    def tell(self, store: TrialStore) -> None:
        results = Results(
            ratios={str(number): ratios for number in store.entries if (ratios := store.own_ratios(number))},
            problems={str(number): store.problems[number].to_json() for number in store.failed_in},
        )
        if results != published(self._storage, FOUND, Results).get(self.node, Results()):
            publish(self._storage, self.node, FOUND, to_builtins(results))
