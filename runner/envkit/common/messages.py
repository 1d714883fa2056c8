"""Messages about files, their owners, folders, locks and YAML, which all packages share."""

from __future__ import annotations

from envkit.messages import Message, Note

EMPTY = "is empty"
BAD_NAME = "is not a valid name"
BAD_KEYS = "does not have the keys that it needs"


class OtherSchema(Message):
    """A file of the kit's own has the format of another version."""

    template = (
        "{file}: this {kind} has {age} format (schema {found}), and this version of envkit reads schema {readable}; "
        "measure again[, or write it again: {anew:command}]"
    )

    file: str
    kind: str  # record, baseline, submission or fleet report
    age: str  # an earlier or a later
    found: int
    readable: int
    anew: tuple[str, ...] = ()  # the command that writes the file from other files, if they are there

    @staticmethod
    def of(file: str, kind: str, schema: int, readable: int, anew: tuple[str, ...] = ()) -> OtherSchema:
        """Return the message for ``schema`` where ``readable`` is read. They must differ."""
        return OtherSchema(file, kind, "an earlier" if schema < readable else "a later", schema, readable, anew)


class InFile(Message):
    """A problem at one line of a file."""

    template = "{file}:{line:d}: {problem}"

    file: str
    line: int
    problem: Message


class About(Message):
    """A problem of one subject: a file, an image, an option."""

    template = "{subject}: {problem}"

    subject: str
    problem: Message


class Clauses(Note):
    """Several messages in one line."""

    template = "{clauses:lines}"

    clauses: tuple[Message, ...]


class Unreadable(Message):
    """The system does not let the kit read a file."""

    template = "{file}: can't be read: {reason}[; {fix}]"

    file: str
    reason: Message
    fix: str | None = None


class Unwritable(Message):
    """The system does not let the kit write a file. ``kept`` is the file if it still has its former content."""

    template = "{file}: can't be written: {reason}[; {kept} is unchanged]"

    file: str
    reason: str
    kept: str | None = None


class NotUtf8(Message):
    """A text file has bytes of another encoding."""

    template = "{file}: not UTF-8 (byte {position:d} is {byte}); save the file as UTF-8"

    file: str
    position: int
    byte: str  # as 0xe9


class TooLarge(Message):
    """A YAML file is larger than any that the kit needs."""

    template = "{file}: larger than {most_bytes:size}, the most for a YAML file; shorten it, or name another file"

    file: str
    most_bytes: int


class NotAMapping(Message):
    """The top level of a YAML file is no mapping."""

    template = "{kind} is a mapping of keys to values, for example 'name: {example}'"

    kind: str  # as "a profile"
    example: str


class InvalidYaml(Message):
    """The YAML parser refused a file, with ``reason``."""

    template = "not valid YAML[: {reason}]"

    reason: str | None


class NumberTooLong(Message):
    """A number in a YAML file has more digits than any that is meant."""

    template = "'{key}' is a number of {length:count character}, and the most is {most}; shorten it"

    key: str
    length: int
    most: int


class InvalidScalar(Message):
    """A value only looks like a date or a number."""

    template = "not valid YAML: '{value}': {reason}; quote it"

    value: str
    reason: str


class NulCharacter(Message):
    """A value has the character that ends a text for the system."""

    template = "'{key}' has a NUL character, which no process can receive; remove it"

    key: str


class HalfCharacter(Message):
    """A value has a surrogate, which no encoding has. ``number`` is its code point."""

    template = "'{key}' has half of a character (\\u{number:x}), which no process can receive; remove it"

    key: str
    number: int


class ComplexKey(Message):
    """A key is a list or a mapping."""

    template = "a key must be a plain word"


class DuplicateKey(Message):
    """A key stands twice in one mapping."""

    template = "the key '{key}' appears twice (first on line {first:d}); remove one"

    key: str
    first: int


class RecursiveAnchor(Message):
    """An anchor contains an alias of itself."""

    template = "not valid YAML: the anchor '{anchor}' contains itself; write the value out"

    anchor: str


class TooManyValues(Message):
    """A file, with its aliases resolved, has too many values or characters."""

    template = (
        "not valid YAML: with its aliases resolved it has more than {most_values} values, "
        "or {most_characters} characters; remove some"
    )

    most_values: int
    most_characters: int


