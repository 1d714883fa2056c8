"""Start the ranks of one training on this node, through torchrun, each on CPUs of its own.

torchrun starts ``become`` for each rank, which takes the rank's CPUs and only then becomes the worker that trains: an
OpenMP runtime or an allocator that is preloaded counts CPUs before Python runs, and must find the rank's alone.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from envkit.messages import Message
from envkit.worker import scratch
from envkit.worker.child import die_with, signal_name
from envkit.worker.distributed import MEETING
from envkit.worker.host import core_of, expand_cpu_list
from envkit.worker.initial_environment import started_variables
from envkit.worker.libraries import COMPLAINT
from envkit.worker.messages import NoRendezvous, ProcessEnded, ProcessKilled, TorchrunFailed
from envkit.worker.performance_variables import is_performance_variable
from envkit.worker.readings import text_of
from envkit.worker.request import STDIN, Rank, Ranks, WorkerRequest

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

# The variable with the launcher's JSON for ``become``.
LAUNCHED = "ENVKIT_RANK"
# Where several nodes meet (HOST:PORT of the first), and which of them this is, from 0.
RENDEZVOUS, NODE_RANK = "ENVKIT_RENDEZVOUS", "ENVKIT_NODE_RANK"
# A container may have no other interface, and a host's name may lead nowhere.
LOOPBACK, LOOPBACK_INTERFACE = "127.0.0.1", "lo"
# How much of the log of a rank that died is passed on: at least what an engine keeps of it.
LOG_CHARACTERS = 4000
# The same where each of several nodes may tell of a rank: Slurm mixes lines of theirs that are longer than 1 KiB.
NODE_LOG_CHARACTERS = 500
# How long a launcher waits to tell of a rank that may have been lost for another node's sake.
CONSEQUENCE_S = 5.0
# What torchrun takes its defaults from.
ITS_OWN = "PET_"
# Set to 1, torchrun starts no TCP store for its ranks (torch.distributed.elastic.rendezvous.dynamic_rendezvous).
NO_TCP_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
# Words of an exception, or a last message, that come of another rank's end.
CONSEQUENCE = ("onnection closed", "onnection reset", "onnection refused", "gloo/transport")
# In a folder for each rank: its stderr, and what torch leaves there of an exception (envkit.worker.distributed).
LOG, ERROR = "stderr.log", "error.json"
WORKER = (sys.executable, str(Path(__file__).resolve().with_name("__main__.py")))


def places(ranks: int, cpus: Collection[int], measured: Sequence[str] = (), root: Path = Path("/")) -> list[list[int]]:
    """Which of ``cpus`` each of ``ranks`` gets: as many each, whole cores, and of one NUMA node where they fit there.

    Then nodes have equally many ranks, or nearly so. As many cores as there are for each come before that: where so
    large parts don't fit into nodes, some rank has cores of two. What is left over stays idle. More ranks
    than cores share these, which is good for nothing but a test: the runner refuses it. ``measured`` cores count more
    than the kernel's, which a virtual machine may not know.
    """
    nodes = [*_cores_of_nodes(cpus, measured, root).values()]
    every = [core for cores in nodes for core in cores]
    if len(every) < ranks:
        return [every[rank % len(every)] for rank in range(ranks)]
    each = len(every) // ranks
    of_node = [[cores[first : first + each] for first in range(0, len(cores) - each + 1, each)] for cores in nodes]
    # the first part of each node, the second of each, and so on: (which, node)
    turns = sorted((turn, node) for node, node_parts in enumerate(of_node) for turn in range(len(node_parts)))[:ranks]
    chosen = [of_node[node][turn] for node, turn in sorted((node, turn) for turn, node in turns)]
    if len(chosen) < ranks:  # some rank has to reach over to another node
        chosen = [every[first : first + each] for first in range(0, each * ranks, each)]
    return [sorted(cpu for core in part for cpu in core) for part in chosen]


def _cores_of_nodes(cpus: Collection[int], measured: Sequence[str], root: Path) -> dict[int, list[list[int]]]:
    """By NUMA node, the CPUs of each core."""
    measured_core = {cpu: ("measured", core) for core in measured for cpu in expand_cpu_list(core)}
    node_of = {}
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        for cpu in expand_cpu_list(text_of(folder / "cpulist")):
            node_of[cpu] = int(folder.name[len("node") :])
    cores: dict[tuple[int, str, str], list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault((node_of.get(cpu, 0), *(measured_core.get(cpu) or core_of(cpu, root))), []).append(cpu)
    nodes: dict[int, list[list[int]]] = {}
    for (node, _, _), core_cpus in sorted(cores.items(), key=lambda item: (item[0][0], item[1])):
        nodes.setdefault(node, []).append(core_cpus)
    return nodes


def launch(work: Ranks) -> int:
    """Train on several ranks, and return the exit status.

    With several nodes the same runs on each, and they meet where RENDEZVOUS says. One rank on one node is no
    distributed training: it becomes the worker itself.
    """
    nproc, nodes = work.number, work.nodes
    cpus = os.sched_getaffinity(0)  # before torch, whose OpenMP runtime may bind this thread to fewer
    sensitive = own_settings()
    if nproc * nodes == 1:
        os.sched_setaffinity(0, places(max(1, work.cpu_shares), cpus, work.cores)[0])
        _from_pipe(WorkerRequest(work.training).line())
        os.execve(sys.executable, [*WORKER, STDIN], variables(os.environ, sensitive))
    rendezvous, node = os.environ.pop(RENDEZVOUS, None), os.environ.pop(NODE_RANK, "0")
    if nodes > 1 and rendezvous is None:
        return problem(NoRendezvous(RENDEZVOUS))
    for name in [name for name in os.environ if name.startswith(ITS_OWN)]:
        del os.environ[name]
    launched = {"launcher": os.getpid(), "places": places(nproc, cpus, work.cores), "sensitive": sensitive}
    os.environ[LAUNCHED] = json.dumps(launched)
    if rendezvous is not None and nodes > 1:
        # static: nodes are numbered as the launcher says, not by addresses and process numbers, which may be equal
        where = ["--nnodes", str(nodes), "--node-rank", node, "--rdzv-backend", "static"]
        where += ["--rdzv-endpoint", rendezvous]
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK_INTERFACE)
        where = ["--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--local-addr", LOOPBACK]
    with scratch.folder("envkit-ranks") as logs:
        if nodes == 1:  # torchrun's TCP store, as of --standalone, would listen on all of the machine's addresses
            where += ["--rdzv-endpoint", str(logs / "launcher")]
            os.environ.update({NO_TCP_STORE: "1", MEETING: str(logs / "ranks")})
        # 2: stderr goes to a file for each rank (torch.distributed.elastic.multiprocessing.Std)
        options = ["--nproc-per-node", str(nproc), "--redirects", "2", "--log-dir", str(logs), "--no-python"]
        options += ["--max-restarts", "0", "--rdzv-id", "envkit"]
        of_rank = written(WorkerRequest(Rank(work.training)), logs)
        return _torchrun([*where, *options, *WORKER, of_rank], logs, nodes)


def written(request: WorkerRequest, folder: Path) -> str:
    """Return the file of a request, which is written into the folder of this process alone."""
    file = folder / "request.json"
    file.write_text(request.line())
    return str(file)


def _from_pipe(line: str) -> None:
    """Have standard input hold these bytes, for the program that this process becomes."""
    ours, theirs = os.pipe()
    os.write(theirs, line.encode())
    os.close(theirs)
    os.dup2(ours, 0)
    os.close(ours)


def _torchrun(arguments: Sequence[str], logs: Path, nodes: int) -> int:
    """Return what the command torchrun does; of ranks that fail, say which was the first and show its log."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    torchrun: ModuleType = run  # whose functions have no types
    try:
        torchrun.run(torchrun.parse_args(arguments))
    except SignalException as received:
        if nodes == 1:  # else Slurm ends this one for the sake of another, whose log is the one to show
            pass_on(logs)
        return 128 + int(received.sigval)
    except ChildFailedError as error:
        rank, failure = min(error.failures.items(), key=lambda item: _order(item[1].exitcode, _folder(logs, item[1])))
        log = text_of(_folder(logs, failure) / LOG)[-LOG_CHARACTERS:]
        if nodes == 1:
            print(log or f"rank {rank} printed nothing", file=sys.stderr, flush=True)
            return problem(lost(f"rank {rank}", failure.exitcode))
        order = _order(failure.exitcode, _folder(logs, failure))
        if order[0] > 0:  # where another node has the cause, it says so first, and Slurm ends this one
            try:
                time.sleep(CONSEQUENCE_S)
            except SignalException as received:
                return 128 + int(received.sigval)
        more = {"order": order, "log": log[-NODE_LOG_CHARACTERS:] or f"rank {rank} printed nothing"}
        return problem(lost(f"rank {rank} on {platform.node()}", failure.exitcode), **more)  # each node may have one
    except Exception as error:  # torchrun's own, such as nodes that don't meet
        pass_on(logs)
        return problem(TorchrunFailed(type(error).__name__, next(iter(str(error).splitlines()), None)))
    pass_on(logs)
    return 0


