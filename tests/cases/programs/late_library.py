"""Opens a library late that needs fixed thread-local storage, for which glibc must be told to keep room."""

import ctypes

import torch  # noqa: F401

ctypes.CDLL("libjemalloc.so.2")

import train  # noqa: E402, F401
