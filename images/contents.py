#!/usr/bin/env python3
"""Print, as one line of JSON, which packages of Debian, of Python and of conda are here, with version and licence.

Runs inside an image (/opt/kit/contents.json is its output), with its Python and nothing beside the standard library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

FIELDS = ("name", "version", "architecture")
FORMAT = "${Package}\\t${Version}\\t${Architecture}\\t${db:Status-Abbrev}\\n"


def debian() -> list[dict[str, str]]:
    """Return the installed packages, as dpkg has them; their licences are in /usr/share/doc alone."""
    listed = subprocess.run(
        ["dpkg-query", "--show", "--showformat", FORMAT], check=True, capture_output=True, text=True
    )
    rows = sorted(line.split("\t") for line in listed.stdout.splitlines())
    return [dict(zip(FIELDS, row, strict=False)) for row in rows if row[3].startswith("ii")]


def python(prefix: Path) -> list[dict[str, str]]:
    folders = [str(folder) for folder in sorted(prefix.glob("lib/python*/site-packages"))]
    found = [
        {"name": one.metadata["Name"], "version": one.version, "licence": _licence(one.metadata)}
        for one in metadata.distributions(path=folders)
    ]
    return sorted(found, key=lambda one: one["name"].lower())


def _licence(fields: metadata.PackageMetadata) -> str:
    """Return an SPDX expression or a name, or an empty text if the package says neither in one short line."""
    classifiers = [
        text.rsplit(" :: ", 1)[1] for text in fields.get_all("Classifier") or () if text.startswith("License ::")
    ]
    said = [fields.get("License-Expression") or "", fields.get("License") or "", *classifiers]
    return next((text.strip() for text in said if text.strip() and "\n" not in text and len(text) < 300), "")


def conda(prefix: Path) -> list[dict[str, str]]:
    records = [json.loads(path.read_text()) for path in sorted((prefix / "conda/conda-meta").glob("*.json"))]
    return [
        {"licence": str(one.get("license") or ""), **{key: one[key] for key in ("name", "version", "build", "url")}}
        for one in records
    ]


def main() -> None:
    prefix = Path(sys.argv[1] if len(sys.argv) > 1 else sys.prefix)
    print(json.dumps({"debian": debian(), "python": python(prefix), "conda": conda(prefix)}))


if __name__ == "__main__":
    main()
