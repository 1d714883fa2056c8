"""Names say what they hold: the number of private nouns in each package can only fall."""

from __future__ import annotations

import ast
from collections import Counter

from tests.test_structure import modules, tree

PRIVATE = {
    "all_of", "asked", "found", "given", "known", "one", "own", "parts", "passed_over", "rest", "said", "seen", "some",
    "these", "those", "told", "what", "which", "whole", "wrong",
}  # fmt: skip
# Whoever renames some lowers the number.
MOST = {
    "advice": 1,
    "analysis": 107,
    "bench": 45,
    "checks": 20,
    "cli": 26,
    "cluster": 2,
    "common": 9,
    "engines": 4,
    "profiles": 12,
    "report": 149,
    "stats": 0,
    "tuning": 9,
    "worker": 15,
}


def defined(module: str) -> list[str]:
    """Return the names that a module gives to functions, classes, parameters, fields and variables."""
    names = []
    for node in ast.walk(tree(module)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.append(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.append(name)
    return names


def test_no_package_gains_private_nouns() -> None:
    counts = Counter(
        module.split(".")[1] for module in modules() if module.count(".") for name in defined(module) if name in PRIVATE
    )
    more = {package: number for package, number in counts.items() if number > MOST.get(package, 0)}
    assert not more, "call them by what they hold: arm, sample, node, finding, message, ratio, requested"
