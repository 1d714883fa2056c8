"""A worker runs in the Python that trains, 3.8 or later, which may be older than the kit's own."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from envkit.engines.base import WORKER
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest

from tests.simulation import PROJECT

PACKAGE = PROJECT / "runner/envkit"
MODULES = [PACKAGE / "messages.py", *sorted((PACKAGE / "worker").rglob("*.py"))]
# Of the standard library, what came with Python 3.9 and 3.10, as far as a worker could want it; ruff knows the syntax.
NEWER = {
    "pairwise", "removeprefix", "removesuffix", "randbytes", "is_relative_to", "hardlink_to", "bit_count", "cache",
    "F_GETPIPE_SZ", "F_SETPIPE_SZ", "lcm", "nextafter", "ulp", "to_thread", "aclosing", "TypeAlias", "ParamSpec",
}  # fmt: skip
NEWER_ARGUMENTS = {"zip": "strict", "dataclass": "slots", "field": "kw_only"}
# Each is imported by itself, without what is not installed there.
IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "envkit":
            raise
"""


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it, without those that type checkers alone look at."""
    yield node
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        children = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from executed(child)


def newer(tree: ast.Module) -> list[str]:
    """Return what a module uses that Python 3.8 lacks, with its line."""
    found = []
    for node in executed(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in NEWER:
            found.append(f"{name} in line {node.lineno}")
        if isinstance(node, ast.ImportFrom):
            found += [f"{part.name} in line {node.lineno}" for part in node.names if part.name in NEWER]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = {keyword.arg for keyword in node.keywords}
            argument = NEWER_ARGUMENTS.get(node.func.id)
            if argument is not None and argument in arguments:
                found.append(f"{node.func.id}({argument}=) in line {node.lineno}")
    return found


def test_a_worker_uses_nothing_that_python_3_8_lacks() -> None:
    uses = {str(path.relative_to(PACKAGE)): newer(ast.parse(path.read_text())) for path in MODULES}
    assert {path: names for path, names in uses.items() if names} == {}


def test_what_is_newer_is_found() -> None:
    code = "from itertools import pairwise\nzip(a, b, strict=True)\nos.fcntl.F_GETPIPE_SZ\n'a'.removeprefix('b')\n"
    assert len(newer(ast.parse(code))) == 4


def works(python: Path | str) -> bool:
    """Whether it is one, and no shim that would say which versions there are."""
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def python() -> str:
    """Return the path of the oldest Python that is there, of those that a worker runs in and the kit does not."""
    for version in ("3.8", "3.9"):
        programs = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
        python = next((str(program) for program in programs if program is not None and works(program)), None)
        if python is not None:
            return python
    pytest.skip("no python3.8 or python3.9 here")


def test_a_worker_is_imported_by_an_old_python(python: str) -> None:
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in MODULES
        if path.stem not in ("__main__", "sitecustomize")
    ]
    outcome = subprocess.run(
        [python, "-S", "-c", IMPORT, *names], env={"PYTHONPATH": str(PACKAGE.parent)}, capture_output=True, check=False
    )
    assert (outcome.returncode, outcome.stderr.decode()) == (0, "")


def test_a_users_command_is_measured_in_an_old_python(python: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time\nfor step in range(6):\n    time.sleep(0.05)\n    print('step', step, flush=True)\n"
    )
    command = UserCommand((python, "train.py"), str(tmp_path), metric="step [0-9]+", warmup_lines=1)
    request = WorkerRequest(RunCommand(command, warmup=1), parent=os.getpid())
    outcome = subprocess.run(
        [python, WORKER, "-"],
        input=request.line(),
        text=True,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    document = json.loads(outcome.stdout)
    assert len(document["step_s"]) == 4
    assert document["evidence"]