def problem(message: Message, **more: object) -> int:
    """Print what is wrong in place of the sample, and return the exit status."""
    print(json.dumps({"problem": message.to_json(), **more}), flush=True)
    return 1


def pass_on(logs: Path) -> None:
    """Print what processes have printed, each line once, and what libraries complain of last: the end is kept."""
    lines = dict.fromkeys(line for file in sorted(logs.rglob(LOG)) for line in text_of(file).splitlines())
    for line in sorted(lines, key=lambda line: COMPLAINT.match(line) is not None):
        print(line, file=sys.stderr)


def lost(process: str, status: int) -> ProcessKilled | ProcessEnded:
    """Return how one of the worker's processes ended, by its ``status`` (a signal's number below 0)."""
    return ProcessKilled(process, signal_name(-status)) if status < 0 else ProcessEnded(process, status)


def _folder(logs: Path, failure: ProcessFailure) -> Path:
    """Return the folder with torchrun's log of a rank (torch.distributed.elastic.multiprocessing.DefaultLogsSpecs)."""
    return next(logs.glob(f"*/attempt_0/{failure.local_rank}"), logs)


def _order(status: int, folder: Path) -> tuple[int, float]:
    """Return what sorts a cause before its consequences.

    When a rank ends, the others lose their connection to it, and an exception or an abort says so; torchrun sends
    SIGTERM to those that are left. An exception's time is that of the file which tells of it.
    """
    file = folder / ERROR
    when = file.stat().st_mtime if file.is_file() else 0.0
    if status == -signal.SIGTERM:
        return 2, when
    text = text_of(file if status > 0 else folder / LOG) if status > 0 or status == -signal.SIGABRT else ""
    return int(any(words in text for words in CONSEQUENCE)), when


def become() -> NoReturn:
    """Be killed when the launcher ends, take the CPUs of this rank, and become the worker that trains."""
    launched = json.loads(os.environ[LAUNCHED])
    if not die_with(launched["launcher"], signal.SIGKILL):
        sys.exit(1)
    os.sched_setaffinity(0, launched["places"][int(os.environ["LOCAL_RANK"])])
    os.execve(sys.executable, [*WORKER, *sys.argv[1:]], variables(os.environ, launched["sensitive"]))


def own_settings() -> dict[str, str]:
    """The variables that can change the outcome, as this process was started with them."""
    return {name: value for name, value in started_variables().items() if is_performance_variable(name)}


def variables(environment: Mapping[str, str], sensitive: Mapping[str, str]) -> dict[str, str]:
    """The variables of a rank, or of an instance: of those that can change the outcome only ``sensitive``, the
    launcher's own, and none of torchrun's."""
    others = {
        name: value for name, value in environment.items() if not is_performance_variable(name) and name != LAUNCHED
    }
    return {**others, **sensitive}
