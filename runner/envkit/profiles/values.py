"""Which values a variable takes: one function for each type of the catalogue, which says what is wrong with a value.

Each type was compared with how the libraries themselves treat good and bad values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from envkit.common.suggestion import nearest
from envkit.messages import Message, MessageError
from envkit.profiles.setting_messages import (
    BadValueOfKey,
    Correct,
    MoreThanTaken,
    NeedsVersion,
    NotAPair,
    RemovedInVersion,
    RemoveKey,
    UnknownKey,
    Write,
    WriteAtMost,
)
from envkit.profiles.value_messages import (
    ANY_TEXT,
    CPU,
    CPU_LIST,
    FORM,
    NUMBER,
    OMP_PLACES,
    PLACES,
    PROCLIST,
    SEVERAL,
    SIZE,
    TYPE_OR_MODIFIER,
    WHOLE_NUMBER,
    WORKSPACES,
    Affinity,
    AtLeast,
    Between,
    FromTo,
    IsNot,
    NotAWord,
    Numbers,
    OneOf,
    OutOfRange,
    Pairs,
    SeveralTypes,
    Shape,
    Sizes,
    TooLong,
    TooManyNumbers,
    TooManyWords,
    UnknownGranularity,
    WholeNumbers,
    WithoutProclist,
    WrongPart,
)

# Numbers of more characters fit into no type of a library, and Python takes quadratic time for long ones.
MOST_DIGITS = 64


@dataclass(frozen=True)
class Kind:
    """A type with its limits."""

    type: str
    min: int | None = None
    max: int | None = None
    max_before: dict[str, int] = field(default_factory=dict)  # by the library's version before which no more is taken
    above: int | None = None
    below: int | None = None
    words: tuple[str, ...] = ()
    exact: bool = False  # words must have the case they are written in
    units: str = ""
    pattern: str = ""
    shape: str = ""
    separator: str = ","  # between the pairs of ``settings``
    assign: str = ":"  # between a pair's key and value
    tight: bool = False  # settings and words may have no spaces, and settings no empty entries
    hex: bool = False  # numbers may begin with 0x
    keys: dict[str, Kind] = field(default_factory=dict)  # of ``settings``
    default: str = ""
    since: str = ""  # the library's version
    before: str = ""  # the library's version that has it no more
    does: str = ""

    def allowed(self) -> Message:
        """Return what may stand there."""
        return TYPES[self.type][1](self)

    def is_word(self, value: str) -> bool:
        return value in self.words if self.exact else value.lower() in {word.lower() for word in self.words}


class SettingsError(MessageError):
    """Return what is wrong inside a list of settings, and how to fix it."""

    message: Message

    def __init__(self, message: Message, fix: Message) -> None:
        super().__init__(message)
        self.fix = fix


# So many characters may a value have; a list that names each of 2,000 CPUs has 10,000. Others have less.
LONGEST, SHORT = 16 * 2**10, 256
LISTS = ("integers", "words", "cpu_list", "omp_places", "kmp_affinity")


def numbers(version: str) -> tuple[int, ...]:
    """``2.13.0+cpu`` as (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def refusal(kind: Kind, value: str, version: str | None = None) -> Message | None:
    """Return why a library would not take ``value``, a clause with it as its subject, or None if it would.

    ``version`` is that of the library, where it is known. Raises SettingsError for what is inside ``settings``, and for
    more than this version takes.
    """
    if kind.type == "settings":
        if len(value) > LONGEST:
            return TooLong(LONGEST)
        if value:
            _settings(kind, value, version)
        return None
    most = LONGEST if kind.type in LISTS or kind.pattern else SHORT
    if len(value) > most and not (kind.type == "text" and not kind.pattern):
        return TooLong(most)
    refused = TYPES[kind.type][0](kind, _squeezed(value))
    if refused is None and version is not None:
        _require_taken(kind, value, version)
    return refused


def _squeezed(value: str) -> str:
    """Return a value with one blank for several: a library skips these one by one, and a pattern tries all ways."""
    return re.sub(r"\s{2,}", " ", value)


def _require_taken(kind: Kind, value: str, version: str) -> None:
    """Raise SettingsError for a number that only later versions take."""
    number = number_or_boolean(kind, value)
    for newer, most in kind.max_before.items():
        if number is not None and number > most and numbers(version) < numbers(newer):
            raise SettingsError(MoreThanTaken(value, most, newer, version), WriteAtMost(most))


def _range(kind: Kind) -> Message:
    if kind.above is not None and kind.below is not None:
        return Between(kind.above, kind.below)
    least = kind.min if kind.min is not None else 0
    return AtLeast(least) if kind.max is None else FromTo(least, kind.max)


def _whole(text: str) -> int | None:
    """Return a whole number, also one that begins with 0x; None for one of more digits than any library reads."""
    hexadecimal = text[:2].lower() == "0x"
    return int(text, 16 if hexadecimal else 10) if len(text) <= MOST_DIGITS else None


def _outside_brackets(text: str, separator: str) -> list[str]:
    """Split at each ``separator`` (a character) that is not between ``[`` and ``]``, in time linear in the length."""
    pieces, end, inside = [], len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "[]":
            inside = text[at] == "]"
        elif text[at] == separator and not inside:
            pieces.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(pieces)]


