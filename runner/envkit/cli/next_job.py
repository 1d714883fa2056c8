"""Which nodes a submission asks for when it goes on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.bench import record
from envkit.cli import submitted
from envkit.cli.submission_messages import NodeOutOfService, Replaced
from envkit.cluster.slurm import node_status
from envkit.cluster.slurm.collect import NodeResult
from envkit.cluster.slurm.settings import TOGETHER, Settings
from envkit.common.errors import InputError
from envkit.engines.slurm import client
from envkit.rendering import text


def nodes(
    settings: Settings, folder: Path, results: Sequence[NodeResult], missing: int
) -> tuple[int, Sequence[str], Sequence[str]]:
    """How many nodes the next job takes, those that it must have, and those that it must not.

    It must have those that were asked for by name, and those with most samples so far, but for the latter that are out
    of service: others take their place. A run of several nodes together goes on where it was: on other ones its times
    could not be compared with those that it has. Raises InputError where those can't have it.
    """
    if settings.joint:
        return settings.nodes, _as_before(settings, folder) or settings.nodelist, ()
    settled = [node.name for node in results if node.settled]
    wanted = [name for name in settings.nodelist if name not in {*settled}]
    begun = [node for node in results if not node.settled and record.is_begun(folder / node.name)]
    begun.sort(key=lambda node: -node.samples)
    more = [node.name for node in begun if node.name not in settings.nodelist]
    out = client.out_of_service(more)
    for name, reason in out.items():
        print(f"envkit: {text(Replaced(name, reason))}", file=sys.stderr)
    return missing, [*wanted, *(name for name in more if name not in out)][:missing], settled


def _as_before(settings: Settings, folder: Path) -> list[str]:
    """Return the nodes that the run of several nodes together began on, if it did.

    Raise InputError if one of them is out of service.
    """
    place = folder / TOGETHER
    status = node_status.read(place)
    if status is None or not record.is_begun(place):
        return []
    nodes = submitted.hosts(status.nodes)
    for name, state in client.out_of_service(nodes).items():
        raise InputError(NodeOutOfService(name, state))
    return nodes
