"""What starts something on several machines: Slurm, or ssh for hosts that no batch system has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from envkit.engines.hosts import client as ssh
from envkit.engines.slurm import client as slurm
from envkit.engines.slurm.client import Job


class Launcher(Protocol):
    """What follows a job; each module says what its own functions do."""

    def require(self) -> None: ...

    def jobs(self, numbers: str, one_node: bool = False) -> list[Job]: ...

    def find(self, name: str) -> str | None: ...

    def cancel(self, numbers: str) -> None: ...

    def hosts(self, short: str) -> list[str]: ...

    def out_of_service(self, names: Collection[str]) -> dict[str, str]: ...


def launcher_of(hosts: Sequence[str] | None) -> Launcher:
    """The one that reaches these hosts; Slurm where there are none."""
    return ssh if hosts else slurm