def _in_range(kind: Kind, number: float) -> bool:
    return (
        (kind.min is None or number >= kind.min)
        and (kind.max is None or number <= kind.max)
        and (kind.above is None or number > kind.above)
        and (kind.below is None or number < kind.below)
    )


def _integer(kind: Kind, value: str) -> Message | None:
    if kind.is_word(value):
        return None
    text = value.strip()
    forms = r"[-+]?\d+|0[xX][0-9a-fA-F]+" if kind.hex else r"[-+]?\d+"
    if not re.fullmatch(forms, text, re.ASCII):
        return IsNot(WHOLE_NUMBER)
    number = _whole(text)
    return None if number is not None and _in_range(kind, number) else OutOfRange()


def _integers(kind: Kind, value: str) -> Message | None:
    return next((refused for part in value.split(",") if (refused := _integer(kind, part))), None)


def _number(kind: Kind, value: str) -> Message | None:
    text = value.strip()
    if not re.fullmatch(r"-?(\d+(\.\d*)?|\.\d+)", text):
        return IsNot(NUMBER)
    if len(text) > MOST_DIGITS:
        return OutOfRange()
    return None if _in_range(kind, float(value)) else OutOfRange()


def _size(kind: Kind, value: str) -> Message | None:
    if kind.is_word(value) or re.fullmatch(rf"(?i)\d+\s*[{kind.units}]?", value.strip()):
        return None
    return IsNot(SIZE)


def _word(kind: Kind, value: str) -> Message | None:
    if kind.is_word(value):
        return None
    return NotAWord(nearest(value if kind.exact else value.lower(), kind.words))


def _word_list(kind: Kind, value: str) -> Message | None:
    """Check a list of words: ``max`` limits their number, and ``tight`` ones have no spaces around them."""
    words = value.split(",")
    if kind.max is not None and len(words) > kind.max:
        return TooManyWords(len(words), kind.max)
    return next((refused for word in words if (refused := _word(kind, word if kind.tight else word.strip()))), None)


def _text(kind: Kind, value: str) -> Message | None:
    return None if not kind.pattern or re.fullmatch(kind.pattern, value) else IsNot(FORM)


def _cpu_list(kind: Kind, value: str) -> Message | None:
    for part in re.split(r"[,\s]+", value.strip()):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", part) if len(part) <= MOST_DIGITS else None
        if match is None or (match.group(2) and int(match.group(2)) < int(match.group(1))):
            return WrongPart(part, CPU)
    return None


_WORKSPACE = re.compile(r":([0-9]{1,18}):([0-9]{1,18})")  # of more digits cuBLAS would make another number


def _workspaces(kind: Kind, value: str) -> Message | None:
    """``:KIB:COUNT``, once or several times."""
    return None if re.fullmatch(rf"(?:{_WORKSPACE.pattern})+", value) else IsNot(FORM)


_INTERVAL = r"\d+(:\d+(:-?\d+)?)?"
_PLACE = rf"(!?\{{\s*!?{_INTERVAL}(\s*,\s*!?{_INTERVAL})*\s*\}}(:\d+(:-?\d+)?)?|{_INTERVAL})"
_PLACES = re.compile(
    rf"\s*((threads|cores|ll_caches|sockets|numa_domains)\s*(\(\s*[1-9]\d*\s*\))?|{_PLACE}(\s*,\s*{_PLACE})*)\s*", re.I
)


def _omp_places(kind: Kind, value: str) -> Message | None:
    """OpenMP 5.1, section 6.5."""
    return None if _PLACES.fullmatch(value) else IsNot(PLACES)


_AFFINITY_TYPES = {"none": 0, "explicit": 0, "disabled": 0, "compact": 2, "scatter": 2, "balanced": 2,
                   "logical": 2, "physical": 2}  # fmt: skip
_AFFINITY_FLAGS = {
    prefix + word
    for word in ("verbose", "warnings", "respect", "reset", "duplicates", "dups", "bind_init", "perf_bind")
    for prefix in ("", "no")
}
# Which of them the machine has is the runtime's to say: it takes the core where it has no such layer.
_GRANULARITIES = ("fine", "thread", "core", "tile", "module", "die", "node", "numa_domain", "socket", "package",
                  "l1_cache", "l2_cache", "l3_cache", "ll_cache", "core_type", "core_eff",
                  "core_efficiency")  # fmt: skip


