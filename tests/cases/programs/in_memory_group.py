"""Run a command in a control group with a memory limit: ``in_memory_group.py BYTES COMMAND...``."""

import os
import subprocess
import sys
import time
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")

is_v1 = (V1 / "memory.limit_in_bytes").exists()
group = (V1 if is_v1 else V2) / f"envkit-case-{os.getpid()}"
group.mkdir()
try:
    (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(sys.argv[1])
    entering = 'echo $$ > "$0" && exec "$@"'
    status = subprocess.run(["sh", "-c", entering, group / "cgroup.procs", *sys.argv[2:]], check=False).returncode
    while (group / "cgroup.procs").read_text():  # what was killed has not gone yet
        time.sleep(0.1)
finally:
    group.rmdir()
sys.exit(status)
