"""What libraries print when they ignore a setting or can't do what they were told to."""

from __future__ import annotations

import re

# The dynamic loader, libgomp, Intel's and LLVM's OpenMP, jemalloc and libnuma. Intel's "Info" lines tell of nothing
# that is wrong, and its warning of a fork, which DataLoader's workers are, of no setting. Other commands print such
# lines too: runner/envkit/checks/complaints.py says which of them concern a profile.
COMPLAINT = re.compile(
    r"^(ERROR: ld\.so: |libgomp: |OMP: (Warning|Error) #(?!\d+: Forking a process)|<jemalloc>: \S+ conf |"
    r"libnuma: Warning: ).*$",
    re.MULTILINE,
)
