from __future__ import annotations

import pytest
from envkit.worker.cgroup import cpu_quota, is_seen, throttled_seconds

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
