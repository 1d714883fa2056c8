"""Messages about values of variables: what a value may be, what is wrong with one, and how to mend it."""

from __future__ import annotations

from envkit.messages import Message, Note

# Ranges.


class FromTo(Message):
    """A range with two limits that belong to it."""

    template = "from {least:d} to {most:d}"

    least: int
    most: int


class AtLeast(Message):
    """A range without an upper limit."""

    template = "from {least:d} on"

    least: int


class Between(Message):
    """A range with two limits that do not belong to it."""

    template = "above {above:d} and below {below:d}"

    above: int
    below: int


# What a value may be.


class WholeNumbers(Note):
    """A whole number in a range, or a word."""

    template = "a whole number {range}[, or {words:list}]"

    range: Message
    words: tuple[str, ...] = ()


class ListOfWholeNumbers(Note):
    """A whole number in a range, or several."""

    template = "a whole number {range}, or several separated by commas"

    range: Message


class Numbers(Note):
    """A number in a range."""

    template = "a number {range}"

    range: Message


class Sizes(Note):
    """A number of bytes with a unit, or a word."""

    template = "a whole number, optionally with a unit of {units:list}[, or {words:list}]"

    units: tuple[str, ...]
    words: tuple[str, ...] = ()


class OneOf(Note):
    """One of the words that a library knows."""

    template = "one of {words:list}"

    words: tuple[str, ...]


class SomeOf(Note):
    """Words that a library knows."""

    template = "one of {words:list}, or several separated by commas"

    words: tuple[str, ...]


class Shape(Note):
    """A form in the words of the catalogue."""

    template = "{shape}"

    shape: str


class AnyText(Note):
    """Any text at all."""

    template = "any text"


class CpuList(Note):
    """CPUs as libgomp takes them."""

    template = "CPU numbers and ranges, for example 0 3 1-2 4-15:2"


class Places(Note):
    """Places of OpenMP."""

    template = (
        "threads, cores, sockets, ll_caches or numa_domains, or places such as {{0,1}},{{2,3}} or {{0:2}}:4:2"
    )  # fmt: skip


class Workspaces(Note):
    """Workspaces of cuBLAS."""

    template = "pairs of size in KiB and count, for example :4096:8 or :16:8"


class Affinity(Note):
    """The form of KMP_AFFINITY."""

    template = (
        "[[modifier,…]]type[[,permute]][[,offset]], with a type of {types:list}, "
        "for example granularity=fine,compact,1,0"
    )

    types: tuple[str, ...]


class Pairs(Note):
    """Pairs of keys and values."""

    template = "pairs key{assign}value with '{separator}' between them"

    assign: str
    separator: str


# What is wrong with a value: clauses with the value as their subject.


class NotAWholeNumber(Message):
    """A value is no whole number."""

    template = "is not a whole number"


class NotANumber(Message):
    """A value is no number."""

    template = "is not a number"


class OutOfRange(Message):
    """A number is too small or too large."""

    template = "is out of range"


class NotASize(Message):
    """A value is no number of bytes."""

    template = "is not a size"


class NotAWord(Message):
    """The library knows other words than the value."""

    template = "is not one of its words[ (did you mean '{suggestion}'?)]"

    suggestion: str | None = None


class WrongForm(Message):
    """A value does not have the form that the catalogue gives."""

    template = "is not of the form it must have"


class NotACpu(Message):
    """A part of a list is no CPU."""

    template = "has '{part}', which is not a CPU or a range of CPUs"

    part: str


class NotPlaces(Message):
    """A value is no list of places."""

    template = "is not a list of places"


class SeveralTypes(Message):
    """An affinity has more than one type."""

    template = "has {number:d} types, {types}"

    number: int
    types: tuple[str, ...]


class WithoutProclist(Message):
    """An explicit affinity names no CPUs."""

    template = "is explicit without a proclist=[[…]]"


class TooManyNumbers(Message):
    """An affinity has more numbers than its type takes."""

    template = "has {given:d} numbers, and {type} takes {most:d}"

    given: int
    type: str
    most: int


class UnknownGranularity(Message):
    """An affinity names a granularity that does not exist."""

    template = "has '{part}', and a granularity is one of {known:list}"

    part: str
    known: tuple[str, ...]


class WrongProclist(Message):
    """The list of CPUs of an affinity can't be read."""

    template = "has '{part}', which is not of the form proclist=[[0,2-4]]"

    part: str


class UnknownAffinity(Message):
    """An affinity has a word that does not exist."""

    template = "has '{part}', which is neither a type nor a modifier[ (did you mean '{suggestion}'?)]"

    part: str
    suggestion: str | None = None


class TooLong(Message):
    """A value is longer than any that makes sense."""

    template = "has more than {most} characters"

    most: int
