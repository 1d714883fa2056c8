"""Messages: what each class must be, who makes text of them, and that no sentence stands or is read elsewhere."""

from __future__ import annotations

import ast
import importlib
import json
import re
import string
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from envkit.messages import Message, MessageError, Note, Severity, from_json
from envkit.rendering import text

from tests.conftest import PROJECT
from tests.test_structure import dotted, imported, modules, nodes, of_type, tree

# Modules that print, or write a page or a file for people. Only these may import the renderer.
OUTPUT = (
    "envkit.api", "envkit.cli", "envkit.report", "envkit.checks.this_process", "envkit.engines.start",
    "envkit.common.progress", "envkit.cluster.fleet.diff_screen", "envkit.cluster.fleet.page",
    "envkit.cluster.fleet.picture", "envkit.cluster.fleet.screen", "envkit.cluster.slurm.follow",
    "envkit.profiles.formats", "envkit.tuning.conclusion", "envkit.tuning.live", "envkit.tuning.profile_file",
)  # fmt: skip
PROGRAMMERS = {"AssertionError", "AttributeError", "NotImplementedError", "TypeError"}  # no user sees them
PROSE = {"failure", "message", "problem", "why"}  # names of variables, attributes and keys that hold sentences
CUTS = {
    "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit",
    "split", "startswith",
}  # fmt: skip
MATCHES = {"findall", "finditer", "fullmatch", "match", "search", "sub"}
HELP = {"ArgumentParser", "add_argument", "add_argument_group", "add_parser"}
KEEPS = {"lower", "lstrip", "rstrip", "strip"}
# What a verdict begins with, and the blanks behind it.
HEADING = re.compile("^[A-Z][A-Z0-9%, ]+  ")
SENTENCE = re.compile(r"[A-Za-z',:;]+ [a-z',]+ [A-Za-z'({]")  # three words in a row


def message_classes() -> list[type[Message]]:
    for name in modules():
        if any(part.endswith("messages") for part in name.split(".")):
            importlib.import_module(name)
    return [one for one in _below(Message) if one.__module__.startswith("envkit.") and "code" in vars(one)]


