"""Formats that a shell reads: lines with ``export``, alone, in a batch script and in a definition file.

Quoting is POSIX's: everything between single quotes is itself, https://pubs.opengroup.org/onlinepubs/9799919799/,
2.2.2. bash, zsh and dash agree on it, so one form serves them all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from envkit import rendering
from envkit.profiles.formats.messages import CONTROL_CHARACTER, USE, Has, StartCleanly, TakeOut
from envkit.profiles.formats.resolved import Resolved, refuse
from envkit.worker.performance_variables import LISTS, NEEDED, PREFIXES, SPEED, SWITCHED, WHERE

# Apptainer's own shell takes U+0080 and U+0081 for marks of its own, and drops a carriage return (seen with 1.4.5).
NOT_IN_DEFINITIONS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# How a container of the image is started with GPUs.
ASKING = "apptainer run --nv"
# Slurm sets it to the job's own share of a GPU (https://slurm.schedmd.com/gres.html).
GPU_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
# Parts of a batch script, which bash runs. `exec` of no command would succeed.
GIVEN = f"[ $# -gt 0 ] || {{ echo {shlex.quote(USE)} >&2; exit 2; }}\n"
CLEAN = (
    Path(__file__).with_name("clean.sh").read_text(encoding="utf-8")
    .replace("@NAMES@", " ".join(f"${{!{prefix}@}}" for prefix in PREFIXES))
    .replace("@KEPT@", "|".join(sorted({*WHERE, *NEEDED, *LISTS, GPU_SHARE})))
    .replace("@SWITCHED@", "|".join(f"{prefix}*" for prefix in SWITCHED))
    .replace("@SPEED@", "|".join(SPEED))
)  # fmt: skip


def _exports(resolved: Resolved, quote: Callable[[str], str], indent: str = "") -> str:
    variables = resolved.environment.variables
    return "".join(f"{indent}export {name}={quote(value)}\n" for name, value in variables.items())


def shell(resolved: Resolved) -> str:
    """Lines for ``eval "$(envkit env PROFILE)"`` in bash, zsh or dash. Settings of an earlier profile are removed."""
    unset = f"unset {' '.join(resolved.stray)}\n" if resolved.stray else ""
    return resolved.comments() + unset + _exports(resolved, shlex.quote)


def sbatch(resolved: Resolved) -> str:
    """A batch script that runs the command it is given: ``sbatch FILE python train.py``.

    What the job gets that would change the outcome, from the shell that submits it or the site, it takes away and
    names: nobody knows it when the script is printed.
    """
    start = f"{resolved.start()} " if resolved.environment.prefix else ""
    return batch_head(resolved) + _exports(resolved, shlex.quote) + f'exec {start}"$@"\n'


def batch_head(resolved: Resolved) -> str:
    """How a batch script begins: with what it asks of Slurm, and with what it takes away of its job's variables.

    It asks for as many CPUs as there are OpenMP threads, in all ranks of the profile, or as were usable where that does
    not say all (``Resolved.beside``); for one thread per core where that is how the profile was resolved; and for as
    many GPUs as the profile needs. Options: https://slurm.schedmd.com/sbatch.html
    """
    threads = resolved.environment.variables.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    each = int(threads) if re.fullmatch(r"[1-9][0-9]*", threads) else 0
    cpus = resolved.beside or each * resolved.environment.ranks or resolved.usable_cpus
    # as many threads as cores; what runs beside them has hardware threads
    one_each = resolved.smt and not resolved.beside and cpus <= resolved.physical_cores
    options = [f"--cpus-per-task={cpus}", *(["--hint=nomultithread"] if one_each else [])]
    options += [f"--gpus={resolved.environment.gpus}"] if resolved.environment.gpus else []
    return (
        "#!/bin/bash\n"
        + resolved.comments(starts=True)
        + f"# {USE}\n"
        + "".join(f"#SBATCH {option}\n" for option in options)
        + GIVEN
        + CLEAN
    )


def apptainer(resolved: Resolved) -> str:
    """Sections of a definition file: ``%environment``, and a ``%runscript`` where commands need a prefix.

    Sections: https://apptainer.org/docs/user/main/definition_files.html
    """
    environment = resolved.environment
    texts = [*environment.variables.items(), *(("the prefix", word) for word in environment.prefix)]
    refuse(resolved, "apptainer", texts, NOT_IN_DEFINITIONS, Has(CONTROL_CHARACTER), TakeOut())
    comments = resolved.comments("    ", starts=True, asking=ASKING) + f"    # {rendering.text(StartCleanly())}\n"
    text = "%environment\n" + comments + _exports(resolved, _quote_definition, "    ")
    if environment.prefix:
        start = " ".join(_quote_definition(word) for word in environment.prefix)
        text += f'\n%runscript\n    exec {start} "$@"\n'
    return text


def _quote_definition(value: str) -> str:
    """Quoted for the shell, and no text for the reader of the file: a section's name or a ``{{ build argument }}``."""
    if "%" not in value and "{{" not in value:
        return shlex.quote(value)
    quoted = "'" + value.replace("'", "'\"'\"'") + "'"
    return re.sub(r"\{(?=\{)", "{''", quoted).replace("%", "''%")
