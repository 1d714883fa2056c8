"""Texts that others wrote, as a terminal may be given them."""

import re

# Control characters but tab and line feed (ECMA-48), halves of surrogate pairs, other ends of a line, what turns the
# direction of writing (Unicode Standard Annex 9), and what takes no room. The latter are the format characters and the
# other default ignorable code points (Annex 44), but not FE00 to FE0F, which choose between two forms of an emoji.
ACTED_UPON = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
SURROGATE = re.compile("[\ud800-\udfff]")
# Python has a byte of a file's name that is not UTF-8 as this and the byte (PEP 383).
ESCAPED_BYTE = 0xDC00


def harmless(text: str) -> str:
    """Return ``text`` with an escape, such as ``\\x1b``, for each character that a terminal acts upon, or hides."""
    return ACTED_UPON.sub(_escape, text)


def encoded(text: str) -> bytes:
    """Return ``text`` as UTF-8. Bytes of names that are not UTF-8 become escapes, as halves of surrogate pairs do."""
    try:
        content = text.encode(errors="surrogateescape")  # under LANG=C Python has taken all letters of a name for such
        content.decode()
    except UnicodeError:
        return SURROGATE.sub(_escape, text).encode()
    return content


def _escape(match: "re.Match[str]") -> str:
    code = ord(match[0])
    code -= ESCAPED_BYTE if ESCAPED_BYTE + 0x80 <= code <= ESCAPED_BYTE + 0xFF else 0
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
