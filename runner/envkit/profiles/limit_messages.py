"""Messages of what a profile's text must not be: too long, too deep, too large, or another program's to run."""

from __future__ import annotations

from envkit.messages import Message


class TextTooLong(Message):
    """A value of a profile is longer than any that a library reads."""

    template = "the value has {length:count character}, and the most is {most}; shorten it"

    length: int
    most: int


class TooManyVariables(Message):
    """A profile sets more variables than all libraries together read."""

    template = "'env' sets {number:count variable}, and the most is {most}; remove some"

    number: int
    most: int


class ExpressionTooLong(Message):
    """An expression is longer than any that people write."""

    template = "the expression '${{{begin}…' has {length:count character}, and the most is {most}; shorten it"

    begin: str
    length: int
    most: int


class ExpressionTooDeep(Message):
    """An expression has operations inside operations, and so on."""

    template = "an expression nests operations more than {most} levels deep; simplify it"

    most: int


class NumberTooLarge(Message):
    """A number in an expression, or what comes of it, does not fit into 64 bits."""

    template = "an expression's number does not fit into 64 bits; write a smaller one"


class RunsCode(Message):
    """A profile sets a variable that has programs run code, or look for code elsewhere."""

    template = (
        "a profile can't set '{variable}', which has other programs run code that a file chooses; remove it, "
        "or set it in your shell[ and add {option}]"
    )

    variable: str
    option: str | None = None


class PluginByPath(Message):
    """A profile names a library by its path, where a library loads a plugin."""

    template = "'{variable}' must be the plain name of a plugin, without '/', which the loader finds; write it so"

    variable: str


class NotALauncher(Message):
    """The first word of a prefix is a program that the kit does not know as a launcher."""

    template = (
        "a prefix can't start '{program}'; it starts with {known:list}, by name; remove it, or start envkit behind it"
    )

    program: str
    known: tuple[str, ...]


class NotOfLauncher(Message):
    """A word of a prefix is no option of its launcher, which would take it for the program to start."""

    template = "'{word}' is not an option that a prefix of {launcher} can have; the options are: {known:list}"

    word: str
    launcher: str
    known: tuple[str, ...]


class LacksValue(Message):
    """A prefix ends before the value of its last option, or lacks what its launcher must be told."""

    template = (
        "the prefix of {launcher} lacks a value[ after {option}], and would take the training's first word for it; "
        "add it"
    )

    launcher: str
    option: str | None = None


class SecondOfAKind(Message):
    """A profile preloads two libraries of which a process uses one."""

    template = "'preload' has {second} and {first}, of which only {first} would be in effect: remove one"

    second: str
    first: str
