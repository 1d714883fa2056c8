"""Read a YAML mapping and remember on which line each key stands, so that an error can point at it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from envkit.common import yaml_limits
from envkit.common.errors import InputError

Path_ = tuple[str | int, ...]
UNFIT = re.compile("[\0\ud800-\udfff]")  # YAML's escapes can write them


@dataclass(frozen=True)
class YamlFile:
    """A file's top-level mapping as plain data.

    ``lines`` maps the path of a key or list item, for example ("env", "OMP_NUM_THREADS"), to its line (from 1).
    ``texts`` maps the path of a scalar to its text as written, so that ``0x10`` or ``1e3`` can be passed on unchanged.
    """

    path: Path
    data: dict[str, Any]
    lines: dict[Path_, int] = field(repr=False)
    texts: dict[Path_, str] = field(repr=False)

    def error(self, at: Path_, problem: str) -> InputError:
        """An InputError of one line that names this file and the line of the key at ``at``."""
        return InputError(f"{self.path}:{self.lines.get(at, 1)}: {' '.join(problem.splitlines())}")

    def text(self, *at: str | int) -> str:
        """The scalar at ``at`` as it is written."""
        return self.texts[at]


def read(path: Path, what: str = "a profile", own: bool = False) -> YamlFile:
    """Parse ``path``, which is to be ``what``.

    A file of the kit's ``own`` is read by libyaml, where PyYAML has it: 8 times as fast, but its words for an error
    are not ours. Raises InputError for anything that is not a mapping of unique string keys in UTF-8 YAML, or too large
    (``yaml_limits``).
    """
    parser: Any = yaml.CSafeLoader if own and yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        text = yaml_limits.content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 (byte {error.start} is 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    loader = None
    try:
        yaml_limits.require(path, text)
        loader = parser(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise InputError(f"{path}:1: {what} is a mapping of keys to values, for example 'name: {path.stem}'")
        file = YamlFile(path, {}, {}, {})
        file.data.update(_convert(loader, root, (), file))
        return file
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = getattr(error, "position", 0)  # of a character that YAML does not allow
        line = mark.line + 1 if mark else text.count("\n", 0, position) + 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "can't be parsed"
        raise InputError(f"{path}:{line}: not valid YAML: {problem}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _convert(loader: Any, node: yaml.Node, at: Path_, file: YamlFile) -> Any:
    line = node.start_mark.line + 1
    file.lines.setdefault(at, line)
    if isinstance(node, yaml.MappingNode):
        return _convert_mapping(loader, node, at, file)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(loader, item, (*at, index), file) for index, item in enumerate(node.value)]
    if found := UNFIT.search(node.value):
        what = "a NUL character" if found[0] == "\0" else f"half of a character (\\u{ord(found[0]):x})"
        raise file.error(at, f"'{'.'.join(map(str, at))}' has {what}, which no process can be given; remove it")
    file.texts[at] = node.value
    try:
        return loader.construct_object(node)
    except ValueError as error:  # a date that does not exist, for example
        raise InputError(f"{file.path}:{line}: not valid YAML: '{node.value}': {error}; quote it") from None


def _convert_mapping(loader: Any, node: yaml.MappingNode, at: Path_, file: YamlFile) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError(f"{file.path}:{line}: a key must be a plain word")
        key = str(key_node.value)
        inner = (*at, key)
        if key in mapping:
            first = file.lines[inner]
            raise InputError(f"{file.path}:{line}: key '{key}' stands twice (first on line {first}); remove one")
        file.lines[inner] = line
        mapping[key] = _convert(loader, value_node, inner, file)
    return mapping
