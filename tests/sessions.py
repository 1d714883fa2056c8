"""Records of two sessions whose difference is known, for baselines."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from envkit.bench import record
from envkit.engines.messages import ExitStatus

from tests import records

BLOCKS = 10
REFERENCE_KERNEL_S = 0.11
REFERENCE_KERNEL = "f" * 64


def session(
    folder: Path,
    slower: dict[str, float] | None = None,
    machine: float = 1.0,
    reference_kernel: str | None = REFERENCE_KERNEL,
    blocks: int = BLOCKS,
    seed: int = 1,
    noise: float = 0.01,
    reference_kernel_s: float = REFERENCE_KERNEL_S,
    no_reference_kernel_in: Container[int] = (),
    skipped_steps: int = 0,
    **options: Any,
) -> Path:
    """Write the record of a run of ``baseline`` and ``mine``; returns its folder.

    ``slower`` is by how much longer an arm takes than usual; ``machine`` by how much longer all takes, the reference
    kernel too, which otherwise takes ``reference_kernel_s``. Each time has its own noise. Without ``reference_kernel``
    it was never read; in the blocks of ``no_reference_kernel_in`` it could not run.
    """
    generator = random.Random(seed)
    events: list[dict[str, Any]] = []
    arms = options.pop("arms", (records.arm("baseline"), records.arm("mine")))
    for event in records.run_events(*arms, blocks=blocks, **options):
        if event["event"] == "sample":
            if reference_kernel and event["arm"] == arms[0]["name"]:
                seconds = reference_kernel_s * machine * generator.lognormvariate(0, noise)
                where = {"time": event["time"], "block": event["block"], "worker_seconds": 1.2}
                if event["block"] in no_reference_kernel_in:
                    failure = {"problem": ExitStatus(1).to_json(), "stderr": ""}
                    events.append({"event": "reference-kernel-failure", **where, **failure})
                else:
                    reading = {"seconds": seconds, "digest": reference_kernel}
                    events.append({"event": "reference-kernel", **where, **reading})
            usual = 1.0 if event["arm"] == arms[0]["name"] else 0.5
            step_s = usual * machine * (slower or {}).get(event["arm"], 1.0) * generator.lognormvariate(0, noise)
            event |= {"seconds": 3 * step_s, "step_s": [step_s] * 3}
        events.append(event)
    if skipped_steps:
        events.insert(1, records.lengths(skipped_steps=skipped_steps))
    return records.write(folder, events)


def rewrite(folder, change):
    """Change the first event of a record."""
    path = folder / record.FILE_NAME
    first, rest = path.read_text().split("\n", 1)
    run = json.loads(first)
    change(run)
    path.write_text(json.dumps(run) + "\n" + rest)
    return folder


def verdicts(result):
    """The verdict and the profile of each line that a comparison begins with, as ``REGRESSION  mine``."""
    head = result.stdout.partition("\n\n")[0].replace("\n", " ")
    return re.findall(r"(?:(?:NO )?REGRESSION|FASTER|NOT (?:CERTAIN|COMPARED))  \w+(?=:)", head)


def signed(path, change):
    """Change a baseline and sign it, by the rule that the schema gives."""
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()}))


def change_inspection(part, **fields):
    """Fields of what is seen of the machine, in a new record."""

    def change(run):
        run["engines"]["local"]["inspection"][part] |= fields

    return change
