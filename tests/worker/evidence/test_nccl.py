"""What NCCL's log says, from lines in the format of the NCCL user guide ("Logging") and of NCCL's own source.

Those with ranks are not logs of a run: no GPU was here when they were written. Hosts, addresses and sizes are made up.
"""

from __future__ import annotations

import os

import pytest
from envkit.profiles import profile
from envkit.worker.evidence import nccl
from envkit.worker.evidence.nccl import log_name, parse

# Two GPUs of one machine without direct copies between them.
SHARED_MEMORY = """\
node-01:1895902:1895902 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
node-01:1895902:1895902 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
node-01:1895902:1895913 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1
node-01:1895902:1895913 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]ens5:10.0.1.1<0>
node-01:1895902:1895913 [0] NCCL INFO Using network Socket
node-01:1895902:1895913 [0] NCCL INFO Tree 0 : -1 -> 0 -> 1/-1/-1
node-01:1895902:1895913 [0] NCCL INFO Tree 1 : -1 -> 0 -> 1/-1/-1
node-01:1895902:1895913 [0] NCCL INFO Channel 00/02 :    0   1
node-01:1895902:1895913 [0] NCCL INFO Channel 01/02 :    0   1
node-01:1895902:1895913 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1
node-01:1895902:1895913 [0] NCCL INFO Ring 01 : 1 -> 0 -> 1
node-01:1895902:1895913 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct
node-01:1895902:1895913 [0] NCCL INFO Channel 01 : 0[0] -> 1[1] via SHM/direct/direct
node-01:1895902:1895913 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
node-01:1895902:1895913 [0] NCCL INFO 2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer
node-01:1895902:1895913 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 36000 - Init COMPLETE
"""  # noqa: E501 - as NCCL writes them
# One of 16 ranks on two machines, and what it chose for three operations.
NETWORK = """\
NCCL version 2.28.3+cuda13.0
node-02:631871:631880 [3] NCCL INFO NCCL_ALGO set by environment to allreduce:tree,ring
node-02:631871:631880 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ^docker,lo
node-02:631871:631880 [3] NCCL INFO NCCL_MAX_CTAS set by environment to 4.
node-02:631871:631880 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.2<0>
node-02:631871:631880 [3] NCCL INFO Using network IB
node-02:631871:631880 [3] NCCL INFO Channel 00/0 : 11[3] -> 12[4] via P2P/CUMEM/read
node-02:631871:631880 [3] NCCL INFO Channel 01/0 : 11[3] -> 12[4] via P2P/CUMEM/read
node-02:631871:631880 [3] NCCL INFO Channel 00/0 : 3[3] -> 11[3] [receive] via NET/IB/0/GDRDMA
node-02:631871:631880 [3] NCCL INFO Channel 00/0 : 11[3] -> 3[3] [send] via NET/IB/0/GDRDMA
[2026-05-05 06:16:47] node-02:631871:631880 [3] plugin/net.cc:334 NCCL WARN Failed to initialize any NET plugin
node-02:631871:631871 [3] NCCL INFO comm 0x7f rank 11 nranks 16 cudaDev 3 busId b000 - Init COMPLETE
node-02:631871:631871 [3] NCCL INFO AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}
node-02:631871:631871 [3] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1} cgaClusterSize 4
node-02:631871:631871 [3] NCCL INFO AllReduce: 2048 Bytes -> Algo Tree proto LL channel{Lo..Hi}={0..0}
"""


def test_two_gpus_that_share_memory():
    assert parse(SHARED_MEMORY) == {
        "version": "2.27.3+cuda12.9", "rank": 0, "ranks": 2, "network": "Socket", "interfaces": "ens5, eth0",
        "transports": "SHM", "paths": {"SHM/direct/direct": 2}, "channels": 2, "rings": 2, "trees": 2,
        "algorithms": None, "protocols": None, "choices": [], "settings": {"NCCL_P2P_DISABLE": 1}, "warnings": [],
    }  # fmt: skip


def test_two_machines_and_what_was_chosen():
    found = parse(NETWORK)
    assert (found["version"], found["rank"], found["ranks"], found["network"]) == ("2.28.3+cuda13.0", 11, 16, "IB")
    assert found["transports"] == "NET, P2P"
    assert found["paths"] == {"NET/IB/0/GDRDMA": 2, "P2P/CUMEM/read": 2}
    assert (found["algorithms"], found["protocols"]) == ("ring, tree", "ll, simple")
    assert found["choices"] == [
        {"collective": "AllReduce", "algorithm": "ring", "protocol": "simple", "calls": 1,
         "least_bytes": 33554432, "most_bytes": 33554432},
        {"collective": "AllReduce", "algorithm": "tree", "protocol": "ll", "calls": 2,
         "least_bytes": 2048, "most_bytes": 4096},
    ]  # fmt: skip
    assert found["settings"] == {
        "NCCL_ALGO": "allreduce:tree,ring", "NCCL_SOCKET_IFNAME": "^docker,lo", "NCCL_MAX_CTAS": 4,
    }  # fmt: skip
    assert found["warnings"] == ["Failed to initialize any NET plugin"]


