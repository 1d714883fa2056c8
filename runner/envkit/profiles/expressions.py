"""``${...}`` in a profile's values: host facts and whole-number arithmetic on them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from envkit.messages import MessageError
from envkit.profiles.messages import (
    DividesByZero,
    Fraction,
    NotAllowed,
    NotAnExpression,
    TooFewArguments,
    UnclosedReference,
    UnknownFact,
)
from envkit.profiles.setting_messages import LongExpression, ManyExpressions

REFERENCE = re.compile(r"\$\{([^}]*)\}")
# The longest expression of the shipped profiles has 46 characters. What is longer could take long, or have a result
# with thousands of digits.
LONGEST, MOST, SHOWN = 200, 100, 40
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


class ExpressionError(MessageError):
    """Raised for an expression that is wrong, or has no value here."""


def expand(text: str, facts: Mapping[str, int]) -> str:
    """``text`` with each ``${expression}`` replaced by its value, for example ``${physical_cores // 2}`` by ``8``.

    An expression has the names in ``facts``, whole numbers, ``+ - * // %``, parentheses, ``min`` and ``max``.
    Raises ExpressionError.
    """
    if text.count("${") > MOST:
        raise ExpressionError(ManyExpressions(MOST))
    if "${" in REFERENCE.sub("", text):
        raise ExpressionError(UnclosedReference(text))
    return REFERENCE.sub(lambda match: str(_evaluate(match.group(1), facts)), text)


def _evaluate(expression: str, facts: Mapping[str, int]) -> int:
    if len(expression) > LONGEST:
        raise ExpressionError(LongExpression(f"{expression[:SHOWN]}…", LONGEST))
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):  # ValueError: a NUL
        raise ExpressionError(NotAnExpression(expression)) from None
    try:
        return _value(tree.body, facts)
    except ZeroDivisionError:
        raise ExpressionError(DividesByZero(expression)) from None


def _value(node: ast.expr, facts: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in facts:
            raise ExpressionError(UnknownFact(node.id, tuple(sorted(facts))))
        return facts[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, facts), _value(node.right, facts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        raise ExpressionError(Fraction())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if len(node.args) < 2 or node.keywords:
            raise ExpressionError(TooFewArguments(ast.unparse(node), node.func.id))
        return int(_FUNCTIONS[node.func.id](*[_value(argument, facts) for argument in node.args]))
    raise ExpressionError(NotAllowed(ast.unparse(node)))
