"""Run a user's own training command once, and make a sample of what it prints and of what can be seen of it.

The command is not changed and knows of nothing: it runs as a child, in the user's folder, with the worker's
environment. Python programs are told to print without delay, and to leave their evidence when they end
(``worker/evidence_hook``). What the command prints goes to the worker's stderr: the beginning as it comes, of
the rest the end. All of it would be work for the runner, and room in its memory, while something is measured.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import resource
import selectors
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envkit.messages import Message, Printed
from envkit.worker import cgroup, left, scratch
from envkit.worker.child import Child, Stopped, end_by, signal_name
from envkit.worker.errors import WorkerError
from envkit.worker.libraries import COMPLAINT
from envkit.worker.measure import machine_load
from envkit.worker.measure.train import counters, increase
from envkit.worker.messages.evidence import LeavesNoEvidence, SeenFromOutside, SomeUnobserved
from envkit.worker.messages.user_command import (
    CommandEnded,
    CommandKilled,
    CopyFailed,
    CopyTooLarge,
    LastLine,
    NoExecFormat,
    NoFolder,
    NoInterpreter,
    NoOutput,
    NoProgram,
    NotExecutable,
    NotInPath,
    NotStarted,
)
from envkit.worker.performance_variables import PRELOAD, noted
from envkit.worker.request import RunCommand, UserCommand
from envkit.worker.user_command import by_rank, files, other_process, second_openmp, working_copy
from envkit.worker.user_command.by_rank import Source, Sources
from envkit.worker.user_command.lookout import Lookout
from envkit.worker.user_command.metric import NotMeasured, shown
from envkit.worker.user_command.optimizer_steps import POLL_S, StepRequest, Watch, chosen, observed

HOOK = Path(__file__).resolve().parents[1] / "evidence_hook"
READ_BYTES = 2**16
PIPE_SIZE = 1032  # F_GETPIPE_SZ, which fcntl has since Python 3.10 (https://man7.org/linux/man-pages/man2/fcntl.2.html)
# So much of the output, in bytes, is passed on at once, and as much again of its end: when the command ends, or when it
# has printed nothing for so long, as it may hang and all of this be killed.
PASSED_ON, SILENT_S = 2**16, 1.0
# A line that is longer than that is something else, and is cut.
LONGEST_LINE = 2**16
# Fewer and fewer looks from outside, as each keeps the program's memory map locked for a moment.
FIRST_LOOK_S, LOOK_FACTOR = 0.01, 2.0
COMPLAINTS = 20


class Failed(WorkerError):
    """The command did not start, or did not end well."""


@dataclass
class _Stream:
    """Text that came through one of the child's pipes and is no whole line yet; ``at_s`` is when it came."""

    text: bytes = b""
    at_s: float = 0.0


@dataclass
class _Watched:
    """One run while it goes on. Times are of ``time.perf_counter``."""

    sources: Sources
    begun_s: float
    pid: int = 0
    ended_s: float = 0.0
    last_line: str = ""
    complaints: dict[str, None] = field(default_factory=dict)
    outside: other_process.Look | None = None  # the last look at the child
    passed_on: int = 0
    held_back: bytearray = field(default_factory=bytearray)

    def printed(self, text: bytes) -> None:
        """Pass the output on, or keep what may turn out to be its end."""
        if self.passed_on < PASSED_ON:
            self.passed_on += len(text)
            _say(text)
            return
        self.held_back += text
        if len(self.held_back) > 2 * PASSED_ON:
            del self.held_back[:-PASSED_ON]

    def say_the_end(self) -> None:
        _say(self.held_back[-PASSED_ON:])
        self.held_back.clear()

    def line(self, text: bytes, at_s: float) -> None:
        line = text.decode(errors="replace")
        if any(map(str.isalnum, line)):  # and no border around what torchrun says
            self.last_line = line.strip()
        if len(self.complaints) < COMPLAINTS and COMPLAINT.match(line):
            self.complaints[line.strip()] = None
        self.sources.take(line, at_s)