@pytest.mark.parametrize(
    ("line", "path", "transport"),
    [
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", "P2P/direct pointer", "P2P"),
        ("Channel 00/0 : 2[2] -> 3[3] via P2P/direct pointer/read", "P2P/direct pointer/read", "P2P"),
        ("Channel 03/0 : 1[e000] -> 0[b000] via P2P/direct pointer comm 0x56af nRanks 04", "P2P/direct pointer", "P2P"),
        ("Channel 07 : 2[a000] -> 0[6000] via P2P/IPC", "P2P/IPC", "P2P"),
    ],
)
def test_ways_between_ranks_of_several_versions(line, path, transport):
    found = parse(f"node:1:2 [0] NCCL INFO {line}\n")
    assert (found["paths"], found["transports"]) == ({path: 1}, transport)


def test_channels_where_they_are_only_numbered():
    assert parse("node:1:2 [0] NCCL INFO Channel 00/24 :    0   1   2   3\n")["channels"] == 24


def test_an_empty_log_says_nothing():
    found = parse("")
    assert {key for key, value in found.items() if value} == set()


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("/tmp/nccl.%h.%p.log", "/tmp/nccl.node-01.77.log"),
        ("/tmp/nccl_%p", "/tmp/nccl_77"),
        ("/tmp/100%%.%p", "/tmp/100%.77"),
        ("/tmp/%x.%h", "/tmp/%x.node-01"),
    ],
)
def test_the_name_that_nccl_makes_of_its_file(pattern, name):
    assert log_name(pattern, "node-01.cluster.example", 77) == name


@pytest.fixture
def given(monkeypatch):
    """The variables that this process was started with, as far as the probe looks."""

    def give(**variables):
        monkeypatch.setattr(nccl, "started_variables", lambda: variables)

    return give


def test_nothing_is_said_where_no_log_was_asked_for(given):
    for variables in ({}, {"NCCL_DEBUG": "INFO"}, {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/x"}):
        given(**variables)
        assert nccl.probe() == {}


def test_this_processs_own_log_is_read(given, tmp_path):
    given(NCCL_DEBUG="info", NCCL_DEBUG_FILE=f"{tmp_path}/nccl.%p.log")
    assert nccl.probe() == {"log": "not written"}
    (tmp_path / f"nccl.{os.getpid()}.log").write_text(SHARED_MEMORY)
    found = nccl.probe()
    assert (found["log"], found["transports"]) == ("written", "SHM")


def test_a_program_may_say_where_the_log_goes_before_nccl_reads_it(given, tmp_path, monkeypatch):
    given(NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=f"{tmp_path}/nccl.log")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("NCCL_DEBUG_FILE", f"{tmp_path}/other.log")
    assert nccl.probe() == {"log": "not written"}
    (tmp_path / "other.log").write_text(SHARED_MEMORY)
    assert nccl.probe()["log"] == "written"


def test_a_program_may_take_the_variables_away_when_nccl_has_read_them(given, tmp_path):
    given(NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=f"{tmp_path}/nccl.log")
    assert "NCCL_DEBUG" not in os.environ
    (tmp_path / "nccl.log").write_text(SHARED_MEMORY)
    assert nccl.probe()["log"] == "written"


# Of a real NCCL (2.32.3, CUDA 13) on a machine without a driver: asked for an identifier, and then to begin a rank.
REAL = """\
vm:4771:4771 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so
vm:4771:4771 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo
vm:4771:4771 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>

[2026-11-21 23:26:09] vm:4771:4771 [0] misc/cudawrap.cc:329 (initOnceFunc) NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'

[2026-11-21 23:26:09] vm:4771:4771 [0] init.cc:2955 (ncclCommInitRank) NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'
vm:4771:4812 [0] NCCL INFO Socket handshake magic 0x564ab9f2fc4b9d6c (built-in default)
"""  # noqa: E501 - as NCCL writes them
REAL_WITHOUT_INTERFACE = """\
vm:4817:4817 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so
vm:4817:4817 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ib7

[2026-11-21 23:26:10] vm:4817:4817 [0] bootstrap.cc:129 (bootstrapNetInit) NCCL WARN Bootstrap : no socket interface found
vm:4817:4817 [0] NCCL INFO init.cc:177 (initOnceFunc) -> 5
"""  # noqa: E501


def test_a_real_log_of_what_needs_no_gpu():
    found = parse(REAL)
    assert (found["interfaces"], found["settings"]) == ("lo", {"NCCL_SOCKET_IFNAME": "lo"})
    assert found["warnings"] == ["Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'"]
    assert (found["ranks"], found["transports"], found["channels"]) == (None, None, None)


@pytest.mark.parametrize("name", ["nccl-log", "nccl-choices-log"])
def test_the_profiles_ask_for_the_lines_that_name_the_interface(name):
    """Older releases write "Bootstrap: Using" among INIT, later ones among BOOTSTRAP."""
    assert {"INIT", "BOOTSTRAP", "NET"} < set(profile.load(name).env["NCCL_DEBUG_SUBSYS"].split(","))


def test_a_real_log_of_an_interface_that_is_not_there():
    found = parse(REAL_WITHOUT_INTERFACE)
    assert found["warnings"] == ["Bootstrap : no socket interface found"]
    assert (found["interfaces"], found["settings"]) == (None, {"NCCL_SOCKET_IFNAME": "ib7"})
