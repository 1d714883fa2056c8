"""The allocator that ``malloc`` resolves to, and the settings it says it has.

jemalloc answers ``mallctl("opt.KEY")`` (jemalloc(3)); glibc's loader lists the tunables in force with
``--list-tunables`` (glibc manual, "Tunables"); tcmalloc answers for its properties (gperftools,
``malloc_extension_c.h``); mimalloc lists its options when it is loaded with MIMALLOC_VERBOSE (mimalloc manual,
"Environment Options").
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

from envkit.worker.evidence.capture import NOTHING, run_child
from envkit.worker.evidence.running import running, settings, shown
from envkit.worker.evidence.symbols import function, imports, mapped_files, origin, process, torchs_base
from envkit.worker.initial_environment import started_variables

# A text has no limits behind it, and is empty where nobody has set it.
TUNABLE = re.compile(r"^(glibc\.\S+):(?: ([^\s(]\S*))?(?: \(min:.*)?$")
# jemalloc(3): options whose value is a string; all others are numbers or booleans.
JEMALLOC_STRINGS = {
    "thp", "metadata_thp", "dss", "percpu_arena", "zero_realloc", "malloc_conf", "stats_print_opts", "junk",
    "hpa_hugify_style",
}  # fmt: skip
# The names that tcmalloc has for the settings of these variables, and their types.
TCMALLOC_PROPERTIES = {
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": ("tcmalloc.max_total_thread_cache_bytes", int),
    "TCMALLOC_AGGRESSIVE_DECOMMIT": ("tcmalloc.aggressive_memory_decommit", bool),
    "TCMALLOC_HEAP_LIMIT_MB": ("tcmalloc.heap_limit_mb", int),
}
# It has no C function for the release rate; its C++ one looks at nothing but that setting.
TCMALLOC_RELEASE_RATE = "_ZN22TCMallocImplementation20GetMemoryReleaseRateEv"
# Later releases of version 3 leave their own name out.
MIMALLOC_OPTION = re.compile(r"^(?:mimalloc: )?option '(\w+)': (-?\d+)", re.MULTILINE)


# PyTorch allocates tensors by this function of the process, unless it was built with an allocator of its own
# (c10/core/impl/alloc_cpu.cpp). Builds for ARM have mimalloc built in since 2.10: their libc10.so does not import it
# (https://github.com/pytorch/pytorch/pull/164741; seen in the wheels of 2.10 and 2.14).
TENSORS_FUNCTION = "posix_memalign"
BUILT_IN = "built-in"


def probe() -> dict[str, object]:
    """Return the allocator behind ``malloc``, its settings, and the one that tensors come from.

    ``tensors`` is the same allocator, or BUILT_IN for PyTorch's own; None where PyTorch is not loaded.
    """
    library, torchs = origin("malloc"), torchs_base()
    name = running(library, "allocator")
    serves = torchs is not None and imports(torchs, TENSORS_FUNCTION)
    tensors = None if torchs is None else shown(name) if serves else BUILT_IN
    return {"allocator": shown(name), "library": library, "tensors": tensors, "settings": settings(name)}


def jemalloc() -> dict[str, str | int | None]:
    """Return the value that jemalloc has for each key of MALLOC_CONF; a key it does not know is None."""
    pairs = started_variables().get("MALLOC_CONF", "").split(",")
    keys = [pair.partition(":")[0].strip() for pair in pairs if pair.strip()]
    return {key: _mallctl(f"opt.{key}", key in JEMALLOC_STRINGS) for key in keys}


def _mallctl(name: str, is_string: bool) -> str | int | None:
    """Return jemalloc's value of a setting, or None if it has no such setting."""
    numbers = (ctypes.c_ssize_t, ctypes.c_bool, ctypes.c_uint)
    kinds: Sequence[type[ctypes.c_char_p | ctypes.c_ssize_t | ctypes.c_bool | ctypes.c_uint]]
    kinds = (ctypes.c_char_p,) if is_string else numbers
    for kind in kinds:  # mallctl refuses a buffer of the wrong size (EINVAL), so at most one of these fits
        buffer = kind()
        size = ctypes.c_size_t(ctypes.sizeof(buffer))
        if process().mallctl(name.encode(), ctypes.byref(buffer), ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
            value = buffer.value
            return value.decode() if isinstance(value, bytes) else value
    return None


def tcmalloc() -> dict[str, int | float | bool]:
    """Return each setting that this version tells, by the name of the variable that sets it."""
    settings: dict[str, int | float | bool] = {}
    ask = function("MallocExtension_GetNumericProperty")
    for name, (tcmalloc_name, kind) in TCMALLOC_PROPERTIES.items():
        value = ctypes.c_size_t()
        if ask is not None and ask(tcmalloc_name.encode(), ctypes.byref(value)):
            settings[name] = kind(value.value)
    release_rate = function(TCMALLOC_RELEASE_RATE)
    if release_rate is not None:
        release_rate.restype = ctypes.c_double
        rate = release_rate(None)
        settings["TCMALLOC_RELEASE_RATE"] = int(rate) if rate.is_integer() else rate
    return settings


def mimalloc() -> dict[str, int]:
    """Return what mimalloc has for each of its options, in a child that is started as this process was.

    It reads all of them when it is loaded (``_mi_options_init`` in its src/options.c).
    """
    return parse_mimalloc(run_child(NOTHING, {**started_variables(), "MIMALLOC_VERBOSE": "1"}).stderr)


def parse_mimalloc(listing: str) -> dict[str, int]:
    """Parse ``mimalloc: option 'allow_decommit': 0`` as {"MIMALLOC_ALLOW_DECOMMIT": 0}, by the variable's name."""
    return {f"MIMALLOC_{name.upper()}": int(value) for name, value in MIMALLOC_OPTION.findall(listing)}


def glibc() -> dict[str, int | str]:
    """Return each tunable that the loader lists, with its value for a program that is started as this one was."""
    loader = next((path for path in mapped_files() if Path(path).name.startswith("ld-linux")), None)
    if loader is None:
        return {}
    environment = {name: value for name, value in started_variables().items() if name != "LD_PRELOAD"}
    return parse_tunables(run_child([loader, "--list-tunables"], environment).stdout)


def parse_tunables(listing: str) -> dict[str, int | str]:
    """Parse ``glibc.malloc.hugetlb: 0x1 (min: 0x0, max: 0xff)`` as {"glibc.malloc.hugetlb": 1}."""
    settings: dict[str, int | str] = {}
    for line in listing.splitlines():
        match = TUNABLE.match(line)
        if match:
            name, value = match.group(1), match.group(2) or ""
            try:
                settings[name] = int(value, 0)
            except ValueError:
                settings[name] = value
    return settings