def attempt(work: RunCommand) -> dict[str, object]:
    """Return the sample, or the ``problem``. Ends the process if a signal stops it."""
    user_command = work.command
    request = StepRequest.of(work)
    try:
        with _place(user_command) as place:
            sample = command(
                user_command.argv,
                str(place.path),
                user_command.metric,
                user_command.unit,
                work.warmup,
                user_command.loss_metric,
                request,
            )
            return {**sample, **({"writes": writes} if (writes := place.writes()) else {})}
    except (Failed, NotMeasured) as problem:
        return {"problem": problem.message.to_json()}
    except Stopped as stopped:
        sys.exit(end_by(stopped.number))


@contextlib.contextmanager
def _place(user_command: UserCommand) -> Iterator[working_copy.Place]:
    """Yield the place to start the command in. Raises Failed if its folder can't be copied."""
    folder = Path(user_command.folder)
    if user_command.in_place or not folder.is_dir():  # which starting it tells
        with working_copy.in_place(folder) as place:
            yield place
        return
    with contextlib.ExitStack() as copies:
        try:
            place = copies.enter_context(working_copy.fresh(folder, user_command.links))
        except working_copy.TooLarge as error:
            raise Failed(CopyTooLarge(tuple(error.names))) from None
        except WorkerError as error:
            raise Failed(CopyFailed(error.message)) from None
        except (OSError, shutil.Error) as error:
            raise Failed(CopyFailed(Printed(str(error)))) from None
        yield place


def command(
    argv: Sequence[str],
    folder: str,
    metric: str | None,
    unit: str,
    warmup_lines: int,
    loss_metric: str | None,
    request: StepRequest | None = None,
) -> dict[str, object]:
    """Run ``argv`` in ``folder`` and return one sample, with the keys of ``train``'s. Raises Failed or NotMeasured.

    Without a ``metric`` (``envkit.worker.user_command.metric``) the whole command is one step; with ``request`` steps
    are those of its optimizer. The first ``warmup_lines`` do not count, nor do their losses, which ``loss_metric``
    reads. ``seconds`` and ``usage`` are of the whole command, ``cpu_s`` of this process from its start.
    """
    cpus = os.sched_getaffinity(0)
    sources = Sources.of_metrics(metric, unit, warmup_lines, loss_metric)
    named = files.named(argv, Path(folder))
    with scratch.folder("envkit-evidence") as evidence_folder:
        before, memory = counters(cpus), cgroup.memory_counters()
        watch = Watch(request, evidence_folder) if request is not None and request.seconds else None
        lookout = Lookout(evidence_folder, argv, request)
        watched, status = _run(argv, folder, str(evidence_folder), sources, request, watch, lookout)
        usage = increase(before, counters(cpus))
        main, others = _evidence(evidence_folder, watched, lookout.reason)
        # last, so that they are in the part of the output that is kept
        print(*watched.complaints, sep="\n", end="\n" if watched.complaints else "", file=sys.stderr)
        if status != 0:
            ran_out = cgroup.ran_out(memory, Path(argv[0]).name, status == -signal.SIGKILL, os.environ)
            raise Failed(_ended(status, watched.last_line, ran_out, evidence_folder))
        # what a program takes to say what it ran with is no training
        testimony_s = main["seconds"]
        seconds = max(watched.ended_s - watched.begun_s - testimony_s, 1e-6)
        timed = chosen(request, evidence_folder, main, watch, seconds, lookout.reason) if request is not None else None
    source, ranks = sources.chosen(len(others) + 1)
    warmup, steps, values = _taken(timed, source, warmup_lines, seconds)
    if request is not None and request.least_s:
        values = []  # as many as the pace allowed, which are not those of other runs
    remarks = by_rank.remarks(source, ranks, watched.begun_s, len(others) + 1)
    return {
        "seconds": seconds,
        "step_s": [round(max(step, 1e-9), 9) for step in steps],
        "warmup_step_s": [round(max(step, 1e-9), 9) for step in warmup],
        "losses": values,
        "images_per_step": None,
        "quality": None,
        "usage": {**usage, "worker_cpus": len(cpus), "frequency_mhz": machine_load.frequency_mhz(cpus)},
        "cpu_s": _cpu_s(),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "digests": {
            "command": _digest([list(argv), *((metric, unit, warmup_lines) if request is None else ("optimizer",))]),
            **{f"file {name}": digest for name, digest in files.unchanged(named, argv, Path(folder)).items()},
        },
        "evidence": main["evidence"],
        "other_processes": [
            {"pid": process["pid"], "argv": process["argv"], "evidence": process["evidence"]} for process in others
        ],
        **remarks,
        **({"observed": observed(timed, watch)} if timed is not None and watch is not None else {}),
    }


