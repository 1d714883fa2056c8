"""What was probably meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, or None."""
    import difflib  # takes milliseconds, and `envkit exec` is to start fast

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the nearest known word, or nothing."""
    near = nearest(word, known)
    return f" (did you mean '{near}'?)" if near else ""
