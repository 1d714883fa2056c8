from __future__ import annotations

import pytest
from envkit.profiles import profile
from envkit.worker.cgroup import (
    cpu_quota,
    held_memory,
    is_seen,
    memory_counters,
    memory_limit,
    ran_out,
    throttled_seconds,
)
from envkit.worker.messages import MemoryRanOut
from envkit.worker.performance_variables import keeps_freed_memory

from tests.worker.made_up import write


@pytest.fixture
def root(tmp_path):
    """A root folder with this process's memberships and the control files given (path below sys/fs/cgroup: text)."""

    def make(memberships, files):
        control = {f"sys/fs/cgroup/{path}": text for path, text in files.items()}
        return write(tmp_path, {"proc/self/cgroup": memberships, **control})

    return make


def v1(folder, quota, period=100_000):
    """The control files of one group."""
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


V1 = "12:pids:/job\n4:cpu,cpuacct:{0}\n1:name=systemd:/job\n"
HYBRID = "4:cpu,cpuacct:/a\n0::/b\n"


@pytest.mark.parametrize(
    ("memberships", "files", "quota"),
    [
        # version 2
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/job/step\n", {"job/step/cpu.max": "50000 100000\n"}, 0.5),
        # a limit on any level holds, and the least of them decides
        ("0::/job/step\n", {"job/cpu.max": "200000 100000\n", "job/step/cpu.max": "max 100000\n"}, 2),
        ("0::/job/step\n", {"job/cpu.max": "200000 100000\n", "job/step/cpu.max": "300000 100000\n"}, 2),
        ("0::/job/step\n", {"cpu.max": "100000 50000\n", "job/step/cpu.max": "25000 100000\n"}, 0.25),
        ("0::/job\n", {"other/cpu.max": "1000 100000\n"}, None),
        # in a container: the path is the host's, and only the mount's own top is there
        ("0::/docker/0123abc\n", {"cpu.max": "75000 50000\n"}, 1.5),
        ("0::/../../other\n", {"cpu.max": "75000 50000\n"}, 1.5),
        # version 1
        (V1.format("/"), v1("cpu", 50_000), 0.5),
        (V1.format("/"), v1("cpu", -1), None),
        (V1.format("/"), v1("cpu,cpuacct", 7_000, 10_000), 0.7),
        (V1.format("/docker/abc"), {**v1("cpu/docker", 300_000), **v1("cpu/docker/abc", -1)}, 3),
        # the controller's name is compared whole
        ("4:cpuset:/\n", v1("cpu", 50_000), None),
        # both versions mounted
        (HYBRID, v1("cpu/a", 50_000), 0.5),
        (HYBRID, {"unified/b/cpu.max": "250000 100000\n"}, 2.5),
    ],
)  # fmt: skip
def test_cpu_quota(root, memberships, files, quota):
    assert cpu_quota(root(memberships, files)) == quota


@pytest.mark.parametrize(
    ("memberships", "files", "seconds"),
    [
        ("0::/job\n", {"job/cpu.stat": "usage_usec 9\nnr_throttled 3\nthrottled_usec 1500000\n"}, 1.5),
        (V1.format("/job"), {"cpu/job/cpu.stat": "nr_periods 5\nthrottled_time 2500000000\n"}, 2.5),
        # a quota on any level holds the process back
        ("0::/job/step\n", {"cpu.stat": "throttled_usec 9000000\n", "job/cpu.stat": "throttled_usec 1000000\n"}, 10.0),
        ("0::/\n", {"cpu.stat": "usage_usec 9\n"}, None),
        ("0::/\n", {}, None),
    ],
)
def test_throttled_seconds(root, memberships, files, seconds):
    assert throttled_seconds(root(memberships, files)) == seconds


def test_a_system_without_control_groups(tmp_path):
    assert cpu_quota(tmp_path) is None
    assert throttled_seconds(tmp_path) is None


def test_this_machine_answers_without_error():
    assert cpu_quota() is None or cpu_quota() > 0


@pytest.mark.parametrize(
    ("memberships", "files", "seen"),
    [
        ("0::/\n", {"cgroup.procs": "1\n"}, True),
        ("0::/job\n", {"job/cgroup.procs": "1\n"}, True),
        (V1.format("/docker/1"), {"cpu,cpuacct/cgroup.procs": "1\n"}, True),
        ("0::/job\n", {}, False),
        ("0::/job\n", {"other/cgroup.procs": "1\n"}, False),
        (V1.format("/job"), {"memory/cgroup.procs": "1\n"}, False),
    ],
)
def test_whether_a_group_is_seen(root, memberships, files, seen):
    assert is_seen(root(memberships, files)) is seen


# --- memory ---

V1_MEMORY = "4:memory:/job/step\n"
GIB = 2**30
KEEPS = {"MALLOC_CONF": "thp:always,dirty_decay_ms:-1"}


def v1_memory(folder, limit=2**63 - 4096, peak=0, full=0, kills=0):
    """The files of a group of version 1, in bytes; without a limit it has a number near 2**63."""
    said = f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
    files = {"limit_in_bytes": limit, "max_usage_in_bytes": peak, "failcnt": full, "oom_control": said}
    return {f"memory{folder}/memory.{name}": f"{text}\n" for name, text in files.items()}


