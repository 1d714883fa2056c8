"""Libraries of the kit's own that a profile can preload, and how their files are made.

Each is a few instructions long. It is written down here as machine code, so that no compiler is needed and the files
have the same bytes everywhere: ``python -m envkit.worker.preloads`` makes them anew. They are kept in the repository,
in a folder named after the processor, and are found inside images too, where this folder is mounted.

The format is that of the System V ABI's "Object Files" (ELF), with the AMD64 supplement.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

FOLDER = Path(__file__).resolve().parent

if TYPE_CHECKING:  # Python 3.8 can't evaluate it
    # Each instruction's bytes in hexadecimal, and its assembly, as objdump prints it in Intel's syntax.
    Instructions = tuple[tuple[str, str], ...]

RETURN_1: Instructions = (("b801000000", "mov eax, 0x1"), ("c3", "ret"))
# 0x8000 is "flush to zero", 0x0040 "denormals are zeros" (Intel SDM volume 1, section 10.2.3). A new thread inherits
# these bits from the one that creates it.
SET_MXCSR: Instructions = (
    ("4883ec08", "sub rsp, 0x8"),
    ("0fae1c24", "stmxcsr DWORD PTR [rsp]"),
    ("810c2440800000", "or DWORD PTR [rsp], 0x8040"),
    ("0fae1424", "ldmxcsr DWORD PTR [rsp]"),
    ("4883c408", "add rsp, 0x8"),
    ("c3", "ret"),
)


@dataclass(frozen=True)
class Library:
    """``functions`` are exported by these names, all of the same instructions; ``at_start`` runs them when loaded."""

    instructions: Instructions
    functions: tuple[str, ...] = ()
    at_start: bool = False

    @property
    def code(self) -> bytes:
        return bytes.fromhex("".join(written for written, _ in self.instructions))


# By processor and file name.
LIBRARIES = {
    "x86_64": {
        # MKL asks these whether the processor is Intel's, and has its fastest code only for those that are, although it
        # looks for each instruction set too. PyTorch's wheels export them, so the first answer that is loaded counts.
        "libmkl-dispatch.so": Library(RETURN_1, ("mkl_serv_intel_cpu", "mkl_serv_intel_cpu_true")),
        "libflush-to-zero.so": Library(SET_MXCSR, at_start=True),
    }
}

PAGE = 4096
HEADER, PROGRAM_HEADER, SYMBOL = 64, 56, 24
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
READ, WRITE, EXECUTE = 4, 2, 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_INIT, DT_SONAME = 4, 5, 6, 10, 11, 12, 14


def elf(name: str, library: Library) -> bytes:
    """The shared library called ``name``: one page that is read and run, and the dynamic section behind it."""
    strings, offsets = _strings([*library.functions, name])
    count = 1 + len(library.functions)
    hash_at = HEADER + 4 * PROGRAM_HEADER
    symbols_at = _aligned(hash_at + 4 * (3 + count))
    strings_at = symbols_at + SYMBOL * count
    code_at = _aligned(strings_at + len(strings))
    # a hash table of one bucket: a list of all symbols
    chain = [*(index + 1 if index + 1 < count else 0 for index in range(1, count))]
    hashes = struct.pack(f"<{3 + count}I", 1, count, 1 if count > 1 else 0, 0, *chain)
    symbols = (
        bytes(SYMBOL)
        + b"".join(
            struct.pack("<IBBHQQ", offset, 0x12, 0, 1, code_at, len(library.code))  # global functions
            for offset in offsets[:-1]
        )
    )
    tags = [(DT_SONAME, offsets[-1]), (DT_HASH, hash_at), (DT_STRTAB, strings_at), (DT_SYMTAB, symbols_at)]
    tags += [(DT_STRSZ, len(strings)), (DT_SYMENT, SYMBOL), *([(DT_INIT, code_at)] if library.at_start else []), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    end = code_at + len(library.code)
    headers = [
        _program_header(PT_LOAD, READ | EXECUTE, 0, end, PAGE),
        _program_header(PT_LOAD, READ | WRITE, PAGE, len(dynamic), PAGE),
        _program_header(PT_DYNAMIC, READ | WRITE, PAGE, len(dynamic), 8),
        _program_header(PT_GNU_STACK, READ | WRITE, 0, 0, 16),
    ]
    ident = b"\x7fELF" + bytes([2, 1, 1, 0]) + bytes(8)  # 64 bits, little-endian, System V
    shared, amd64 = 3, 62
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", shared, amd64, 1, 0, HEADER, 0, 0, HEADER, PROGRAM_HEADER, len(headers), 0, 0, 0
    )
    page = bytearray(PAGE)
    sections = ((0, header + b"".join(headers)), (hash_at, hashes), (symbols_at, symbols))
    for at, part in (*sections, (strings_at, strings), (code_at, library.code)):
        page[at : at + len(part)] = part
    return bytes(page) + dynamic


def _strings(names: list[str]) -> tuple[bytes, list[int]]:
    """A string table, and where each name is in it."""
    table, offsets = b"\0", []
    for name in names:
        offsets.append(len(table))
        table += name.encode() + b"\0"
    return table, offsets


def _aligned(at: int) -> int:
    return -(-at // 8) * 8


def _program_header(kind: int, flags: int, at: int, size: int, alignment: int) -> bytes:
    """For bytes that are in memory, from the library's beginning, where they are in the file."""
    return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, alignment)
