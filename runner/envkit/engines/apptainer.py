"""The Apptainer engine, through its command line: what HPC clusters have, without root and without a daemon."""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envkit.common import files
from envkit.common.errors import InputError
from envkit.engines import container
from envkit.engines.base import IMAGE_FILES, SOURCES, EngineOptions, Launch, Outcome, ended
from envkit.engines.messages import BuildImage, EngineFault, ImageUnreadable
from envkit.engines.process import Process, Started
from envkit.engines.setup_messages import APPTAINER_FIX, INSTALL, EngineUnusable, NotInstalled
from envkit.messages import Printed
from envkit.worker.request import WorkerRequest

# Before the name of a variable, in the caller's own: Apptainer puts it into the container.
INSIDE = "APPTAINERENV_"
# The caller's variables that Apptainer takes options from, so that folders, variables, GPUs or limits could come into a
# container that nobody was told of; but for those that say how it works outside of one.
OPTIONS_IN_VARIABLES = ("APPTAINER", "SINGULARITY")
OUTSIDE = ("TMPDIR", "CACHEDIR", "CONFIGDIR", "MESSAGELEVEL", "UNSQUASH", "USERNS")
# Where a process inside puts temporary files: its /tmp has 64 MiB (apptainer.conf, "sessiondir max size"), and what
# torch.compile writes takes more.
TEMPORARY = {"TMPDIR": "/dev/shm"}
# Of those that it puts there so, it makes something of its own.
ITS_OWN = ("APPEND_PATH", "HOME", "LD_LIBRARY_PATH", "PATH", "PREPEND_PATH")
# Words of Apptainer's messages, by what they are about.
FAULTS = {
    "fuse": re.compile("failed to open /dev/fuse"),
    "squashfs": re.compile("trying to read the squashfs image"),
    "cgroups": re.compile("cannot use cgroups"),
}


class ApptainerEngine:
    """One ``apptainer exec`` per worker, as the caller. Inside, only code and data of the host are visible, read-only,
    and the folder of a user's own command.
    """

    name = "apptainer"
    options = frozenset({"sif"}) | container.LIMITS

    def __init__(self, options: EngineOptions) -> None:
        if shutil.which("apptainer") is None:
            raise InputError(NotInstalled("Apptainer", INSTALL["Apptainer"]))
        self.given = options
        self._sif = Path(options.sif or IMAGE_FILES["sif"]).resolve()
        sif_digest = digest(self._sif)
        version = subprocess.run(["apptainer", "version"], capture_output=True, text=True, timeout=60, check=False)
        if version.returncode != 0:
            raise InputError(EngineUnusable("Apptainer", Printed(version.stderr.strip())))
        self._described = {
            "name": self.name, "version": version.stdout.strip(), "image": str(self._sif), "digest": sif_digest,
        }  # fmt: skip

    def describe(self) -> dict[str, str]:
        return self._described

    def command(self, launch: Launch) -> list[str]:
        binds = [part for mount in container.mounts(launch) for part in ("--bind", mount)]
        # Not --env, which takes a comma for the start of the next variable.
        inherited = {name: value for name, value in container.passed_on(launch).items() if name in ITS_OWN}
        temporary = {} if TEMPORARY.keys() & launch.passed_on.keys() else TEMPORARY
        texts = {**temporary, **inherited, **container.variables(launch)}
        variables = [f"{name}={value}" for name, value in texts.items()]
        return [
            "apptainer", "--quiet", "exec", "--cleanenv", "--containall", "--no-home",
            *(CONTAINER.gpus if launch.gpus else ()), "--pwd", container.working_folder(launch),
            *container.limits(self.given), *binds, str(self._sif), "env", *variables, *container.argv(launch),
        ]  # fmt: skip

    def request(self, launch: Launch) -> WorkerRequest | None:
        return container.request(launch)

    def start(self, launch: Launch) -> Started:
        argv, environment = self._start_of(launch)
        before = _ended_children_s()
        return Started(
            Process(argv, environment, SOURCES, self.request(launch), launch.ahead),
            launch.timeout_s,
            finish=lambda outcome: self._explained(replace(outcome, cpu_s=_ended_children_s() - before)),
        )

    def run(self, launch: Launch) -> Outcome:
        if launch.nodes > 1:
            from envkit.engines import step

            return self._explained(
                step.run(*self._start_of(launch), launch.nodes, launch.timeout_s, self.request(launch), INSIDE)
            )
        return ended(self.start(launch))

    def _start_of(self, launch: Launch) -> tuple[list[str], dict[str, str]]:
        """The command, and the variables that it is started with."""
        if launch.gpus:
            container.require_gpus()  # it only remarks that there was nothing to bring along
        return self.command(launch), callers(launch, launch.inherited or os.environ)

    def _explained(self, outcome: Outcome) -> Outcome:
        """Return the outcome with what to do about what Apptainer said."""
        fault = next((name for name, words in FAULTS.items() if words.search(outcome.stderr_tail)), None)
        if outcome.failure and fault:
            return replace(outcome, failure=EngineFault(APPTAINER_FIX[fault]))
        return container.explained(outcome, self.given)


def _ended_children_s() -> float:
    """CPU time of all children that have ended, with theirs: squashfuse, which reads the SIF, is one of Apptainer's."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def callers(launch: Launch, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of Apptainer's own process, from the caller's: those that it is to pass on are among them.

    It would have a shell read their values (https://apptainer.org/docs/user/main/environment_and_metadata.html).
    """
    kept = {f"{prefix}_{name}" for prefix in OPTIONS_IN_VARIABLES for name in OUTSIDE}
    environment = {
        name: value for name, value in variables.items() if not name.startswith(OPTIONS_IN_VARIABLES) or name in kept
    }
    inside = {f"{INSIDE}{name}": value for name, value in container.passed_on(launch).items() if name not in ITS_OWN}
    return {**environment, **inside, "APPTAINER_NO_EVAL": "true"} if inside else environment


CONTAINER = container.Kind(("--nv",), "exec", "--bind", callers=callers, attaches=False)


def require_file(image: Path, kind: str) -> None:
    """Raise InputError as ``digest`` does, without reading all of it."""
    try:
        os.close(files.open_descriptor(image))
    except OSError as error:
        build = BuildImage(container.made_by(image.stem, kind))
        raise InputError(ImageUnreadable(str(image), files.reason(error), build)) from None


def digest(image: Path, kind: str = "sif") -> str:
    """``sha256:…`` of an image's file. Raises InputError, with the fix, where it can't be read.

    ``kind`` is one of IMAGE_FILES, which is also the target that makes such a file.
    """
    require_file(image, kind)
    checksum = hashlib.sha256()
    with files.opened(image, most=None) as file:
        while block := file.read(2**20):
            checksum.update(block)
    return f"sha256:{checksum.hexdigest()}"