def v2_memory(folder, limit="max", peak=0, full=0, kills=0):
    """The files of a group of version 2."""
    files = {"max": limit, "peak": peak, "events": f"low 0\noom {full}\noom_kill {kills}\n"}
    files["events.local"] = f"low 0\noom {full}\n"
    return {f"{folder[1:]}/memory.{name}".lstrip("/"): f"{text}\n" for name, text in files.items()}


def machine(root, kills):
    write(root, {"proc/vmstat": f"nr_free_pages 9\noom_kill {kills}\n", "proc/meminfo": "MemTotal: 8388608 kB\n"})


def between(root, memberships, before, after, was_killed=False, kills=(3, 3), variables=None):
    """What is said of a program between two states of the files; the machine counts so many ``kills`` in each."""
    place = root(memberships, before)
    machine(place, kills[0])
    then = memory_counters(place)
    root(memberships, after)
    machine(place, kills[1])
    return ran_out(then, "python", was_killed, variables or {}, place)


AT_LIMIT = {"limit": GIB, "peak": GIB, "full": 9}


@pytest.mark.parametrize("was_killed", [True, False])
@pytest.mark.parametrize(
    ("memberships", "before", "after", "group"),
    [
        # its own group's limit
        (V1_MEMORY, v1_memory("/job/step", GIB), v1_memory("/job/step", **AT_LIMIT, kills=1), "/job/step"),
        ("0::/job/step\n", v2_memory("/job/step", GIB), v2_memory("/job/step", **AT_LIMIT, kills=1), "/job/step"),
        # in a container, only the mount's own top is there
        (V1_MEMORY, v1_memory("", GIB), v1_memory("", **AT_LIMIT, kills=1), "/"),
        # that of the group around it
        (V1_MEMORY, {**v1_memory("/job/step"), **v1_memory("/job", GIB)},
         {**v1_memory("/job/step", peak=GIB, kills=1), **v1_memory("/job", **AT_LIMIT)}, "/job"),
        ("0::/job/step\n", {**v2_memory("/job/step", 2 * GIB), **v2_memory("/job", GIB)},
         {**v2_memory("/job/step", 2 * GIB, GIB // 2, kills=1), **v2_memory("/job", **AT_LIMIT, kills=1)}, "/job"),
    ],
)  # fmt: skip
def test_a_group_that_reached_its_limit_is_named(root, memberships, before, after, group, was_killed):
    found = between(root, memberships, before, after, was_killed, kills=(3, 4))
    assert found == MemoryRanOut("python", None if was_killed else 1, group, GIB, GIB)


def test_an_allocator_that_keeps_freed_memory_is_named(root):
    states = v1_memory("/job/step", GIB), v1_memory("/job/step", **AT_LIMIT, kills=2)
    found = between(root, V1_MEMORY, *states, variables=KEEPS)
    assert (found.children, found.retaining) == (2, "MALLOC_CONF")


@pytest.mark.parametrize(
    ("memberships", "before", "after", "kills"),
    [
        # page cache fills a group to its limit, and nothing is killed; another program of the machine is
        (V1_MEMORY, v1_memory("/job/step", GIB), v1_memory("/job/step", **AT_LIMIT), (3, 4)),
        ("0::/job\n", v2_memory("/job", GIB), v2_memory("/job", GIB, GIB), (3, 4)),
        # killed before the program began
        (V1_MEMORY, v1_memory("/job/step", **AT_LIMIT, kills=7), v1_memory("/job/step", **AT_LIMIT, kills=7), (3, 3)),
        ("0::/\n", {}, {}, (3, 3)),
    ],
)
def test_without_a_kill_in_the_group_nothing_is_said(root, memberships, before, after, kills):
    for was_killed in (True, False):
        assert between(root, memberships, before, after, was_killed, kills) is None


def test_memory_of_the_machine(root):
    of_group = v1_memory("/job/step", 16 * GIB), v1_memory("/job/step", 16 * GIB, GIB, kills=1)
    assert between(root, V1_MEMORY, *of_group, kills=(3, 4)) == MemoryRanOut("python", 1, machine=8 * GIB)
    # no group is seen: the machine's count may be of another program, unless this one was killed
    assert between(root, "0::/\n", {}, {}, True, (3, 5)) == MemoryRanOut("python", machine=8 * GIB)
    assert between(root, "0::/\n", {}, {}, False, (3, 5)) is None
    assert between(root, "0::/\n", {}, {}, True, (3, 3)) is None


def test_the_least_limit_and_what_is_held_of_it(root):
    files = {**v1_memory("/job/step", 2 * GIB), **v1_memory("/job", GIB), **v1_memory("")}
    held = "cache 999\nrss 1\ntotal_cache 999999\ntotal_rss 700\ntotal_shmem 50\n"
    assert memory_limit(root(V1_MEMORY, files)) == GIB
    assert held_memory(root(V1_MEMORY, {**files, "memory/job/memory.stat": held})) == 750
    v2 = {**v2_memory("/job", GIB), "job/memory.stat": "anon 700\nfile 999999\nshmem 50\n"}
    assert held_memory(root("0::/job\n", v2)) == 750
    assert held_memory(root("0::/other\n", v2_memory("/other"))) is None


def test_the_shipped_profiles_that_keep_freed_memory():
    keep = {name for name in profile.names() if keeps_freed_memory(variables_of(name))}
    assert keep == {"amd-guide", *(name for name in profile.names() if "-retain" in name)}


def variables_of(name):
    """What a profile sets, as far as it stands there as a text."""
    return {variable: str(value) for variable, value in profile.load(name).env.items()}
