#!/usr/bin/env python3
"""Decide which addresses software is taken from: https, a file, or http on this machine alone (loopback).

Read what `pip config list` prints on standard input, and refuse an index or a folder of links at any other address.
With --environment read the variables of pip and uv instead.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

# What pip and uv call the options, and the variables, that name where packages come from.
NAMES = re.compile(
    r"(?:index|index[-_]url|extra[-_]index[-_]url|find[-_]links|default[-_]index|extra[-_]index)$", re.IGNORECASE
)
TAKEN = "use https, a file:// or an address of this machine (http://127.0.0.1)"


def hidden(text: str) -> str:
    """Return ``text`` with the user, password or token of each address in it masked."""
    text = re.sub(r"(?<=://)[^/\s'\"]*@", "****@", text)
    return re.sub(r"(://[^/\s'\"]+/t/)[^/\s'\"]+", r"\1****", text)


def is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def refusal(address: str) -> str | None:
    """Return why nothing is taken from ``address``, or None if it can be."""
    if re.search(r"[\\\s\x00-\x1f\x7f]", address):  # other programs find another host in it
        return f"is no address: {TAKEN}"
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return f"is no address: {TAKEN}"
    if parts.scheme == "file":
        return None if parts.netloc in ("", "localhost") else f"names a file of another machine: {TAKEN}"
    if not host:
        return f"is no address: {TAKEN}"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return None
    return f"is not https: {TAKEN}"


def first_refused(settings: Iterable[tuple[str, str]]) -> str | None:
    """Return one line about the first address in ``settings`` (name and value) that is refused, or None."""
    for name, value in settings:
        if not NAMES.search(name):
            continue
        for word in value.replace(",", " ").split():
            address = word[word.find("=") + 1 :] if re.match(r"[\w-]+=\w+://", word) else word  # uv's NAME=URL
            why = refusal(address) if "://" in address else None  # a path is a folder of this machine
            if why is not None:
                return f"{name}: {hidden(address)} {why}"
    return None


def of_pip(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return names and values of what `pip config list` prints: ``global.index-url='https://...'``."""
    pairs = (line.strip().partition("=") for line in lines)
    return [(name, value.strip("'\"").replace("\\n", " ")) for name, _, value in pairs]


def main() -> int:
    if sys.argv[1:] == ["--environment"]:
        settings = [(name, value) for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))]
    else:
        settings = of_pip(sys.stdin)
    refused = first_refused(settings)
    if refused is not None:
        print(refused)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
