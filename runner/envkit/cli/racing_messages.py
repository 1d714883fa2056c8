"""Messages of a race of profiles, and of its confirmation."""

from __future__ import annotations

from envkit.messages import Note


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
