"""What the catalogue says of variables, held against the libraries on this machine."""

from __future__ import annotations

import ctypes.util
import importlib.util
import mmap
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.profiles.catalogue import check, load
from envkit.profiles.values import numbers
from envkit.worker.evidence.malloc import parse_tunables
from envkit.worker.evidence.openmp import parse_display
from envkit.worker.libraries import LIBRARIES, locate, search_folders

from tests.profiles.test_catalogue import BAD, GOOD

# Starts the OpenMP runtime whose file is named behind it.
LOAD_RUNTIME = (sys.executable, "-IS", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).omp_get_max_threads()")
LOADER = next(Path("/lib64").glob("ld-linux-*.so.2"), None)


def files_of(library: str) -> list[Path]:  # noqa: PLR0911 - a return for each kind of library
    """The files in which a library's variables are named, as far as they are here."""
    if LIBRARIES[library].files:
        found = locate(search_folders()).get(library)
        return [Path(found["path"])] if found else []
    if library in ("glibc", "loader"):
        return [LOADER] if LOADER else []
    if library == "python":
        name = ctypes.util.find_library(f"python{sys.version_info.major}.{sys.version_info.minor}")
        beside = Path(sys.executable).resolve().parent.parent.glob("lib/libpython3*.so.1.0")
        return [Path(sys.executable).resolve(), *beside, *(Path(found) for found in [name] if found and "/" in found)]
    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations or library == "cuda":
        return []
    folder = Path(torch.submodule_search_locations[0]) / "lib"
    if library == "inductor":
        return [folder.parent / "_inductor/config.py"]
    if library == "nccl":  # a wheel of its own, beside a torch that is built with CUDA
        return [*folder.parent.parent.glob("nvidia/nccl/lib/libnccl.so*")]
    if library == "gnu-openmp":
        return [*folder.glob("libgomp*.so*"), *folder.parent.parent.glob("torch.libs/libgomp*.so*")]
    return [folder / "libc10.so", folder / "libtorch_cpu.so"]


def marker(library: str, name: str) -> str:
    """How a library's file names a variable: some put a prefix of their own before it when they look it up."""
    if library == "onednn":
        return re.sub("^(ONEDNN|DNNL)_", "", name)
    if library.startswith("mimalloc"):
        return name.removeprefix("MIMALLOC_").lower()
    return name.removeprefix("LD_") if library == "loader" else name


@pytest.mark.parametrize("library", sorted(name for name, library in LIBRARIES.items() if library.reads))
def test_each_variable_is_named_in_the_files_of_a_library_that_reads_it(library):
    paths = [path for path in files_of(library) if path.is_file()]
    if not paths:
        pytest.skip(f"{library} is not on this machine")
    names = {name for name, variable in load().items() if variable.read_by.get(library) in ("any", ">=2.2", ">=2.26")}
    assert names
    for path in paths:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            names = {name for name in names if content.find(marker(library, name).encode()) < 0}
    assert not names


def output(command: list[str], **variables: str) -> str:
    result = subprocess.run(
        command, env={"PATH": os.defpath, **variables}, capture_output=True, text=True, timeout=240, check=False
    )
    return result.stdout + result.stderr


def preloadable(library: str) -> str:
    found = locate(search_folders()).get(library)
    if found is None:
        pytest.skip(f"{library} is not on this machine")
    return found["path"]


@pytest.mark.parametrize("known", [True, False])
def test_jemalloc_agrees(known):
    path = preloadable("jemalloc")
    for value in (GOOD if known else BAD)["MALLOC_CONF"]:
        assert ("<jemalloc>" not in output(["/bin/true"], LD_PRELOAD=path, MALLOC_CONF=value)) == known, value


@pytest.mark.parametrize("known", [True, False])
def test_the_intel_runtime_agrees_on_affinity(known):
    path = preloadable("intel-openmp")
    for value in (GOOD if known else BAD)["KMP_AFFINITY"][:6]:
        told = output([*LOAD_RUNTIME, path], KMP_AFFINITY=value, KMP_SETTINGS="1")
        # of what is no fault of the value: balanced chooses a granularity, and a machine may lack a layer
        assert (not re.search(r"Warning #(57|58|59|61|62|65|81):", told)) == known, (value, told)