class TooDeep(Message):
    """Brackets or indentation of a file are nested too deep."""

    template = "not valid YAML: more than {levels} levels; remove some brackets or indentation"

    levels: int


class UnknownKey(Message):
    """A mapping has a key that its schema does not know."""

    template = "unknown key '{key}'[ (did you mean '{suggestion}'?)]; the keys are: {known:list}"

    key: str
    known: tuple[str, ...]
    suggestion: str | None = None


class MissingKey(Message):
    """A mapping lacks a key that its schema requires."""

    template = "'{key}' is missing; {fix}"

    key: str
    fix: str = "add it"


class DependentKey(Message):
    """A key has no effect without another one."""

    template = "'{key}' has no effect without '{other}'; add '{other}', or remove '{key}'"

    key: str
    other: str


# What a value must be, by types of JSON schemas: all but null, which only takes away.
TYPES = {
    "array": "a list",
    "boolean": "true/false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


class WrongType(Message):
    """A value has another type than its schema allows."""

    template = "{key} must be {wanted:or}, not {found}[; {fix}]"

    key: str  # quoted, or "the file"
    wanted: tuple[str, ...]
    found: str
    fix: str | None = None


class NotAChoice(Message):
    """A value is none of those that its schema lists."""

    template = "{key} can't be {found}[ (did you mean '{suggestion}'?)]; the choices are: {choices:list}"

    key: str
    found: str
    choices: tuple[str, ...]
    suggestion: str | None = None


class BelowMinimum(Message):
    """A number is less than its schema allows: not ``least`` or more, or not ``above`` a limit."""

    template = "{key} must be [{least} or more][more than {above}], not {found}[; {fix}]"

    key: str
    found: str
    least: float | None = None
    above: float | None = None
    fix: str | None = None


class BadForm(Message):
    """A list or a mapping is empty, a key has a name that its schema forbids, or keys do not go together."""

    template = "{key} {fault}[; {fix}]"

    key: str
    fault: str  # EMPTY, BAD_NAME or BAD_KEYS
    fix: str | None = None


class BadValue(Message):
    """A value breaks another rule of its schema, which ``rule`` names by its JSON Schema keyword."""

    template = "{key} can't be {found}[; {fix}]"

    key: str
    found: str
    rule: str
    fix: str | None = None


class NoValidator(Message):
    """The package that checks files against schemas is missing."""

    template = "{file}: can't be checked without the package jsonschema; install it: pip install jsonschema"

    file: str


class MissingExtra(Message):
    """A command needs a package that comes with one of the kit's extras."""

    template = "{needed_by} needs the package '{package}': pip install 'envkit[[{extra}]]'"

    needed_by: str
    package: str
    extra: str


class MissingPackage(Message):
    """A package that the kit always needs is missing: the installation is damaged."""

    template = "the package '{package}', which envkit needs, is missing: install envkit again"

    package: str


class NotInThisPython(Message):
    """A Python in which ``envkit.check`` runs lacks a package."""

    template = "{python} has no package '{package}'; install it there, or use a kernel that has it"

    python: str
    package: str


class UnknownWord(Message):
    """A list has an unknown word. ``what`` is the noun for one of them."""

    template = "no {what} '{word}'[ (did you mean '{suggestion}'?)]; choose one of: {known:list}"

    what: str
    word: str
    known: tuple[str, ...]
    suggestion: str | None = None


# --- files that name a program, and that another user can have written ---


class OfAnother(Message):
    """A file that names a program belongs to another user."""

    template = "{file}: user {owner} owns it and can change what it starts; make a copy of your own"

    file: str
    owner: str


class WritableFile(Message):
    """Others can write a file that names a program."""

    template = "{file}: other users can write it and so choose what it starts; read it, then run: {mend:command}"

    file: str
    mend: tuple[str, ...]


class FolderOpen(Message):
    """Others can replace a file that names a program."""

    template = (
        "{file}: other users can replace it, because they can write to {folder}; "
        "move it to a folder of your own, or run: {mend:command}"
    )

    file: str
    folder: str
    mend: tuple[str, ...]
