from __future__ import annotations

import os
import threading

from envkit.worker.evidence import openmp
from envkit.worker.evidence.cpu_use import threads


def test_a_thread_that_is_bound_to_one_cpu_is_counted():
    cpu = max(os.sched_getaffinity(0))
    bound, leave = threading.Event(), threading.Event()

    def bind():
        os.sched_setaffinity(0, {cpu})  # 0 is the calling thread
        bound.set()
        leave.wait()

    before = threads()
    thread = threading.Thread(target=bind)
    thread.start()
    try:
        bound.wait()
        after = threads()
    finally:
        leave.set()
        thread.join()
    assert after["count"] == before["count"] + 1
    assert after["masks"][str(cpu)] == before["masks"].get(str(cpu), 0) + 1
    # a process that has one CPU only leaves its threads no other
    assert after["pinned_cpus"] == max(int(len(os.sched_getaffinity(0)) > 1), before["pinned_cpus"])


def test_a_process_that_began_with_one_cpu_has_bound_no_thread(monkeypatch):
    cpu = min(os.sched_getaffinity(0))
    monkeypatch.setattr(openmp, "STARTED_ON", {cpu})
    found = []

    def look():
        os.sched_setaffinity(0, {cpu})
        found.append(threads())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found[0]["masks"][str(cpu)] >= 1
    assert found[0]["pinned_cpus"] == 0