def test_jemalloc_and_the_catalogue_have_the_same_keys():
    """Of its version: what came later, or went before, is refused by both."""
    path = preloadable("jemalloc")
    version = locate(search_folders())["jemalloc"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    for key, kind in load()["MALLOC_CONF"].kind.keys.items():
        values = {"integer": str(max(kind.min or 0, 1)), "number": "0.5"}
        value = kind.words[-1] if kind.words else values.get(kind.type, "1-160:2" if ":" in kind.shape else "-1")
        said = output(["/bin/true"], LD_PRELOAD=path, MALLOC_CONF=f"{key}:{value}")
        refused = check({"MALLOC_CONF": f"{key}:{value}"}, {"jemalloc"}, {"jemalloc": version})
        assert ("Invalid conf" in said) == bool(refused), (key, value, said)


def test_glibc_and_the_catalogue_have_the_same_tunables():
    if LOADER is None:
        pytest.skip("glibc's loader is not on this machine")
    listed = parse_tunables(output([str(LOADER), "--list-tunables"])).keys()
    keys, version = load()["GLIBC_TUNABLES"].kind.keys, platform.libc_ver()[1]
    assert not listed - keys.keys()
    there = {
        key
        for key, kind in keys.items()
        if not (kind.since and numbers(version) < numbers(kind.since))
        and not (kind.before and numbers(version) >= numbers(kind.before))
    }
    of_others = {"glibc.cpu.name"} if platform.machine() == "x86_64" else set()
    assert there - of_others <= listed


@pytest.mark.parametrize("name", ["KMP_FORKJOIN_BARRIER", "KMP_PLAIN_BARRIER_PATTERN"])
def test_the_intel_runtime_refuses_wrong_barriers_too(name):
    path = preloadable("intel-openmp")
    for value in BAD[name]:
        if value.count(",") < 2 and value:  # of three it takes two; an empty one is as good as none
            assert "is invalid" in output([*LOAD_RUNTIME, path], **{name: value}), value


def test_glibc_agrees():
    if LOADER is None:
        pytest.skip("glibc's loader is not on this machine")
    listing = output([str(LOADER), "--list-tunables"])
    for value in BAD["GLIBC_TUNABLES"]:
        # of the first, older versions take the 1; of the second malloc itself takes nothing, and the loader all
        if not value.endswith(("=1M", "mxfast=512")):
            assert output([str(LOADER), "--list-tunables"], GLIBC_TUNABLES=value) == listing, value
    changed = output([str(LOADER), "--list-tunables"], GLIBC_TUNABLES="glibc.malloc.mmap_threshold=0x100000")
    assert "glibc.malloc.mmap_threshold: 0x100000 " in changed


@pytest.mark.parametrize(
    ("name", "value", "listed"),
    [
        ("KMP_INIT_AT_FORK", "0", "true"),  # it is not in effect, and evidence says so
        ("KMP_FORKJOIN_BARRIER", "3,3", "3,3"),
        ("KMP_PLAIN_BARRIER", "1,1", "1,1"),
        ("KMP_REDUCTION_BARRIER", "2,2", "2,2"),
        ("KMP_SPIN_BACKOFF_PARAMS", "2048,50", "2048,50"),
        ("KMP_ALIGN_ALLOC", "128", "128"),
        ("KMP_DISP_NUM_BUFFERS", "9", "9"),
        ("KMP_ENABLE_TASK_THROTTLING", "no", "false"),
        ("KMP_FORCE_MONOTONIC_DYNAMIC_SCHEDULE", "on", "true"),
        ("KMP_FOREIGN_THREADS_THREADPRIVATE", "false", "false"),
        ("KMP_GTID_MODE", "2", "2"),
        ("KMP_HANDLE_SIGNALS", "1", "true"),
        ("KMP_HOT_TEAMS_MODE", "1", "1"),
        ("KMP_NESTING_MODE", "1", "1"),
        ("KMP_NUM_LOCKS_IN_BLOCK", "4", "4"),
        ("KMP_STORAGE_MAP", "verbose", "verbose"),
        ("KMP_TASKING", "0", "0"),
        ("KMP_TASK_STEALING_CONSTRAINT", "0", "0"),
        ("KMP_TASKLOOP_MIN_TASKS", "8", "8"),
        ("KMP_TEAMS_THREAD_LIMIT", "1", "1"),
        ("KMP_VERSION", "1", "true"),
        ("KMP_FORKJOIN_BARRIER_PATTERN", "dist,dist", "dist,dist"),
        ("KMP_PLAIN_BARRIER_PATTERN", "tree,linear", "tree,linear"),
        ("KMP_REDUCTION_BARRIER_PATTERN", "hierarchical", "hierarchical,hyper"),
        ("KMP_DEVICE_THREAD_LIMIT", "3", "3"),
        ("KMP_LOCK_KIND", "tas", "tas"),
        ("KMP_ATOMIC_MODE", "1", "1"),
        ("KMP_SCHEDULE", "static,greedy", "static,greedy;guided,iterative"),
        ("KMP_MALLOC_POOL_INCR", "2M", "2M"),
        ("KMP_STACKOFFSET", "128", "128"),
        ("KMP_MWAIT_HINTS", "1", "1"),
        ("KMP_TEAMS_PROC_BIND", "close", "close"),
        ("LIBOMP_NUM_HIDDEN_HELPER_THREADS", "2", "2"),
        ("LIBOMP_USE_HIDDEN_HELPER_TASK", "1", "true"),
    ],
)
def test_the_intel_runtime_lists_what_it_was_set_to(name, value, listed):
    assert not check({name: value}, {"intel-openmp"}, {})
    path = preloadable("intel-openmp")
    assert parse_display(output([*LOAD_RUNTIME, path], KMP_SETTINGS="1", **{name: value}))[name] == listed
