"""Seals: keyed digests that prove that this user wrote an event, and that nobody has edited it since.

A record is data. Whoever can write its file can name a program in it. So a record is gone on with by itself only where
its first event, which has all that decides what is started, carries a seal made with this user's key
(``runner.common.user_key``). HMAC-SHA256: RFC 2104, FIPS 198-1.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from runner.common import user_key
from runner.common.user_key import NoKey

KEY = "seal"
# What each digest is of: one that was made for one purpose is worth nothing for another.
EVENT, VALUE = b"envkit event 1\0", b"envkit value 1\0"


def sealed(event: Mapping[str, Any], bound_to: str | None = None) -> dict[str, Any]:
    """The event with its seal; with None in the seal's place where this user can have no key.

    ``bound_to`` is the seal of the record's first event, for a later one that is to be good in that record alone.
    Raises InputError for a key that others may know.
    """
    try:
        key = user_key.find_or_make()
    except NoKey:
        return {**event, KEY: None}
    return {**event, KEY: _of(event, key, bound_to)}


def is_good(event: Mapping[str, Any], bound_to: str | None = None) -> bool:
    """Whether this user sealed the event, as it is. Raises InputError for a key that others may know."""
    given = event.get(KEY)
    if not isinstance(given, str):
        return False
    key = user_key.find()
    return key is not None and hmac.compare_digest(given.encode(), _of(event, key, bound_to).encode())


def value_digests(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str | None]:
    """For each of the caller's variables a digest by which a changed value is noticed, and that tells nothing of it.

    None where this user can have no key: a digest without one could be guessed back. Raises InputError as ``sealed``.
    """
    wanted = sorted(names)
    try:
        key = user_key.find_or_make() if wanted else b""
    except NoKey:
        return dict.fromkeys(wanted)
    return {name: _digest(key, VALUE + f"{name}={values[name]}".encode(errors="surrogateescape")) for name in wanted}


def _of(event: Mapping[str, Any], key: bytes, bound_to: str | None) -> str:
    rest = {name: value for name, value in event.items() if name != KEY}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return _digest(key, EVENT + f"{bound_to or ''}\0{text}".encode())


def _digest(key: bytes, content: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()
