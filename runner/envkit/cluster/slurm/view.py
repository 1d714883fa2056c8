"""Show how a job goes: a table of its nodes on a terminal, plain lines elsewhere. Written to stderr."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from envkit.cluster.slurm.messages import InState, JobIs, JobsAre, JobWaits
from envkit.cluster.slurm.watch import Sight
from envkit.common.live_view import LiveView, minutes
from envkit.common.plain_table import plain_table
from envkit.engines.slurm.client import Job
from envkit.messages import Message
from envkit.rendering import text

# So many nodes fit on a screen; of more there are numbers.
MOST_NODES = 20


class View(LiveView):
    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._said: set[str] = set()
        self._job_said = ""

    def show(self, jobs: Sequence[Job], nodes: Mapping[str, Sight]) -> None:
        if self.quiet:
            return
        line = text(of_jobs(jobs))
        if self.live:
            self.live.update(Group(Text(line), *_table(nodes)), refresh=True)
            return
        if line != self._job_said:
            self._job_said = line
            print(line, file=sys.stderr, flush=True)
        if len(nodes) > MOST_NODES:  # the line has how many are in which state
            return
        for name, sight in nodes.items():
            said = of_node(name, sight)
            if sight.state != "waiting" and said not in self._said:
                self._said.add(said)
                print(said, file=sys.stderr, flush=True)

    def say(self, message: Message) -> None:
        """Print a line that stays."""
        if self.live:
            self.live.console.print(Text(text(message)))
        elif not self.quiet:
            print(text(message), file=sys.stderr, flush=True)


def of_jobs(jobs: Sequence[Job]) -> Message:
    """Return how a job goes, or how many jobs of a fleet are in which state."""
    if len(jobs) == 1:
        return of_job(jobs[0])
    states = Counter(_state(job) for job in jobs)
    reasons = Counter(job.why for job in jobs if job.waits).most_common(1)
    counts = tuple(InState(count, state) for state, count in states.items())
    return JobsAre(len(jobs), counts, reasons[0][0] if reasons else None)


def of_job(job: Job) -> Message:
    """Return why a job waits, or its state."""
    return JobWaits(job.number, job.why) if job.waits else JobIs(job.number, _state(job), job.nodes)


def _state(job: Job) -> str:
    return job.state.lower().replace("_", " ")


def of_node(name: str, sight: Sight) -> str:
    """A node that measures is only counted: its blocks come too often for lines."""
    if sight.state == "measuring":
        return f"{name}: measuring"
    return f"{name}: {sight.state} ({sight.samples} samples)"


def _table(nodes: Mapping[str, Sight]) -> list[Table | Text]:
    if not nodes:
        return []
    if len(nodes) > MOST_NODES:
        states = [sight.state for sight in nodes.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        samples = sum(sight.samples for sight in nodes.values())
        return [Text(f"{len(nodes)} nodes: {counts}; {samples:,} samples")]
    figures = ("blocks", "samples", "spent")
    table = plain_table(("node", "state", *figures), right=figures)
    for name, sight in nodes.items():
        budget = f" of {minutes(sight.budget_s)}" if sight.budget_s else ""
        spent = f"{minutes(sight.spent_s)}{budget}"
        table.add_row(name, sight.state, str(len(sight.blocks)), str(sight.samples), spent)
    return [table]
