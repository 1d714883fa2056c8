"""Train with one thread, as a library wants it that runs several trainings beside each other, as Ray does."""

import os
import runpy

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ |= {"TRAIN_S": "4", "OPTIMIZER": "torch"}
runpy.run_path("train.py", run_name="__main__")
