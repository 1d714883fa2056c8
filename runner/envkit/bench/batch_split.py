"""Which numbers of ranks can share the batches of a workload, and the cores of a node."""

from __future__ import annotations

from envkit.worker.modes import CUDA, Options
from envkit.worker.pipeline import MICRO_BATCHES
from envkit.worker.workloads import WORKLOADS, get


def shared() -> list[str]:
    """The workloads that several ranks can train."""
    return [name for name, workload in WORKLOADS.items() if workload.batch]


def unshared(name: str, how: Options, ranks: int, nodes: int = 1) -> tuple[str, str] | None:
    """Why ``ranks`` on each of ``nodes`` can't share the batches of the workload ``name``, and the fix.

    None where they can.
    """
    every, workload = ranks * nodes, get(name)
    if every == 1 or workload.exchange:
        return None
    if not workload.batch:
        return f"ranks can't share the batches of {name}", f"leave it out, or name one of: {', '.join(shared())}"
    if every % workload.stages:
        return f"{name} has {workload.stages} stages, each in ranks of its own", f"give a multiple of {workload.stages}"
    whole = workload.batch * how.scale
    if whole % _pieces(name, every) == 0:
        return None
    possible = (one for one in range(nodes, whole + 1, nodes) if one > 1 and one % workload.stages == 0)
    fitting = [str(one // nodes) for one in possible if whole % _pieces(name, one) == 0]
    why = f"a batch of {name} has {whole} {_items(name)}, which {every} ranks can't share evenly"
    fix = f"give one of: {', '.join(fitting)}" if fitting else "take another number of nodes"
    return why, f"{fix}, or another --scale"


def ungrown(name: str, how: Options, ranks: int) -> tuple[str, str] | None:
    """Why the batch of the workload ``name`` can't be ``ranks`` times as large, and the fix; None where it can."""
    workload = get(name)
    if not workload.batch:
        return f"{name} has no batch that grows with ranks", f"leave it out, or name one of: {', '.join(shared())}"
    one = workload.batch * how.scale
    if ranks * one <= workload.items:
        return None
    why = f"{ranks} ranks with {one:,} {_items(name)} each have more at once than the {workload.items:,} of {name}"
    most = workload.items // one
    fixes = [f"train on {most} ranks or fewer"] if most > 1 else []
    return why, ", or ".join([*fixes, *(["give a smaller --scale"] if how.scale > 1 else [])])


def crowded(number: int, cores: int, where: str, option: str = "--nproc", who: str = "each rank") -> str | None:
    """Why so many processes can't be on the usable ``cores`` of one node, and the fix; None where they can.

    Two hardware threads of a core share its units: processes on them would slow each other down. ``option`` asks for
    the ``number``, and a message calls one of them ``who``.
    """
    if number <= max(1, cores):
        return None
    there, fix = ("core is", "leave it out") if cores == 1 else ("cores are", f"give {option} {cores} or less")
    return f"{option} {number}: only {cores} {there} usable ({where}), and {who} takes one of its own; {fix}"


def not_tried(trained: str | None, how: Options, numerics: str, together: int, gpus: int, ranks: int) -> str | None:
    """Why a search leaves out that ``ranks`` train the workload ``trained``; None where it does not.

    ``trained`` is None for a command of the user's; ``numerics`` is ``same`` or ``any``. So many train ``together`` in
    all candidates, unless a candidate chooses; ``gpus`` are usable.
    """
    if ranks == 1:
        return None
    if together > 1:
        return f"has {ranks} ranks of its own, and --nproc {together} is given"
    if trained is None:
        return "a command of your own starts its ranks itself"
    if how.device == CUDA and ranks > gpus:
        return f"{ranks} ranks take a GPU each, and {gpus} {'is' if gpus == 1 else 'are'} usable"
    if found := unshared(trained, how, ranks):
        return found[0]
    learns_otherwise = numerics == "same" and get(trained).ranks_tolerance > 0
    return "several ranks learn something else; --numerics any tries them too" if learns_otherwise else None


def _items(name: str) -> str:
    """What its batches have."""
    return "images" if get(name).images else "sentences"


def _pieces(name: str, ranks: int) -> int:
    """Into how many equal parts a batch is cut."""
    stages = get(name).stages
    return ranks if stages == 1 else ranks // stages * MICRO_BATCHES
