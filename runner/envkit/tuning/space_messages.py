"""Messages about the file of a space: what is wrong with it, and how to mend it."""

from __future__ import annotations

from envkit.messages import Message

# What refers to parameters.
COUNTS_WHEN = "a parameter counts when"
CONSTRAINT_NAMES = "a constraint names"


class UnknownSpace(Message):
    """``--space`` names neither a space nor a file."""

    template = (
        "--space {name}: no such space[ (did you mean '{suggestion}'?)]; give a YAML file, or one of: {known:list}"
    )

    name: str
    known: tuple[str, ...]
    suggestion: str | None = None


class OtherSpace(Message):
    """The file of a space is not the one that a tuning began with."""

    template = "{file}: is not the space of this search; restore that, or start a new tuning"

    file: str


class EmptySpace(Message):
    """No choice of a space can be tried, whatever the machine."""

    template = "the space is empty: each choice breaks a constraint or sets a variable twice; remove what does"


class UnknownFirst(Message):
    """``first`` names a profile that is not shipped."""

    template = "no shipped profile '{name}'[ (did you mean '{suggestion}'?)]; remove it"

    name: str
    suggestion: str | None = None


class DuplicateValue(Message):
    """A value stands twice in the list of a parameter."""

    template = "'{value}' appears twice among the values of '{parameter}'; remove one"

    value: str
    parameter: str


class ParameterBelow(Message):
    """``subject`` names a parameter that stands further down."""

    template = "{subject} '{name}', which appears later; move '{name}' before it"

    subject: str  # COUNTS_WHEN or CONSTRAINT_NAMES
    name: str


class UnknownParameter(Message):
    """``subject`` names a parameter that the space does not have."""

    template = "{subject} '{name}', which is no parameter[ (did you mean '{suggestion}'?)]"

    subject: str  # COUNTS_WHEN or CONSTRAINT_NAMES
    name: str
    suggestion: str | None = None


class UnknownLevel(Message):
    """``subject`` names a level that the parameter does not have."""

    template = "{subject} {name} is '{level}', which it never is[ (did you mean '{suggestion}'?)]; it is: {known:list}"

    subject: str  # COUNTS_WHEN or CONSTRAINT_NAMES
    name: str
    level: str
    known: tuple[str, ...]
    suggestion: str | None = None


class ExcludesAll(Message):
    """A constraint leaves no choice."""

    template = "this constraint excludes every choice: nothing would be left to try; narrow it"


class NeverApplies(Message):
    """A constraint excludes no choice."""

    template = "this constraint never applies: its values never come together; remove it"


class SetTwice(Message):
    """A level sets a variable under ``env`` and under ``settings``."""

    template = "'{variable}' is under 'env' too; write its keys here alone"

    variable: str


class FromPreload(Message):
    """A space sets a variable that the kit makes from 'preload'."""

    template = "'{variable}' is made from 'preload'; see: envkit explain"

    variable: str


class NotInCatalogue(Message):
    """A space sets a variable that the kit does not know."""

    template = "'{variable}' is not in the catalogue of variables[ (did you mean '{suggestion}'?)]; see: envkit explain"

    variable: str
    suggestion: str | None = None


class TakesNoKeys(Message):
    """A variable with a ``key`` takes one value."""

    template = "{variable} takes one value and no keys such as '{key}'; leave 'key' out"

    variable: str
    key: str


class UnknownSetting(Message):
    """A variable does not have this key."""

    template = "{variable} has no key '{key}'[ (did you mean '{suggestion}'?)]; see: envkit explain {variable}"

    variable: str
    key: str
    suggestion: str | None = None
