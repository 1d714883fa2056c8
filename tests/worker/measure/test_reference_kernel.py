from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from envkit.engines.base import WORKER, EngineOptions, Launch
from envkit.engines.local import LocalEngine
from envkit.worker import cgroup, command_line, host
from envkit.worker.errors import WorkerError
from envkit.worker.measure import reference_kernel
from envkit.worker.messages import KernelTooLarge
from envkit.worker.request import ReferenceKernel, WorkerRequest

from tests.conftest import PROJECT


@pytest.fixture
def small(monkeypatch):
    """A reference kernel that takes no time."""
    monkeypatch.setattr(reference_kernel, "BUFFER_BYTES", 2**16)


def test_a_worker_times_it_through_the_engine():
    outcome = LocalEngine(EngineOptions()).run(Launch(ReferenceKernel(), timeout_s=60))
    assert outcome.failure is None, outcome
    document = json.loads(outcome.stdout)
    assert document.keys() == {"seconds", "digest"}
    assert 0 < document["seconds"] < outcome.seconds
    assert document["digest"] == reference_kernel.digest()


def test_it_needs_nothing_that_is_slow_to_import():
    code = "import sys; import envkit.worker.measure.reference_kernel; print({'torch', 'numpy'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_all_usable_cpus_work_at_once_and_the_last_one_ends_a_pass(monkeypatch):
    """Three CPUs that take different times; the median of nine passes, in which two are spikes."""
    passes = [[3.0, 1.0, 2.0]] * 7 + [[1.0, 90.0, 1.0], [80.0, 1.0, 1.0]]
    together = []

    def work(barrier, ends):
        for number in range(len(passes)):
            mine = barrier.wait()  # the place in which this thread arrived
            together.append(number)
            ends.append(passes[number][mine])

    monkeypatch.setattr(reference_kernel, "cpu_facts", lambda: {"usable_cpus": 3})
    monkeypatch.setattr(reference_kernel, "_work", work)
    monkeypatch.setattr(reference_kernel.time, "perf_counter", lambda: 0.0)
    assert reference_kernel.time_reference_kernel()["seconds"] == 3.0
    assert sorted(together) == sorted(list(range(9)) * 3)


def test_each_cpu_does_the_same_amount(monkeypatch, small):
    done = []
    monkeypatch.setattr(reference_kernel.hashlib, "blake2b", lambda buffer: done.append(len(buffer)))
    for cpus in (1, 2):
        monkeypatch.setattr(reference_kernel, "cpu_facts", lambda cpus=cpus: {"usable_cpus": cpus})
        done.clear()
        assert reference_kernel.time_reference_kernel()["seconds"] > 0
        assert done == [2**16] * cpus * reference_kernel.PASSES * reference_kernel.HASHED


def test_the_digest_tells_works_apart(monkeypatch, tmp_path):
    first = reference_kernel.digest()
    assert first == reference_kernel.digest()
    changed = tmp_path / "reference_kernel.py"
    changed.write_text("# another work")
    for where, name, value in (
        (reference_kernel, "__file__", str(changed)),
        (reference_kernel.sys, "version", "3.11.7 (main, May  9 2026) [GCC 99.1.0]"),
        (reference_kernel.os, "confstr", lambda name: "glibc 9.99"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, value)
            assert reference_kernel.digest() != first
    built = sys.version.replace(sys.version.split("(")[1].split(")")[0], "main, Jan  1 2030, 00:00:00")
    monkeypatch.setattr(reference_kernel.sys, "version", built)
    assert reference_kernel.digest() == first  # the same source, built again by the same compiler


def test_it_does_not_outlive_the_runner(simulation):
    another = WorkerRequest(ReferenceKernel(), parent=os.getpid() + 1)  # as if the parent were gone already
    argv, line = [sys.executable, str(WORKER), "-"], another.line().encode()
    assert subprocess.run(argv, cwd=PROJECT, env={}, capture_output=True, input=line, check=False).returncode == 1
    LocalEngine(EngineOptions(python=str(simulation.python))).run(Launch(ReferenceKernel()))
    start = json.loads((simulation.folder / "starts.jsonl").read_text())
    assert (start["work"], start["parent"]) == ({"kind": "reference-kernel"}, os.getpid())


@pytest.mark.parametrize(("limit", "fits"), [(None, True), (2**30, True), (255 * 2**20, False)])
def test_it_is_left_out_where_it_could_be_killed_for_its_memory(monkeypatch, limit, fits):
    """A group may be set up so that the kernel kills all of it, the runner too."""
    monkeypatch.setattr(host, "cpu_facts", lambda: {"usable_cpus": 4})
    monkeypatch.setattr(cgroup, "memory_limit", lambda: limit)
    if fits:
        command_line._require_memory()
    else:
        with pytest.raises(WorkerError) as caught:
            command_line._require_memory()
        assert caught.value.message == KernelTooLarge(needed=128 * 2**20, limit=limit)
