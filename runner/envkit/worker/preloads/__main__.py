"""Write the libraries' files where profiles find them."""

from __future__ import annotations

from envkit.worker.preloads import FOLDER, LIBRARIES, elf

for machine, libraries in LIBRARIES.items():
    for name, library in libraries.items():
        path = FOLDER / machine / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(elf(name, library))
        print(f"written: {path}")
