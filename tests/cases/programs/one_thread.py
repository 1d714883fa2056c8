"""Train with one thread, as a library wants it that runs several trainings beside each other, as Ray does.

It trains until it has used 3 s of CPU time, however busy the machine is: less is no training for `envkit exec`.
"""

import os
import runpy

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ |= {"TRAIN_S": "3", "CLOCK": "process_time", "OPTIMIZER": "torch"}
runpy.run_path("train.py", run_name="__main__")
