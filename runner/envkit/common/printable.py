"""Texts that others wrote, as a terminal may be given them."""

from __future__ import annotations

import re

# Control characters but tab and line feed (ECMA-48), what is no character, other ends of a line, and what has a
# terminal write from right to left (Unicode Standard Annex 9).
ACTED_UPON = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")
PICTURES = 0x2400  # the Unicode block that has a picture of each of the first 32


def harmless(text: str) -> str:
    """The same with pictures, or a mark, instead of what a terminal would act upon."""
    return ACTED_UPON.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(PICTURES + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"
