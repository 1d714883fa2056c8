"""Seals: keyed digests which prove that this user wrote an event, and that nobody edited it since.

A record is data. Anybody who can write its file can name a program in it. So ``--resume`` alone goes on with a record
only if its first event carries a seal of this user's key (``envkit.common.user_key``). This event holds all that
decides what is started. HMAC-SHA256: RFC 2104, FIPS 198-1.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping

from envkit.common import user_key
from envkit.common.user_key import NoKey

KEY = "seal"
# Labels of the digests: a digest made for one purpose is not valid for another.
EVENT, VALUE = b"envkit event 1\0", b"envkit value 1\0"


def require_sound_key() -> None:
    """Raise InputError if this user has a key that others may know."""
    user_key.find()


def sealed(event: Mapping[str, object], bound_to: str | None = None) -> dict[str, object]:
    """Return the event with its seal, or with None as its seal if this user can have no key.

    ``bound_to`` is the seal of the record's first event: a later event is then good in that record alone. Raise
    InputError if others may know the key.
    """
    try:
        key = user_key.find_or_make()
    except NoKey:
        return {**event, KEY: None}
    return {**event, KEY: _of(event, key, bound_to)}


def is_good(event: Mapping[str, object], bound_to: str | None = None) -> bool:
    """Return whether this user sealed exactly this event. Raise InputError if others may know the key."""
    digest = event.get(KEY)
    if not isinstance(digest, str):
        return False
    key = user_key.find()
    return key is not None and hmac.compare_digest(digest.encode(), _of(event, key, bound_to).encode())


def value_digests(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str | None]:
    """Return a keyed digest for each named variable. It shows a changed value, and tells nothing else about it.

    Return None for each if this user can have no key: a digest without a key can be guessed. Raise InputError as
    ``sealed`` does.
    """
    wanted = sorted(names)
    try:
        key = user_key.find_or_make() if wanted else b""
    except NoKey:
        return dict.fromkeys(wanted)
    return {name: _digest(key, VALUE + f"{name}={values[name]}".encode(errors="surrogateescape")) for name in wanted}


def _of(event: Mapping[str, object], key: bytes, bound_to: str | None) -> str:
    unsealed = {name: value for name, value in event.items() if name != KEY}
    text = json.dumps(unsealed, sort_keys=True, separators=(",", ":"))
    return _digest(key, EVENT + f"{bound_to or ''}\0{text}".encode())


def _digest(key: bytes, content: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()
