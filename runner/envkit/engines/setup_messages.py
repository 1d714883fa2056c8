"""Messages about engines that can't start workers here: options, images, daemons, folders."""

from __future__ import annotations

from envkit.messages import Message

# How an engine is installed, by its name.
INSTALL = {
    "Apptainer": "see https://apptainer.org/docs/admin/main/installation.html",
    "Docker": "apt-get install docker.io, or choose another ENGINE",
    "Enroot": "see https://github.com/NVIDIA/enroot/blob/master/doc/installation.md",
    "Podman": "apt-get install podman, or choose another ENGINE",
}
# What to do about faults that an engine prints.
APPTAINER_FIX = {
    "fuse": "/dev/fuse must be readable and writable: sudo chmod 666 /dev/fuse",
    "squashfs": "the image is damaged: build it again with make sif",
    "cgroups": "an ordinary user can set limits only where systemd runs: leave --cpus and the like out",
}
ENROOT_FIX = {
    "gpus": "install its tools: https://github.com/NVIDIA/libnvidia-container",
    "command": "install what it names: to start an image's file it takes squashfuse and fuse-overlayfs",
    "namespace": (
        "an ordinary user may make none here: https://github.com/NVIDIA/enroot/blob/master/doc/requirements.md"
    ),
    "mount": "/dev/fuse must be open to you (sudo chmod 666 /dev/fuse), and the image whole (make sqsh)",
    "settings": "see its settings: https://github.com/NVIDIA/enroot/blob/master/doc/configuration.md",
}


class OptionWithoutEffect(Message):
    """An option has no effect on the engines that the user named. ``fitting`` are the engines that take it."""

    template = "{option} has no effect on the engine {engines:list}; [give --engine {fitting:or}, or ]leave it out"

    option: str
    engines: tuple[str, ...]
    fitting: tuple[str, ...] = ()


class LimitOfSome(Message):
    """A limit would hold for some of the compared engines alone."""

    template = (
        "{option}: the engine {engine} has no limits, so the comparison would be unfair; "
        "leave it out, or compare other engines"
    )

    option: str
    engine: str


class BadMemory(Message):
    """The value of --memory is no number of bytes."""

    template = "--memory {value}: give bytes, or a number with k, m or g, for example 4g"

    value: str


class BadCpus(Message):
    """The value of --cpus is no number of CPUs."""

    template = "--cpus {value}: give a number of CPUs above 0, for example 1.5"

    value: str


class LimitNotInForce(Message):
    """An engine accepts a limit and does not enforce it, as a user's own Podman on control groups of version 1."""

    template = (
        "{option}: {engine} accepts this limit, but does not enforce it, because the user may not set control groups; "
        "leave it out, or use another engine"
    )

    option: str
    engine: str


class NoDriver(Message):
    """The machine has no driver for GPUs, which a container needs."""

    template = "GPUs for a container: the driver is missing on this machine: {reason}; install it"

    reason: Message


class NoDevice(Message):
    """The driver shows no GPU."""

    template = (
        "GPUs for a container: the device is missing: the driver[ {driver}] shows no GPU on this machine; "
        "see nvidia-smi"
    )

    driver: str | None


class HidesImage(Message):
    """The folder of a user's command would cover files of the image."""

    template = "{folder}: would hide the image's own files; start from a folder of your own"

    folder: str


class Unmountable(Message):
    """A container engine can't mount a folder because of a character in its name."""

    template = "{folder}: a container engine can't mount a folder with ':' or ',' in its name; rename it"

    folder: str


class UnmountableByEnroot(Message):
    """Enroot can't mount a folder because of a character in its name."""

    template = "{folder}: Enroot can't mount a folder with a blank or one of \\ \" $ ` in its name; rename it"

    folder: str


class UnreadableInside(Message):
    """The ordinary user of a container can't read the kit's code."""

    template = "{folder}: a container's ordinary user can't read it; run {fix:command}"

    folder: str
    fix: tuple[str, ...]


