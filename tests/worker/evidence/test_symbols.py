"""Where a function really comes from, in interpreters of both kinds."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.worker.evidence import symbols

from tests.conftest import CODE_PATH
from tests.worker_runs import installed

SYSTEM_PYTHON = Path("/usr/bin/python3")
# e_type in the header of an ELF file (elf(5)): an executable at a fixed address; others are position-independent.
ELF_TYPE, FIXED_ADDRESS = slice(16, 18), b"\x02\x00"
ORIGIN = "import json; from envkit.worker.evidence.symbols import origin; print(json.dumps(origin({!r})))"


def at_fixed_address(python):
    return python.is_file() and python.read_bytes()[ELF_TYPE] == FIXED_ADDRESS


def origin(python, name, before="", **variables):
    """What an interpreter says of a function."""
    result = subprocess.run(
        [python, "-S", "-c", before + ORIGIN.format(name)], env={"PYTHONPATH": CODE_PATH, **variables}, cwd="/",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


def paths(*libraries):
    """Where these are; the test is skipped if one is not installed."""
    found = installed()
    for name in libraries:
        if name not in found:
            pytest.skip(f"{name} is not installed here")
    return [found[name]["path"] for name in libraries]


def pythons():
    fixed = pytest.mark.skipif(
        not at_fixed_address(SYSTEM_PYTHON), reason=f"{SYSTEM_PYTHON} is no executable at a fixed address"
    )
    return [pytest.param(sys.executable, id="own"), pytest.param(str(SYSTEM_PYTHON), id="fixed-address", marks=fixed)]


@pytest.mark.parametrize("python", pythons())
def test_malloc_is_the_c_librarys(python):
    """An executable at a fixed address has entries of its own for malloc, which are not where it is."""
    assert Path(origin(python, "malloc")).name.startswith(("libc.so", "libc-", "ld-musl"))
    assert origin(python, "no_such_function") is None


@pytest.mark.parametrize("python", pythons())
@pytest.mark.parametrize("libraries", [("jemalloc",), ("tcmalloc",), ("tcmalloc", "jemalloc")], ids=" ".join)
def test_malloc_is_the_first_preloaded_allocators(python, libraries):
    found = paths(*libraries)
    malloc = origin(python, "malloc", LD_PRELOAD=":".join(found))
    assert os.path.realpath(malloc) == os.path.realpath(found[0])


@pytest.mark.parametrize("python", pythons())
def test_an_interpreter_that_was_called_by_its_name_alone(python):
    """The loader then calls the executable by that name, which is no path to it."""
    malloc = origin(Path(python).name, "malloc", PATH=str(Path(python).parent))
    assert Path(malloc).name.startswith("libc")


def test_functions_of_this_process():
    assert symbols.function("malloc") is not None
    assert symbols.function("no_such_function") is None
    assert symbols.origin("no_such_function") is None


def test_a_librarys_private_function_is_not_in_the_global_scope():
    """ctypes loads with RTLD_LOCAL: what only such a library defines runs for nobody else."""
    (path,) = paths("intel-openmp")
    assert origin(sys.executable, "kmp_get_blocktime", before=f"import ctypes; ctypes.CDLL({path!r}); ") is None


def test_mapped_files_are_libraries_that_exist():
    files = symbols.mapped_files()
    assert any(Path(path).name.startswith("libc") for path in files)
    assert all(".so" in path for path in files)
    assert len(files) == len(set(files))


def test_a_mapped_file_may_have_any_bytes_in_its_name(tmp_path):
    path = tmp_path / os.fsdecode(b"lib\xff.so")
    path.write_bytes(b"x")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert str(path) in symbols.mapped_files()
