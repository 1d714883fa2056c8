"""Messages about the catalogue of variables itself, and how libraries come into an image."""

from __future__ import annotations

from envkit.messages import Message

# How to get a library that is missing, by logical name.
GET = {
    "intel-openmp": "pip install intel-openmp",
    "llvm-openmp": "apt-get install libomp5",
    "jemalloc": "apt-get install libjemalloc2, or conda install -c conda-forge jemalloc",
    "tcmalloc": "apt-get install libtcmalloc-minimal4, or conda install -c conda-forge gperftools",
    "mimalloc": "apt-get install libmimalloc2.0 (Debian 13: libmimalloc3, which lacks options that some profiles set)",
    "mkl-dispatch": "envkit includes it, for x86-64 only",
    "flush-to-zero": "envkit includes it, for x86-64 only",
}
# How the other libraries that read variables come into an image.
COMES = {
    "gnu-openmp": "PyTorch's wheels include it",
    "glibc": "most distributions have it as their C library",
    "onednn": "PyTorch has it built in",
    "mkl": "PyTorch for x86-64 has it built in",
    "pytorch": "pip install torch",
    "cuda": "install a CUDA build of PyTorch",
    "nccl": "install a CUDA build of PyTorch",
    "loader": "every system has one",
    "python": "every image has it",
}
# What a kind of file is, in a sentence.
PART = "a part of the catalogue"
# Why a profile exists that has a part of the settings of another.
PART_OF_PROFILE = "A part of another profile, to see how much each of its settings gains."
# The key of a profile's needs: what its number counts.
COUNTED = {"gpus": "those that training on --device cuda could use"}


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
    """An entry does not say who reads the variable."""

    template = "{name}: 'read_by' is a mapping of libraries to versions"

    name: str


class BadReader(Message):
    """An entry names a library that the kit does not know, or versions in another form."""

    template = "{name}: 'read_by' has {library}: {versions}; write for example glibc: any"

    name: str
    library: str
    versions: str


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
