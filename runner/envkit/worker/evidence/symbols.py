"""Which file a symbol really comes from: the dynamic loader's own answers (dlsym, dladdr) and the process's map."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import _NamedFuncPointer


class _DlInfo(ctypes.Structure):
    """Dl_info of dlfcn.h, see dladdr(3)."""

    _fields_ = [
        ("file_name", ctypes.c_char_p),
        ("file_base", ctypes.c_void_p),
        ("symbol_name", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    ]


def process() -> ctypes.CDLL:
    """Return the global scope of this process: what a library's undefined symbol is bound to first."""
    return ctypes.CDLL(None)


def function(name: str) -> _NamedFuncPointer | None:
    """Return the function that ``name`` resolves to in the global scope, or None."""
    return getattr(process(), name, None)


def origin(name: str) -> str | None:
    """Return the file that ``name`` resolves to in the global scope, or None where nothing defines it.

    An executable at a fixed address (Debian's python3 is one) answers for every function whose address it takes with
    an entry of its own that jumps to the real one. That is in the first library which defines the function.
    """
    path = _file_of(function(name))
    if path is None or not _is_program(path):
        return path
    for library in libraries():
        file = _file_of(getattr(ctypes.CDLL(library), name, None))
        if file is not None and Path(file).resolve() == Path(library).resolve():
            return file
    return path


def origin_for(library: str, name: str) -> str | None:
    """Return the file in which ``library`` finds a function: in the global scope first, then in itself and below."""
    return origin(name) or _file_of(getattr(ctypes.CDLL(library), name, None))


def _is_program(path: str) -> bool:
    """Return whether it is the executable: the loader calls that by the first word of its command line (``python``)."""
    first = Path("/proc/self/cmdline").read_bytes().partition(b"\0")[0].decode(errors="surrogateescape")
    return path == first or Path(path).resolve() == Path("/proc/self/exe").resolve()


def libraries() -> list[str]:
    """Return the libraries of this process in the order in which the loader searches them (dl_iterate_phdr(3))."""
    names: list[str] = []

    def visit(info: int, size: int, data: int | None) -> int:
        name = ctypes.cast(info + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_char_p))[0]
        if name and name.startswith(b"/"):
            names.append(os.fsdecode(name))
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    process().dl_iterate_phdr(callback(visit), None)
    return names


def _file_of(address: _NamedFuncPointer | None) -> str | None:
    """Return the file that holds the code at ``address`` (dladdr(3))."""
    if address is None:
        return None
    info = _DlInfo()
    dladdr = process().dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_DlInfo))
    if not dladdr(ctypes.cast(address, ctypes.c_void_p), ctypes.byref(info)) or info.file_name is None:
        return None
    return os.fsdecode(info.file_name)


def imports(library: str, name: str) -> bool:
    """Return whether the file ``library`` calls a function ``name`` of another library.

    The loader's names lie between zeros in the file, where a longer name does not count.
    """
    return b"\0%b\0" % name.encode() in Path(library).read_bytes()


def torchs_base() -> str | None:
    """Return PyTorch's library for memory and threads, if it is loaded."""
    return next((path for path in libraries() if Path(path).name == "libc10.so"), None)


def mapped_files() -> list[str]:
    """Return the shared libraries in this process's memory map, in the order they appear."""
    files: dict[str, None] = {}
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():  # names are any bytes
        columns = line.split(maxsplit=5)
        if len(columns) == 6 and ".so" in columns[5]:
            files[columns[5]] = None
    return list(files)
