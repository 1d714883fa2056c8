"""A program that maps torch's Python bindings as one that imports torch does, for what looks at processes."""

from __future__ import annotations

from pathlib import Path

# Without sitecustomize (-S) or any package: its arguments are seconds to map them for, and to compute meanwhile.
SCRIPT = """
import mmap, sys, time
with open("{library}", "rb") as file:
    bindings = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("mapped", flush=True)
end, busy = time.monotonic() + float(sys.argv[1]), time.process_time() + float((sys.argv + ["0"])[2])
while time.monotonic() < end:
    if time.process_time() > busy:
        time.sleep(0.01)
print("end 1.5 s", flush=True)
"""


def write(folder: Path) -> Path:
    """Write ``train.py`` into ``folder``, and the file that it maps."""
    (folder / "libtorch_python.so").write_bytes(b"x")
    path = folder / "train.py"
    path.write_text(SCRIPT.format(library=folder / "libtorch_python.so"))
    return path