def _digest(timed: list[object]) -> str:
    """Return the SHA-256 of what was run and timed.

    How losses are read changes nothing of that, and how many steps of an optimizer are timed follows from the machine.
    """
    return hashlib.sha256(json.dumps(timed).encode()).hexdigest()


def _taken(
    timed: left.StepsDocument | None, source: Source, warmup_lines: int, seconds: float
) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of the steps to warm up and of those that count, and the losses of these.

    An optimizer's process left ``timed``; the whole command took ``seconds``.
    """
    losses = source.losses
    if timed is not None:
        warmup, steps = timed["warmup_step_s"], timed["step_s"]
        return warmup, steps, [] if losses is None else losses.of_optimizer(warmup_lines, len(steps))
    warmup, steps = ([], [seconds]) if source.readings is None else source.split(warmup_lines)
    return warmup, steps, [] if losses is None else losses.beside(source.readings, len(warmup), len(steps))


def _run(
    argv: Sequence[str],
    folder: str,
    evidence_folder: str,
    sources: Sources,
    request: StepRequest | None,
    watch: Watch | None,
    lookout: Lookout,
) -> tuple[_Watched, int]:
    """Start the command, read what it prints until it ends, and leave none of its processes behind."""
    earlier = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        **({"PWD": folder} if "PWD" in os.environ else {}),
        "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"),
        "ENVKIT_WHOLE_LINES": "1",
        "PYTHONPATH": f"{HOOK}:{earlier}" if earlier else str(HOOK),
        "ENVKIT_EVIDENCE": evidence_folder,
        **noted(os.environ),
        **({"ENVKIT_STEPS": request.variable} if request is not None else {}),
    }
    watched = _Watched(sources, time.perf_counter())
    try:
        with Child(argv, folder, environment) as child:
            watched.pid = child.pid
            _watch(child, watched, lookout, watch)
            return watched, 0 if watch is not None and watch.is_over else child.status
    except OSError as error:
        raise Failed(_not_started(argv[0], folder, error)) from None
    finally:
        watched.say_the_end()


def _say(text: bytes | bytearray) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(2, text)


def _watch(child: Child, watched: _Watched, lookout: Lookout, watch: Watch | None = None) -> None:
    """Read both streams as they come, and look at the program from outside now and then, until it has ended.

    Raises NotMeasured where steps are timed and nothing can time them.
    """
    streams = {descriptor: _Stream() for descriptor in child.pipes}
    next_look_s = watched.begun_s
    interval_s = FIRST_LOOK_S
    with selectors.DefaultSelector() as selector:
        for descriptor in (*streams, child.ended):
            selector.register(descriptor, selectors.EVENT_READ)
        while not child.has_ended() and not (watch is not None and watch.look()):
            now = time.perf_counter()
            lookout.wait()
            if now >= next_look_s:
                watched.outside = other_process.look(child.pid, watched.outside)
                lookout.look()
                next_look_s = now + interval_s
                interval_s *= LOOK_FACTOR
            wait_s = max(0.0, next_look_s - time.perf_counter())
            if watch is not None or lookout.is_waiting:
                wait_s = min(wait_s, POLL_S)
            ready = [key.fd for key, _ in selector.select(min(wait_s, SILENT_S) if watched.held_back else wait_s)]
            if not ready and watched.held_back:
                watched.say_the_end()
            at_s = time.perf_counter()
            for descriptor in ready:
                if descriptor in streams and not _take(descriptor, streams[descriptor], watched, at_s):
                    selector.unregister(descriptor)
                    del streams[descriptor]
        watched.ended_s = time.perf_counter()
    for descriptor, stream in streams.items():
        # what is in the pipe; its end may be held open, and it filled, by processes that the command left behind
        os.set_blocking(descriptor, False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(-(-fcntl.fcntl(descriptor, PIPE_SIZE) // READ_BYTES)):
                if not _take(descriptor, stream, watched, watched.ended_s):
                    break
        if stream.text:
            watched.line(stream.text, stream.at_s)


def _take(descriptor: int, stream: _Stream, watched: _Watched, at_s: float) -> bool:
    """Read what has come, pass it on, and look at the lines that it completes; False at the end of the stream.

    A line ends with a line feed or, where a bar is drawn over the one before, with a carriage return. It came when its
    text came: bars print the carriage return of a line just before the next.
    """
    text = os.read(descriptor, READ_BYTES)
    if not text:
        if stream.text:
            watched.line(stream.text, stream.at_s)
            stream.text = b""
        return False
    watched.printed(text)
    *ends, begin = text.replace(b"\r", b"\n").split(b"\n")
    for end in ends:
        watched.line(stream.text + end, at_s if end else stream.at_s)
        stream.text = b""
    if begin:
        stream.text = (stream.text + begin)[-LONGEST_LINE:]
        stream.at_s = at_s
    return True


def _cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _evidence(
    folder: Path, watched: _Watched, lost: Message | None
) -> tuple[left.EvidenceDocument, list[left.EvidenceDocument]]:
    """Return the document of the main process, and those of all others, as ``evidence_hook`` leaves them.

    The main process is the command itself, or else the first of its processes that trained. Where none left a document
    the last look from outside counts.
    """
    collected = left.evidence(folder)
    lost = lost or collected.problem
    if collected.documents:
        # numbers go up
        main, *others = sorted(collected.documents, key=lambda process: (process["pid"] != watched.pid, process["pid"]))
        if lost is not None:
            main["evidence"]["not_observed"] = SomeUnobserved(lost).to_json()
        return main, others
    outside = watched.outside
    variables = outside.variables if outside else other_process.variables_of(os.environ, (), otherwise="not seen")
    evidence: dict[str, object] = {
        "variables": variables,
        "malloc": {"allocator": outside.allocator if outside else None},
        "not_observed": SeenFromOutside(lost or LeavesNoEvidence()).to_json(),
        "seconds": 0.0,
    }
    return {"evidence": evidence, "seconds": 0.0}, []


def _ended(status: int, last_line: str, ran_out: Message | None, evidence: Path) -> Message:
    output: Message = LastLine(shown(last_line)) if last_line else NoOutput()
    ended = (
        CommandKilled(signal_name(-status), output, ran_out) if status < 0 else CommandEnded(status, output, ran_out)
    )
    if status not in second_openmp.ABORTED:
        return ended
    return second_openmp.second_runtime(evidence, os.environ.get(PRELOAD, ""), ended) or ended


def _not_started(program: str, folder: str, error: OSError) -> Message:
    if not Path(folder).is_dir():
        return NoFolder(folder)
    if isinstance(error, FileNotFoundError):
        if "/" not in program:
            return NotInPath(program)
        return NoInterpreter(program) if Path(folder, program).exists() else NoProgram(program, folder)
    kinds = {errno.EACCES: NotExecutable, errno.ENOEXEC: NoExecFormat}
    return kinds.get(error.errno or 0, NotStarted)(program, error.strerror or "")
