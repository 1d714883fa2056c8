"""No two types of data carry the same fields: what both need is a type too.

Messages are left out: they have the figures that their sentences name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import combinations

from tests.test_structure import modules, tree

# Two types may have so many fields of one name and type.
MOST_SHARED = 3
FORMS = {"Struct", "NamedTuple", "TypedDict"}


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """All classes of the kit, by their names without the module."""
    found: dict[str, list[ast.ClassDef]] = {}
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def lineage(node: ast.ClassDef) -> set[str]:
    """Return the names of a class and of all its bases."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases} - {node.name}
    return {node.name, *bases}.union(*(lineage(base) for name in bases for base in classes().get(name, [])))


def is_data(node: ast.ClassDef) -> bool:
    """Return whether a class is a dataclass, a Struct, a NamedTuple or a TypedDict, and no message."""
    is_dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    return (is_dataclass or bool(lineage(node) & FORMS)) and "Message" not in lineage(node)


def fields(node: ast.ClassDef) -> set[tuple[str, str]]:
    """Return the fields that a class declares, each with its type; inherited ones are declared by another."""
    declared = (line for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name))
    return {(ast.unparse(line.target), ast.unparse(line.annotation)) for line in declared}


def types() -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """All types of data of the kit by their dotted names, with their fields."""
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and is_data(node):
                yield f"{module.removeprefix('envkit.')}.{node.name}", fields(node)


def test_no_two_types_share_more_than_three_fields():
    known = sorted(types())
    assert {"bench.study.Study", "bench.run.Run", "analysis.result.Result", "engines.base.Launch"} <= {*dict(known)}
    shared = {
        (one, other): sorted(name for name, _ in of_one & of_other)
        for (one, of_one), (other, of_other) in combinations(known, 2)
        if len(of_one & of_other) > MOST_SHARED
    }
    assert not shared, "give what they share a type of its own"
