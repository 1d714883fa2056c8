"""Messages of a race of profiles, and of its confirmation."""

from __future__ import annotations

from envkit.messages import Message, Note


class Race(Note):
    """So many ``profiles`` are about to race. The slower half leaves after each of ``blocks``."""

    template = (
        "{profiles} profiles race now, and the slower half leaves after block {blocks:list}; the fastest is then "
        "compared with the baseline; all this takes about {takes} (--budget TIME changes that)"
    )

    profiles: int
    blocks: tuple[int, ...]
    takes: str  # with the watching, as "3 minutes"


class ConfirmingOne(Note):
    """A single profile applies here, so that nothing races."""

    template = "{profile} is compared with the baseline now; all this takes about {takes} (--budget TIME changes that)"

    profile: str
    takes: str


class NoRaceThere(Message):
    """A record of another kind was to be continued as a race."""

    template = "{folder}: holds a run that is no race; continue it with: {command}"

    folder: str
    command: str


class RaceOfAnother(Message):
    """The record of a race does not carry this user's seal, so nothing that it names is started."""

    template = "{folder}: the record does not carry your seal; begin a new race: envkit advise -- COMMAND"

    folder: str
