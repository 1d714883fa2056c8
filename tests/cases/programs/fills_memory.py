"""Train, while an input process takes memory until the group's limit: neither process alone is near it."""

import multiprocessing
import os
import runpy
import time


def load() -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * (80 << 20)))
        time.sleep(0.1)


if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=load, daemon=True)
    child.start()
    while child.exitcode is None:
        runpy.run_path("train.py", run_name="__main__")
    raise RuntimeError(f"input process (pid {child.pid}) is killed by signal: {-child.exitcode}")