def _below(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


CLASSES: list = message_classes()


class Inner(Message):
    """A message for fields that hold one."""

    code = "test.inner"
    template = "an inner message"


class NotAPng(Note):
    """A message without a code of its own."""

    template = "no PNG"


class Numbers(Message):
    """A message with a field of each plain kind."""

    code = "test.numbers"
    template = "{count:count process|processes} in {seconds:duration}[, {names:or}][ because {cause}][[x]]"

    count: int
    seconds: float
    names: tuple[str, ...] = ()
    cause: Message | None = None


def sample(hint: Any, full: bool) -> Any:
    """Return a value of the annotated type; the emptiest one unless ``full``."""
    if hint in (Any, object):
        return "anything"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = typing.get_args(hint)
        if types.NoneType in options and not full:
            return None
        return sample(next(one for one in options if one is not types.NoneType), full)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return (sample(inner, True), sample(inner, True)) if full else ()
    if isinstance(hint, type) and issubclass(hint, Message):
        return Inner()
    return {str: "word", int: 2, float: 1.5, bool: True}[hint]


def samples(one: type[Message]) -> list[Message]:
    hints = typing.get_type_hints(one)
    fields = {name: not hasattr(one, name) for name in one.FIELDS}  # those without a default are always given
    return [
        one(**{name: sample(hints[name], full or given) for name, given in fields.items()}) for full in (True, False)
    ]


def test_template_forms():
    assert text(Numbers(1, 200.0)) == "1 process in 3 min 20 s[x]"
    full = Numbers(1200, 0.25, ("a", "b", "c"), Inner())
    assert text(full) == "1,200 processes in 0.2 s, a, b or c because an inner message[x]"
    assert from_json(json.loads(json.dumps(full.to_json()))) == full


def test_a_message_is_immutable_data():
    one = Numbers(1, 2.0)
    assert one == Numbers(seconds=2.0, count=1) != Numbers(1, 3.0)
    assert len({one, Numbers(1, 2.0), one.replace(count=2)}) == 2
    assert repr(one) == "Numbers(count=1, seconds=2.0, names=(), cause=None)"
    with pytest.raises(AttributeError):
        one.count = 2
    for values, named in [
        ((), {}),
        ((1,), {}),
        ((1, 2.0, (), None, 5), {}),
        ((1, 2.0), {"count": 1}),
        ((1, 2.0), {"x": 1}),
    ]:
        with pytest.raises(TypeError):
            Numbers(*values, **named)


def test_two_classes_with_one_code_are_refused():
    with pytest.raises(TypeError):
        type("Another", (Message,), {"code": "test.inner", "template": "x"})
    with pytest.raises(TypeError):
        type("Nothing", (Message,), {})


def test_package_and_class_make_the_code():
    assert (NotAPng.code, NotAPng.severity) == ("test_messages.not-a-png", Severity.NOTE)


def test_str_of_an_error_is_its_code():
    assert str(MessageError(Inner())) == "test.inner"


def test_codes_are_unique():
    codes = Counter(one.code for one in CLASSES)
    assert not [code for code, times in codes.items() if times > 1]


def test_each_message_has_a_code_of_its_package_and_a_template_of_its_fields():
    for one in CLASSES:
        root = one.__module__.split(".")[1]
        assert re.fullmatch(r"[a-z-]+\.[a-z0-9-]+", one.code), f"a code is PACKAGE.WHAT-IS-WRONG, and not {one.code}"
        assert root in (one.code.partition(".")[0], "messages"), f"{one.code} does not begin with its package, {root}"
        names = {*one.FIELDS}
        assert not names & {*dir(Message)}, one
        in_template = {name for _, name, _, _ in string.Formatter().parse(one.template) if name is not None}
        assert in_template <= names, f"all names in the template of {one} are fields"
        for message in samples(one):
            said = text(message)
            assert said, one
            assert "\n" not in said, said
            assert not said.endswith("."), f"a message has no full stop, because others can hold it: {said}"
            assert not re.search(r"\bNone\b|\(\)|  ", HEADING.sub("", said)), said
            assert from_json(json.loads(json.dumps(message.to_json()))) == message


def alternatives(hint: Any) -> set[Any]:
    """Return the types that an annotation allows, or allows in a tuple."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return {one for part in typing.get_args(hint) for one in alternatives(part)}
    if typing.get_origin(hint) is tuple:
        return alternatives(typing.get_args(hint)[0])
    return {hint}


def test_alternatives_of_an_annotation():
    assert alternatives(tuple[Message | str, ...] | None) == {Message, str, types.NoneType}


def test_no_text_stands_for_a_message():
    """Text of another program is a ``Printed``, or a field of its own."""
    either = []
    for one in CLASSES:
        for name, hint in typing.get_type_hints(one).items():
            found = alternatives(hint)
            holds_message = any(isinstance(each, type) and issubclass(each, Message) for each in found)
            either += [f"{one.code}: {name}"] if holds_message and str in found else []
    assert either == []


def test_an_error_is_no_text():
    with pytest.raises(AttributeError):
        MessageError("text")


# What each kind of node that names something, or is a literal, has it in.
NAMED_IN = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value", ast.alias: "name"}


def used_names() -> dict[str, set[str]]:
    """Return the modules in which each name, attribute, imported name and literal stands; benchmarks are among them."""
    walked: dict[str, Iterable[ast.AST]] = {module: nodes(module) for module in modules()}
    walked |= {str(path): ast.walk(ast.parse(path.read_text())) for path in (PROJECT / "benchmarks").glob("*.py")}
    found: dict[str, set[str]] = {}
    for module, inside in walked.items():
        for node in inside:
            name = getattr(node, NAMED_IN[type(node)]) if type(node) in NAMED_IN else None
            if isinstance(name, str):
                found.setdefault(name, set()).add(module)
    return found


def test_each_message_is_used():
    """A worker's messages may be named by their codes: it does not import their classes."""
    used = used_names()
    bases = {base for one in CLASSES for base in one.__bases__}
    unused = [
        one.code
        for one in CLASSES
        if one not in bases and not (used.get(one.__name__, set()) | used.get(one.code, set())) - {one.__module__}
    ]
    assert unused == []


def test_only_output_makes_text_of_messages():
    users = {name for name in modules() if "envkit.rendering" in {*imported(name)}}
    assert [name for name in users if not f"{name}.".startswith(tuple(f"{one}." for one in OUTPUT))] == []


def literal(node: ast.AST | None) -> str:
    """Return the text of a literal with ``{}`` for what is filled in, or nothing for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(one) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    if isinstance(node, ast.BinOp):
        return literal(node.left) + literal(node.right)
    return ""


def exempt(node: ast.AST) -> bool:
    """Say whether the texts in a node are for programmers, are argparse's help, or are a pattern for foreign text."""
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Call) and dotted(node.exc.func) in PROGRAMMERS
    called = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    is_place = isinstance(node, ast.keyword) and node.arg == "loc"  # where matplotlib puts a legend
    return isinstance(node, ast.Assert) or called in HELP or _is_pattern(node) or is_place


