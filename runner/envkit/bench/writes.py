"""What a user's command writes, which could make each start other work than the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envkit.bench.plan import Plan


def outside(plan: Plan, document: Mapping[str, Any]) -> str | None:
    """Return what is wrong if a command wrote past its working copy into its folder, else None."""
    found = document.get("writes", {}).get("outside")
    if found is None or plan.user_command is None:
        return None
    return (
        f"saw files of {plan.user_command.folder} change although the command ran in a copy of it: "
        f"{_said(found)}; let it write to paths below its current folder, keep other programs from writing "
        "there, or give --in-place"
    )


def told(plan: Plan, document: Mapping[str, Any]) -> str | None:
    """Return what to say of the files that a command wrote, or None if it wrote none."""
    found, command = document.get("writes", {}).get("inside"), plan.user_command
    if found is None or command is None:
        return None
    what = f"each start writes {_said(found)}"
    if command.in_place:
        return f"{what}, into {command.folder}; a later start may go on from them, which is other work"
    return f"{what}, into a copy of the folder, which is removed"


def _said(writes: Mapping[str, Any]) -> str:
    count = writes["files"]
    mega = f"{writes['bytes'] / 2**20:,.1f} MiB"
    return f"{count} file{'' if count == 1 else 's'} ({mega}), such as {', '.join(writes['names'])}"
