"""The program that Slurm starts on each node, as ``python -m envkit.cli.slurm_node FOLDER ID SHA256``: checks, then a
run.

Where all nodes train together each checks (``--check``), and the first one has the run. Nodes that tune together take
part in each of its stages (``node_tuning``).

The folder's file says what to measure. The batch script has the SHA-256 of these settings, and a node refuses others:
anybody who can write to the folder could name another program otherwise.

It becomes the runner rather than starting one: Slurm's signals then reach it as they would at a terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

from envkit import cli
from envkit.bench import batch_split, record
from envkit.cli import measuring, node_tuning
from envkit.cli.commands import matrix
from envkit.cli.measuring import Invocation
from envkit.cli.measuring_messages import NoRoom
from envkit.cli.node_messages import (
    HasSearched,
    NearTimeLimit,
    NodeEnded,
    NoFolderHere,
    NoImageHere,
    NothingLeft,
    NotWhatWasSubmitted,
    OtherImageHere,
    OtherNodesHere,
    ToldToEnd,
)
from envkit.cli.workload_messages import StartsCommand
from envkit.cluster.slurm import node_preflight, node_status
from envkit.cluster.slurm.node_status import LOG, Outcome
from envkit.cluster.slurm.settings import FILE_NAME, TOGETHER, Settings
from envkit.common import atomic, output
from envkit.common.errors import BAD_INPUT, FAILED, INTERRUPTED, MEASURED, InputError
from envkit.engines import apptainer
from envkit.engines.measured_cores import facts_here
from envkit.engines.messages import ImageUnreadable
from envkit.messages import Message, message_of
from envkit.profiles import needs, profile
from envkit.profiles.messages import DoesNotApplyToNode
from envkit.rendering import text, text_of

# Says that the time limit is near (--signal of the batch script). Slurm sends a signal to all processes of a step: this
# one means nothing to the others, so that the worker that is being measured is left for the runner to end.
NEARLY_OVER = signal.SIGURG
# Asks only whether the node could take part.
CHECK = "--check"


def main() -> int:
    """Take this node's part in a submission, and return the exit status."""
    output.guard()
    folder, identity, sha256, stage = Path(sys.argv[1]), sys.argv[2], sys.argv[3], "".join(sys.argv[4:])
    node, job = os.environ["SLURMD_NODENAME"], os.environ["SLURM_JOB_ID"]
    nearly_over = _listen()
    try:
        settings = Settings.read(folder)
        if settings.id != identity:
            raise InputError(node_preflight.not_shared(folder))
        if settings.sha256 != sha256:
            raise InputError(NotWhatWasSubmitted(str(folder / FILE_NAME)))
    except InputError as error:
        print(f"envkit: {node}: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT
    if stage == CHECK:
        return _check(settings, folder, node, job)
    if stage == node_tuning.KIND:
        return _say_type(folder, node)
    place = folder / (TOGETHER if settings.joint else node)
    atomic.make_private(place)
    earlier = node_status.read(place)
    tried = earlier is not None and earlier.job == job and earlier.status in (FAILED, BAD_INPUT)
    was_interrupted = (
        stage == node_tuning.CONFIRM and earlier is not None and (earlier.job, earlier.status) == (job, INTERRUPTED)
    )
    # or it was requeued, for another node's sake
    if was_interrupted or tried or node_status.is_settled(settings.run_in(place)):
        print(f"envkit: {text(NothingLeft(node))}")
        return INTERRUPTED if was_interrupted else MEASURED
    state = Outcome(job, time.time(), nodes=_nodes() if settings.joint else "")
    state.write(place)
    with _into(place / LOG):
        try:
            status, problem = _measure(settings, folder, place, node, job, stage)
        except KeyboardInterrupt:
            status, problem = INTERRUPTED, None
    if status == INTERRUPTED:
        problem = NearTimeLimit() if nearly_over else ToldToEnd()
    if status == MEASURED and stage == node_tuning.SEARCH:
        replace(state, searched=True).write(place)
        print(f"envkit: {text(HasSearched(node, str(place / LOG)))}", flush=True)
        return status
    replace(state, ended=time.time(), status=status, problem=problem).write(place)
    print(f"envkit: {text(NodeEnded(node, status, str(place / LOG)))}", flush=True)
    return status


def _nodes() -> str:
    """Return the nodes of the job, in Slurm's short form."""
    return os.environ.get("SLURM_JOB_NODELIST", "")


def _check(settings: Settings, folder: Path, node: str, job: str) -> int:
    """Leave word where this node can't train together with others; it is the first that then has the record."""
    place = folder / node
    try:
        _require(settings, folder, node, job)
        cores = facts_here()["physical_cores"]
        if crowded := batch_split.crowded(settings.study.ranks, cores, "this node"):
            raise InputError(crowded)  # the runner looks at its own node only
        _require_kind(settings)
        _require_same_nodes(folder, _nodes())
    except InputError as error:
        print(f"envkit: {node}: {text_of(error)}", file=sys.stderr)
        atomic.make_private(place)
        now = time.time()
        Outcome(job, now, now, BAD_INPUT, message_of(error)).write(place)
        return BAD_INPUT
    (place / node_status.NAME).unlink(missing_ok=True)  # of an earlier job
    return MEASURED


def _say_type(folder: Path, node: str) -> int:
    try:
        node_tuning.say_type(folder, node)
    except InputError as error:  # it is said again, and recorded, when the node is to search
        print(f"envkit: {node}: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT
    return MEASURED


def _measure(
    settings: Settings, folder: Path, place: Path, node: str, job: str, stage: str
) -> tuple[int, Message | None]:
    """Measure, and return the exit status of the run and, if it was refused, why."""
    start = settings.folder or settings.project
    try:
        if not settings.joint:  # all nodes were asked
            _require(settings, folder, node, job)
        if settings.tuning:
            node_tuning.require_same_type(folder, node, job)
        os.chdir(start)
    except InputError as error:
        return _refused(error.message)
    except OSError as error:
        return _refused(NoFolderHere(start, os.strerror(error.errno or 0)))
    sys.argv = settings.command(str(folder), place.name)  # which the record keeps
    if command := settings.study.user_command:
        print(f"envkit: {text(StartsCommand(str(folder / FILE_NAME), command.folder, command.argv))}", flush=True)
    try:
        return _run(settings, folder, place, node, stage), None
    except record.RecordFull as error:
        return _refused(NoRoom(message_of(error)))
    except (InputError, OSError) as error:
        return _refused(message_of(error))


def _refused(problem: Message) -> tuple[int, Message]:
    """Print why this node can't measure, and return the exit status and the reason."""
    print(f"envkit: {text(problem)}", file=sys.stderr)
    return BAD_INPUT, problem


def _run(settings: Settings, folder: Path, place: Path, node: str, stage: str) -> int:
    # the record of an earlier job is only compared with what was submitted
    invocation = Invocation(output=place, resume=place if record.is_begun(place) else None)
    if settings.tuning:
        number = int(os.environ.get("SLURM_NODEID", "0"))
        part = node_tuning.search if stage == node_tuning.SEARCH else node_tuning.confirm
        return part(settings, folder, place, node, number)
    if settings.profiles:
        return matrix.measure(settings.study, settings.profiles, invocation)
    return measuring.run(settings.study, invocation)


def _require(settings: Settings, folder: Path, node: str, job: str) -> None:
    """Raise InputError where this node must not measure: its clock or its image is another than it should be."""
    called = node_preflight.read(folder, job)
    problem = called.clock_problem(node) if called else None
    if problem and not settings.study.force:
        raise InputError(problem)
    image = settings.image_file
    if image is not None and settings.digest is not None:
        try:
            digest = apptainer.digest(Path(image))
        except InputError as error:
            if isinstance(error.message, ImageUnreadable):
                raise InputError(NoImageHere(error.message.image, error.message.reason)) from None
            raise
        if digest != settings.digest:
            raise InputError(OtherImageHere(image, f"{digest[:19]}…", f"{settings.digest[:19]}…"))


def _require_kind(settings: Settings) -> None:
    """Raise InputError where a profile is not for this kind of node: the runner looks at its own node only."""
    facts = needs.from_facts(facts_here())
    named = {arm.profile for arm in settings.study.arms} - {profile.TUNED}  # which is another on every node
    for named_profile in map(profile.load, sorted(named)):
        unmet = needs.unmet(needs.of_kind(named_profile.needs), facts)
        if unmet is not None:
            raise InputError(DoesNotApplyToNode(named_profile.name, unmet[1]))


def _require_same_nodes(folder: Path, here: str) -> None:
    """Raise InputError where the run of all nodes began on others than this job, which may have been requeued, has."""
    place = folder / TOGETHER
    status = node_status.read(place)
    if status is not None and status.nodes not in ("", here) and record.is_begun(place):
        raise InputError(OtherNodesHere(here, status.nodes, ("envkit", "submit", "--resume", str(folder))))


def _listen() -> list[int]:
    """Take signals as the runner does, from the start on; returns the list that a near time limit is noted in."""
    signals: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        os.kill(os.getpid(), signal.SIGTERM)  # which waits where a worker is just being started

    signal.signal(NEARLY_OVER, pass_on)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, cli.interrupt)
    return signals


@contextlib.contextmanager
def _into(log: Path) -> Iterator[None]:
    """Have all that is printed appended to ``log``, also by processes that are started."""
    sys.stdout.flush()
    kept = [os.dup(number) for number in (1, 2)]
    try:
        descriptor = atomic.open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in (1, 2):
            os.dup2(descriptor, number)
        os.close(descriptor)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, earlier in zip((1, 2), kept, strict=True):
            os.dup2(earlier, number)
            os.close(earlier)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
