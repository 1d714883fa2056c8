"""``python benchmarks/at_once.py N LAUNCHER … WORKER -``: one sample of workers that another launcher starts.

They train as the request at stdin says, and meet as the kit's own instances do (``envkit.worker.instances``). It
imports what workers may, and no more.
"""

from __future__ import annotations

import json
import subprocess
import sys

from envkit.worker import ranks, scratch
from envkit.worker.instances import merged
from envkit.worker.measure.meeting import samples
from envkit.worker.messages import FewMeasured
from envkit.worker.request import Instance, Train, WorkerRequest, read


def main() -> int:
    number, *command, stdin = sys.argv[1:]
    training = read(stdin).work
    assert isinstance(training, Train), training
    with scratch.folder("envkit-at-once") as folder:
        file = ranks.written(WorkerRequest(Instance(int(number), training, str(folder))), folder)
        # what they print would stand beside the sample
        status = subprocess.run([*command, file], stdout=sys.stderr, check=False).returncode
        parts_of_sample = samples(folder)
        if status or len(parts_of_sample) != int(number):
            return ranks.problem(FewMeasured(len(parts_of_sample), int(number), status))
        sample = merged(parts_of_sample)
    print(json.dumps(sample), flush=True)
    return 1 if "problem" in sample else 0


if __name__ == "__main__":
    sys.exit(main())
