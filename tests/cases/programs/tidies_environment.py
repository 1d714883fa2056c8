"""Change the process's own copy of allocator variables, which libraries read before Python starts."""

import os
import runpy
import sys

if sys.argv[1] == "removes":
    for name in [name for name in os.environ if name.startswith(("LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES"))]:
        del os.environ[name]
else:
    os.environ["MALLOC_TRIM_THRESHOLD_"] = "65536"  # glibc has read it: this changes nothing
runpy.run_path("train.py", run_name="__main__")
