"""Messages about jobs: why a node did not measure, and how a job goes. The subject of a clause is the node.

Numbers of jobs are texts, as Slurm's are. Times are in seconds.
"""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ADVICE = Severity.NOTE, Severity.WARNING, Severity.ADVICE

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

    code = "cluster.invalid-submission"
    template = "{file}: not the settings of a submission ({reason}); submit again"

    file: str
    reason: Message


# --- what a node reports before it measures ---


class ClockApart(Message):
    """The clock of a node is ahead of that of ``host`` by more than is tolerated; behind it below 0."""

    code = "cluster.clock-apart"
    template = (
        "its clock differs from that of {host} by {seconds:+,.0f} s, so their records don't fit together; "
        "set the clocks (chronyc makestep, or ask the cluster's administrators), or measure anyway with --force"
    )

    host: str
    seconds: float


class NotShared(Message):
    """A node has another folder under the name of the submission's, or none."""

    code = "cluster.not-shared"
    template = (
        "{folder}: the results folder is a different one there; give one that all nodes share with --output, "
        "for example in your home"
    )

    folder: str


class PythonMissing(Message):
    """A node can't run the Python that submitted."""

    code = "cluster.python-missing"
    template = (
        "{python}: missing, or can't be run; put the project with its .venv on a file system that all nodes share, "
        "and submit from there"
    )

    python: str


class ProjectMissing(Message):
    """A node does not have the kit's code."""

    code = "cluster.project-missing"
    template = (
        "{project}: the project's code is missing; put it on a file system that all nodes share, and submit from there"
    )

    project: str


# --- what became of a node ---


class LeftNothing(Message):
    """A job ran and left no file."""

    code = "cluster.left-nothing"
    template = "its job {job} left no results: {problem}"

    job: str
    problem: Message


class DidNotBegin(Message):
    """A node has not begun its part."""

    code = "cluster.did-not-begin"
    template = "did not begin: {cause}"

    cause: Message


class DidNotEnd(Message):
    """A node has begun and did not report how its part ended."""

    code = "cluster.did-not-end"
    template = "did not end by itself: {cause}"

    cause: Message


class DidNotConfirm(Message):
    """A node has searched, and did not confirm what the nodes found."""

    code = "cluster.did-not-confirm"
    template = "has searched and did not confirm: {cause}"

    cause: Message


class OutOfService(Message):
    """Slurm has taken a node out of service. ``state`` is in Slurm's words."""

    code = "cluster.out-of-service"
    template = "Slurm says that the node is {state}"

    state: str


class JobForgotten(Message):
    """Slurm tells nothing more of a job, some minutes after its end."""

    code = "cluster.job-forgotten"
    template = "its job has ended, and Slurm knows no more about it"


class JobEnded(Message):
    """A job came to an end of which the meaning is one of ``MEANINGS``."""

    code = "cluster.job-ended"
    template = "{meaning}[ ({reason})]"

    meaning: str
    reason: str | None = None


class JobEndedAs(Message):
    """A job came to another end; ``log`` is the file of what it printed."""

    code = "cluster.job-ended-as"
    template = "its job {job} ended as {state}[ ({reason})]; see {log}"

    job: str
    state: str
    log: str
    reason: str | None = None


class TargetsNotReached(Message):
    """Trainings ended before they reached the target."""

    code = "cluster.targets-not-reached"
    severity = WARNING
    template = "{trainings:lines}"

    trainings: tuple[Message, ...]


class WorkerFailed(Message):
    """A worker failed and ended a node's run. ``printed`` is its last line."""

    code = "cluster.worker-failed"
    template = "block {block}, {arm}: the worker {problem}[: {printed}]"

    block: int
    arm: str
    problem: Message
    printed: str | None = None


class PartFailed(Message):
    """A node's part failed; ``log`` is the file of what it printed."""

    code = "cluster.part-failed"
    template = "failed[ with exit status {status}]; see {log}"

    log: str
    status: int | None = None


# --- how a job goes ---


class JobWaits(Message):
    """A job has not started. ``reason`` is Slurm's."""

    code = "cluster.job-waits"
    severity = NOTE
    template = "job {job} waits: {reason}"

    job: str
    reason: str


class JobIs(Message):
    """A job is in a state of Slurm's."""

    code = "cluster.job-is"
    severity = NOTE
    template = "job {job}: {state}[ on {nodes}]"

    job: str
    state: str
    nodes: str | None = None


class InState(Message):
    """How many jobs are in a state of Slurm's."""

    code = "cluster.in-state"
    severity = NOTE
    template = "{number} {state}"

    number: int
    state: str


class JobsAre(Message):
    """How the jobs of a fleet go. ``reason`` is why most of those that wait do."""

    code = "cluster.jobs-are"
    severity = NOTE
    template = "{jobs} jobs: {states:list}[; most of those that wait: {reason}]"

    jobs: int
    states: tuple[Message, ...]
    reason: str | None = None


class SlurmSilent(Message):
    """Slurm does not answer while a job is followed."""

    code = "cluster.slurm-silent"
    severity = WARNING
    template = "Slurm does not answer; the job goes on, and envkit waits"


class CancellingLate(Message):
    """Jobs of a fleet are cancelled because they did not start in time."""

    code = "cluster.cancelling-late"
    severity = WARNING
    template = "cancelling the jobs of {nodes:count node} that did not start in time (--start-within)"

    nodes: int


class NotCancelled(Message):
    """Slurm did not cancel jobs."""

    code = "cluster.not-cancelled"
    severity = WARNING
    template = "Slurm did not cancel them, and envkit tries again: {problem}"

    problem: Message


# --- what a submission's table says below it ---


class IntervalsOfNodes(Message):
    """Several nodes have an interval each."""

    code = "cluster.intervals-of-nodes"
    severity = NOTE
    template = (
        "each node has its own interval and error rate: "
        "of 20 nodes without any difference, one is expected to show a difference"
    )


class ReportInFull(Message):
    """The command that prints a report."""

    code = "cluster.report-in-full"
    severity = ADVICE
    template = "in full: {command:command}"

    command: tuple[str, ...]


class ReportOfEach(Message):
    """The command that prints the report of a node."""

    code = "cluster.report-of-each"
    severity = ADVICE
    template = "of each node: {command:command}"

    command: tuple[str, ...]
