"""torch.compile in this process: which compiler made code, and the settings that Inductor has in force.

Inductor's configuration is a module, ``torch._inductor.config``, which reads the variables when it is imported. Its
source shows which of its attributes each variable sets, in any release, and the attributes are what Inductor goes by.
Options of a call of ``torch.compile`` replace them for what that call compiles, and show nowhere afterwards.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from envkit.worker.initial_environment import started_variables

PREFIX = "TORCHINDUCTOR_"
INDUCTOR, OTHER, NONE = "inductor", "other", "none"


def probe() -> dict[str, object]:
    """Return which compiler made code here (``backend``), and Inductor's settings by the variables of the process.

    ``other`` stands for another compiler than Inductor, and ``none`` for a process that has compiled nothing. Booleans
    are 0 or 1, as in the variables. A variable that this release does not read is not among the settings.
    """
    backend = _backend()
    return {"backend": backend, "settings": _settings() if backend == INDUCTOR else {}}


def _backend() -> str:
    """Return the compiler by torch.compile's own counts of graphs (``torch._dynamo.utils.counters``)."""
    utils = sys.modules.get("torch._dynamo.utils")  # which a process that compiles nothing may never import
    counters = getattr(utils, "counters", {})
    if not counters.get("stats", {}).get("unique_graphs"):
        return NONE
    return INDUCTOR if counters.get("inductor") or "torch._inductor.graph" in sys.modules else OTHER


def _settings() -> dict[str, object]:
    config = sys.modules["torch._inductor.config"]
    source = Path(str(config.__file__)).read_text()
    places = attributes(source)
    return {
        name: _value(config, places[name]) for name in started_variables() if name.startswith(PREFIX) and name in places
    }


def _value(config: ModuleType, attribute: str) -> object:
    """Return the value of an ``attribute`` such as ``cpp.min_chunk_size``."""
    value: object = config
    for name in attribute.split("."):
        value = getattr(value, name)
    return int(value) if isinstance(value, bool) else value


def attributes(source: str) -> dict[str, str]:
    """Return by each variable that a configuration's ``source`` reads the attribute that it sets.

    A variable is a text in what is assigned, or in a function that is called there.
    """
    module = ast.parse(source)
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    places: dict[str, str] = {}
    for body, prefix in [(module.body, ""), *((node.body, f"{node.name}.") for node in _classes(module))]:
        for node in body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            called = [call.id for call in ast.walk(node.value) if isinstance(call, ast.Name)]
            read = [node.value, *(functions[name] for name in called if name in functions)]
            if isinstance(target, ast.Name):
                for variable in (text for part in read for text in _variables(part)):
                    places.setdefault(variable, prefix + target.id)
    return places


def _classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in module.body if isinstance(node, ast.ClassDef))


def _variables(part: ast.AST) -> Iterator[str]:
    for node in ast.walk(part):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PREFIX):
            yield node.value
