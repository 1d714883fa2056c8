"""The final knowledge of a search by several nodes: the trials of all their records together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from envkit.profiles.environment import Environment
from envkit.tuning.events import Event, NewCandidate
from envkit.tuning.narrow import identity
from envkit.tuning.trial_store import BASELINE, TrialStore


def merged(records: Sequence[Sequence[Event]]) -> TrialStore:
    """The candidates and trials of these records. Their numbers mean the same in all, but for two that nodes claimed
    at once, which become one; finalists are those that at least half of the nodes with any had.
    """
    together = TrialStore()
    first: dict[str, int] = {}
    names: dict[int, int] = {BASELINE: BASELINE}
    candidates = [event for events in records for event in events if isinstance(event, NewCandidate)]
    for event in sorted(candidates, key=lambda event: event.number):
        key = identity(Environment.from_json(event.environment))
        names[event.number] = first.setdefault(key, event.number)
    finals: Counter[int] = Counter()
    deciding = 0
    for events in records:
        own = TrialStore.of(events)
        offset = len(together.rounds)
        together.entries |= {names[number]: one for number, one in own.entries.items() if names[number] == number}
        together.rounds += [[names[one] for one in order] for order in own.rounds]
        together.step_s += [{names[one]: time for one, time in times.items()} for times in own.step_s]
        together.problems |= {names[number]: text for number, text in own.problems.items()}
        together.failed_in |= {names[number]: offset + at for number, at in own.failed_in.items()}
        for number, rung in own.rung_of.items():
            together.rung_of[names[number]] = max(rung, together.rung_of.get(names[number], 0))
        for number, seconds in own.trials_s_of.items():
            together.trials_s_of.setdefault(names[number], []).extend(seconds)
        together.spent_s += own.spent_s
        finals.update({names[number] for number in own.finalists})
        deciding += bool(own.finalists)
    together.finalists = sorted(number for number, times in finals.items() if 2 * times >= deciding)
    return together
