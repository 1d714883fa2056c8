"""``${...}`` in a profile's values: host facts and whole-number arithmetic on them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

REFERENCE = re.compile(r"\$\{([^}]*)\}")
FACTS = ("physical_cores", "usable_cpus", "numa_nodes", "gpus")
# Beside these, where they are a part of a machine's: how many NUMA nodes all of it has. No profile can refer to it.
MACHINE_NODES = "machine_numa_nodes"
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}


class ExpressionError(ValueError):
    """What is wrong with an expression, and what could stand there instead."""


def expand(text: str, facts: Mapping[str, int]) -> str:
    """``text`` with each ``${expression}`` replaced by its value, for example ``${physical_cores // 2}`` by ``8``.

    An expression has the names in ``facts``, whole numbers, ``+ - * // %``, parentheses, ``min`` and ``max``.
    Raises ExpressionError.
    """
    if "${" in REFERENCE.sub("", text):
        raise ExpressionError(f"'{text}' has a '${{' without its '}}'")
    return REFERENCE.sub(lambda match: str(_evaluate(match.group(1), facts)), text)


def _evaluate(expression: str, facts: Mapping[str, int]) -> int:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        raise ExpressionError(f"'${{{expression}}}' is not an expression; write for example ${{usable_cpus}}") from None
    try:
        return _value(tree.body, facts)
    except ZeroDivisionError:
        raise ExpressionError(f"'${{{expression}}}' divides by zero on this machine") from None


def _value(node: ast.expr, facts: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in facts:
            raise ExpressionError(f"unknown host fact '{node.id}'; known are {', '.join(sorted(facts))}")
        return facts[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, facts), _value(node.right, facts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        raise ExpressionError("'/' gives fractions; use '//' for whole-number division")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if len(node.args) < 2 or node.keywords:
            raise ExpressionError(f"'{ast.unparse(node)}' is not allowed; {node.func.id} takes two or more numbers")
        return int(_FUNCTIONS[node.func.id](*[_value(argument, facts) for argument in node.args]))
    raise ExpressionError(f"'{ast.unparse(node)}' is not allowed; use host facts, whole numbers, + - * // %, min, max")
