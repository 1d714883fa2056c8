"""The BLAS that PyTorch calls, and oneDNN and MKL as it has them: instruction set, threads and floating-point mode.

oneDNN's own functions are hidden inside PyTorch's library, so it is made to describe one small convolution (oneDNN
developer guide, "Verbose Mode").
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

from envkit.worker.evidence import symbols
from envkit.worker.evidence.capture import printed
from envkit.worker.evidence.running import running, settings, shown
from envkit.worker.messages.evidence import MklSilent
from envkit.worker.readings import Unread, read

PRODUCT = "sgemm_"  # of the Fortran interface, which PyTorch uses (aten/src/ATen/native/CPUBlas.cpp)
ISA = re.compile(r"info,cpu,isa:(.*)")
EXECUTED = re.compile(r"primitive,exec,cpu,convolution,([^,]*)")
FPMATH = re.compile(r"primitive,exec,cpu,convolution,.*attr-fpmath:(\w+)")
MKL = re.compile(r"(?:Math Kernel Library|oneMKL).* Version (\d[\d.]*)")
MKL_THREADS = re.compile(r"mkl_get_max_threads\(\) : (\d+)")
# What MKL's code is made for where it takes none that is made for an instruction set.
ANY_PROCESSOR = "Intel(R) Architecture processors"
# mkl_get_version, as it is called inside PyTorch's own library, and where MKL is a library by itself.
TELLS_VERSION = ("mkl_serv_get_version", "MKL_Get_Version", "mkl_get_version")


class _MklVersion(ctypes.Structure):
    """MKLVersion of mkl_types.h (oneMKL developer reference, "mkl_get_version")."""

    _fields_ = [
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("update", ctypes.c_int),
        ("product_status", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("processor", ctypes.c_char_p),
        ("platform", ctypes.c_char_p),
    ]


def blas() -> dict[str, object]:
    """Return the library whose matrix product PyTorch calls (``implementation``): a preloaded one, or its own."""
    path = next((file for library in _torch() if (file := symbols.origin_for(library, PRODUCT))), None)
    name = running(path, "blas")
    return {"implementation": shown(name) if path else "none", "library": path, "settings": settings(name)}


def onednn() -> dict[str, object]:
    """Return oneDNN's modes: ``isa`` is the best instruction set that it may use.

    ``implementation`` is the code that a convolution ran.
    """
    torch = sys.modules["torch"]
    if not torch.backends.mkldnn.is_available():
        return {"available": False}

    usual = {"device": "cpu", "dtype": torch.float32}  # whatever the program's own default

    def convolve() -> None:
        with torch.no_grad(), torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
            torch.nn.functional.conv2d(*(torch.zeros(shape, **usual) for shape in ((16, 32, 14, 14), (32, 32, 3, 3))))

    return {"available": True, **parse_verbose(printed(1, convolve))}


def parse_verbose(text: str) -> dict[str, str | None]:
    """Return the modes in oneDNN's verbose lines; a convolution without the attribute has the mode ``strict``."""
    modes = {
        name: match.group(1).strip() if (match := pattern.search(text)) else None
        for name, pattern in (("isa", ISA), ("implementation", EXECUTED), ("fpmath", FPMATH))
    }
    if modes["implementation"] is not None:
        modes["fpmath"] = modes["fpmath"] or "strict"
    return modes


def mkl() -> dict[str, object]:
    """Return MKL's modes: ``code`` names in MKL's words the processors that its code is made for.

    ``dispatch`` is ``generic`` where that is any processor.
    """
    torch = sys.modules["torch"]
    about = torch.__config__.parallel_info()
    version, threads = MKL.search(about), MKL_THREADS.search(about)
    modes: dict[str, object] = {
        "available": torch.backends.mkl.is_available(),
        "version": version.group(1) if version else None,
        "max_threads": int(threads.group(1)) if threads else None,
    }
    if torch.backends.mkl.is_available():
        read(modes, "code", _made_for)
        read(modes, "dispatch", lambda: "generic" if _made_for() == ANY_PROCESSOR else "native")
    return modes


def _made_for() -> str:
    """Return what MKL calls the processor. Raises Unread where no function is found that says so.

    MKL's verbose mode prints the same words, and first takes most of a second to measure the frequency that stands
    beside them.
    """
    libraries = [ctypes.CDLL(path) for path in _torch()]
    tell = next(
        (getattr(library, name) for library in libraries for name in TELLS_VERSION if hasattr(library, name)), None
    )
    if tell is None:
        raise Unread(MklSilent())
    version = _MklVersion()
    tell(ctypes.byref(version))
    return str(version.processor.decode())


def _torch() -> list[str]:
    """Return PyTorch's own library, which has its code for the CPU, if it is loaded."""
    return [path for path in symbols.libraries() if Path(path).name == "libtorch_cpu.so"]
