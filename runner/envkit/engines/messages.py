"""The messages of engines."""

from __future__ import annotations

from envkit.messages import Message


class NoNodesToTrainOn(Message):
    """``nodes`` were asked for outside of a Slurm job."""

    code = "engines.no-nodes-to-train-on"
    template = (
        "--nodes {nodes}: this process runs in no Slurm job; "
        "submit one: envkit submit PROFILE --nodes {nodes} --nproc N"
    )

    nodes: int