def _is_pattern(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "re.compile"


def is_catalogue(module: str) -> bool:
    """Say whether a module may hold sentences: templates, and tables of headings and help at its top level."""
    return any(name.endswith("messages") for name in module.split("."))


def is_table(node: ast.AST) -> bool:
    """Say whether a statement gives a name to plain literals alone, so that no code is mixed with the words."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    try:
        ast.literal_eval(node.value)
    except ValueError:
        return False
    return True


def prose(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the literals in a node that read like a sentence, but for docstrings, templates and what is exempt."""
    if exempt(node):
        return
    if SENTENCE.search(literal(node)):
        yield node
        return
    skipped: set[ast.AST] = set()
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
        skipped.add(node.body[0])
    if isinstance(node, ast.ClassDef):
        assigned = (one for one in node.body if isinstance(one, ast.Assign))
        skipped |= {one for one in assigned if dotted(one.targets[0]) == "template"}
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from prose(child)


def free_text(module: str) -> tuple[int, int, int]:
    """Count exceptions raised with text, prints of text, and other literals that read like a sentence."""
    tables = [one for one in tree(module).body if is_table(one)] if is_catalogue(module) else []
    raised = [one for one in of_type(module, ast.Raise) if isinstance(one.exc, ast.Call) and not exempt(one)]
    raises = [one for one in raised if any(" " in literal(x) for x in one.exc.args) or any(True for _ in prose(one))]
    calls = [one for one in of_type(module, ast.Call) if dotted(one.func) == "print"]
    prints = [one for one in calls if any(True for _ in prose(one))]
    inside = {one for outer in (*raises, *prints, *tables) for one in prose(outer)}
    return len(raises), len(prints), sum(one not in inside for one in prose(tree(module)))


def test_only_messages_hold_sentences():
    found = {name: counts for name in modules() if any(counts := free_text(name))}
    assert found == {}, "text for people is a message: envkit/messages.py says how"


def is_prose(node: ast.AST, errors: set[str]) -> bool:
    """Say whether an expression is a sentence: an error's text, or of a name that holds one."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in KEEPS | CUTS:
            return is_prose(inner, errors)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return is_prose(inner, errors | {"error"}) or (
                isinstance(inner, ast.Name) and inner.id in errors | {"error"}
            )
        case ast.BoolOp(values=values):
            return any(is_prose(one, errors) for one in values)
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in errors
        case ast.Subscript(slice=ast.Constant(value=name)) | ast.Attribute(attr=name) | ast.Name(id=name):
            return name in PROSE
    return False


def reads_sentence(node: ast.AST, errors: set[str]) -> bool:
    """Say whether an expression decides by a sentence, or takes one apart."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        cuts = node.func.attr in CUTS and node.args and is_prose(node.func.value, errors)
        return bool(cuts) or (node.func.attr in MATCHES and any(is_prose(one, errors) for one in node.args))
    if isinstance(node, ast.Compare):
        for operator, left, right in zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False):
            if isinstance(operator, ast.In | ast.NotIn) and is_prose(right, errors):
                return True
            sides = (left, right)
            literal_ = any(literal(one) for one in sides)
            if isinstance(operator, ast.Eq | ast.NotEq) and literal_ and any(is_prose(one, errors) for one in sides):
                return True
    return False


def test_no_code_reads_sentences():
    found = set()
    for module in modules():
        for outer in of_type(module, ast.FunctionDef):
            inside = [*ast.walk(outer)]
            errors = {one.name for one in inside if isinstance(one, ast.ExceptHandler) and one.name}
            if any(reads_sentence(node, errors) for node in inside):
                found.add(f"{module}.{outer.name}")
    assert found == set()
