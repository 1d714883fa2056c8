"""Small mutants of functions: the places of a module at which one thing can be changed, and the changed source."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

NEGATED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
AT_BOUNDARY: dict[type[ast.AST], type[ast.AST]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
TEXTS = ast.JoinedStr, ast.List, ast.Tuple
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change of one function. ``digest`` identifies the code that it had.

    ``number`` counts the places of the function. ``lines`` are the first of the statement and the last of the change.
    """

    module: str
    function: str
    digest: str
    number: int
    change: str
    path: str
    lines: tuple[int, int]
    before: str
    after: str

    @property
    def id(self) -> str:
        """The name under which the mutant is found again, wherever its function then stands in the file."""
        return f"{self.module}:{self.function}@{self.digest}#{self.number}"

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield functions and methods with their qualified names; an inner function is part of the outer one."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{part.name}", part) for part in node.body if isinstance(part, Function))


def code(function: Function) -> list[ast.stmt]:
    """Return the statements of a function, without its docstring."""
    return function.body[ast.get_docstring(function, clean=False) is not None :]


def digest(function: Function) -> str:
    """Return a digest that stays the same when comments, the docstring, line numbers or types of arguments change."""
    arguments = copy.deepcopy(function.args)
    for part in ast.walk(arguments):
        if isinstance(part, ast.arg):
            part.annotation = None
    text = ast.dump(arguments) + "".join(ast.dump(statement) for statement in code(function))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def mutants(module: str, path: str, source: str) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant of a module's functions with the changed source."""
    for name, function in functions(ast.parse(source)):
        function_digest, now = (
            digest(function),
            (change for statement in code(function) for change in _changes(statement, statement)),
        )
        for number, (kind, statement, node, text) in enumerate(now):
            first, last = _span(source, node)
            raw = source.encode()
            before = " ".join(raw[first:last].decode().split())
            lines = statement.lineno, node.end_lineno or node.lineno
            mutant = Mutant(module, name, function_digest, number, kind, path, lines, before, text)
            yield mutant, (raw[:first] + text.encode() + raw[last:]).decode()


def _span(source: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Return where a node begins and ends, in bytes."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    return starts[node.lineno - 1] + node.col_offset, end


Change = tuple[str, ast.stmt, "ast.expr | ast.stmt", str]


def _changes(node: ast.AST, statement: ast.stmt) -> Iterator[Change]:
    """Yield the kind of each change at a node and below, the statement that it is in, what is replaced, and by what."""
    if isinstance(node, ast.JoinedStr):  # Python 3.11 does not say where its parts are
        return
    if isinstance(node, ast.stmt):
        statement = node
        yield from ((kind, statement, old, text) for kind, old, text in _of_statement(node))
    elif isinstance(node, ast.expr):
        yield from ((kind, statement, node, f"({ast.unparse(new)})") for kind, new in _of_expression(node))
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _changes(part, statement)


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield "condition negated", node.test, f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "returns None", node.value, "None"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "statement dropped", node, "pass"
    if isinstance(node, ast.Break | ast.Continue):
        yield "break or continue", node, "continue" if isinstance(node, ast.Break) else "break"
    if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield "operator", node, ast.unparse(_with(node, op=OPERATORS[type(node.op)]()))


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare):
        for kind, others in (("comparison negated", NEGATED), ("comparison at its boundary", AT_BOUNDARY)):
            for place, operator in enumerate(node.ops):
                if type(operator) in others:
                    changed = [*node.ops[:place], others[type(operator)](), *node.ops[place + 1 :]]
                    yield kind, _with(node, ops=changed)
    elif isinstance(node, ast.BoolOp):
        yield "and or or", _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BinOp):
        if type(node.op) in OPERATORS and not (_is_text(node.left) or _is_text(node.right)):
            yield "operator", _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "not dropped" if isinstance(node.op, ast.Not) else "sign dropped", node.operand
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield "condition negated", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        yield "constant", ast.Constant(new)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLED:
        yield "function", _with(node, func=ast.Name(CALLED[node.func.id]))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, TEXTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
