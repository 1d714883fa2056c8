"""Find what libraries print when they ignore a setting or can't do what they were told to."""

from __future__ import annotations

import re

from envkit.worker.libraries import LIBRARIES

LOADER, NUMA = r"ERROR: ld\.so: ", r"libnuma: Warning: "
# The dynamic loader, libnuma and libraries of the registry. Other commands print such lines too:
# runner/envkit/checks/complaints.py says which of them concern a profile.
_STARTS = dict.fromkeys([LOADER, NUMA, *(library.complaint for library in LIBRARIES.values() if library.complaint)])
COMPLAINT = re.compile(rf"^(?:{'|'.join(_STARTS)}).*$", re.MULTILINE)
