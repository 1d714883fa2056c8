"""What tuning tells its users."""

from __future__ import annotations

from envkit.messages import Message


class NoPlaceForProfile(Message):
    """The profile that a tuning writes has no place. ``variable`` moves the folder that is taken by default."""

    code = "tune.no-place"
    template = "{file}: {folder} can't be written to: {why}; name another file with --profile[, or set {variable}]"

    file: str
    folder: str
    why: str
    variable: str | None = None
