#!/usr/bin/env python3
"""Hold a build against the last one of the same image: its base image, and Debian's packages.

base FILE NAME DIGEST        fail if the last build had another image under the base image's NAME (--update: take it)
keep FILE NAME DIGEST        read contents.json of the new image on standard input, print which of Debian's packages
                             differ from the last build's, and write FILE

FILE is in the build folder; neither a tag nor Debian's mirror stays what it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """Return what the last build wrote, or an empty dictionary if there was none or the file is damaged."""
    try:
        kept = json.loads(path.read_text())
        texts = [kept["base"]["name"], kept["base"]["digest"], *kept["debian"].values()]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("not all are texts")
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        print(f"images/records.py: {path}: is damaged, so nothing is compared with the last build", file=sys.stderr)
        return {}
    return dict(kept)


def other_base(kept: Mapping[str, Any], name: str, digest: str) -> str | None:
    """Return one line if the last build had another image under this name."""
    last = kept.get("base", {"name": None})
    if last["name"] != name or last["digest"] == digest:
        return None
    return f"the base image {name} is {digest}, and the last build had {last['digest']}"


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each of Debian's packages whose version changed, or which is new or gone."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old != new:
            lines.append(f"{name} {old or '(new)'} -> {new or '(gone)'}")
    return lines


def write(path: Path, base: Mapping[str, str], debian: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps({"base": base, "debian": debian}, indent=1) + "\n")
    partial.replace(path)


def compare_base(path: Path, name: str, digest: str, update: bool) -> int:
    """Return the exit status: 2 for another base image, unless ``update`` takes it, which is written down then."""
    kept = read(path)
    different = other_base(kept, name, digest)
    if different is None:
        return 0
    if not update:
        print(f"images/build: {different}: take it with --update, or name another with BASE", file=sys.stderr)
        return 2
    print(f"images/build: {different}")
    write(path, {"name": name, "digest": digest}, kept["debian"])
    return 0


def keep(path: Path, name: str, digest: str, contents: Mapping[str, Any]) -> list[str]:
    """Write what the new image is made of. Return how Debian's packages differ from those of the last build."""
    now = {f"{one['name']}:{one['architecture']}": one["version"] for one in contents["debian"]}
    kept = read(path)
    write(path, {"name": name, "digest": digest}, now)
    return changes(kept["debian"], now) if kept else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("base", "keep"))
    parser.add_argument("file", type=Path)
    parser.add_argument("name")
    parser.add_argument("digest")
    parser.add_argument("--update", action="store_true", help="take another base image")
    arguments = parser.parse_args()
    if arguments.command == "base":
        return compare_base(arguments.file, arguments.name, arguments.digest, arguments.update)
    lines = keep(arguments.file, arguments.name, arguments.digest, json.load(sys.stdin))
    if lines:
        print(f"images/build: {len(lines)} of Debian's packages are not those of the last build ({arguments.file})")
        print("".join(f"  {line}\n" for line in lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
