"""Start a training with one thread, as a launcher does that expects many processes, as accelerate does."""

import os
import subprocess
import sys

variables = {**os.environ, "OMP_NUM_THREADS": "1"}
sys.exit(subprocess.run([sys.executable, *sys.argv[1:]], env=variables, check=False).returncode)
