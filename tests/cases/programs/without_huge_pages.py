"""Switch transparent huge pages off for a command: ``without_huge_pages.py COMMAND...``."""

import ctypes
import os
import sys

PR_SET_THP_DISABLE = 41
ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
