#!/usr/bin/env python3
"""Write the bill of materials of an image, CycloneDX 1.6, from the files that its build left in it (images/sbom).

Reads manifest.sha256, contents.json and base.json of /opt/kit on standard input, one after the other.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from packaging.utils import canonicalize_name, parse_wheel_filename

Component = dict[str, Any]


class ContentsError(Exception):
    """One line for the user."""


def read(lines: Iterable[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return SHA-256 by file name, and what the JSON lines say together. Raises ContentsError if one is missing."""
    hashes, said = {}, {}
    for line in lines:
        if line.startswith("{"):
            said.update(json.loads(line))
        elif line.strip():
            digest, name = line.split()
            hashes[name] = digest
    for key in ("debian", "python", "conda", "base"):
        if key not in said:
            raise ContentsError(f"the image does not say what it has of {key}: build it anew")
    return hashes, said


def component(name: str, version: str, purl: str, digest: str | None = None, licence: str = "") -> Component:
    made: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if digest is not None:
        made["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)+", licence):
        made["licenses"] = [{"expression": licence}]
    elif licence:
        made["licenses"] = [{"license": {"name": licence}}]
    return made


def of_python(hashes: dict[str, str], packages: Iterable[dict[str, str]]) -> list[Component]:
    """Return the wheels of the manifest, with what each says of its licence."""
    licences = {canonicalize_name(one["name"]): one["licence"] for one in packages}
    made = []
    for file, digest in hashes.items():
        if file.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(file)
            purl = f"pkg:pypi/{name}@{quote(str(version))}?file_name={quote(file)}"
            made.append(component(name, str(version), purl, digest, licences.get(name, "")))
    return made


def of_conda(hashes: dict[str, str], packages: Iterable[dict[str, str]]) -> list[Component]:
    made = []
    for one in packages:
        channel, subdir, file = one["url"].rsplit("/", 2)
        kind = "conda" if file.endswith(".conda") else "tar.bz2"
        where = f"build={quote(one['build'])}&channel={quote(channel.rsplit('/', 1)[-1])}&subdir={subdir}&type={kind}"
        purl = f"pkg:conda/{one['name']}@{quote(one['version'], safe=':')}?{where}"
        if file not in hashes:
            raise ContentsError(f"the image has {file}, which its manifest does not name")
        made.append(component(one["name"], one["version"], purl, hashes[file], one["licence"]))
    return made


def of_debian(packages: Iterable[dict[str, str]]) -> list[Component]:
    """Return Debian's packages. Their files have no hash here: dpkg keeps none of what it unpacked."""
    made = []
    for one in packages:
        purl = f"pkg:deb/debian/{quote(one['name'])}@{quote(one['version'], safe=':')}?arch={one['architecture']}"
        made.append(component(one["name"], one["version"], purl))
    return made


def of_base(base: dict[str, str]) -> Component:
    """Return the base image: its digest is that of a registry's manifest, of an image made here, or of a file."""
    made: Component = {"type": "container", "bom-ref": "base-image", "name": base["name"], "version": base["digest"]}
    if re.fullmatch(r"sha256:[0-9a-f]{64}", base["digest"]):
        made["hashes"] = [{"alg": "SHA-256", "content": base["digest"].removeprefix("sha256:")}]
    return made


def bom(image: str, lines: Iterable[str]) -> dict[str, Any]:
    """Return the document. The same files give the same document: it has no time in it."""
    hashes, said = read(lines)
    components = [of_base(said["base"]), *of_python(hashes, said["python"]), *of_conda(hashes, said["conda"])]
    components += of_debian(said["debian"])
    unnamed = sorted(
        set(hashes)
        - {name for name in hashes if name.endswith(".whl")}
        - {one["url"].rsplit("/", 1)[1] for one in said["conda"]}
    )
    if unnamed:
        raise ContentsError(f"the manifest names {unnamed[0]}, which is no package of the image")
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([image, components]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": "image", "name": image}},
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def main() -> int:
    try:
        print(json.dumps(bom(sys.argv[1], sys.stdin), indent=2))
    except (ContentsError, ValueError) as error:
        print(f"images/sbom: {sys.argv[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
