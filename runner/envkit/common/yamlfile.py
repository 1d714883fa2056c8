"""Read a YAML mapping and remember on which line each key stands, so that an error can point at it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from envkit.common import files, yaml_limits
from envkit.common.errors import InputError
from envkit.common.file_messages import LargerThan
from envkit.common.messages import (
    ComplexKey,
    DuplicateKey,
    HalfCharacter,
    InFile,
    InvalidScalar,
    InvalidYaml,
    NotAMapping,
    NotUtf8,
    NulCharacter,
    NumberTooLong,
    TooLarge,
    Unreadable,
)
from envkit.messages import Message

Path_ = tuple[str | int, ...]
Loader: TypeAlias = "yaml.SafeLoader | yaml.CSafeLoader"  # PyYAML may lack the second
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
LONGEST_NUMBER = 100
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

    def error(self, at: Path_, problem: Message) -> InputError:
        """Return an InputError that names this file and the line of the key at ``at``."""
        return InputError(InFile(str(self.path), self.lines.get(at, 1), problem))

    def text(self, *at: str | int) -> str:
        """The scalar at ``at`` as it is written."""
        return self.texts[at]


def content(path: Path) -> bytes:
    """Return what is in a YAML file. Raise InputError if it can't be read, or is too large."""
    try:
        return files.read(path, yaml_limits.LARGEST)
    except files.Refused as error:
        too_large = TooLarge(str(path), yaml_limits.LARGEST)
        raise InputError(
            too_large if isinstance(error.message, LargerThan) else Unreadable(str(path), error.message)
        ) from None
    except OSError as error:
        raise InputError(Unreadable(str(path), files.reason(error))) from None


def read(path: Path, kind: str = "a profile", is_shipped: bool = False) -> YamlFile:
    """Read and parse ``path``, which is to be ``kind``. Raises InputError as ``content`` and ``parse`` do."""
    return parse(path, content(path), kind, is_shipped)


def parse(path: Path, encoded: bytes, kind: str = "a profile", is_shipped: bool = False) -> YamlFile:
    """Parse what is in the file ``path``, which is to be ``kind``.

    Libyaml reads a file that the kit ships (``is_shipped``), where PyYAML has it: 8 times as fast, but its words for an
    error are not ours. Raises InputError for anything that is not a mapping of unique string keys in UTF-8 YAML, or too
    large (``yaml_limits``; nobody else has written what the kit ships).
    """
    parser: type[Loader] = yaml.CSafeLoader if is_shipped and yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        text = encoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(NotUtf8(str(path), error.start, f"0x{error.object[error.start]:02x}")) from None
    loader = None
    try:
        if not is_shipped:
            yaml_limits.require(path, text)
        loader = parser(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise InputError(InFile(str(path), 1, NotAMapping(kind, path.stem)))
        file = YamlFile(path, {}, {}, {})
        file.lines[()] = root.start_mark.line + 1
        file.data.update(_convert_mapping(loader, root, (), file))
        return file
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = getattr(error, "position", 0)  # of a character that YAML does not allow
        line = mark.line + 1 if mark else text.count("\n", 0, position) + 1
        reason = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise InputError(InFile(str(path), line, InvalidYaml(reason))) from None
    finally:
        if loader is not None:
            loader.dispose()


def _convert(loader: Loader, node: yaml.Node, at: Path_, file: YamlFile) -> object:
    line = node.start_mark.line + 1
    file.lines.setdefault(at, line)
    if isinstance(node, yaml.MappingNode):
        return _convert_mapping(loader, node, at, file)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(loader, item, (*at, index), file) for index, item in enumerate(node.value)]
    if unfit := UNFIT.search(node.value):
        key = ".".join(map(str, at))
        raise file.error(at, NulCharacter(key) if unfit[0] == "\0" else HalfCharacter(key, ord(unfit[0])))
    file.texts[at] = node.value
    # Python neither reads nor prints an integer of more than 4,300 digits, and YAML has other ways to write one
    if node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
        raise file.error(at, NumberTooLong(".".join(map(str, at)), len(node.value), LONGEST_NUMBER))
    try:
        scalar: object = loader.construct_object(node)
        return scalar
    except ValueError as error:  # a date that does not exist, for example
        raise InputError(InFile(str(file.path), line, InvalidScalar(node.value, str(error)))) from None


def _convert_mapping(loader: Loader, node: yaml.MappingNode, at: Path_, file: YamlFile) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError(InFile(str(file.path), line, ComplexKey()))
        key = str(key_node.value)
        inner = (*at, key)
        if key in mapping:
            raise InputError(InFile(str(file.path), line, DuplicateKey(key, file.lines[inner])))
        file.lines[inner] = line
        mapping[key] = _convert(loader, value_node, inner, file)
    return mapping
