"""``envkit tune`` for a command of the user's own, with real workers, and what it found in use."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys

from envkit.profiles import profile

# Prints what its steps took, so that no test waits for them: half as long with one setting.
SCRIPT = """\
import os, random, time
for step in range(8):
    seconds = 0.010 if os.environ.get("PYTHONMALLOC") is None else 0.005
    time.sleep(1.01 * seconds)  # no step takes longer than the time in which it is printed
    print(f"step {step} took {seconds * random.uniform(0.99, 1.01):.6f} s", flush=True)
"""
SPACE = """\
name: python
title: What Python reads
parameters:
  objects: {variable: PYTHONMALLOC, values: [unset, malloc]}
"""
# Ends by itself long before: there is one candidate, and the confirmation has the fewest blocks that give an interval.
BUDGET = "10m"
FEWEST = """\
import sys
from envkit.cli import main
from envkit.tuning import confirm
confirm.MOST_BLOCKS = 1
sys.exit(main())
"""


def test_a_script_of_the_user_s_own_is_tuned_for_in_an_image(cli, engine_options, open_folder, surroundings):
    """Docker's stands for the others: that a command is measured in each of them, and has a profile's variables there,
    is in tests of its own."""
    folder = open_folder / "runs/tune"
    folder.mkdir(0o755)
    (folder / "train.py").write_text(SCRIPT)
    space, written = folder / "python.yaml", folder / "mine.yaml"
    space.write_text(SPACE)
    options = engine_options("docker")
    result = subprocess.run(
        [
            sys.executable, "-c", FEWEST, "tune", *options, "--metric", r"took ([\d.]+) s", "--warmup-lines", "2",
            "--space", space, "--space-only", "--budget", BUDGET, "--profile", written, "--output", folder / "tuning",
            "--json", "--", "python", "train.py",
        ],
        cwd=folder, env={**os.environ, **surroundings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert profile.load(str(written)).env["PYTHONMALLOC"] == "malloc"
    assert document["failed"] == []
    (comparison,) = document["confirmation"]["comparisons"]
    assert 1.9 < comparison["speedup"]["ratio"] < 2.1
    result = cli("exec", *options, written, "--", "python", "train.py", cwd=folder, **surroundings)
    assert result.returncode == 0, result.stderr
    took = [float(re.search(r"took ([\d.]+) s", line)[1]) for line in result.stdout.splitlines()]
    assert len(took) == 8
    assert statistics.median(took) < 0.0075  # half of what it takes without
