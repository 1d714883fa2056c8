"""The OpenMP runtimes in the process, and the settings of the one that runs.

Several may be mapped; the one that ``omp_get_max_threads`` resolves to in the global scope runs. GNU, LLVM and Intel
are told apart by what the library exports and says of itself, because a file can have any name: only LLVM's and Intel's
have the ``kmp_*`` functions, and Intel's has its vendor's name in its version text.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from envkit.messages import Message
from envkit.worker import initial_environment
from envkit.worker.evidence.capture import printed, run_child
from envkit.worker.evidence.running import exporting, shown
from envkit.worker.evidence.symbols import mapped_files, origin, process
from envkit.worker.libraries import named_as, prefixes, preloadable
from envkit.worker.messages.evidence import VariablesChanged
from envkit.worker.performance_variables import PRELOAD, preloaded
from envkit.worker.readings import NOT_VERIFIED, Unread

# omp_proc_bind_t of the OpenMP specification; 5 is Intel's own value while KMP_AFFINITY decides.
PROC_BIND = {0: "false", 1: "true", 2: "primary", 3: "close", 4: "spread", 5: "intel"}
# The CPUs that the process might run on before a runtime was loaded, which may bind the first thread.
STARTED_ON = os.sched_getaffinity(0)
# Loads a library on some CPUs.
DISPLAY = "\n".join(
    (
        "import ctypes",
        "import os",
        "import sys",
        "os.sched_setaffinity(0, map(int, sys.argv[2:]))",
        "ctypes.CDLL(sys.argv[1])",
    )
)
# OMP_WAIT_POLICY=active, as libgomp (looks before a thread sleeps) and the kmp runtimes (milliseconds) take it.
ALWAYS_LOOKS = 30_000_000_000
ALWAYS_MS = 2_147_483
# The names of what runtimes read begin so.
READ_HERE = prefixes(["openmp"])
SETTING = re.compile(r"^\s*(?:\[\w+\]\s*)?(\w+)\s*=\s*'?(.*?)'?\s*$")


def replaces_others(path: str) -> bool:
    """Return whether it has GNU's functions besides its own: preloaded, it is the only one that runs."""
    return named_as(path, "openmp") in preloadable("openmp")


def probe() -> dict[str, object]:
    """Return the OpenMP runtimes that are mapped, the one that runs, and its settings in force."""
    active = origin("omp_get_max_threads")
    document: dict[str, object] = {
        "mapped": [path for path in mapped_files() if named_as(path, "openmp")],
        "library": active,
        "runtime": shown(exporting(active, "openmp")) if active else "none",
        **dict.fromkeys(("max_threads", "proc_bind", "places", "blocktime_ms", "wait_policy")),
        "settings": {},
    }
    if active is None:
        return document
    runtime = process()
    document["max_threads"] = runtime.omp_get_max_threads()
    document["proc_bind"] = PROC_BIND.get(runtime.omp_get_proc_bind(), "unknown")
    document["places"] = runtime.omp_get_num_places()
    settings: dict[str, str] = {}
    unread: Message | None = None
    try:
        settings = parse_display(_display(active))
    except Unread as error:
        unread = error.message
    blocktime_ms: float | None = None
    # Asked for only of the runtime that runs: another one that is mapped would answer with a value nobody uses.
    if origin("kmp_get_blocktime") == active:
        blocktime_ms = milliseconds(runtime.kmp_get_blocktime(), settings.get("KMP_BLOCKTIME"))
    policy = wait_policy(settings.get("GOMP_SPINCOUNT"), blocktime_ms)
    document.update(settings=settings, blocktime_ms=blocktime_ms, wait_policy=policy)
    if unread is not None:
        names = ("settings", "wait_policy") if policy is None else ("settings",)
        document[NOT_VERIFIED] = dict.fromkeys(names, unread.to_json())
    return document


def milliseconds(blocktime: int, displayed: str | None) -> int | float:
    """Return the ``blocktime`` in ms: the runtime answers in microseconds if KMP_BLOCKTIME does (kmp_ftn_entry.h)."""
    if displayed is None or not displayed.endswith("us"):
        return blocktime
    return blocktime / 1000 if blocktime % 1000 else blocktime // 1000


def wait_policy(spin_count: str | None, blocktime_ms: float | None) -> str | None:
    """Return ``passive`` where waiting threads sleep at once, ``active`` where they always spin, else ``neither``.

    From how long they really spin, as all runtimes print ``OMP_WAIT_POLICY='PASSIVE'`` where it is not set. None where
    a runtime says nothing of it.
    """
    if blocktime_ms is not None:
        spins, always = blocktime_ms, ALWAYS_MS
    elif spin_count is not None and spin_count.isdigit():
        spins, always = int(spin_count), ALWAYS_LOOKS
    else:
        return None
    return "passive" if spins == 0 else "active" if spins >= always else "neither"


def _display(library: str) -> str:
    """Return what the runtime itself prints of its settings (OpenMP's OMP_DISPLAY_ENV).

    Runtimes with OpenMP 5.1's ``omp_display_env`` are asked in this process. Older ones print only when they are
    loaded, so a child with the variables that this one read, and with the CPUs that this process began with, loads the
    same file. Raises Unread where nobody knows which variables it read.
    """
    if origin("omp_display_env") == library:
        return printed(2, lambda: process().omp_display_env(1))
    command = [sys.executable, "-S", "-c", DISPLAY, library, *map(str, sorted(STARTED_ON))]
    return run_child(command, {**variables_read(library), "OMP_DISPLAY_ENV": "VERBOSE"}).stderr


def variables_read(library: str) -> dict[str, str]:
    """Return the variables by which the runtime in the file ``library`` set itself up.

    libgomp reads them when it is loaded: at the start of the process where it is preloaded, and otherwise while torch
    is imported, unless something else has loaded it before. The others read them when they are first needed. Raises
    Unread where the program has changed some of them, and nobody knows which values were read.
    """
    started = initial_environment.started_variables()
    changed = {name: values for name, values in initial_environment.changed().items() if name.startswith(READ_HERE)}
    waits = replaces_others(library)  # until it is first needed
    if not changed or (not waits and _is_preloaded(library, started)):
        return started
    at_import = all("at_torch" in values for values in changed.values())
    was_mapped = any(path in initial_environment.MAPPED_BEFORE_TORCH for path in (library, os.path.realpath(library)))
    if at_import and not waits and not was_mapped:
        return _with(started, {name: values["at_torch"] for name, values in changed.items()})
    if at_import and waits and all(values["at_torch"] == values["now"] for values in changed.values()):
        return _with(started, {name: values["now"] for name, values in changed.items()})
    if at_import and was_mapped and all(values["at_torch"] == started.get(name) for name, values in changed.items()):
        return started
    raise Unread(VariablesChanged(tuple(changed)))


def _is_preloaded(library: str, started: Mapping[str, str]) -> bool:
    return os.path.realpath(library) in map(os.path.realpath, preloaded(started.get(PRELOAD, "")))


def _with(variables: Mapping[str, str], values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the ``variables`` with these ``values``; None stands for one that is not set."""
    return {name: value for name, value in {**variables, **values}.items() if value is not None}


def parse_display(text: str) -> dict[str, str]:
    """Parse ``[host] OMP_NUM_THREADS='2'`` and ``OMP_NUM_THREADS = '2'`` as {"OMP_NUM_THREADS": "2"}."""
    settings = {}
    for line in text.splitlines():
        match = SETTING.match(line)
        if match:
            settings[match.group(1)] = match.group(2)
    return settings
