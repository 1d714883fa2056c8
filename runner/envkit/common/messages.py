"""Messages that several packages raise."""

from __future__ import annotations

from envkit.messages import Message


class OtherSchema(Message):
    """A file of the kit's own has the format of another version."""

    code = "file.other-schema"
    template = (
        "{file}: this {kind} has schema {found}, and this version of envkit reads schema {readable}; measure again"
        "[, or write it anew: {anew:command}]"
    )

    file: str
    kind: str  # record, baseline, submission or fleet report
    found: int
    readable: int
    anew: tuple[str, ...] = ()  # the command that writes the file from other files, if they are there
