"""The kit's own libraries: their files are what the code makes, and they do what they are for."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from runner.worker.image.libraries import locate, search_folders
from runner.worker.preloads import FOLDER, LIBRARIES, elf

FILES = [(machine, name) for machine, libraries in LIBRARIES.items() for name in libraries]
# Whether a denormal survives in the first thread and in another one; and MKL's question, asked as MKL's callers do.
DENORMALS = """
import ctypes, threading
double = ctypes.CDLL(None).ldexp
double.restype, double.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_int)
kept = []
look = lambda: kept.append(double(1.0, -1074) * 1.0 != 0.0 and 5e-324 * 1.0 != 0.0)
look()
thread = threading.Thread(target=look)
thread.start()
thread.join()
print(*kept)
"""
QUESTION = "import ctypes; print(ctypes.CDLL(None).mkl_serv_intel_cpu_true())"


@pytest.mark.parametrize(("machine", "name"), FILES)
def test_the_files_are_those_that_the_code_makes(machine, name):
    assert (FOLDER / machine / name).read_bytes() == elf(name, LIBRARIES[machine][name])


def run(code: str, library: str) -> subprocess.CompletedProcess[str]:
    environment = {"LD_PRELOAD": locate(search_folders())[library]["path"]}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=False
    )


x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the libraries are for x86-64")


@x86_64
def test_mkl_is_answered():
    assert run(QUESTION, "mkl-dispatch").stdout == "1\n"
    assert run(QUESTION, "flush-to-zero").returncode != 0


@x86_64
def test_denormals_are_zero_in_every_thread():
    assert run(DENORMALS, "flush-to-zero").stdout == "False False\n"
    assert run(DENORMALS, "mkl-dispatch").stdout == "True True\n"


@x86_64
@pytest.mark.parametrize("library", ["mkl-dispatch", "flush-to-zero"])
def test_the_loader_says_nothing(library):
    assert run("", library).stderr == ""
