"""Find what was probably meant by a word that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 200


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the known word that ``word`` most likely stands for, or None if none is near."""
    if len(word) > LONGEST:  # nobody meant a known one, and looking for it takes long
        return None
    return next(iter(difflib.get_close_matches(word, list(candidates), n=1)), None)
