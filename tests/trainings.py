"""Trainings that take no torch and no time, and meet others at the same time: in the place of ``envkit.worker``."""

from __future__ import annotations

TEXT = """
import os, subprocess, sys, time
from pathlib import Path
from envkit.worker.instances import as_instance, distributed
from envkit.worker.request import read
asked = read(sys.argv[-1]).work
parties, folder = asked.number, Path(asked.folder)
def first():
    try:
        return bool((folder / "first").open("x"))
    except FileExistsError:
        return False
def usual(meeting):
    end = time.monotonic() + 120  # others that never are would keep it running
    while meeting.others_train(3) and time.monotonic() < end:
        time.sleep(0.001)
    usage = dict.fromkeys((*distributed.SUMMED, "throttled_s"), 1)
    return {"seconds": 1.0, "step_s": [0.25] * 4, "warmup_step_s": [], "losses": [3.0, 2.0, 1.0, 0.0], "modes": {},
            "images_per_step": 8, "usage": usage, "peak_memory_bytes": 1, "digests": {}, "evidence": {}}
def train(cpus, meeting):
    BEFORE
    meeting.begin()
    THEN
as_instance(train, parties, folder)
"""


def training(then: str = "return usual(meeting)", before: str = "pass") -> str:
    """The program of one that does something before it meets the others, and then; its last argument is the request.

    ``first()`` is true in one of them, and ``usual(meeting)`` is its sample.
    """
    return TEXT.replace("THEN", then.strip()).replace("BEFORE", before)
