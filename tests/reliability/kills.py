"""Kill the command line at random moments, go on each time, and see that nothing is lost and nothing counted twice."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.reliability.place import Place

SERIES = 5  # in folders of their own
AT_ONCE = 3  # a command mostly waits, for its moment or for a worker
# Longer than a command takes to its first samples, so that kills fall before, between and into them.
LATEST_S = 1.5
LATEST_AFTER_EVENT_S = 0.5
POLL_S = 0.002
BLOCKS = 12


@dataclass
class Outcome:
    """What became of some runs: ``before_first_line`` kills left no record, ``in_a_line`` left half an event."""

    runs: int = 0
    kills: int = 0
    samples: int = 0
    before_first_line: int = 0
    in_a_line: int = 0
    wrong: list[str] = field(default_factory=list)
    ended: list[Place] = field(default_factory=list)  # those of the runs


def kill_at_random(folder: Path, kills: int, seed: int = 1) -> Outcome:
    """Kill so often in all, several runs at a time, and let each run come to its end. SERIES divides ``kills``."""
    total = Outcome()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for part in pool.map(lambda n: _series(folder / str(n), kills // SERIES, seed + n), range(SERIES)):
            for name, value in vars(part).items():
                setattr(total, name, getattr(total, name) + value)
    for place in total.ended:  # outside of the pool: to read a record takes all of this process's streams
        total.wrong += place.incomplete()
    return total


def _series(folder: Path, kills: int, seed: int) -> Outcome:
    moments = random.Random(seed)
    outcome = Outcome()
    while outcome.kills < kills:
        _one_run(Place(folder / str(outcome.runs)), kills - outcome.kills, moments, outcome)
        outcome.runs += 1
    return outcome


def _one_run(place: Place, kills: int, moments: random.Random, outcome: Outcome) -> None:
    """Start a run, kill it up to ``kills`` times, going on after each, and then let it come to its end."""
    kept = b""
    for _ in range(kills):
        process = place.start(place.resume() if kept else place.bench("--blocks", BLOCKS))
        if not _killed(process, place, moments):
            break  # it had come to its end
        outcome.kills += 1
        now = place.whole_lines()
        if not now.startswith(kept):
            outcome.wrong.append(f"kill {outcome.kills} took away or changed what was recorded")
        outcome.before_first_line += not now
        outcome.in_a_line += bool(now) and place.record.read_bytes() != now
        kept = now
    last = place.ask(*(place.resume() if kept else place.bench()))
    if last.status != 0:
        outcome.wrong.append(f"it did not go on: {last.messages}")
    if not place.whole_lines().startswith(kept):
        outcome.wrong.append("going on took away or changed what was recorded")
    outcome.samples += len(place.samples())
    outcome.wrong += place.left()
    outcome.ended.append(place)


def _killed(process: subprocess.Popen[str], place: Place, moments: random.Random) -> bool:
    """Kill at a moment drawn from a process's usual life, or from the time after the next thing that it records."""
    if moments.random() < 0.5:
        latest = LATEST_S
    else:
        latest = LATEST_AFTER_EVENT_S
        size = len(place.whole_lines())
        while len(place.whole_lines()) == size and process.poll() is None:
            time.sleep(POLL_S)
    time.sleep(moments.uniform(0, latest))
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL
