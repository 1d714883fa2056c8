"""The messages of what is measured and recorded."""

from __future__ import annotations

from envkit.messages import Message


class VariableNotSet(Message):
    code = "bench.variable-not-set"
    template = "--keep-env {name}: it is not set in your environment; set it, or leave it out"

    name: str


class HoldsRun(Message):
    code = "bench.holds-run"
    template = "{folder}: holds a run already; continue it with --resume {folder}, or give another folder"

    folder: str


class FolderNotWritable(Message):
    code = "bench.folder-not-writable"
    template = "{folder}: can't be made, as {there} is no folder that you can write to; give another with --output"

    folder: str
    there: str
