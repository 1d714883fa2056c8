"""``envkit tune`` for a command of the user's own, with real workers, and what it found in use."""

from __future__ import annotations

import json
import re
import statistics

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
# Seconds of workers: too few anywhere, so that what is refused says how many a candidate takes on this machine now.
TOO_FEW = 2


def test_a_script_of_the_user_s_own_is_tuned_for_in_an_image(cli, engine_options, open_folder, surroundings):
    """Docker's stands for the others: that a command is measured in each of them, and has a profile's variables there,
    is in tests of its own."""
    folder = open_folder / "runs/tune"
    folder.mkdir(0o755)
    (folder / "train.py").write_text(SCRIPT)
    space, written = folder / "python.yaml", folder / "mine.yaml"
    space.write_text(SPACE)
    options = engine_options("docker")

    def tune(budget_s, output):
        return cli(
            "tune", *options, "--metric", r"took ([\d.]+) s", "--warmup-lines", 2,
            "--space", space, "--space-only", "--budget", f"{budget_s}s", "--profile", written,
            "--output", folder / output, "--json", "--", "python", "train.py", cwd=folder, **surroundings,
        )  # fmt: skip

    refused = tune(TOO_FEW, "tuning").stderr
    budget_s = int(re.search(r"no room for a single candidate .*give --budget (\d+)s", refused)[1])
    result = tune(budget_s, "room")
    if "no room for a single candidate" in result.stderr:  # the machine is busier than it was
        result = tune(2 * budget_s, "again")
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
