"""Messages about values of variables: what a value may be, what is wrong with one, and how to mend it."""

from __future__ import annotations

from envkit.messages import Message, Note

# What a value, or a part of it, is to be.
WHOLE_NUMBER = "a whole number"
NUMBER = "a number"
SIZE = "a size"
PLACES = "a list of places"
FORM = "of the form it must have"
CPU = "a CPU or a range of CPUs"
PROCLIST = "of the form proclist=[0,2-4]"
TYPE_OR_MODIFIER = "a type or a modifier"
# Shapes of values.
ANY_TEXT = "any text"
CPU_LIST = "CPU numbers and ranges, for example 0 3 1-2 4-15:2"
OMP_PLACES = "threads, cores, sockets, ll_caches or numa_domains, or places such as {0,1},{2,3} or {0:2}:4:2"
WORKSPACES = "pairs of size in KiB and count, for example :4096:8 or :16:8"
SEVERAL = "several separated by commas"

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
    """One of several words. ``more`` is SEVERAL where they may be a list."""

    template = "one of {words:list}[, or {more}]"

    words: tuple[str, ...]
    more: str | None = None


class Shape(Note):
    """A form in the words of the catalogue."""

    template = "{shape}"

    shape: str


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


class IsNot(Message):
    """A value is of another form. ``wanted`` is one of those above."""

    template = "is not {wanted}"

    wanted: str


class OutOfRange(Message):
    """A number is too small or too large."""

    template = "is out of range"


class NotAWord(Message):
    """The library knows other words than the value."""

    template = "is not one of its words[ (did you mean '{suggestion}'?)]"

    suggestion: str | None = None


class WrongPart(Message):
    """A part of a value is of another form. ``wanted`` is one of those above."""

    template = "has '{part}', which is not {wanted}[ (did you mean '{suggestion}'?)]"

    part: str
    wanted: str
    suggestion: str | None = None


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


class TooManyWords(Message):
    """A list has more words than its library reads."""

    template = "has {number:d} words, and at most {most:d} are read"

    number: int
    most: int


class UnknownGranularity(Message):
    """An affinity names a granularity that does not exist."""

    template = "has '{part}', and a granularity is one of {known:list}"

    part: str
    known: tuple[str, ...]


class TooLong(Message):
    """A value is longer than any that makes sense."""

    template = "has more than {most} characters"

    most: int