def _kmp_affinity(kind: Kind, value: str) -> Message | None:
    """``[modifier,...]type[,permute][,offset]``: what libiomp5 says of each part where it is wrong."""
    modifiers = [part.strip().lower() for part in _outside_brackets(value, ",")]
    problem = next((refused for part in modifiers if (refused := _affinity_part(part))), None)
    types = [part for part in modifiers if part in _AFFINITY_TYPES] or ["none"]
    integers = sum(part.isdigit() for part in modifiers)
    if problem is None and len(types) > 1:
        problem = SeveralTypes(len(types), tuple(types))
    if problem is None and types[0] == "explicit" and not any(part.startswith("proclist=") for part in modifiers):
        problem = WithoutProclist()
    if problem is None and integers > _AFFINITY_TYPES[types[0]]:
        problem = TooManyNumbers(integers, types[0], _AFFINITY_TYPES[types[0]])
    return problem


def _affinity_part(part: str) -> Message | None:
    if part in _AFFINITY_TYPES or part in _AFFINITY_FLAGS or part.isdigit():
        return None
    if part.startswith("granularity="):
        if part.removeprefix("granularity=") in _GRANULARITIES:
            return None
        return UnknownGranularity(part, _GRANULARITIES)
    if part.startswith("proclist="):
        right = re.fullmatch(r"proclist=\[[\d{},\-:\s]+\]", part)
        return None if right else WrongPart(part, PROCLIST)
    allowed = (*_AFFINITY_TYPES, *sorted(_AFFINITY_FLAGS))
    return WrongPart(part, TYPE_OR_MODIFIER, nearest(part, allowed))


def _settings(kind: Kind, value: str, version: str | None) -> None:
    """Check each ``key:value`` pair; raises SettingsError."""
    for entry in _outside_brackets(value, kind.separator):
        text = entry if kind.tight else entry.strip()
        if not text and not kind.tight and kind.separator == ":":
            continue  # glibc steps over empty tunables
        key, assigned, setting = text.partition(kind.assign)
        if not assigned:
            raise SettingsError(NotAPair(entry, kind.assign), Write(kind.allowed()))
        inner = kind.keys.get(key)
        if inner is None:
            raise SettingsError(UnknownKey(key, nearest(key, kind.keys)), Correct("key"))
        if inner.since and version is not None and numbers(version) < numbers(inner.since):
            raise SettingsError(NeedsVersion(key, inner.since, version), RemoveKey(key))
        if inner.before and version is not None and numbers(version) >= numbers(inner.before):
            raise SettingsError(RemovedInVersion(key, inner.before, version), RemoveKey(key))
        refused = refusal(inner, setting, version)
        if refused is not None:
            raise SettingsError(BadValueOfKey(key, setting, refused), Write(inner.allowed()))


def number_or_boolean(kind: Kind, value: str) -> int | float | bool | None:
    """Return what a library makes of a value that it accepts, or None where that is neither a number nor a boolean.

    Workspaces are as many bytes as all of them take.
    """
    if kind.type == "workspaces":
        return 1024 * sum(int(size) * int(count) for size, count in _WORKSPACE.findall(value))
    text = value.partition(",")[0].strip()
    if len(text) > SHORT:
        return None
    if kind.type in ("integer", "integers") and re.fullmatch(r"[-+]?\d+|0[xX][0-9a-fA-F]+", text, re.ASCII):
        return _whole(text)
    if kind.type == "number" and _number(kind, text) is None:
        number = float(text)
        return int(number) if number.is_integer() else number
    return text.lower() == "true" if kind.type == "boolean" and text.lower() in ("true", "false") else None


def _no_check(kind: Kind, value: str) -> Message | None:
    raise AssertionError("settings are checked by refusal()")


# For each type the function that refuses values, and the one that says what would be right.
TYPES: dict[str, tuple[Callable[[Kind, str], Message | None], Callable[[Kind], Message]]] = {
    "integer": (_integer, lambda kind: WholeNumbers(_range(kind), kind.words)),
    "integers": (_integers, lambda kind: WholeNumbers(_range(kind), (SEVERAL,))),
    "number": (_number, lambda kind: Numbers(_range(kind))),
    "size": (_size, lambda kind: Sizes(tuple(kind.units), kind.words)),
    "word": (_word, lambda kind: OneOf(kind.words)),
    "words": (_word_list, lambda kind: OneOf(kind.words, SEVERAL)),
    "boolean": (_word, lambda kind: OneOf(kind.words)),
    "text": (_text, lambda kind: Shape(kind.shape) if kind.shape else Shape(ANY_TEXT)),
    "cpu_list": (_cpu_list, lambda _: Shape(CPU_LIST)),
    "omp_places": (_omp_places, lambda _: Shape(OMP_PLACES)),
    "workspaces": (_workspaces, lambda _: Shape(WORKSPACES)),
    "kmp_affinity": (_kmp_affinity, lambda _: Affinity(tuple(_AFFINITY_TYPES))),
    "settings": (_no_check, lambda kind: Pairs(kind.assign, kind.separator)),
}
