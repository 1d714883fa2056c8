"""Messages of profiles: what is wrong with a file, and why a profile can't be used here."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

# Expressions.


class UnclosedReference(Message):
    """A ``${`` has no end."""

    template = "'{text}' has a '${{' without its '}}'"

    text: str


class NotAnExpression(Message):
    """Python can't parse what stands in ``${...}``."""

    template = "'${{{expression}}}' is not an expression; write for example ${{usable_cpus}}"

    expression: str


class DividesByZero(Message):
    """An expression divides by a number that is zero on this machine."""

    template = "'${{{expression}}}' divides by zero on this machine"

    expression: str


class UnknownFact(Message):
    """An expression names a fact of the machine that does not exist."""

    template = "unknown host fact '{name}'; the facts are: {known:list}"

    name: str
    known: tuple[str, ...]


class Fraction(Message):
    """An expression divides with ``/``."""

    template = "'/' gives fractions; use '//' for whole-number division"


class TooFewArguments(Message):
    """An expression calls ``min`` or ``max`` with less than two numbers."""

    template = "'{expression}' is not allowed; {function} takes two or more numbers"

    expression: str
    function: str


class NotAllowed(Message):
    """An expression has something other than arithmetic of whole numbers and facts."""

    template = "'{expression}' is not allowed; use host facts, whole numbers, + - * // %, min, max"

    expression: str


# Files.


class NoProfileFile(Message):
    """The user named a file of a profile that does not exist."""

    template = "{file}: no such profile file"

    file: str


class NotTuned(Message):
    """The user named the tuned profile of this machine before tuning."""

    template = "{file}: this machine has no tuned profile yet; make one with: envkit tune"

    file: str


class UnknownProfile(Message):
    """No place has a profile of this name."""

    template = "no profile '{name}' in {folders}[; did you mean {suggestions:quoted}?]; envkit profiles lists all"

    name: str
    folders: tuple[str, ...]
    suggestions: tuple[str, ...] = ()


class ExtendsCircle(Message):
    """Profiles extend each other."""

    template = "'extends' goes in a circle ({circle}); remove one link"

    circle: str


class ExtendsUnknown(Message):
    """A profile extends one that does not exist."""

    template = "extends '{parent}', which is not a profile[ (did you mean '{suggestion}'?)]"

    parent: str
    suggestion: str | None = None


class NameIsNotFile(Message):
    """A profile's name differs from the name of its file."""

    template = "the name '{name}' must be the name of the file, '{file}'"

    name: str
    file: str


# Machines. A reason is a clause with the profile as its subject.


class DoesNotApply(Message):
    """A profile is for other machines."""

    template = "profile '{profile}' {reason}: it does not apply to this machine; choose another"

    profile: str
    reason: Message


class TunedElsewhere(Message):
    """A tuned profile is for another processor."""

    template = "profile '{profile}' {reason}: it does not apply to this machine; tune for this one with: envkit tune"

    profile: str
    reason: Message


class DoesNotApplyToNode(Message):
    """A profile is for other machines than a node of a cluster."""

    template = "profile '{profile}' {reason}: it does not apply to this node; name other nodes"

    profile: str
    reason: Message


class NeedsNumber(Message):
    """The reason of a profile that needs more of something than the machine has."""

    template = "needs {fact} to be {least:d} or more, and here it is {here:d}[ ({counted})]"

    fact: str
    least: int
    here: int
    counted: str | None = None  # what the fact counts


class NumberNeeded(Note):
    """A profile needs a number. ``least`` may be an expression."""

    template = "{fact} of {least} or more"

    fact: str
    least: str


class TextNeeded(Note):
    """Which kinds of machine a profile is for."""

    template = "{fact} {wanted:or}"

    fact: str
    wanted: tuple[str, ...]


class OtherNeeded(Note):
    """Which kinds of machine a profile is not for."""

    template = "a {fact} other than {excluded:or}[, because {because}]"

    fact: str
    excluded: tuple[str, ...]
    because: str | None = None


class NeedsText(Message):
    """The reason of a profile that needs a certain kind of machine."""

    template = "needs {fact} to be {wanted:or}, and here it is {here}"

    fact: str
    wanted: tuple[str, ...]
    here: str


class NeedsOther(Message):
    """The reason of a profile that a certain kind of machine excludes."""

    template = "needs a {fact} other than {excluded:or}, and here it is {here}[; {because}]"

    fact: str
    excluded: tuple[str, ...]
    here: str
    because: str | None = None


class NeedsCores(Message):
    """The reason of a profile whose ranks need more cores than the machine has."""

    template = "trains on {ranks:count rank}, and this process can use {cores:count core}"

    ranks: int
    cores: int


class TunedForOther(Message):
    """The reason of a profile that was tuned on another processor."""

    template = "was tuned for {cpu}, and this is {here}"

    cpu: str
    here: str


class CantBeUsed(Message):
    """A profile would have no effect here, or can't start. ``reason`` is a clause with the profile as its subject."""

    template = "profile '{profile}' {reason}"

    profile: str
    reason: Message


class GpusUnusable(Message):
    """The reason of a profile for GPUs that torch can't use."""

    template = "{needs}: {python} can't use one: {problem}"

    needs: Message
    python: str
    problem: Message


class HasRanks(Message):
    """The reason of a profile whose own ranks exclude --nproc."""

    template = "has {ranks:count rank} of its own; leave --nproc out"

    ranks: int


class BindsProcesses(Message):
    """The reason of a profile that chooses CPUs, which the kit does for each of several processes."""

    template = "chooses CPUs ('{prefix}'), and each process gets its own CPUs; leave one of them out"

    prefix: str


class LibraryMissing(Message):
    """The reason of a profile that preloads a library which no folder has."""

    template = "preloads {library}, which is not installed (looked in {folders:list}); get it with: {get}"

    library: str
    folders: tuple[str, ...]
    get: str


class CommandMissing(Message):
    """The reason of a profile that starts workers with a program which is missing."""

    template = "starts workers with '{command}', which is not installed; install it"

    command: str


class PathUnpreloadable(Message):
    """The path of a library has a character at which the loader splits LD_PRELOAD."""

    template = (
        "{path}: can't be preloaded, because the loader splits LD_PRELOAD at blanks and colons; "
        "move the project to a folder without them, or name one for links with XDG_CACHE_HOME"
    )

    path: str


class SetsInVain(Message):
    """The reason of a profile that sets what no library here reads, or would take."""

    template = "sets {variable}: {wrong}; {fix}[, or give {option}][ (and {more} more)]"

    variable: str
    wrong: Message
    fix: Message
    option: str | None = None  # which lets the setting pass
    more: int | None = None  # other settings like it


class NotExpressible(Message):
    """A format of ``envkit env`` can't express a value."""

    template = "profile '{profile}': --format {format} can't express {name}: {problem}; {fix}"

    profile: str
    format: str
    name: str
    problem: Message
    fix: Message


# Places.


class ProjectProfile(Note):
    """A name stands for a file of the project where the user stands. Others may have written it."""

    code = "profiles.of-project"
    template = (
        "{name} is the project's own: {file}[, instead of {hidden}]"
        "[; it starts your command with: {prefix:command}][; it preloads {preload:list}]"
    )

    name: str
    file: str
    hidden: str | None = None
    prefix: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()


class HiddenProfile(Note):
    """Two places have a profile of one name, and the first one counts."""

    code = "profiles.hidden"
    template = "{name}: {file} is hidden by {first}"

    name: str
    file: str
    first: str


class PassedOver(Caution):
    """Another user may have written the project's profiles, and could have this user run anything."""

    template = "{path} is ignored: another user owns it, or all users can write to it"

    path: str
