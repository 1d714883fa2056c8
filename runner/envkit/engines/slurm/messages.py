"""Messages about Slurm: why it can't be asked, why a job waits, and what training on nodes needs."""

from __future__ import annotations

from envkit.messages import Message

# What Slurm's reasons for a waiting job mean, by how a reason begins; others are shown as they are.
REASONS = {
    "Resources": "the nodes that it could use are busy",
    "Priority": "other jobs come first",
    "PartitionDown": "its partition starts no jobs now",
    "PartitionInactive": "its partition starts no jobs now",
    "PartitionTimeLimit": "it asks for more time than its partition allows; give less with --time-limit",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows or has up",
    "Nodes required for job are DOWN": "nodes that it needs are down, drained or reserved",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "BeginTime": "its start time has not come; a job that was requeued waits for a while",
    "JobHeld": "it is held; scontrol release lets it go",
    "BadConstraints": "no node meets its requirements",
    "Assoc": "a limit of your account is reached",
    "QOS": "a limit of your quality of service is reached",
}
# Behind the state of a node.
NO_RESPONSE = "and does not respond"
NO_REASON = "no reason given yet"
# In the place of the last line that a command of Slurm's printed.
NOTHING_PRINTED = "it failed and printed nothing"


class CantSubmit(Message):
    """This machine has no sbatch."""

    template = (
        "sbatch is not found: this machine can't submit to a Slurm cluster; log in to one that can, "
        "or load its module (module load slurm)"
    )


class SlurmMissing(Message):
    """This machine lacks a command of Slurm's."""

    template = "{command} of Slurm is not found; load its module (module load slurm)"

    command: str


class SlurmSilent(Message):
    """A command of Slurm's takes too long."""

    template = "{command} did not end within {seconds:g} s: is the Slurm controller up?"

    command: str
    seconds: float


class NoMunge(Message):
    """Slurm's authentication does not work here."""

    template = (
        "munge does not answer here, and Slurm takes no request without it; start it (systemctl start munge), "
        "or tell the cluster's administrators"
    )


class NoController(Message):
    """Slurm's controller does not answer."""

    template = "{command}: the Slurm controller does not answer; wait, or tell the cluster's administrators"

    command: str


class NoCluster(Message):
    """Slurm is installed, and has no configuration."""

    template = "{command}: this machine knows of no Slurm cluster; log in to one that does, or set SLURM_CONF"

    command: str


class NotCancelled(Message):
    """A job of a fleet was not submitted, and those before it still run."""

    template = "{problem}; jobs before it could not be cancelled: do it with: {command:command}"

    problem: Message
    command: tuple[str, ...]


class EngineNotForNodes(Message):
    """An engine starts no workers on the nodes of a cluster."""

    template = "--engine {engine}: on nodes workers are started by {known:or}; choose one of these"

    engine: str
    known: tuple[str, ...]


class NotOnANode(Message):
    """The runner is in a Slurm job, and on none of its nodes."""

    template = (
        "--nodes {nodes:d}: envkit must run on a node of the job; start it by srun or sbatch, or: envkit "
        "submit PROFILE --nodes {nodes:d} --nproc N"
    )

    nodes: int


class TooFewNodes(Message):
    """A Slurm job has fewer nodes than were asked for."""

    template = "--nodes {nodes:d}: this job has {there:d}; ask for fewer, or for a larger job"

    nodes: int
    there: int


class SrunRefused(Message):
    """The system does not start srun."""

    template = "srun can't be started: {reason}; leave large variables unset"

    reason: str


class NodesUntold(Message):
    """Slurm does not tell the nodes of the runner's job."""

    template = "SLURM_JOB_NODELIST: scontrol says: {reason}"

    reason: str


class NoFreePort(Message):
    """Ranks have no port to meet at."""

    template = "no port is free on this node for ranks to meet"
