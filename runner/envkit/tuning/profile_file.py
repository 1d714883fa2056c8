"""Write what was found as a profile of this machine, with its evidence and the digest of its record beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import yaml

from envkit.common import atomic, codec
from envkit.common.errors import InputError
from envkit.common.printable import harmless
from envkit.common.running_messages import NotMade
from envkit.messages import Message
from envkit.profiles.profile import Profile
from envkit.rendering import text

WIDTH = 120
MACHINE = "machine_kind"  # the key of evidence that says on which kind of machine the profile won


def explained(profile: Profile, reason: Message, source: Message | None) -> Profile:
    """Return ``profile`` with the texts of ``reason`` and ``source``."""
    return replace(profile, reason=f"{text(reason)}.", source=None if source is None else text(source))


def write(profile: Profile, path: Path, private: bool = False) -> None:
    """Put ``profile`` into ``path``, as ``content`` has it; ``private`` as for ``atomic.write``. Raise InputError."""
    make_folder(path.parent, private)
    atomic.write(path, content(profile, path), private)


def content(profile: Profile, path: Path) -> bytes:
    """Return what ``path`` is to hold: ``profile`` under that file's name.

    All that it sets is in the file: it extends nothing, so that it stays what was measured.
    """
    return to_yaml(document(replace(profile, name=path.stem)))


def to_yaml(document: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=WIDTH).encode()


def evidence_path(path: Path) -> Path:
    """Where the evidence of the profile in ``path`` is: what has such a file beside it, a tuning wrote."""
    return path.with_name(f"{path.stem}.evidence.json")


def write_evidence(evidence: Mapping[str, object], path: Path) -> None:
    """Write what proves the profile in ``path`` beside it. Raises InputError."""
    make_folder(path.parent)
    atomic.write(evidence_path(path), (json.dumps(evidence, indent=1) + "\n").encode())


def document(profile: Profile) -> dict[str, object]:
    """A profile as the mapping that its YAML file holds."""
    fields: dict[str, object] = {
        "name": profile.name,
        "title": harmless(" ".join(profile.title.split())),  # it may name a setting, which may be any text
        "why": {"reason": harmless(profile.reason), **({"source": harmless(profile.source)} if profile.source else {})},
        "cpu": profile.cpu,
        "needs": dict(profile.needs),
        "ranks": profile.ranks if profile.ranks > 1 else 0,
        "preload": list(profile.preload),
        "env": dict(profile.env),
        "prefix": list(profile.prefix),
        "expect": dict(profile.expect),
    }
    fields = {key: value for key, value in fields.items() if value}
    return fields if profile.numerics == "same" else {**fields, "numerics": profile.numerics}


def to_json(profile: Profile) -> dict[str, object]:
    return {**asdict(profile), "path": str(profile.path)}


def from_json(document: Mapping[str, object]) -> Profile:
    """Return the profile that ``to_json`` made a document of. Raise as ``codec.parse``."""
    return codec.parse({**document, "path": Path(str(document["path"]))}, Profile)


def make_folder(folder: Path, private: bool = False) -> None:
    """Make a folder with its parents, ``private`` as for ``atomic.write``. Raise InputError if that is not possible."""
    try:
        if private:
            atomic.make_private(folder)
        else:
            atomic.make_folder(folder)
    except OSError as error:
        raise InputError(NotMade(str(folder), str(error.strerror), "--profile")) from None
