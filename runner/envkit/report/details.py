"""Print the whole report on a terminal: machine and images, evidence, settings, and how to do one sample by hand."""

from __future__ import annotations

from rich.console import Console

from envkit.analysis.summary import Summary
from envkit.report import terminal


def show(summary: Summary, folder: str, out: Console) -> None:
    terminal.show(summary, folder, out, full=True)
