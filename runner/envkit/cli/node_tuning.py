"""A node's part of a tuning by several nodes: say what it is, search beside the others, confirm what all have found."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import to_builtins

from envkit import engines
from envkit.analysis.engine_facts import cpu_name
from envkit.bench import record
from envkit.bench.context import ExecutionContext
from envkit.bench.decide import ENDED
from envkit.bench.decide import INTERRUPTED as CUT_SHORT
from envkit.bench.record import Record
from envkit.cli.node_messages import FoundElsewhereOnly, NothingFound, NotSearched, OtherType
from envkit.cli.tuning import first_event, require_same_tuning, session_of
from envkit.cluster.slurm import node_preflight, node_status
from envkit.cluster.slurm.settings import Settings
from envkit.common import atomic, yamlfile
from envkit.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from envkit.common.machine_lock import machine_lock
from envkit.rendering import text_of
from envkit.tuning import conclusion, events, session, space_file
from envkit.tuning.events import Event
from envkit.tuning.session import Session
from envkit.tuning.shared_trials import SharedTrials, publish, published, storage_in
from envkit.tuning.trial_store import Entry, merged
from envkit.tuning.trials import BaselineFailed
from envkit.worker.host import cpu_facts, fingerprint

# The stages of a node's part, as the batch script calls them: each ends on all nodes before the next begins.
KIND, SEARCH, CONFIRM = "--kind", "--search", "--confirm"
# What nodes say to each other: of which type they are, and what all are to confirm.
TYPE, CHOSEN = "type", "chosen"


@dataclass(frozen=True)
class Chosen:
    """The choice that all nodes confirm: the numbers of the best candidate and the best shipped profile, and both."""

    best: int
    shipped: int | None
    candidates: list[Entry]


def say_type(folder: Path, node: str) -> None:
    """Have the other nodes know of which type this one is."""
    here = fingerprint()
    kind = f"{cpu_name(here)}, {cpu_facts()['usable_cpus']} usable CPUs ({here['architecture']})"
    publish(storage_in(folder), node, TYPE, kind)


def require_same_type(folder: Path, node: str, job: str) -> None:
    """Raise InputError where this node is of another type than most that are in the job: their times don't go together.

    If two types have equally many nodes, the one whose node spoke first is searched for.
    """
    called = node_preflight.read(folder, job)
    here = {node, *(called.times if called else ())}
    if node not in published(storage_in(folder), TYPE, str):
        say_type(folder, node)  # it was kept from it, when that was its turn
    types = {name: kind for name, kind in published(storage_in(folder), TYPE, str).items() if name in here}
    usual, _ = Counter(types.values()).most_common(1)[0]
    if types[node] != usual:
        raise InputError(OtherType(types[node], usual))


def search(settings: Settings, folder: Path, place: Path, node: str, number: int) -> int:
    """Search until this node's time is used up; returns the exit status. ``number`` is the node's in the job."""
    with machine_lock():
        engines.remove_leftovers()
        with _reopened(place) if record.is_begun(place) else _begun(settings, folder, place) as opened:
            searching = _session(settings, folder, opened, node, number)
            try:
                if chosen(folder) is not None:  # this node takes the place of one that is gone
                    searching.warm()
                else:
                    searching.run_search()
                    if searching.search.best() is None and not searching.store.problems:
                        raise InputError(conclusion.no_room(searching.search.least_budget_s, searching.events))
            except BaselineFailed as error:
                print(f"envkit: {text_of(error)}", file=sys.stderr)
                return FAILED
            except KeyboardInterrupt:
                opened.append("end", reason=CUT_SHORT)
                raise
    return MEASURED


def confirm(settings: Settings, folder: Path, place: Path, node: str, number: int) -> int:
    """Measure what all nodes have found; returns the exit status. Raises InputError."""
    if not record.is_begun(place):
        raise InputError(NotSearched())
    with machine_lock():
        engines.remove_leftovers()
        with _reopened(place) as opened:
            confirming = _session(settings, folder, opened, node, number)
            try:
                confirming.warm()  # a node that was killed early lacks it
            except BaselineFailed as error:
                print(f"envkit: {text_of(error)}", file=sys.stderr)
                return FAILED
            number_of_best, shipped = _chosen(confirming, folder, node)
            best = confirming.search.candidate(number_of_best)
            best_shipped = None if shipped is None else confirming.search.candidate(shipped)
            if best is None or (shipped is not None and best_shipped is None):
                raise InputError(FoundElsewhereOnly())
            reason, _ = confirming.confirmed(best, best_shipped, (number_of_best, shipped))
    return INTERRUPTED if reason == CUT_SHORT else MEASURED if reason in ENDED else FAILED


def _begun(settings: Settings, folder: Path, place: Path) -> Record:
    fields, _ = _intent(settings, folder)
    opened = Record.create(place)
    atomic.write(place / session.SPACE_FILE, yamlfile.content(folder / session.SPACE_FILE), private=True)
    opened.append_sealed("tune", **fields)
    return opened


def _intent(settings: Settings, folder: Path) -> tuple[record.Event, ExecutionContext]:
    """Prepare what the submission asks of this node, with the copy of the space in its ``folder``."""
    assert settings.tuning is not None, "only a tuning's nodes search"
    return first_event(replace(settings.tuning, space=str(folder / session.SPACE_FILE)))


def _reopened(place: Path) -> Record:
    opened = Record.reopen(place)
    opened.append("resume", command=sys.argv)
    return opened


def _session(settings: Settings, folder: Path, opened: Record, node: str, number: int) -> Session:
    place = opened.path.parent
    first, *later = record.read(place, "tune")
    fields, context = _intent(settings, folder)  # the record is only compared with what was submitted
    require_same_tuning(place, first, fields, context)
    space = space_file.read(place / session.SPACE_FILE)
    peers = SharedTrials(storage_in(folder), node, settings.nodes, space)
    return session_of(opened, [{**first, **fields}, *later], context, quiet=False, peers=peers, turn=number)


def _chosen(confirming: Session, folder: Path, node: str) -> tuple[int, int | None]:
    """The numbers of what is confirmed and of the best shipped profile, as the first node that asked has chosen.

    The search takes over what the others know of them. Raises InputError where nothing was found.
    """
    if chosen(folder) is None:
        publish(storage_in(folder), node, CHOSEN, to_builtins(choose(confirming, folder)))
    choice = chosen(folder)
    assert choice is not None, "this node has said it"
    for entry in choice.candidates:
        confirming.store.entries.setdefault(entry.number, entry)
        confirming.store.rung_of.setdefault(entry.number, 0)
    return choice.best, choice.shipped


def chosen(folder: Path) -> Chosen | None:
    """Return what the first node to ask has chosen, as `choose` has it; None before that."""
    return next(iter(published(storage_in(folder), CHOSEN, Chosen).values()), None)


def choose(confirming: Session, folder: Path) -> Chosen:
    """Return what is to be confirmed, by the trials of all nodes. Raise InputError if nothing was measured."""
    search, here = confirming.search, confirming.search.space
    search.store = store = merged(records(folder))
    search.space = space_file.read(confirming.folder / session.SPACE_FILE)  # another node may have more to choose from
    best, shipped = search.best(), search.best(shipped=True)
    search.store, search.space = confirming.store, here
    if best is None:
        raise InputError(NothingFound(next(iter(store.problems.values()), None)))
    candidates = [store.entries[number] for number in dict.fromkeys((best, shipped)) if number is not None]
    return Chosen(best, shipped, candidates)


def records(folder: Path) -> list[list[Event]]:
    """Return what each node that has begun to search has recorded."""
    places = sorted(folder / name for name in node_status.begun(folder))
    return [events.read(place) for place in places if record.is_begun(place)]
