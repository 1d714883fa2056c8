"""Loads OpenMP runtimes of LLVM's of its own, as numpy with MKL or faiss do: ``second_openmp.py COPIES``."""

import ctypes
import os
import shutil
import sys
import tempfile

import torch  # noqa: F401 - brings libgomp

LIBRARY = os.path.realpath("/usr/lib/x86_64-linux-gnu/libomp.so.5")
for number in range(int(sys.argv[1])):
    copy = shutil.copy(LIBRARY, f"{tempfile.mkdtemp()}/libomp{number}.so.5")
    ctypes.CDLL(copy).omp_get_max_threads()

import train  # noqa: E402, F401
