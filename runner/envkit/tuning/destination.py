"""Where the tuned profile goes: looked at before anything is measured, and never at the cost of an earlier one."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.bench.study import REFERENCE_PROFILE
from envkit.common import atomic, files, folders, yamlfile
from envkit.common.errors import InputError
from envkit.tuning import profile_file
from envkit.tuning.messages import NameOfReference, NoPlace, NotFromTuning, NotYaml


def require(path: Path) -> None:
    """Raise InputError if ``path`` can't be written, or holds a profile that no tuning wrote."""
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(NotYaml(str(path)))
    if path.stem == REFERENCE_PROFILE:
        raise InputError(NameOfReference(str(path)))
    if path.exists() and not profile_file.evidence_path(path).is_file():
        raise InputError(NotFromTuning(str(path)))
    nearest = next(folder for folder in path.parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        variable = None
        with contextlib.suppress(RuntimeError):  # no home
            variable = "XDG_CONFIG_HOME" if path.is_relative_to(folders.configuration()) else None
        raise InputError(NoPlace(str(path), str(nearest), str(error.strerror), variable)) from None


@dataclass(frozen=True)
class Written:
    """The fate of the earlier profile: a copy is in ``earlier``, or it ``stays`` and nothing was written."""

    earlier: Path | None = None
    stays: bool = False


def write(path: Path, content: bytes, evidence: Mapping[str, object], replaces: bool) -> Written:
    """Put a profile and its evidence into place. An earlier one is copied, or stays unless this one ``replaces`` it.

    The same one again is no other. Raises InputError.
    """
    earlier = None
    if path.is_file() and yamlfile.content(path) != content:
        if not replaces:
            return Written(stays=True)
        earlier = _copy(path)
    profile_file.write_evidence(evidence, path)  # first: what has none beside it was not written by a tuning
    atomic.write(path, content)
    return Written(earlier)


def _copy(path: Path) -> Path:
    """Copy a profile and its evidence; the copy is named for the day on which it was written, inside too."""
    copy, content = _free(path), yamlfile.content(path)
    with contextlib.suppress(InputError):  # what can't be read is copied as it is
        content = profile_file.to_yaml({**yamlfile.read(path).data, "name": copy.stem})
    evidence = profile_file.evidence_path(path)
    if evidence.is_file():
        atomic.write(profile_file.evidence_path(copy), files.content(evidence))
    atomic.write(copy, content)
    return copy


def _free(path: Path) -> Path:
    day = time.strftime("%Y%m%d", time.localtime(path.stat().st_mtime))
    names = (f"{path.stem}-{day}{f'-{number}' if number > 1 else ''}{path.suffix}" for number in range(1, 1000))
    return next(copy for name in names if not (copy := path.with_name(name)).exists())
