"""The Enroot engine, through its command line: what clusters have that run containers by Slurm's plugin Pyxis.

Its interfaces are documented in https://github.com/NVIDIA/enroot/tree/master/doc and
https://github.com/NVIDIA/pyxis/wiki/Usage. The commands are pure functions of a launch. None was run with Enroot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.common import files
from envkit.common.errors import InputError
from envkit.engines import container
from envkit.engines.apptainer import digest
from envkit.engines.base import IMAGE_FILES, PACKAGE, SOURCES, EngineOptions, Launch, Outcome, ended
from envkit.engines.messages import EngineFault
from envkit.engines.process import Process, Started
from envkit.engines.setup_messages import (
    ENROOT_FIX,
    INSTALL,
    EngineUnusable,
    NoNamespaces,
    NotInstalled,
    NotSquashfs,
    UnmountableByEnroot,
    UnpassableValue,
)
from envkit.messages import Printed
from envkit.worker.messages.user_command import NoOutput
from envkit.worker.request import WorkerRequest

MAGIC = b"hsqs"  # a squashfs begins with it
RC = PACKAGE / "engines/enroot_rc.sh"
# The kernel's settings; and which of them Enroot can't do with at 0, where an ordinary user may make no namespace then.
KERNEL = Path("/proc/sys")
NAMESPACES = ("user/max_user_namespaces", "kernel/unprivileged_userns_clone")
# Enroot's settings, which outdo those of /etc/enroot/enroot.conf: a container is the same on every machine.
SETTINGS = {
    "ENROOT_CONFIG_PATH": "/dev/null",  # none of the user's own mounts, variables and hooks
    "ENROOT_LOGIN_SHELL": "no",  # it would read /etc/profile, which on Debian sets another PATH than the image's
    "ENROOT_MOUNT_HOME": "no",
    "ENROOT_REMAP_ROOT": "no",
    "ENROOT_ROOTFS_WRITABLE": "no",
}
# What its hook for NVIDIA's GPUs is told, and is told where there are to be none, whatever the image says.
GPUS = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "void"}
# The caller's variables that Enroot and its hooks take options from, before those of a command line; but for those that
# say where it works, and how an image is mounted.
OPTIONS_IN_VARIABLES = ("ENROOT_", "NVIDIA_", "MELLANOX_")
OUTSIDE = (
    "ENROOT_CACHE_PATH", "ENROOT_DATA_PATH", "ENROOT_LIBRARY_PATH", "ENROOT_NATIVE_OVERLAYFS", "ENROOT_RUNTIME_PATH",
    "ENROOT_SYSCONF_PATH", "ENROOT_TEMP_PATH",
)  # fmt: skip
# What it can pass on: it writes variables into a file, a line for each, whose values lose quotes around them.
CARRIED = re.compile(r"""(?!ENROOT_)[A-Za-z_][A-Za-z0-9_]*=(?!["'].*["']\s*\Z)[^\n]*""")
# In the name of a folder: a shell and the format of fstab(5) make something of these.
NOT_MOUNTED = re.compile(r"""[\s\\"$`]""")
# Words of Enroot's messages, by what they are about; the first that is found counts.
FAULTS = {
    "gpus": re.compile("Command not found: nvidia-container-cli"),
    "command": re.compile("Command not found: "),
    "namespace": re.compile("failed to unshare user namespace"),
    "mount": re.compile("Failed to mount: "),
}


class EnrootEngine:
    """One ``enroot start`` per worker, as the caller, from the image's file. Code and data of the host are visible
    inside, read-only, and that of a user's own command.

    Nothing of a worker is left, however it ends. Each of Enroot's programs becomes the next, and the last the worker:
    it is the leader of its session, whose mounts are in a namespace that goes with it. What serves these (squashfuse,
    fuse-overlayfs) is a process group of that session, which is ended with it by ``process.end``, and by the kernel
    where the worker ends by itself. These are no children that the worker waits for, so that their CPU time can't be
    told.
    """

    name = "enroot"
    options = frozenset({"sqsh"})

    def __init__(self, options: EngineOptions) -> None:
        if shutil.which("enroot") is None:
            raise InputError(NotInstalled("Enroot", INSTALL["Enroot"]))
        _require_namespaces()
        self.given = options
        self._sqsh = Path(options.sqsh or IMAGE_FILES["sqsh"]).resolve()
        sqsh_digest = digest(self._sqsh, "sqsh")
        with files.opened(self._sqsh, most=None) as file:
            if file.read(len(MAGIC)) != MAGIC:
                make = container.made_by(self._sqsh.stem, "sqsh")
                raise InputError(NotSquashfs(str(self._sqsh), make))
        version = subprocess.run(["enroot", "version"], capture_output=True, text=True, timeout=60, check=False)
        if version.returncode != 0:
            printed = (version.stderr or version.stdout).strip().splitlines()
            reason = Printed(printed[-1]) if printed else NoOutput()
            raise InputError(EngineUnusable("Enroot", reason, ENROOT_FIX["settings"]))
        self._described = {
            "name": self.name, "version": version.stdout.strip(), "image": str(self._sqsh), "digest": sqsh_digest,
        }  # fmt: skip

    def describe(self) -> dict[str, str]:
        return self._described

    def command(self, launch: Launch, more: Sequence[str] = ()) -> list[str]:
        """A profile's variables are set inside, by ``env``, and so do nothing to Enroot, its hooks and its shell."""
        settings = [f"{name}={value}" for name, value in SETTINGS.items()]
        gpus = CONTAINER.gpus if launch.gpus else _given(NO_GPUS)
        mounts = [part for mount in container.mounts(launch) for part in ("--mount", mounted(mount))]
        passed = [part for name in _passed_on(launch) for part in ("--env", name)]
        variables = [f"{name}={value}" for name, value in container.variables(launch).items()]
        return [
            "env", *settings, "enroot", "start", *more, *gpus, *mounts, *passed, "--rc", str(RC), "--", str(self._sqsh),
            container.working_folder(launch), "env", *variables, *container.argv(launch),
        ]  # fmt: skip

    def request(self, launch: Launch) -> WorkerRequest | None:
        return container.request(launch)

    def start(self, launch: Launch) -> Started:
        argv, environment = self._start_of(launch)
        process = Process(argv, environment, SOURCES, self.request(launch), launch.ahead)
        return Started(process, launch.timeout_s, finish=self._explained)

    def run(self, launch: Launch) -> Outcome:
        if launch.nodes > 1:
            return self._explained(self._on_nodes(launch))
        return ended(self.start(launch))

    def _on_nodes(self, launch: Launch) -> Outcome:
        """Slurm itself makes the containers where it has Pyxis, which takes no more than Enroot; else Enroot does.

        To Pyxis an image is unpacked for each step. So a worker on this node alone is started by Enroot in any case.
        """
        from envkit.engines import step
        from envkit.engines.slurm import client
        from envkit.engines.start import OF_EACH_NODE

        _, environment = self._start_of(launch)
        if client.starts_containers():
            inside = {**container.passed_on(launch), **container.variables(launch)}
            made = {**SETTINGS, **(GPUS if launch.gpus else NO_GPUS)}
            return step.run(
                container.argv(launch), inside, launch.nodes, launch.timeout_s, self.request(launch),
                container=self.pyxis(launch), made=made,
            )  # fmt: skip
        of_node = [part for name in OF_EACH_NODE for part in ("--env", name)]
        return step.run(
            self.command(launch, of_node), environment, launch.nodes, launch.timeout_s, self.request(launch)
        )

    def pyxis(self, launch: Launch) -> list[str]:
        """The options of ``srun`` by which Pyxis makes the same container, without what is to run in it."""
        mounts = container.mounts(launch)
        for mount in mounts:
            mounted(mount)  # what Enroot can't mount: it is Enroot's here too
        return [
            f"--container-image={self._sqsh}", f"--container-mounts={','.join(mounts)}",
            f"--container-workdir={container.working_folder(launch)}", "--no-container-mount-home",
            "--no-container-remap-root", "--no-container-entrypoint",
        ]  # fmt: skip

    def _start_of(self, launch: Launch) -> tuple[list[str], dict[str, str]]:
        """The command, and the variables that it is started with."""
        if launch.gpus:
            container.require_gpus()  # its hook says less
        return self.command(launch), callers(launch, launch.inherited or os.environ)

    def _explained(self, outcome: Outcome) -> Outcome:
        """Return the outcome with what to do about what Enroot said."""
        fault = next((name for name, words in FAULTS.items() if words.search(outcome.stderr_tail)), None)
        return replace(outcome, failure=EngineFault(ENROOT_FIX[fault])) if outcome.failure and fault else outcome


def _require_namespaces() -> None:
    """Raise InputError if the kernel lets this user make no namespaces, of which a container is made."""
    for name in NAMESPACES:
        try:
            value = (KERNEL / name).read_text().strip()
        except OSError:  # a kernel without this switch
            continue
        if value == "0" and not (name == NAMESPACES[1] and os.geteuid() == 0):
            switch = name.replace("/", ".")
            raise InputError(NoNamespaces(switch, 1) if name == NAMESPACES[1] else NoNamespaces(switch, 2, 10000))


def mounted(mount: str) -> str:
    """``HOST:INSIDE:ro`` in the words of fstab(5), with colons between them. Raises InputError where that can't be.

    Other mounts below a folder come along: an ordinary user's namespace may not leave them out (mount_namespaces(7)).
    """
    host, inside, mode = mount.rsplit(":", 2)
    if NOT_MOUNTED.search(host):
        raise InputError(UnmountableByEnroot(host))
    return f"{host}:{inside}:none:x-create=dir,rbind,{mode},nosuid,nodev"


def callers(launch: Launch, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of Enroot's own process, from the caller's: those that it is to pass on are among them."""
    outside = {
        name: value for name, value in variables.items() if not name.startswith(OPTIONS_IN_VARIABLES) or name in OUTSIDE
    }
    return {**outside, **container.passed_on(launch)}


def _passed_on(launch: Launch) -> list[str]:
    """The names of what it is to pass on. Raises InputError for what would be another variable, or value, inside."""
    passed = container.passed_on(launch)
    for name, value in passed.items():
        if not CARRIED.fullmatch(f"{name}={value}"):
            raise InputError(UnpassableValue(name))
    return [*passed]


def _given(variables: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for name, value in variables.items() for part in ("--env", f"{name}={value}"))


CONTAINER = container.Kind(_given(GPUS), "start", "--mount", mounted=mounted, callers=callers, attaches=False)
