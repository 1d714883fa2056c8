"""Help texts of commands that functions hand on to argparse, instead of ``add_argument`` having them."""

from __future__ import annotations

from envkit.messages import Note

SUBMIT = {
    "nodes": "measure on N nodes (default: 1)",
    "nodelist": "measure on these nodes, e.g. node1,node2 or node[1-2]",
    "together": "all nodes train together",
}
MATRIX = {
    "budget": "2m for each profile and the baseline",
    "nodelist": "measure on these nodes, e.g. node1,node2 or node[1-2]",
    "nodes": "measure on N nodes of a Slurm cluster, and rank by the results of all of them",
}
FLEET = {
    "statuses": (
        "exit status: 0 done, and no node is slow or left out; 1 a worker failed, or a node is slow, was not measured "
        "or can't be compared, or (diff) became slower; 2 bad input; 130 interrupted"
    ),
    "nodelist": "measure these nodes, e.g. node1,node2 or node[1-2] (default: all nodes of the partition in service)",
    "together": "each node trains alone",
}
BASELINE = {
    "statuses": (
        "exit status: 0 done, and with check no regression; 1 a regression, or a worker failed; 2 bad input, or "
        "baselines that can't be compared; 130 interrupted"
    ),
    "save": "save a run's record as a small file to be committed",
    "check": "measure the same again; exit status 1 if more speed was lost than --threshold allows",
    "diff": "show what differs between two baselines, and how speed changed",
    "list": "list the baselines",
}
EXEC = {
    "statuses": (
        "exit status: the command's own, or 128 + N if signal N ended it; 1 if that was 0 and the profile was not in "
        "effect; 126 or 127 if the command can't be started; 2 bad input"
    ),
}
ADVISE = {"engine": "run it with"}
BENCH = {"every": "all of these, ", "ranks": "also measures how that scales"}
BREAKDOWN = {"json": "print every operator or phase of every process as JSON"}


class AblateBudget(Note):
    """The default time of ``envkit ablate``."""

    template = "{seconds:g}s for each of: the baseline, the profile, each setting alone, and the profile without each"

    seconds: float


class BenchBudget(Note):
    """The default time of ``envkit bench``. ``ranks`` is the time with --nproc."""

    template = "{usual}; {seconds:g}s per arm with --workload all; {ranks} or --instances"

    usual: str
    seconds: float
    ranks: str


class LoaderGridBudget(Note):
    """The default length of ``envkit loader-grid``."""

    template = "{blocks:count block}, however long they take"

    blocks: int


class PlanBlocks(Note):
    """The meaning of --blocks to ``envkit plan``."""

    template = "measure the noise in N blocks, {least} or more"

    least: int


class PlanBudget(Note):
    """The default length of ``envkit plan``, without a PROFILE and with one."""

    template = "{usual}; with a PROFILE {blocks:count block}"

    usual: str
    blocks: int
