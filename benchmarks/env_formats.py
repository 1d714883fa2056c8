"""An example of every format of ``envkit env``, as printed on this machine: writes docs/results/env-formats.md."""

from __future__ import annotations

import io
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout

from envkit import cli
from envkit.common.errors import MEASURED
from envkit.engines.base import PROJECT
from envkit.profiles.formats import FORMATS

from benchmarks import page, script
from benchmarks.errors import ScriptError

SHOWN_PROJECT = "/home/you/envkit"
INTRODUCTION = """\
`envkit env PROFILE --format FORMAT` prints a profile for something else to set. Nothing is printed but that; what is
wrong goes to the standard error with exit status 2. The first comment (`docker`, `vscode` and `jupyter` have none) says
for which machine and image the numbers and paths were worked out: on another kind of machine, print it again there. The
formats for containers need the paths inside an image, so give `--engine docker --image NAME`, `--engine apptainer --sif
FILE` or `--engine enroot --sqsh FILE`; a profile that preloads nothing and starts commands with nothing can do without.
A value that a format can't express is refused.

A profile may start commands with a program, for example `numactl`. `dockerfile` (`ENTRYPOINT`), `apptainer`
(`%runscript`), `sbatch`, `pyxis`, `kubernetes` and `jupyter` do so themselves; with the others you do, and a note on
the standard error says with what. A variable that is set need not be in effect: `envkit exec PROFILE -- COMMAND` checks
that too.

The kit's own folder is `/home/you/envkit` here."""
# Per format: the language of its text; how it is used, and what it can't express.
ABOUT = {
    "shell": ("bash", """\
In bash, zsh or dash: `eval "$(envkit env PROFILE)"`. It lasts as long as that shell, so use a fresh one for each
profile. What this shell has set that could change the outcome and is not the profile's, of an earlier profile or a
`.bashrc`, is unset, and a note on the standard error names it; what only says where to run stays
(`CUDA_VISIBLE_DEVICES`). Any value."""),
    "dotenv": ("bash", """\
`docker run --env-file FILE`, Compose and python-dotenv read it. They don't agree on quotes, so what needs them is
refused: line breaks, blanks at either end, a quote at the beginning, `$`, and `#` after a blank. For a container add
`--engine docker --image NAME`, as a preloaded library's path is another inside; a note says so. With python-dotenv
start commands by `dotenv run -- python train.py`: what is loaded by `load_dotenv()` comes too late for a preload."""),
    "docker": ("bash", """\
For Docker and Podman: `eval "docker run $(envkit env PROFILE --format docker …) IMAGE python train.py"`. Limits that
you give (`--cpus`, `--cpuset-cpus`, `--memory`) are among the options, and with a profile for GPUs the machine's. Any
value."""),
    "dockerfile": ("dockerfile", """\
Paste it behind the last `RUN`: what follows it is under the profile. No line breaks and other control characters."""),
    "apptainer": ("text", """\
Paste it into a definition file. `apptainer run` and `exec` set the variables; only `run` starts commands with what a
profile needs. Apptainer also sets other variables of your shell, such as a site's `OMP_NUM_THREADS=1`: `--cleanenv`
keeps them out. No control characters but tabs and line breaks."""),
    "sbatch": ("bash", """\
`envkit env PROFILE --format sbatch > job.sh`, then `sbatch job.sh python train.py`. It asks for as many CPUs as the
profile has threads; where these are for a part of what runs there (one of several NUMA nodes; training on GPUs, beside
DataLoader's workers), for as many as the profile was resolved for, of which each GPU has its part. What the job is
given by the shell that submits it, or the site, and could change the outcome, is unset and named in the job's output.
Print it on a node of the kind that the job will run on. Any value."""),
    "pyxis": ("bash", """\
For Slurm with NVIDIA's plugin Pyxis, otherwise as `sbatch`: the command runs in the image, in the folder that the job
starts in. Give `--engine enroot --sqsh FILE` for the file of an image; one that `--image` names is fetched from a
registry. The variables are set inside: those of the job would give way to the image's. Any value."""),
    "kubernetes": ("yaml", """\
A Pod, valid as it is; or take its container's `env`, `command` and `resources`. The limit is the number of CPUs that
the profile was resolved for: for another one, print it again with `--cpus`. Any value."""),
    "vscode": ("json", """\
A workspace's `.vscode/settings.json`: for its terminals, and for its debugger. No `${`, which VS Code replaces."""),
    "jupyter": ("json", """\
A kernel for Jupyter, whose interpreter is the one that `--python` names and must have ipykernel:
`mkdir -p ~/.local/share/jupyter/kernels/PROFILE`, then `envkit env PROFILE --format jupyter >
~/.local/share/jupyter/kernels/PROFILE/kernel.json`. No `$`, and no name in braces in what it is started with, which
Jupyter may replace. In a cell, `from envkit import check; check("PROFILE")` says whether it is in effect."""),
    "python": ("text", """\
For a notebook's first cell, or the beginning of a script: it sets what is read when torch is imported or later, and
raises an error if torch is imported already. A comment names variables that are read when a process starts; they are
not set. Any value."""),
}  # fmt: skip


def printed(arguments: Sequence[str]) -> str:
    """What ``runner ARGUMENTS`` prints, with another name for the project's folder.

    Raises InputError if it ends with anything but success.
    """
    out = io.StringIO()
    with redirect_stdout(out):
        status = cli.main([*arguments])
    if status != MEASURED:
        raise ScriptError(f"envkit {shlex.join(arguments)}: ended with exit status {status}")
    return out.getvalue().replace(str(PROJECT), SHOWN_PROJECT)


def main() -> int:
    parser = script.page_parser("env_formats", __doc__)
    parser.add_argument("--profile", default="intel-omp", help="(default: intel-omp)")
    parser.add_argument("--image", metavar="NAME", default="envkit-cpu",
                        help="for containers, or '' for none (default: envkit-cpu)")  # fmt: skip
    arguments = parser.parse_args()
    facts = f"- printed: {time.strftime('%Y-%m-%d')}\n- machine: {page.machine()}\n- command: `{page.command()}`"
    page_parts = ["# A profile in other tools' words", facts, INTRODUCTION]
    for name, chosen in FORMATS.items():
        language, about = ABOUT[name]
        inside = ["--engine", "docker", "--image", arguments.image] if chosen.inside and arguments.image else []
        command = ["env", arguments.profile, "--format", name, *inside]
        text = printed(command)
        page_parts.append(
            f"## {name}\n\n{about}\n\n```sh\nenvkit {shlex.join(command)}\n```\n\n```{language}\n{text}```"
        )
    page.write(arguments.page, page_parts)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("env_formats", main))
