"""What libraries print when they ignore a setting or can't do what they were told to."""

from __future__ import annotations

import re

# The dynamic loader, libgomp, Intel's and LLVM's OpenMP, jemalloc and libnuma. Intel's "Info" lines tell of nothing
# that is wrong.
COMPLAINT = re.compile(
    r"^(ERROR: ld\.so: |libgomp: |OMP: (Warning|Error) #|<jemalloc>: \S+ conf |libnuma: Warning: ).*$", re.MULTILINE
)
