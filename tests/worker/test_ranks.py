"""Where ranks are placed, what their processes are given, and which of several that failed was the cause."""

from __future__ import annotations

import json
import os
import signal

import pytest
from envkit.worker import ranks
from envkit.worker.host import expand_cpu_list
from envkit.worker.messages import NoRendezvous, ProcessEnded, ProcessKilled
from envkit.worker.request import Ranks, Train

from tests.worker.made_up import write


@pytest.fixture
def machine(tmp_path):
    """The root of a machine with the CPUs given, as (NUMA node, core) each."""

    def make(cpus):
        files, nodes = {}, {}
        for cpu, (node, core) in enumerate(cpus):
            topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
            files |= {f"{topology}/core_id": f"{core}\n", f"{topology}/physical_package_id": f"{node}\n"}
            nodes.setdefault(node, []).append(str(cpu))
        files |= {f"sys/devices/system/node/node{node}/cpulist": ",".join(its) + "\n" for node, its in nodes.items()}
        return range(len(cpus)), write(tmp_path, files)

    return make


# Two nodes of four cores; two hardware threads of each core, numbered as Linux often does.
SOCKETS = [(node, core) for _ in range(2) for node in range(2) for core in range(4)]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [[*range(16)]]),
        (2, [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]),
        (4, [[0, 1, 8, 9], [2, 3, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]]),
        # two cores each fit twice into each node, and two stay idle
        (3, [[0, 1, 8, 9], [2, 3, 10, 11], [4, 5, 12, 13]]),
        (8, [[core, core + 8] for core in range(8)]),
    ],
)
def test_ranks_get_whole_cores_of_one_node(machine, count, expected):
    cpus, root = machine(SOCKETS)
    assert ranks.places(count, cpus, root=root) == expected


def test_a_rank_reaches_over_to_another_node_only_where_it_must(machine):
    cpus, root = machine([(node, core) for node in range(2) for core in range(3)])
    assert ranks.places(3, cpus, root=root) == [[0, 1], [2, 3], [4, 5]]
    assert ranks.places(2, cpus, root=root) == [[0, 1, 2], [3, 4, 5]]


def test_nodes_have_equally_many_ranks(machine):
    cpus, root = machine([(node, core) for node in range(2) for core in range(8)])
    # two cores each would fit four times into the first node
    assert ranks.places(6, cpus, root=root) == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11], [12, 13]]
    # as many cores as there are for each, although three parts of four would fit into nodes
    assert ranks.places(3, cpus, root=root) == [[*range(5)], [*range(5, 10)], [*range(10, 15)]]


def test_a_node_with_fewer_cpus_has_fewer_ranks(machine):
    cpus, root = machine([(0, 0), (0, 1), *((1, core) for core in range(6))])
    assert ranks.places(4, cpus, root=root) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_only_cpus_that_may_be_used_are_shared_out(machine):
    _, root = machine(SOCKETS)
    assert ranks.places(2, {1, 2, 6, 7}, root=root) == [[1, 2], [6, 7]]


