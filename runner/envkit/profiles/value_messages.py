"""Messages about values of variables: what a value may be, what is wrong with one, and how to mend it."""

from __future__ import annotations

from envkit.messages import Message, Severity

# Ranges.


class FromTo(Message):
    """A range with two limits that belong to it."""

    code = "profiles.from-to"
    template = "from {least:d} to {most:d}"

    least: int
    most: int


class AtLeast(Message):
    """A range without an upper limit."""

    code = "profiles.at-least"
    template = "from {least:d} on"

    least: int


class Between(Message):
    """A range with two limits that do not belong to it."""

    code = "profiles.between"
    template = "above {above:d} and below {below:d}"

    above: int
    below: int


# What a value may be.


class WholeNumbers(Message):
    """A whole number in a range, or a word."""

    code = "profiles.whole-number"
    severity = Severity.NOTE
    template = "a whole number {range}[, or {words:list}]"

    range: Message
    words: tuple[str, ...] = ()


class ListOfWholeNumbers(Message):
    """A whole number in a range, or several."""

    code = "profiles.list-of-whole-numbers"
    severity = Severity.NOTE
    template = "a whole number {range}, or several separated by commas"

    range: Message


class Numbers(Message):
    """A number in a range."""

    code = "profiles.number"
    severity = Severity.NOTE
    template = "a number {range}"

    range: Message


class Sizes(Message):
    """A number of bytes with a unit, or a word."""

    code = "profiles.size"
    severity = Severity.NOTE
    template = "a whole number, optionally with a unit of {units:list}[, or {words:list}]"

    units: tuple[str, ...]
    words: tuple[str, ...] = ()


class OneOf(Message):
    """One of the words that a library knows."""

    code = "profiles.one-of"
    severity = Severity.NOTE
    template = "one of {words:list}"

    words: tuple[str, ...]


class SomeOf(Message):
    """Words that a library knows."""

    code = "profiles.some-of"
    severity = Severity.NOTE
    template = "one of {words:list}, or several separated by commas"

    words: tuple[str, ...]


class Shape(Message):
    """A form in the words of the catalogue."""

    code = "profiles.shape"
    severity = Severity.NOTE
    template = "{shape}"

    shape: str


class AnyText(Message):
    """Any text at all."""

    code = "profiles.any-text"
    severity = Severity.NOTE
    template = "any text"


class CpuList(Message):
    """CPUs as libgomp takes them."""

    code = "profiles.cpu-list"
    severity = Severity.NOTE
    template = "CPU numbers and ranges, for example 0 3 1-2 4-15:2"


class Places(Message):
    """Places of OpenMP."""

    code = "profiles.places"
    severity = Severity.NOTE
    template = (
        "threads, cores, sockets, ll_caches or numa_domains, or places such as {{0,1}},{{2,3}} or {{0:2}}:4:2"
    )  # fmt: skip


class Workspaces(Message):
    """Workspaces of cuBLAS."""

    code = "profiles.workspaces"
    severity = Severity.NOTE
    template = "pairs of size in KiB and count, for example :4096:8 or :16:8"


class Affinity(Message):
    """The form of KMP_AFFINITY."""

    code = "profiles.affinity"
    severity = Severity.NOTE
    template = (
        "[[modifier,…]]type[[,permute]][[,offset]], with a type of {types:list}, "
        "for example granularity=fine,compact,1,0"
    )

    types: tuple[str, ...]


class Pairs(Message):
    """Pairs of keys and values."""

    code = "profiles.pairs"
    severity = Severity.NOTE
    template = "pairs key{assign}value with '{separator}' between them"

    assign: str
    separator: str


# What is wrong with a value: clauses with the value as their subject.


class NotAWholeNumber(Message):
    """A value is no whole number."""

    code = "profiles.not-a-whole-number"
    template = "is not a whole number"


class NotANumber(Message):
    """A value is no number."""

    code = "profiles.not-a-number"
    template = "is not a number"


class OutOfRange(Message):
    """A number is too small or too large."""

    code = "profiles.out-of-range"
    template = "is out of range"


class NotASize(Message):
    """A value is no number of bytes."""

    code = "profiles.not-a-size"
    template = "is not a size"


class NotAWord(Message):
    """The library knows other words than the value."""

    code = "profiles.not-a-word"
    template = "is not one of its words[ (did you mean '{suggestion}'?)]"

    suggestion: str | None = None


class WrongForm(Message):
    """A value does not have the form that the catalogue gives."""

    code = "profiles.wrong-form"
    template = "is not of the form it must have"


class NotACpu(Message):
    """A part of a list is no CPU."""

    code = "profiles.not-a-cpu"
    template = "has '{part}', which is not a CPU or a range of CPUs"

    part: str


class NotPlaces(Message):
    """A value is no list of places."""

    code = "profiles.not-places"
    template = "is not a list of places"


class SeveralTypes(Message):
    """An affinity has more than one type."""

    code = "profiles.several-types"
    template = "has {number:d} types, {types}"

    number: int
    types: tuple[str, ...]


class WithoutProclist(Message):
    """An explicit affinity names no CPUs."""

    code = "profiles.without-proclist"
    template = "is explicit without a proclist=[[…]]"


class TooManyNumbers(Message):
    """An affinity has more numbers than its type takes."""

    code = "profiles.too-many-numbers"
    template = "has {given:d} numbers, and {type} takes {most:d}"

    given: int
    type: str
    most: int


class UnknownGranularity(Message):
    """An affinity names a granularity that does not exist."""

    code = "profiles.unknown-granularity"
    template = "has '{part}', and a granularity is one of {known:list}"

    part: str
    known: tuple[str, ...]


class WrongProclist(Message):
    """The list of CPUs of an affinity can't be read."""

    code = "profiles.wrong-proclist"
    template = "has '{part}', which is not of the form proclist=[[0,2-4]]"

    part: str


class UnknownAffinity(Message):
    """An affinity has a word that does not exist."""

    code = "profiles.unknown-affinity"
    template = "has '{part}', which is neither a type nor a modifier[ (did you mean '{suggestion}'?)]"

    part: str
    suggestion: str | None = None
