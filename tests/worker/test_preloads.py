"""The kit's own libraries: their files are what the code makes, and they do what they are for."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest
from envkit.worker.preloads import FOLDER, LIBRARIES, elf

from tests.simulation import PROJECT
from tests.worker_runs import installed

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


@pytest.mark.parametrize(("machine", "name"), FILES)
def test_the_machine_code_is_the_assembly_that_is_written_beside_it(machine, name, tmp_path):
    if shutil.which("objdump") is None:
        pytest.skip("there is no objdump: install binutils")
    known = subprocess.run(["objdump", "-i"], capture_output=True, text=True, check=True).stdout
    if "elf64-x86-64" not in known:
        pytest.skip("this objdump knows no x86-64: install binutils-multiarch")
    library = LIBRARIES[machine][name]
    (tmp_path / "code").write_bytes(library.code)
    command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "-w", tmp_path / "code"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # ADDRESS:<tab>BYTES<tab>INSTRUCTION
    lines = [line.split("\t")[1:] for line in printed.splitlines() if re.match(r" *[0-9a-f]+:\t", line)]
    seen = [(written.replace(" ", ""), " ".join(assembly.split())) for written, assembly in lines]
    assert seen == [(written, assembly.replace(", ", ",")) for written, assembly in library.instructions]


def test_nothing_else_in_the_repository_is_binary():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no clone: git knows no files here")
    paths = [PROJECT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    assert len(paths) > 100
    # pictures are SVG, which is text
    binary = {path for path in paths if path.is_file() and not is_text(path.read_bytes())}
    assert binary == {FOLDER / machine / name for machine, name in FILES}


def is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def run(code: str, library: str) -> subprocess.CompletedProcess[str]:
    environment = {"LD_PRELOAD": installed()[library]["path"]}
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
