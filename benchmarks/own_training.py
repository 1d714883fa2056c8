"""What `envkit bench -- python SCRIPT` prints for three scripts: writes the end of docs/results/own-training.md."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.common.errors import MEASURED
from envkit.engines.base import PROJECT

from benchmarks import page, script
from benchmarks.errors import ScriptError

SCRIPTS = PROJECT / "tests/scripts"
PAGE = page.PAGES / "own-training.md"
# What is written above it in the page stays.
EXAMPLES_BEGIN = "## Three scripts\n"
# Of each script: how it is measured, and what it stands for.
EXAMPLES = {
    "A plain loop that prints its times": (
        "plain_loop.py", ["--metric", "time ([0-9.]+) ms", "--unit", "ms", "--warmup-lines", "10"],
        "step 12 loss 2.27 time 8.312 ms"),
    "A DataLoader with two workers that logs JSON": (
        "loader.py", ["--metric", "$.train.step_time", "--warmup-lines", "2"],
        '{"step": 12, "train": {"loss": 2.3071, "step_time": 0.0142}}'),
    "A progress bar as PyTorch Lightning draws it": (
        "lightning_log.py", ["--metric", "([0-9.]+)it/s", "--unit", "per-second", "--warmup-lines", "5"],
        "Epoch 0:  50%|██████████          | 20/40 [00:00<00:00, 71.30it/s, v_num=0, train_loss=2.102]"),
}  # fmt: skip


def report(arguments: Sequence[str], folder: Path) -> str:
    """What ``runner ARGUMENTS`` prints, without the place of the record. Raises InputError if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    kind, *options = arguments
    result = subprocess.run(
        [sys.executable, "-m", "envkit", kind, "--output", str(folder), *options], cwd=SCRIPTS, stdout=subprocess.PIPE,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT / "runner")}, text=True, check=False,
    )  # fmt: skip
    if result.returncode != MEASURED:
        shown = result.stdout.strip().splitlines()
        raise ScriptError(f"envkit {shlex.join(arguments)}: ended with exit status {result.returncode} {shown[:3]}")
    return "\n".join(line.rstrip() for line in result.stdout.partition("\nrecord ")[0].splitlines())


def main() -> int:
    parser = script.page_parser("own_training", __doc__, PAGE)
    parser.add_argument("--profile", default="intel-omp", help="(default: intel-omp)")
    parser.add_argument("--engine", default="local", help="(default: local)")
    parser.add_argument("--blocks", default="8", metavar="N", help="how many for each script (default: 8)")
    arguments = parser.parse_args()
    above, begin, _ = PAGE.read_text().partition(EXAMPLES_BEGIN)
    facts = f"- measured: {time.strftime('%Y-%m-%d')}\n- machine: {page.machine()}\n- command: `{page.command()}`"
    parts = [above, begin, f"They are in `tests/scripts/`.\n\n{facts}"]
    with tempfile.TemporaryDirectory() as folder:
        for title, (name, metric, line) in EXAMPLES.items():
            engine = [] if arguments.engine == "local" else ["--engine", arguments.engine]
            command = ["bench", arguments.profile, *engine, *metric, "--blocks", arguments.blocks, "--", "python", name]
            printed = report(command, Path(folder) / Path(name).stem)
            shown = shlex.join(command)
            language = "json" if line.startswith("{") else "text"
            log, typed = f"```{language}\n{line}\n```", f"```sh\nenvkit {shown}\n```"
            parts.append(f"### {title}\n\n{log}\n\n{typed}\n\n```text\n{printed}\n```")
    page.write(arguments.page, parts)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("own_training", main))
