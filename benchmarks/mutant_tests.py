"""A plugin of pytest: run the tests of one list, and write which of them run which lines, or which of them fails.

``ENVKIT_MUTANT`` names a folder. ``tests`` in its ``request.json`` are the node ids to run, in their order (null: all).
``lines`` are the numbers of interest by absolute path, and ``seconds`` limits the CPU time. ``reply.jsonl`` gets a line
for each test that has ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Tracer = Callable[[FrameType, str, Any], Any]


class Lines:
    """Note which lines of interest run. Only code that has some of them is traced line by line."""

    def __init__(self, wanted: dict[str, list[int]]) -> None:
        self.wanted = {path: set(numbers) for path, numbers in wanted.items()}
        self.run: set[tuple[str, int]] = set()
        self._of_code: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Tracer | None:
        code = frame.f_code
        if code.co_filename not in self.wanted:
            return None
        if code not in self._of_code:
            numbers = {number for _, _, number in code.co_lines() if number is not None}
            self._of_code[code] = numbers & self.wanted[code.co_filename]
        return self._line if self._of_code[code] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Tracer:
        if frame.f_lineno in self._of_code[frame.f_code]:
            self.run.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


class Plugin:
    """Run what ``request.json`` of ``folder`` has, and reply test by test."""

    def __init__(self, folder: Path) -> None:
        request = json.loads((folder / "request.json").read_text())
        limit = int(request["seconds"]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        self.tests: list[str] | None = request["tests"]
        self.lines = Lines(request["lines"])
        self.reply = folder / "reply.jsonl"
        self.failed = False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.tests is not None:
            places = {test: place for place, test in enumerate(self.tests)}
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.failed, start = False, time.process_time()
        self.lines.run.clear()
        if self.lines.wanted:
            self.lines.start()
        outcome = yield
        sys.settrace(None)
        line = {"test": item.nodeid, "passed": not self.failed, "seconds": round(time.process_time() - start, 3),
                "lines": sorted(self.lines.run)}  # fmt: skip
        with self.reply.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin(Path(os.environ["ENVKIT_MUTANT"])))
