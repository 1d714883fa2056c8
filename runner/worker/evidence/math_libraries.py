"""oneDNN and MKL as PyTorch has them: the instruction set in use, threads, and the floating-point mode.

oneDNN's own functions are hidden inside PyTorch's library, so it is made to describe one small convolution (oneDNN
developer guide, "Verbose Mode").
"""

from __future__ import annotations

import re
import sys
from typing import Any

from runner.worker.evidence.capture import printed

ISA = re.compile(r"info,cpu,isa:(.*)")
EXECUTED = re.compile(r"primitive,exec,cpu,convolution,([^,]*)")
FPMATH = re.compile(r"primitive,exec,cpu,convolution,.*attr-fpmath:(\w+)")
MKL = re.compile(r"(?:Math Kernel Library|oneMKL).* Version (\d[\d.]*)")
MKL_THREADS = re.compile(r"mkl_get_max_threads\(\) : (\d+)")
# The rest of "MKL_VERBOSE oneMKL 2024.0 … for Intel(R) 64 architecture Intel(R) Advanced Vector Extensions 2 …, Lnx …"
MKL_CODE = re.compile(r"^MKL_VERBOSE .* architecture (Intel\(R\) [^,]*)", re.MULTILINE)
# What it says there where it takes no code that is made for an instruction set.
ANY_PROCESSOR = "Intel(R) Architecture processors"


def onednn() -> dict[str, Any]:
    """``isa`` is the best instruction set that oneDNN may use, ``implementation`` what a convolution ran with."""
    torch = sys.modules["torch"]
    if not torch.backends.mkldnn.is_available():
        return {"available": False}

    usual = _usual(torch)

    def convolve() -> None:
        with torch.no_grad(), torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
            torch.nn.functional.conv2d(*(torch.zeros(shape, **usual) for shape in ((16, 32, 14, 14), (32, 32, 3, 3))))

    return {"available": True, **parse_verbose(printed(1, convolve))}


def parse_verbose(text: str) -> dict[str, str | None]:
    """The interesting words of oneDNN's verbose lines; a convolution without the attribute has the mode ``strict``."""
    found = {
        name: match.group(1).strip() if (match := pattern.search(text)) else None
        for name, pattern in (("isa", ISA), ("implementation", EXECUTED), ("fpmath", FPMATH))
    }
    if found["implementation"] is not None:
        found["fpmath"] = found["fpmath"] or "strict"
    return found


def mkl() -> dict[str, Any]:
    """``code`` is in MKL's words what its code was made for; ``dispatch`` is ``generic`` where that is any processor.

    MKL says so, once, when it first multiplies with its verbose mode on (oneMKL developer guide, "Using oneMKL Verbose
    Mode").
    """
    torch = sys.modules["torch"]
    about = torch.__config__.parallel_info()
    version, threads = MKL.search(about), MKL_THREADS.search(about)
    return {
        "available": torch.backends.mkl.is_available(),
        "version": version.group(1) if version else None,
        "max_threads": int(threads.group(1)) if threads else None,
        **(mkl_code(_multiplied()) if torch.backends.mkl.is_available() else {}),
    }


def _usual(torch: Any) -> dict[str, Any]:
    """What tensors are like unless a program chose another default."""
    return {"device": "cpu", "dtype": torch.float32}


def _multiplied() -> str:
    torch = sys.modules["torch"]

    usual = _usual(torch)

    def multiply() -> None:
        with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
            torch.mm(*(torch.ones(64, 64, **usual) for _ in range(2)))

    return printed(1, multiply)


def mkl_code(text: str) -> dict[str, str | None]:
    match = MKL_CODE.search(text)
    code = match.group(1).strip() if match else None
    return {"code": code, "dispatch": None if code is None else "generic" if code == ANY_PROCESSOR else "native"}
