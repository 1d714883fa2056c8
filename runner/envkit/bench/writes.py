"""Files that a user's command writes, which could change the work of its next start."""

from __future__ import annotations

from pathlib import Path

from envkit.bench.messages import SharedByCopies, WritesIntoCopy, WritesIntoFolder
from envkit.bench.problem_messages import Written, WroteOutside
from envkit.bench.study import Study
from envkit.engines import measurement
from envkit.engines.measurement import TrainingDocument
from envkit.messages import Message
from envkit.worker.request import UserCommand
from envkit.worker.user_command import working_copy


def shared(command: UserCommand | None) -> Message | None:
    """Return a note on links through which a command can write elsewhere, or None if it has none."""
    if command is None or command.in_place or not Path(command.folder).is_dir():  # a node may have it
        return None
    names = working_copy.shared(Path(command.folder), command.links)
    return SharedByCopies(tuple(names)) if names else None


def outside(study: Study, document: TrainingDocument) -> Message | None:
    """Return what is wrong if a command wrote past its working copy into its folder, else None."""
    files = document.get("writes", {}).get("outside")
    if files is None or study.user_command is None:
        return None
    return WroteOutside(study.user_command.folder, _written(files))


def written_files(study: Study, document: TrainingDocument) -> Message | None:
    """Return what to say of the files that a command wrote, or None if it wrote none."""
    files, command = document.get("writes", {}).get("inside"), study.user_command
    if files is None or command is None:
        return None
    written = _written(files)
    return WritesIntoFolder(written, command.folder) if command.in_place else WritesIntoCopy(written)


def _written(files: measurement.Written) -> Written:
    return Written(files["files"], files["bytes"], tuple(files["names"]))