class NotInstalled(Message):
    """An engine is not installed."""

    template = "{engine} is not installed: {fix}"

    engine: str
    fix: str


class ImageMissing(Message):
    """An engine does not have an image."""

    template = "{engine} has no image '{image}'; build it with: {build}"

    engine: str
    image: str
    build: str


class ImageRefused(Message):
    """An engine refuses the name of an image."""

    template = "--image {image}: {reason}; give a name that {engine} has ({fix})"

    image: str
    reason: str
    engine: str
    fix: str


class DaemonElsewhere(Message):
    """Docker's daemon runs on another machine, whose folders are not this machine's."""

    template = "DOCKER_HOST={address} is not on this machine, whose folders it can't mount; unset it"

    address: str


class ContextElsewhere(Message):
    """The daemon of Docker's context runs on another machine, whose folders are not this machine's."""

    template = (
        "Docker's context '{name}' ({address}) is not on this machine, whose folders it can't mount; "
        "see docker context ls, or: docker context use default"
    )

    name: str
    address: str


class ContextUnusable(Message):
    """Docker can't use the context that the user chose."""

    template = (
        "Docker's context '{name}' can't be used ({reason}); see docker context ls, or: docker context use default"
    )

    name: str
    reason: str


class NoPermission(Message):
    """The user may not connect to the daemon."""

    template = "no permission to use Docker ({path}): sudo usermod -aG docker $USER, then log in again"

    path: str


class DaemonNotRunning(Message):
    """Nothing answers at the daemon's socket."""

    template = "the Docker daemon is not running ({path}: {reason}): sudo systemctl start docker"

    path: str
    reason: str


class DaemonSilent(Message):
    """The daemon accepts connections and does not answer."""

    template = "the Docker daemon at {address} does not answer ({reason}): start it"

    address: str
    reason: str


class EngineUnusable(Message):
    """An engine is installed, and its own command fails."""

    template = "{engine} can't be used here: {reason}[; {fix}]"

    engine: str
    reason: Message  # the last line that it printed
    fix: str | None = None


class EngineSilent(Message):
    """An engine is installed, and does not answer."""

    template = "{engine} can't be used here: it does not answer within {seconds:g} s"

    engine: str
    seconds: float


class NotSquashfs(Message):
    """The file of an image is of another kind."""

    template = "{image}: not a squashfs, as Enroot's images are; make one with: {build}"

    image: str
    build: str


class NoNamespaces(Message):
    """The kernel makes no user namespaces."""

    template = (
        "Enroot needs user namespaces, and this kernel makes none: {switch} is 0; have the administrator set it to "
        "{least} or more[, for example {example:d}] (sysctl): "
        "https://github.com/NVIDIA/enroot/blob/master/doc/requirements.md"
    )

    switch: str
    least: int
    example: int | None = None


class UnpassableValue(Message):
    """Enroot can't pass on a variable."""

    template = (
        "{name}: Enroot passes on no value with a line break or with quotes around it, and no ENROOT_*; "
        "leave it out, or change it"
    )

    name: str


class NoInterpreter(Message):
    """A Python that was named is no executable."""

    template = "{given}: no such executable; give an interpreter, for example /usr/bin/python3"

    given: str


class CantBeStarted(Message):
    """The system refuses to start a program."""

    template = "{program}: can't be started: {reason}"

    program: str
    reason: str


class ForeignNotes(Message):
    """The folder for notes about workers belongs to another user, or is no folder."""

    template = "{folder}: not a folder of this user; remove it, or set TMPDIR to another folder"

    folder: str


class NotesUnwritable(Message):
    """The folder for notes about workers can't be made."""

    template = "{folder}: can't be made: {reason}; set TMPDIR to another folder"

    folder: str
    reason: str


class NoProc(Message):
    """The kernel's view of processes is missing."""

    template = "{file}: can't be read: {reason}; mount /proc, which shows the processes of this machine"

    file: str
    reason: str
