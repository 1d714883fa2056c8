"""Every variable that the kit reads from its environment stands in one table of docs/reference.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from tests.simulation import PROJECT
from tests.test_structure import dotted

RUNNER = PROJECT / "runner"
# Code of workers has tables of its own: what evidence reads, and what workers do not inherit.
EXCEPT = "envkit/worker/"
# Read by libraries, on the kit's behalf.
BY_LIBRARIES = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "HOME", "TMPDIR"}
# What no page of reference needs: the kit sets these for processes of its own.
OWN = "ENVKIT_*"


def table() -> list[str]:
    text = (PROJECT / "docs/reference.md").read_text().partition("## Environment variables\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [name.partition("=")[0] for row in rows for name in re.findall(r"`([A-Z_*=0-9]+)`", row.split(" | ")[0])]


@cache
def module(path: str) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def text_of(path: str) -> str:
    return (RUNNER / path).read_text()


def names_read(path: str) -> Iterator[str]:
    """The names that a module looks up in os.environ, as far as they are constants there or where it has them from."""
    if not re.search("environ|getenv", text_of(path)):
        return  # most modules, of which each would be parsed for nothing
    for node in ast.walk(module(path)):
        keys: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and _is_environ(node.value):
            keys = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value):
            keys = node.args[:1] if node.func.attr in ("get", "pop") else []
        elif isinstance(node, ast.Compare) and any(map(_is_environ, node.comparators)):
            keys = [node.left]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("getenv"):
            keys = node.args[:1]
        for key in keys:
            yield from _values(path, key)


def _is_environ(node: ast.expr) -> bool:
    return dotted(node) == "os.environ"


def _values(path: str, node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple):
        for one in node.elts:
            yield from _values(path, one)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _constant(path, dotted(node))


def _constant(path: str, name: str) -> Iterator[str]:
    """The value of a constant of a module, or of one that it imports."""
    first, _, rest = name.partition(".")
    for node in module(path).body:
        if isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets):
            yield from _values(path, node.value)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("envkit"):
            for one in node.names:
                if (one.asname or one.name) != first:
                    continue
                place = f"{node.module}.{one.name}" if rest else node.module
                inner = place.replace(".", "/")
                file = next((f for f in (f"{inner}.py", f"{inner}/__init__.py") if (RUNNER / f).is_file()), None)
                if file is not None:
                    yield from _constant(file, rest or one.name)


def names_that_the_kit_reads() -> dict[str, str]:
    paths = sorted(str(path.relative_to(RUNNER)) for path in (RUNNER / "envkit").rglob("*.py"))
    found = {name: path for path in paths if not path.startswith(EXCEPT) for name in names_read(path)}
    for path in paths:  # which take the variable's name
        for name in re.findall(r'_base\("([A-Z_]+)"', text_of(path)):
            found[name] = path
    return found


def test_what_is_read_stands_in_the_table():
    found, listed = names_that_the_kit_reads(), table()
    assert {"DOCKER_HOST", "SBATCH_PARTITION", "SLURM_JOB_END_TIME", "SLURMD_NODENAME"} <= found.keys()
    missing = {name: path for name, path in found.items() if not any(fnmatchcase(name, one) for one in (*listed, OWN))}
    assert missing == {}
    assert set(listed) >= BY_LIBRARIES


def test_what_stands_in_the_table_is_read_and_stands_there_once():
    listed = table()
    assert sorted(listed) == sorted({*listed})
    places = (*RUNNER.rglob("*.py"), *(PROJECT / "images").rglob("*"), PROJECT / "Makefile")
    texts = [path.read_text(errors="replace") for path in places if path.is_file()]
    unused = [
        name
        for name in listed
        if name not in BY_LIBRARIES and not any(name.removesuffix("_*") in text for text in texts)
    ]
    assert unused == []
