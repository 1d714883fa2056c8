"""The house rules: imports point up the list of packages, in no circle, and modules and functions stay short."""

from __future__ import annotations

import ast
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


# What writes to a file, makes a folder or gives something a name. `envkit.common.atomic` alone does, but for these.
WRITERS = {
    "write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "symlink_to", "hardlink_to", "mkfifo", "mknod",
    "mkstemp", "NamedTemporaryFile", "copyfile", "copytree", "copy2", "move", "link", "symlink",
}  # fmt: skip
OPENED_TO_WRITE = {"O_CREAT", "O_WRONLY", "O_RDWR"}
WRITING_MODES = set("wax+")
OTHER_WRITERS = {
    "envkit.common.machine_lock": "the lock of all users, opened without following a link",
    "envkit.common.user_key": "the key, made under a random name in a folder of the user's alone",
    "envkit.common.schema": "notes in the user's cache",
    "envkit.profiles.preload_links": "links in the user's cache, if it is the user's alone",
    "envkit.engines.process": "notes in a folder of the user's alone, which is checked",
    "envkit.engines.turns": "in a folder that the process has made",
    "envkit.cli": "/dev/null",
    "envkit.cli.execution.on_machine": "in a folder that the process has made",
    "envkit.bench.dataset": "downloads, in a folder that the process has made",
    "envkit.tuning.journal": "the lock beside a journal: a link that nobody follows",
}


def _writes(node: ast.AST) -> str | None:
    """Return the name of what a node writes with, if it does."""
    if isinstance(node, ast.Attribute) and node.attr in OPENED_TO_WRITE:
        return node.attr
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in {"replace"} and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and not node.keywords:
        return "replace"  # a Path: a text's takes two, and a dataclass's its object and names
    if name == "replace" and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "os":
        return "os.replace"
    if name in {"open", "fdopen"}:
        modes = [
            one.value for one in [*node.args, *(key.value for key in node.keywords)] if isinstance(one, ast.Constant)
        ]
        writing = any(isinstance(mode, str) and len(mode) <= 3 and WRITING_MODES & {*mode} for mode in modes)
        return name if writing else None
    return name if name in WRITERS else None


def _outside_of(node: ast.AST, functions: set[str]) -> Iterator[ast.AST]:
    """Yield all nodes but those of calls of ``functions``, whose arguments are flags."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in functions:
        return
    yield node
    for inner in ast.iter_child_nodes(node):
        yield from _outside_of(inner, functions)


def test_nothing_else_writes_files():
    """Workers write in folders that the process has made, and are not looked at here."""
    ours = {"open_file", "open_descriptor"}
    found = {
        module: {name for node in _outside_of(tree(module), ours) if (name := _writes(node))}
        for module in modules()
        if package(module) != "worker" and module not in {"envkit.common.atomic", "envkit.common.destination"}
    }
    assert {module: names for module, names in found.items() if names and module not in OTHER_WRITERS} == {}
    assert {module for module in OTHER_WRITERS if not found[module]} == set()
