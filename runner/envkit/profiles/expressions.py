"""``${...}`` in a profile's values: host facts and whole-number arithmetic on them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from envkit.messages import MessageError
from envkit.profiles.limit_messages import ExpressionTooDeep, ExpressionTooLong, NumberTooLarge, TextTooLong
from envkit.profiles.messages import (
    DividesByZero,
    Fraction,
    NotAllowed,
    NotAnExpression,
    TooFewArguments,
    UnclosedReference,
    UnknownFact,
)

REFERENCE = re.compile(r"\$\{([^}]*)\}")
FACTS = ("physical_cores", "usable_cpus", "numa_nodes", "gpus")
# The longest text and expression, in characters, how deep operations may be nested, and the largest number: the longest
# ones of the kit have 300, 26, 2 and five digits. Python can take minutes for long ones, and fails at deep ones.
LONGEST, LONGEST_EXPRESSION, DEEPEST, LARGEST = 4096, 200, 32, 2**63 - 1
# Beside these, where they are a part of a machine's: how many NUMA nodes all of it has. No profile can refer to it.
MACHINE_NODES: Final = "machine_numa_nodes"
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[[list[int]], int]] = {"min": min, "max": max}


class ExpressionError(MessageError):
    """Raised for an expression that is wrong, or has no value here."""


def expand(text: str, facts: Mapping[str, int]) -> str:
    """``text`` with each ``${expression}`` replaced by its value, for example ``${physical_cores // 2}`` by ``8``.

    An expression has the names in ``facts``, whole numbers, ``+ - * // %``, parentheses, ``min`` and ``max``.
    Raises ExpressionError.
    """
    if len(text) > LONGEST:
        raise ExpressionError(TextTooLong(len(text), LONGEST))
    if "${" in REFERENCE.sub("", text):
        raise ExpressionError(UnclosedReference(text))
    return REFERENCE.sub(lambda match: str(_evaluate(match.group(1).strip(), facts)), text)


def _evaluate(expression: str, facts: Mapping[str, int]) -> int:
    if len(expression) > LONGEST_EXPRESSION:
        raise ExpressionError(ExpressionTooLong(expression[:20], len(expression), LONGEST_EXPRESSION))
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(NotAnExpression(expression)) from None
    try:
        return _Evaluation(expression, facts).value(tree.body)
    except ZeroDivisionError:
        raise ExpressionError(DividesByZero(expression)) from None


@dataclass(frozen=True)
class _Evaluation:
    """The value of each part of an expression, ``source``."""

    source: str
    facts: Mapping[str, int]

    def value(self, node: ast.expr, depth: int = 0) -> int:
        if depth > DEEPEST:
            raise ExpressionError(ExpressionTooDeep(DEEPEST))
        number = self._value(node, depth + 1)
        if abs(number) > LARGEST:
            raise ExpressionError(NumberTooLarge())
        return number

    def _value(self, node: ast.expr, depth: int) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in self.facts:
                raise ExpressionError(UnknownFact(node.id, tuple(sorted(self.facts))))
            return self.facts[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](self.value(node.left, depth), self.value(node.right, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            raise ExpressionError(Fraction())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            if len(node.args) < 2 or node.keywords:
                raise ExpressionError(TooFewArguments(self._text(node), node.func.id))
            return _FUNCTIONS[node.func.id]([self.value(argument, depth) for argument in node.args])
        raise ExpressionError(NotAllowed(self._text(node)))

    def _text(self, node: ast.expr) -> str:
        """Return how the part is written: ``ast.unparse`` fails at deep ones."""
        return ast.get_source_segment(self.source, node) or self.source
