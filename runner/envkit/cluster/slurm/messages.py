"""Messages about jobs: why a node did not measure, and how a job goes. The subject of a clause is the node.

Numbers of jobs are texts, as Slurm's are. Times are in seconds.
"""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

# What a node did not do.
NOT_BEGUN = "did not begin"
NOT_ENDED = "did not end by itself"
NOT_CONFIRMED = "has searched and did not confirm"
# What a command reports.
IN_FULL = "in full"
OF_EACH = "of each node"

GIVE_SUBMISSION = "give the folder of a submission"
# What the end of a job means for a node that did not report how its part ended, by Slurm's states, and by that of a job
# that was cancelled because it had not started in time (``envkit.cluster.slurm.follow.LATE``).
MEANINGS = {
    "TIMEOUT": "the job's time limit ended it",
    "NODE_FAIL": "the node died",
    "CANCELLED": "the job was cancelled",
    "PREEMPTED": "another job took its place",
    "OUT_OF_MEMORY": "the job used more memory than it had",
    "BOOT_FAIL": "the node did not come up",
    "DEADLINE": "the job's deadline ended it",
    "LATE": "its job did not start in time (--start-within)",
}


class InvalidSubmission(Message):
    """A file is not the settings of a submission, or was damaged."""

    template = "{file}: not the settings of a submission ({reason}); submit again"

    file: str
    reason: Message


# --- what a node reports before it measures ---


class ClockApart(Message):
    """The clock of a node is ahead of that of ``host`` by more than is tolerated; behind it below 0."""

    template = (
        "its clock differs from that of {host} by {seconds:+,.0f} s, so their records don't fit together; "
        "set the clocks (chronyc makestep, or ask the cluster's administrators), or measure anyway with --force"
    )

    host: str
    seconds: float


class NotShared(Message):
    """A node has another folder under the name of the submission's, or none."""

    template = (
        "{folder}: the results folder is a different one there; give one that all nodes share with --output, "
        "for example in your home"
    )

    folder: str


class PythonMissing(Message):
    """A node can't run the Python that submitted."""

    template = (
        "{python}: missing, or can't be run; put the project with its .venv on a file system that all nodes share, "
        "and submit from there"
    )

    python: str


class ProjectMissing(Message):
    """A node does not have the kit's code."""

    template = (
        "{project}: the project's code is missing; put it on a file system that all nodes share, and submit from there"
    )

    project: str


# --- what became of a node ---


class LeftNothing(Message):
    """A job ran and left no file."""

    template = "its job {job} left no results: {problem}"

    job: str
    problem: Message


class NotDone(Message):
    """A node did not do its part."""

    template = "{outcome}: {cause}"

    outcome: str  # one of those above
    cause: Message


class OutOfService(Message):
    """Slurm has taken a node out of service. ``state`` is in Slurm's words."""

    template = "Slurm says that the node is {state}"

    state: str


class JobForgotten(Message):
    """Slurm tells nothing more of a job, some minutes after its end."""

    template = "its job has ended, and Slurm knows no more about it"


class JobEnded(Message):
    """A job came to an end of which the meaning is one of ``MEANINGS``."""

    template = "{meaning}[ ({reason})]"

    meaning: str
    reason: str | None = None


class JobEndedAs(Message):
    """A job came to another end; ``log`` is the file of what it printed."""

    template = "its job {job} ended as {state}[ ({reason})]; see {log}"

    job: str
    state: str
    log: str
    reason: str | None = None


class WorkerFailed(Message):
    """A worker failed and ended a node's run. ``printed`` is its last line."""

    template = "block {block}, {arm}: the worker {problem}[: {printed}]"

    block: int
    arm: str
    problem: Message
    printed: str | None = None


class PartFailed(Message):
    """A node's part failed; ``log`` is the file of what it printed."""

    template = "failed[ with exit status {status}]; see {log}"

    log: str
    status: int | None = None


# --- how a job goes ---


class JobWaits(Note):
    """A job has not started. ``reason`` is Slurm's."""

    template = "job {job} waits: {reason}"

    job: str
    reason: str


class JobIs(Note):
    """A job is in a state of Slurm's."""

    template = "job {job}: {state}[ on {nodes}]"

    job: str
    state: str
    nodes: str | None = None


class InState(Note):
    """How many jobs are in a state of Slurm's."""

    template = "{number} {state}"

    number: int
    state: str


class JobsAre(Note):
    """How the jobs of a fleet go. ``reason`` is why most of those that wait do."""

    template = "{jobs} jobs: {states:list}[; most of those that wait: {reason}]"

    jobs: int
    states: tuple[Message, ...]
    reason: str | None = None


class SlurmSilent(Caution):
    """Slurm does not answer while a job is followed."""

    template = "Slurm does not answer; the job goes on, and envkit waits"


class CancellingLate(Caution):
    """Jobs of a fleet are cancelled because they did not start in time."""

    template = "cancelling the jobs of {nodes:count node} that did not start in time (--start-within)"

    nodes: int


class NotCancelled(Caution):
    """Slurm did not cancel jobs."""

    template = "Slurm did not cancel them, and envkit tries again: {problem}"

    problem: Message


# --- what a submission's table says below it ---


class IntervalsOfNodes(Note):
    """Several nodes have an interval each."""

    template = (
        "each node has its own interval and error rate: "
        "of 20 nodes without any difference, one is expected to show a difference"
    )


class ReportCommand(Advice):
    template = "{scope}: {command:command}"

    scope: str  # IN_FULL or OF_EACH
    command: tuple[str, ...]
