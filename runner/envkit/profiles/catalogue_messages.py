"""Messages about the catalogue of variables itself, and how libraries come into an image."""

from __future__ import annotations

from envkit.messages import Message

# What entries of the catalogue, and values in them, must be.
MAPPING = "a mapping"
TEXT = "a text"
URL = "a URL"
READERS = "a mapping of libraries to versions"
QUOTED = "a list of texts (quote what YAML takes for something else)"
WHOLE_NUMBER = "a whole number"
LIMITS = "a mapping of versions, quoted, to whole numbers"
KINDS = {"list": "a list", "dict": "a mapping", "bool": "true or false", "str": "a text"}

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


class MustBe(Message):
    """An entry of the catalogue, or a value in it, is of another form."""

    template = "{name}[: '{key}'] must be {wanted:or}"

    name: str
    key: str | None
    wanted: tuple[str, ...]


class UnknownEntryKey(Message):
    """An entry has a key that the catalogue does not know."""

    template = "{name}: unknown key '{key}'[ (did you mean '{suggestion}'?)]"

    name: str
    key: str
    suggestion: str | None = None


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


class BadReader(Message):
    """An entry names a library that the kit does not know, or versions in another form."""

    template = "{name}: 'read_by' has {library}: {versions}; write for example glibc: any"

    name: str
    library: str
    versions: str


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
