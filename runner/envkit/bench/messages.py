"""The messages of what is measured and recorded."""

from __future__ import annotations

from envkit.messages import Message


class VariableNotSet(Message):
    code = "bench.variable-not-set"
    template = "--keep-env {name}: it is not set in your environment; set it, or leave it out"

    name: str


class HoldsRun(Message):
    code = "bench.holds-run"
    template = "{folder}/record.jsonl: holds a run already; continue it with --resume {folder}, or give another folder"

    folder: str


class FolderNotWritable(Message):
    code = "bench.folder-not-writable"
    template = "{folder}: can't be made, as {there} is no folder that you can write to; give another with --output"

    folder: str
    there: str


class Interrupted(Message):
    code = "bench.interrupted"
    template = "interrupted; go on with: {command}"

    command: str


class InterruptedForGood(Message):
    """A run that nothing goes on with: it is so short that it is begun anew."""

    code = "bench.interrupted-for-good"
    template = "interrupted; start it again"


class WorkerFailed(Message):
    code = "bench.worker-failed"
    template = "a worker failed; see failures"


class NotInEffect(Message):
    code = "bench.not-in-effect"
    template = "not in effect: {arms}"

    arms: tuple[str, ...]


class TargetNotReached(Message):
    code = "bench.target-not-reached"
    template = "a training did not reach its target"