SIBLINGS = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@pytest.mark.parametrize(
    ("siblings", "usable", "count", "expected"),
    [
        (["0,4", "1,5", "2,6", "3,7"], {*range(8)}, 2, [[0, 1, 4, 5], [2, 3, 6, 7]]),
        (["0,4", "1,5", "2,6", "3,7"], {*range(8)}, 4, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        # a CPU set has one thread of some cores, or none: no two ranks share a core all the same
        (["0,4", "1,5", "2,6", "3,7"], {0, 1, 4, 5, 6, 7}, 2, [[0, 1, 4, 5], [6, 7]]),
        (["0,4", "1,5", "2,6", "3,7"], {1, 2, 5}, 2, [[1, 5], [2]]),
        # CPU 3 is offline, so that its core has one thread
        (["0-1", "2", "4-5", "6-7"], {0, 1, 2, 4, 5, 6, 7}, 4, [[0, 1], [2], [4, 5], [6, 7]]),
    ],
)
def test_ranks_share_no_core_whichever_threads_of_it_may_be_used(tmp_path, siblings, usable, count, expected):
    cores = {cpu: core for core in siblings for cpu in expand_cpu_list(core)}
    root = write(tmp_path, {SIBLINGS.format(cpu): f"{core}\n" for cpu, core in cores.items()})
    chosen = ranks.places(count, usable, root=root)
    assert chosen == expected
    assert {cpu for part in chosen for cpu in part} <= usable
    of_parts = [{cores[cpu] for cpu in part} for part in chosen]
    assert len(set().union(*of_parts)) == sum(map(len, of_parts))
    assert len({*map(len, of_parts)}) == 1, "as many cores each"


def test_siblings_that_are_not_adjacent_stay_in_their_node(machine):
    """Threads are numbered node by node, all first threads before all second ones."""
    _, root = machine(SOCKETS)
    without_some = {*range(16)} - {0, 12, 5}
    assert ranks.places(2, without_some, root=root) == [[1, 2, 3, 8, 9, 10, 11], [4, 6, 7, 13, 14, 15]]
    assert ranks.places(4, {1, 9, 2, 10, 6, 14, 7, 15}, root=root) == [[1, 9], [2, 10], [6, 14], [7, 15]]


def test_measured_cores_count_more_than_the_kernel_s(tmp_path):
    """A virtual machine's kernel takes each CPU for a core."""
    assert ranks.places(2, range(6), root=tmp_path) == [[0, 1, 2], [3, 4, 5]]
    assert ranks.places(2, range(6), ("0-1", "2-3", "4-5"), tmp_path) == [[0, 1], [2, 3]]
    assert ranks.places(2, range(4), ("0,2", "1,3"), tmp_path) == [[0, 2], [1, 3]]
    assert ranks.places(2, {0, 1, 3}, ("0,2", "1,3"), tmp_path) == [[0], [1, 3]]


def test_measured_cores_stay_in_their_node(machine):
    _, root = machine([(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)])
    assert ranks.places(2, range(8), ("0,2", "1,3", "4,6", "5,7"), root) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ranks.places(4, range(8), ("0,2", "1,3", "4,6", "5,7"), root) == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_without_a_topology_each_cpu_is_a_core(tmp_path):
    assert ranks.places(2, {0, 1, 2, 3}, root=tmp_path) == [[0, 1], [2, 3]]


def test_more_ranks_than_cores_share_them(tmp_path):
    assert ranks.places(4, {0, 1}, root=tmp_path) == [[0], [1], [0], [1]]


def test_a_rank_is_given_nothing_of_torchruns_that_could_change_the_outcome():
    torchruns = {"RANK": "1", "OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    given = {**torchruns, "PATH": "/bin", ranks.LAUNCHED: "{}"}
    assert ranks.variables(given, {"OMP_NUM_THREADS": "4"}) == {"RANK": "1", "PATH": "/bin", "OMP_NUM_THREADS": "4"}


@pytest.mark.parametrize(
    ("status", "who", "said"),
    [
        (-signal.SIGKILL, "rank 1", ProcessKilled("rank 1", "SIGKILL")),
        (3, "rank 1", ProcessEnded("rank 1", 3)),
        (-signal.SIGSEGV, "rank 1 on node2", ProcessKilled("rank 1 on node2", "SIGSEGV")),
    ],
)
def test_what_is_said_of_a_rank_that_died(status, who, said):
    assert ranks.lost(who, status) == said


def test_the_cause_comes_before_its_consequences(tmp_path):
    """Of ranks that end at about the same time."""

    def failure(name, status, error=None, log="", at_s=0):
        folder = write(tmp_path / name, {"stderr.log": log, "error.json": error})
        if error is not None:
            os.utime(folder / "error.json", (at_s, at_s))
        return status, folder

    causes = [
        failure("killed", -signal.SIGKILL),
        failure("aborted", -signal.SIGABRT, log="free(): invalid pointer"),
        failure("raised", 1, '{"message": "planted trouble"}', at_s=2),
        failure("raised later", 1, '{"message": "other trouble"}', at_s=3),
    ]
    lost = failure("lost", 1, '{"message": "[gloo/transport/tcp/pair.cc:534] Connection closed by peer"}')
    gone = failure("gone", -signal.SIGABRT, log="terminate called: Connection reset by peer")
    told = failure("told", -signal.SIGTERM)

    def order(*failures):
        return sorted(failures, key=lambda one: ranks._order(*one))

    for cause in causes:
        assert order(told, gone, lost, cause)[0] == cause
    assert order(causes[3], causes[2]) == causes[2:]
    assert order(told, lost)[0] == lost


def test_complaints_of_any_rank_come_last_and_each_line_once(tmp_path, capsys):
    for rank, text in enumerate(("OMP: Warning #1: planted\nsame\n", "same\n" + "noise\n")):
        write(tmp_path, {f"id/attempt_0/{rank}/stderr.log": text})
    ranks.pass_on(tmp_path)
    assert capsys.readouterr().err.splitlines() == ["same", "noise", "OMP: Warning #1: planted"]


def test_several_nodes_need_a_place_to_meet(capsys):
    assert ranks.launch(Ranks(2, Train("cnn", "synthetic"), nodes=2)) == 1
    assert json.loads(capsys.readouterr().out) == {"problem": NoRendezvous(ranks.RENDEZVOUS).to_json()}
