"""Messages about the catalogue of variables itself, and how libraries come into an image."""

from __future__ import annotations

from envkit.messages import Message
from envkit.worker.libraries import LIBRARIES

# How to get a library, by the source of its package.
FROM = {"pypi": "pip install {}", "debian": "apt-get install {}", "conda": "conda install -c conda-forge {}"}
# How a library comes into an image that is a part of something else.
PARTS = {
    "kit": "envkit includes it, for x86-64 only",
    "torch": "PyTorch has it built in",
    "torch-x86_64": "PyTorch for x86-64 has it built in",
    "torch-cuda": "install a CUDA build of PyTorch",
    "glibc": "most distributions have it as their C library",
    "system": "every image has it",
}
# What is said of a variable that the registry of libraries names and the catalogue does not describe.
DEFAULT_UNKNOWN = "the library's own"
DESCRIBED_THERE = "A setting of its library, whose documentation describes it."
NOTHING_ASKS = "nothing asks the library for its settings"
# What a kind of file is, in a sentence.
PART = "a part of the catalogue"
# Why a profile exists that has a part of the settings of another.
PART_OF_PROFILE = "A part of another profile, to see how much each of its settings gains."
# The key of a profile's needs: what its number counts.
COUNTED = {"gpus": "those that training on --device cuda could use"}


def way_to_get(name: str) -> str:
    """Return how to get the library of the registry called ``name``."""
    library = LIBRARIES[name]
    if library.comes_with:
        return PARTS[library.comes_with]
    ways = [FROM[source].format(package) for source, package in library.packages.items() if source in FROM]
    others = [f"{source.title()}: {package}" for source, package in library.packages.items() if source not in FROM]
    return ", or ".join(ways) + (f" ({', '.join(others)})" if others else "")


class InTwoFiles(Message):
    """Two files of the catalogue have one variable."""

    template = "{file}: {name} is in another file too; remove one"

    file: str
    name: str


class EntryNotAMapping(Message):
    """An entry has no keys."""

    template = "{name} is a mapping"

    name: str


class UnknownEntryKey(Message):
    """An entry has a key that the catalogue does not know."""

    template = "{name}: unknown key '{key}'[ (did you mean '{suggestion}'?)]"

    name: str
    key: str
    suggestion: str | None = None


class MissingText(Message):
    """An entry lacks a text."""

    template = "{name}: '{key}' is missing or not a text"

    name: str
    key: str


class NotAUrl(Message):
    """The source of an entry is no address of documentation."""

    template = "{name}: 'source' is not a URL"

    name: str


class OneOfTwoKeys(Message):
    """An entry has both of two keys, or none of them."""

    template = "{name}: give one of '{one}' and '{other}'"

    name: str
    one: str
    other: str


class BothKeys(Message):
    """An entry has one of two keys that belong together."""

    template = "{name}: '{one}' and '{other}' go together"

    name: str
    one: str
    other: str


class NoReaders(Message):
    """No library reads the variable of an entry."""

    template = "{name}: no library in runner/envkit/worker/libraries.py reads it; add it to 'reads' of one that does"

    name: str


class BadType(Message):
    """An entry has no type, or one that does not exist."""

    template = "{name}: 'type' is one of {types:list}"

    name: str
    types: tuple[str, ...]


class WrongTypeOfKey(Message):
    """A key of an entry holds another kind of value than it must."""

    template = "{name}: '{key}' has the wrong type"

    name: str
    key: str


class UnquotedWords(Message):
    """YAML takes a word for a number or a boolean."""

    template = "{name}: quote each of 'words' that YAML takes for something else"

    name: str


class LimitNotAWholeNumber(Message):
    """A limit is no whole number."""

    template = "{name}: '{key}' is not a whole number"

    name: str
    key: str


class BadLimits(Message):
    """Limits of earlier versions have another form than they must."""

    template = "{name}: 'max_before' is a mapping of versions, quoted, to whole numbers"

    name: str


class TypeNeedsKey(Message):
    """A type lacks the key that belongs to it."""

    template = "{name}: type {type} needs '{key}'"

    name: str
    type: str
    key: str


class BadPattern(Message):
    """A pattern is no regular expression."""

    template = "{name}: 'pattern' can't be compiled: {reason}"

    name: str
    reason: str


class NotTexts(Message):
    """Keys of an entry that hold texts hold something else."""

    template = "{name}: {keys:list} are texts; quote them"

    name: str
    keys: tuple[str, ...]
