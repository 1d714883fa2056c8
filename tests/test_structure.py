"""The house rules: imports point up the list of packages, in no circle, and modules and functions stay short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.simulation import PROJECT

# A package may import those before it. CONTRIBUTING.md says what each is for.
PACKAGES = (
    "common", "worker", "profiles", "engines", "advice", "checks", "stats", "bench", "analysis", "report", "tuning",
    "cluster", "cli",
)  # fmt: skip
# What runs code that stands in data: pickles, in files or from other ranks, and marshalled code.
UNPICKLE = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "recv_object_list", "broadcast_object_list", "gather_object",
    "all_gather_object", "scatter_object_list",
}  # fmt: skip
# What reaches a terminal past the writer of envkit.common.output, which is in the place of the standard streams.
PAST_WRITER = {
    "buffer", "__stdout__", "__stderr__", "ctermid", "ttyname", "Console", "rich_proxied_file", "openpty",
    "terminal_of",
}  # fmt: skip
WRITERS = ("envkit.common.output", "envkit.common.console")
# What runs without the command line, and so without its writer: a worker, whose streams are pipes, ...
WITHOUT_WRITER = ("envkit.worker", "envkit.engines.start")
# ... and the check of a notebook, which prints messages alone.
ONLY_TEXT = ("envkit", "envkit.checks.this_process")
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_AT_THE_ROOT = 400, 60, 5


@cache
def modules() -> dict[str, Path]:
    """All modules of the kit by their dotted names."""
    paths = (PROJECT / "runner").rglob("*.py")
    named = {".".join(path.relative_to(PROJECT / "runner").with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


def imported(module: str) -> Iterator[str]:
    """The kit's modules that one imports, anywhere in it; of a package's parts those that are modules."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            for one in node.names:
                part = f"{node.module}.{one.name}"
                yield part if part in modules() else str(node.module)


def package(module: str) -> str | None:
    """The package that a module is in; None for one at the root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else None


def test_every_module_is_in_a_package_but_for_a_few():
    outside = [name for name in modules() if package(name) is None]
    assert len(outside) <= MOST_AT_THE_ROOT, outside


@pytest.mark.parametrize("name", PACKAGES)
def test_imports_point_up_the_list(name):
    allowed = {"worker"} if name == "worker" else {*PACKAGES[: PACKAGES.index(name) + 1]}
    wrong = [
        f"{module} imports {other}"
        for module in modules() if package(module) == name
        for other in imported(module) if package(other) not in {None, *allowed}
    ]  # fmt: skip
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: {other for other in imported(module) if other != module} for module in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_no_module_is_too_long():
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert not {name: number for name, number in lines.items() if number > MOST_LINES}


def test_no_function_is_too_long():
    functions = (
        (f"{module}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
    )
    assert not {name: lines for name, lines in functions if lines > MOST_LINES_OF_A_FUNCTION}


def test_nothing_is_unpickled():
    """Whoever can write a file or reach a port could run code by it."""
    found = []
    for module in modules():
        for node in ast.walk(tree(module)):
            names = [*(one.name for one in node.names)] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.attr] if isinstance(node, ast.Attribute) else []
            found += [f"{module}: {name}" for name in names if name.partition(".")[0] in UNPICKLE]
    assert not found


def calls(module: str) -> Iterator[tuple[str, ast.Call]]:
    """What a module calls, by the dotted name as it is written, or the last part of it."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_only_the_writer_reaches_a_terminal():
    """All else prints to the standard streams, for which the command line puts the writer."""
    found = []
    for module in modules():
        if module in WRITERS:
            continue
        for node in ast.walk(tree(module)):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            found += [f"{module}:{node.lineno}: {name}"] if name in PAST_WRITER else []
        for name, call in calls(module):
            writes = name in ("os.write", "os.writev", "os.fdopen", "open")
            to_stream = writes and ast.unparse(call.args[0]) in ("1", "2")
            named = any(isinstance(one, ast.Constant) and str(one.value).startswith(("/dev/tty", "/dev/std", "/dev/fd"))
                        for one in call.args)  # fmt: skip
            if (to_stream and not module.startswith(WITHOUT_WRITER)) or named or name in ("Console", "rich.print"):
                found.append(f"{module}:{call.lineno}: {name}")
    assert not found


def test_each_program_that_prints_has_the_writer():
    """A module that is started as a program, and is not the worker, puts it there; the command line puts its own."""
    programs = {name for name, path in modules().items() if "if __name__ ==" in path.read_text()}
    programs = {name for name in programs if not name.startswith(WITHOUT_WRITER)}
    assert programs == {"envkit.__main__", "envkit.cli.slurm_node"}
    for name in ("envkit.cli", "envkit.cli.slurm_node"):
        main = next(one for one in tree(name).body if isinstance(one, ast.FunctionDef) and one.name == "main")
        assert "output.guard()" in ast.unparse(main), name


@pytest.mark.parametrize("module", ONLY_TEXT)
def test_what_is_printed_into_another_program_is_text_of_messages(module):
    """The streams there are the user's: each thing that is printed passes envkit.rendering."""
    for name, call in calls(module):
        if name == "print":
            for printed in call.args:
                said = ast.unparse(printed)
                assert re.search(r"\btext(_of)?\(|\*of_profile", said), said
