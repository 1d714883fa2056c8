"""How many functions a study passes before a worker starts, and a result before it is printed.

Who follows the data has to read each of them, so these numbers may only fall.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import pytest
from envkit.engines.base import Launch, Outcome
from envkit.worker.request import Train

from tests.conftest import Cli
from tests.instant_engine import InstantEngine
from tests.simulation import PROJECT, Simulation, times

# From the options to the first start of a training, and from the record to the printed report.
MOST_TO_START, MOST_TO_REPORT = 12, 12
CENTRAL = re.compile(r"\b(Study|Run|Result)\b")


@contextmanager
def traced() -> Iterator[set[CodeType]]:
    """Collect the code of each of the kit's functions that is called."""
    called: set[CodeType] = set()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{PROJECT}/runner/"):
            called.add(frame.f_code)

    sys.setprofile(profile)
    try:
        yield called
    finally:
        sys.setprofile(None)


@cache
def passing(path: Path) -> dict[int, str]:
    """Return the functions of a module that take or return a Study, a Run or a Result, by their first lines.

    The methods of these classes themselves are not among them.
    """
    tree = ast.parse(path.read_text())
    methods = {
        method
        for node in tree.body
        if isinstance(node, ast.ClassDef) and CENTRAL.fullmatch(node.name)
        for method in node.body
    }
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node not in methods:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            annotations = [argument.annotation for argument in arguments] + [node.returns]
            if any(CENTRAL.search(ast.unparse(annotation)) for annotation in annotations if annotation is not None):
                found[min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])] = node.name
    return found


def walk(called: set[CodeType]) -> set[str]:
    """Return those of the called functions that take or return a Study, a Run or a Result."""
    found = set()
    for code in called:
        path = Path(code.co_filename)
        if (name := passing(path).get(code.co_firstlineno)) is not None:
            found.add(f"{path.relative_to(PROJECT / 'runner/envkit')}: {name}")
    return found


@pytest.fixture
def measured(
    cli_in_process: Cli,
    instant: InstantEngine,
    simulation: Simulation,
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> set[str]:
    """Measure with simulated workers; return the walk to the first training. The record is in ``run``.

    The profile is faster, so that the report has advice with a command.
    """
    simulation.worker("mine", seconds=times(0.5))
    mine = write_profile("mine", "env: {SIMULATED: mine}\n")
    at_start: list[set[str]] = []
    start = instant.run

    def run(launch: Launch) -> Outcome:
        if isinstance(launch.work, Train) and not at_start:
            at_start.append(walk({*called}))
        return start(launch)

    monkeypatch.setattr(instant, "run", run)
    options = ("--allow-unknown", "--data", "synthetic", "--blocks", 8, "--steps", 3, "--output", tmp_path / "run")
    with traced() as called:
        measured = cli_in_process("bench", mine, *options, cwd=tmp_path)
    assert measured.returncode == 0, measured.stderr
    return at_start[0]


def test_the_walk_from_options_to_a_start(measured: set[str]) -> None:
    assert 0 < len(measured) <= MOST_TO_START, "\n".join(sorted(measured))


def test_the_walk_from_a_record_to_its_report(measured: set[str], cli_in_process: Cli, tmp_path: Path) -> None:
    with traced() as called:
        assert cli_in_process("report", tmp_path / "run").returncode == 0
    passed = walk(called)
    assert 0 < len(passed) <= MOST_TO_REPORT, "\n".join(sorted(passed))
