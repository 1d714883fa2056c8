"""PyTorch's own launcher, ``python -m torch.backends.xeon.run_cpu``, as one of the ways to start a worker.

It preloads libraries that it finds in a few folders, and warns where it finds none. What it says is not taken for what
happened: each worker's own evidence is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.profiles.catalogue_messages import way_to_get

from benchmarks import interleaved
from benchmarks.errors import ScriptError
from benchmarks.interleaved import Entry

LAUNCHER = "torch.backends.xeon.run_cpu"
# What the launcher looks for, by the names of the kit: it takes no other file names than these.
WANTED = {"intel-openmp": "libiomp5.so", "jemalloc": "libjemalloc.so", "tcmalloc": "libtcmalloc.so"}
# By its path: workers start in a folder of their own, where -m finds nothing of the project.
STARTS_SEVERAL = Path(__file__).with_name("at_once.py")
# Variables in which it looks for folders with libraries. A caller's own would give each machine another launcher.
PLACES = ("VIRTUAL_ENV", "CONDA_PREFIX")


@dataclass(frozen=True)
class Peer:
    """One way to use the launcher. ``found`` is whether it is given its libraries where it looks for them.

    ``seen`` is what must be observed for it to be what its name says.
    """

    name: str
    options: tuple[str, ...]
    found: bool
    seen: dict[str, str]
    instances: int = 1  # how many it starts at once


PEERS = (
    Peer("run_cpu", (), True, {"runtime": "intel", "allocator": "tcmalloc"}),
    Peer("run_cpu --enable-jemalloc", ("--enable-jemalloc",), True, {"runtime": "intel", "allocator": "jemalloc"}),
    Peer("run_cpu --enable-tcmalloc", ("--enable-tcmalloc",), True, {"runtime": "intel", "allocator": "tcmalloc"}),
    Peer("run_cpu, libraries not found", (), False, {"runtime": "gnu", "allocator": "glibc"}),
)
SEVERAL = 2
AT_ONCE = Peer(
    f"run_cpu --ninstances {SEVERAL}", ("--ninstances", str(SEVERAL)), True,
    {"runtime": "intel", "allocator": "tcmalloc"}, SEVERAL,
)  # fmt: skip


def entry(peer: Peer, python: str, libraries: Path) -> Entry:
    """The worker as the launcher starts it; ``libraries`` is a folder whose ``lib`` it searches.

    ``--no-python`` makes it run what follows as it is. All else is as it has it by default: one instance on all
    physical cores, or several that share them, bound with numactl, or taskset where that is missing.
    """
    prefix = (python, "-m", LAUNCHER, *peer.options, "--no-python")
    if peer.instances > 1:
        prefix = (python, str(STARTS_SEVERAL), str(peer.instances), *prefix)
    variables = {"VIRTUAL_ENV": str(libraries)} if peer.found else {}

    def problems(evidence: Mapping[str, Any], printed: str) -> list[str]:
        values = {
            name: (evidence.get(interleaved.SEEN[name][0]) or {}).get(interleaved.SEEN[name][1]) for name in peer.seen
        }
        return [
            f"its {name} is {values[name]}, not {wanted}"
            for name, wanted in peer.seen.items()
            if values[name] != wanted
        ]

    return Entry(peer.name, variables, prefix, problems, without=PLACES)


def lay_out(libraries: Path, inspection: Mapping[str, Any]) -> None:
    """Give the launcher its libraries by the names that it knows. Raises InputError for one that is missing."""
    (libraries / "lib").mkdir(parents=True, exist_ok=True)
    for library, name in WANTED.items():
        library_entry = inspection["libraries"].get(library)
        if library_entry is None:
            raise ScriptError(
                f"{library} is not installed, and the launcher is to be given it; get it with: {way_to_get(library)}"
            )
        link = libraries / "lib" / name
        link.unlink(missing_ok=True)
        link.symlink_to(library_entry["path"])
