"""Messages of submissions: what is refused before a job, and what its nodes say."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

NOTHING_SUBMITTED, IS_SAFE = "nothing was submitted", "what was measured is safe in"


class UnfitFolderName(Message):
    """sbatch can't take the name of the submission's folder."""

    template = "--output {folder!r}: sbatch does not accept such a name; give a simpler one"

    folder: str


class JobRefused(Message):
    """Slurm refuses a job. ``folder`` has what earlier ones measured."""

    template = "sbatch refuses the job: {reason}; {outcome}[ {folder}]"

    reason: str
    outcome: str  # NOTHING_SUBMITTED, or IS_SAFE before a folder
    folder: str | None = None


class PerhapsSubmitted(Message):
    """Slurm did not answer while a job was submitted. ``again`` is the command that looks for it."""

    template = "{problem}; Slurm may have accepted the job anyway: check and continue with: {again}"

    problem: Message
    again: str


class ResumedByAnother(Message):
    """Another command goes on with this submission."""

    template = "--resume {folder}: goes on with: {again}"

    folder: str
    again: str


class Submitted(Note):
    """A job was submitted, and the command does not wait for it."""

    template = "job {job} was submitted; follow it with: {again}"

    job: str
    again: str


class JobNotStarted(Message):
    """A job did not start in time, and was cancelled."""

    template = (
        "job {job} did not start within {limit_s:g} s and was cancelled: Slurm says {reason}; "
        "wait longer with: {again} --start-within TIME"
    )

    job: str
    limit_s: float
    reason: str
    again: str


class JobStillQueued(JobNotStarted):
    """A job did not start in time, and Slurm did not cancel it."""

    template = (
        "job {job} did not start within {limit_s:g} s and could not be cancelled: Slurm says {reason}; "
        "wait longer with: {again} --start-within TIME"
    )


class Cancelling(Note):
    """The user ends a job."""

    template = "cancelling job {job}; what was measured stays (Ctrl-C again leaves without waiting for its end)"

    job: str


class NotCancelled(Message):
    """Slurm did not cancel a job, or several."""

    template = "job {job} could not be cancelled: {reason}; do it with: scancel {jobs:command}"

    job: str
    reason: Message
    jobs: tuple[str, ...]


class JointUnfinished(Message):
    """The run of all nodes together is not done."""

    template = "unfinished; continue with: {again}"

    again: str


class NodesUnfinished(Message):
    """Some nodes have not measured all."""

    template = "{measured:d} of {nodes:count node} measured; continue with: {again}"

    measured: int
    nodes: int
    again: str


class OwnRanks(Message):
    """A profile that has ranks of its own was asked for with --nproc."""

    template = "profile '{profile}' has {ranks:count rank} of its own; leave --nproc out"

    profile: str
    ranks: int


class FullOnFleet(Message):
    """A fleet was to train once on each node."""

    template = "--full trains once, and a node is judged by {least} samples at least; leave it out"

    least: int


class FewBlocksOnFleet(Message):
    """A fleet was to measure too few blocks to judge its nodes."""

    template = "--blocks {blocks:d}: a node is judged by {least} samples at least; give {least} or more"

    blocks: int
    least: int


class FewerThanNamed(Message):
    """--nodelist names more nodes than --nodes asks for."""

    template = "--nodes {nodes:d} is less than the {named:d} that --nodelist names; leave --nodes out"

    nodes: int
    named: int


class OutOfService(Caution):
    """Slurm can't start a job on some nodes now. ``state`` is Slurm's word for why."""

    template = "{nodes}: Slurm says {state}"

    nodes: str
    state: str


class LeftOutNodes(Caution):
    """Nodes out of service are given no job."""

    template = "left out: {nodes}"

    nodes: Message


class NoneInService(Message):
    """Slurm can start a job on none of the nodes."""

    template = "none of the nodes is in service[ ({nodes:lines})]; wait, or name others"

    nodes: tuple[Message, ...]


class Replaced(Caution):
    """Another node takes the place of one that is out of service."""

    template = "another node is asked for in place of {node}: Slurm says {state}"

    node: str
    state: str


class NodeOutOfService(Message):
    """A node of a training on several nodes is out of service."""

    template = (
        "{node}: Slurm says that the node is {state}; a training on several nodes goes on only where it was: "
        "wait for the node, or start a new run"
    )

    node: str
    state: str


class BadSbatchOption(Message):
    """sbatch has no option of the form that --sbatch was given."""

    template = "--sbatch {given!r}: must be a long option of sbatch without its dashes, as account=physics"

    given: str


class SetByScript(Message):
    """The batch script sets an option of sbatch itself. ``instead`` is the kit's own option for it."""

    template = "--sbatch {given}: the batch script sets {name} itself; leave it out[, and give {instead}]"

    given: str
    name: str
    instead: str | None = None


class TooManyNodes(Message):
    """A partition has fewer nodes than were asked for."""

    template = (
        "--nodes {nodes:d}: the partition {partition} has {there:d} ({hosts}); "
        "ask for fewer, or name another with --partition"
    )

    nodes: int
    partition: str
    there: int
    hosts: str


class UnknownNode(Message):
    """A partition lacks a node that was named."""

    template = "--nodelist: the partition {partition} has no node {node}; it has {hosts}; name others"

    partition: str
    node: str
    hosts: str


class NoDefaultPartition(Message):
    """A cluster has no default partition, and none was named."""

    template = "this cluster has no default partition; name one with --partition[; choose one of: {known:list}]"

    known: tuple[str, ...]


class UnknownPartition(Message):
    """A cluster lacks the partition that was named."""

    template = (
        "--partition {partition}: no such partition[ (did you mean '{suggestion}'?)][; choose one of: {known:list}]"
    )

    partition: str
    known: tuple[str, ...]
    suggestion: str | None = None


class BadNodelist(Message):
    """Slurm does not understand a list of nodes."""

    template = "--nodelist {nodelist}: {reason}; write for example node1,node2 or node[[1-2]]"

    nodelist: str
    reason: str
