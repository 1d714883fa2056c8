"""The Docker engine, through the Docker SDK for Python."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from urllib.parse import urlsplit

import docker
import requests
import urllib3
from docker.context.config import get_current_context_name
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.containers import Container

from envkit.common.errors import InputError
from envkit.engines import container, owner
from envkit.engines.base import EngineOptions, Launch, Outcome, ended, tail
from envkit.engines.messages import DaemonLost, NotStarted, TimedOut
from envkit.engines.process import failure_of
from envkit.engines.setup_messages import (
    INSTALL,
    BadCpus,
    ContextElsewhere,
    ContextUnusable,
    DaemonElsewhere,
    DaemonNotRunning,
    DaemonSilent,
    ImageMissing,
    ImageRefused,
    NoPermission,
    NotInstalled,
)
from envkit.messages import Message
from envkit.worker.measure import turn
from envkit.worker.request import WorkerRequest

SOCKET = "/var/run/docker.sock"
OWN_NAMES = ("localhost", "127.0.0.1", "::1")
API_TIMEOUT_S = 60
READ_BYTES = 2**16
HEADER_BYTES = 8  # of a frame: the stream's number, three zeros, and the length of what follows
LOST = (requests.exceptions.RequestException, DockerException)


class DockerEngine:
    """One container per worker, removed when the worker has ended."""

    name = "docker"
    options = frozenset({"image"}) | container.LIMITS

    def __init__(self, options: EngineOptions) -> None:
        self.given = options
        self._limits = _limits(options)
        self._client = _connect()
        image = options.image or container.IMAGE
        try:
            self._image = self._client.images.get(image)
        except ImageNotFound:
            raise InputError(ImageMissing("Docker", image, container.made_by(image))) from None
        except APIError as error:
            refused = ImageRefused(image, str(error.explanation), "Docker", "docker images")
            raise InputError(refused) from None
        self._described = {
            "name": self.name, "version": self._client.version()["Version"], "image": image, "digest": self._image.id,
        }  # fmt: skip

    @cached_property
    def _rootless(self) -> bool:
        """Return whether the daemon runs as an ordinary user."""
        return any("name=rootless" in option for option in self._client.info().get("SecurityOptions") or ())

    def describe(self) -> dict[str, str]:
        return self._described

    def command(self, launch: Launch) -> list[str]:
        options = container.run_options(launch, self.given, self._rootless, container.DOCKER.gpus)
        return ["docker", "run", "--rm", *options, self._described["image"], *container.argv(launch)]

    def request(self, launch: Launch) -> WorkerRequest | None:
        return container.request(launch)

    def start(self, launch: Launch) -> _Container:
        if launch.gpus and _is_here():
            container.require_gpus()
        return _Container(lambda: self._create(launch), self.given, launch, self.request(launch))

    def run(self, launch: Launch) -> Outcome:
        return ended(self.start(launch))

    def _create(self, launch: Launch) -> Container:
        user = container.user(launch, self._rootless)
        return self._client.containers.create(
            self._image.id, container.argv(launch),
            environment={**container.passed_on(launch), **container.variables(launch)},
            network_mode=container.network(launch), user=user, working_dir=container.FOLDER,
            labels={owner.LABEL: owner.me()}, log_config={"type": "json-file"}, shm_size=container.SHM,
            security_opt=[container.READS_MOUNTS, container.NO_NEW_PRIVILEGES], cap_drop=["ALL"],
            cap_add=container.allowed(launch, user), pids_limit=container.most_processes(self._rootless),
            volumes=container.mounts(launch), device_requests=_all_gpus(launch), stdin_open=launch.work is not None,
            **self._limits,
        )  # fmt: skip


class _Container:
    """A worker in a container, which ``create`` makes. Why it was not started, if so, is how it ended."""

    def __init__(
        self, create: Callable[[], Container], options: EngineOptions, launch: Launch, request: WorkerRequest | None
    ) -> None:
        self._options, self._timeout_s, self._is_ahead = options, launch.timeout_s, launch.ahead
        self._streams: _Streams | None = None
        self._begin = time.monotonic()
        self._container: Container | None = None
        self._failure: Message | None = None
        try:
            with self._lost():
                self._container = create()
                if request is not None:
                    self._streams = _Streams(self._container, launch.ahead)
                self._container.start()
                if self._streams is not None and request is not None:
                    self._streams.write(request.line().encode())
        except BaseException:
            self.end()
            raise

    @property
    def _created(self) -> Container:
        """Return the daemon's container. There is one unless its making failed, which is recorded as the failure."""
        assert self._container is not None, "it was made"
        return self._container

    def has_ended(self) -> bool:
        if self._failure is None:
            with self._lost():
                self._created.reload()
                return bool(self._created.status in ("exited", "dead"))
        return True

    def is_ready(self, wait_s: float) -> bool:
        assert self._streams is not None, "it was started ahead"
        with self._lost():
            return self._streams.is_ready(wait_s)
        return False

    def give_turn(self) -> None:
        assert self._streams is not None, "it was started ahead"
        with self._lost():
            self._streams.write(turn.GO)

    def wait(self) -> Outcome:
        stdout = stderr = ""
        failure = self._failure
        if failure is None:
            with self._lost():
                failure = self._status()
                printed = self._created.logs(stdout=True, stderr=False)
                after_ready = turn.after_ready(printed) if self._is_ahead else None
                stdout = (printed if after_ready is None else after_ready).decode(errors="replace")
                stderr = self._created.logs(stdout=False, stderr=True).decode(errors="replace")
        return Outcome(stdout, tail(stderr), time.monotonic() - self._begin, self._failure or failure)

    def end(self) -> None:
        # Where the daemon is gone, or is removing it already, the next start finds what remains by its label.
        with contextlib.suppress(*LOST):
            if self._streams is not None:
                self._streams.close()
            if self._container is not None:
                self._container.remove(force=True, v=True)

    @contextlib.contextmanager
    def _lost(self) -> Iterator[None]:
        """What the daemon refuses or does not answer in here is how the worker ended."""
        try:
            yield
        except APIError as error:
            reason = str(error.explanation or error)
            self._failure = container.without_gpus(NotStarted(reason), reason)
        except LOST as error:
            self._failure = DaemonLost(_reason(error))

    def _status(self) -> Message | None:
        """Return what was wrong with its end, which it is waited for; None for a good one."""
        try:
            status = self._created.wait(timeout=self._timeout_s)["StatusCode"]
        except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as error:
            if not _is_timeout(error):
                raise
            self._created.kill()
            return TimedOut(self._timeout_s)
        self._created.reload()
        if self._created.attrs["State"]["OOMKilled"]:
            return container.out_of_memory(self._options)
        return failure_of(status)


def _is_timeout(error: requests.exceptions.RequestException) -> bool:
    """Say whether a request took too long. While requests reads an answer, it raises a ConnectionError for that too."""
    causes = (error, *error.args)
    return any(isinstance(cause, requests.exceptions.Timeout | urllib3.exceptions.ReadTimeoutError) for cause in causes)


def _all_gpus(launch: Launch) -> list[docker.types.DeviceRequest] | None:
    """Return what ``--gpus all`` asks of the daemon."""
    return [docker.types.DeviceRequest(count=-1, capabilities=[["gpu"]])] if launch.gpus else None


def _is_here() -> bool:
    """Return whether the daemon is on this machine, as far as its address tells."""
    return _address().startswith("unix://")


def _address() -> str:
    """Of the daemon that ``docker`` would ask: DOCKER_HOST, else that of its context, which is for a rootless one.

    Raises InputError for a context that is not there, and for another machine: it could mount nothing of this one.
    """
    if host_variable := os.environ.get("DOCKER_HOST"):
        address = host_variable if "//" in host_variable else f"//{host_variable}"
        if not address.startswith("unix://") and urlsplit(address).hostname not in OWN_NAMES:
            raise InputError(DaemonElsewhere(host_variable))
        return host_variable
    name = os.environ.get("DOCKER_CONTEXT") or get_current_context_name()
    if name == "default":
        return f"unix://{SOCKET}"
    command = ["docker", "context", "inspect", name, "--format", "{{.Endpoints.docker.Host}}"]
    try:
        inspected = subprocess.run(command, capture_output=True, text=True, timeout=API_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(ContextUnusable(name, _reason(error))) from None
    if inspected.returncode != 0:
        raise InputError(ContextUnusable(name, inspected.stderr.strip()[:200]))
    host = inspected.stdout.strip()
    if not host.startswith("unix://"):
        raise InputError(ContextElsewhere(name, host))
    return host


def _limits(options: EngineOptions) -> dict[str, int | str]:
    """The limits as arguments of the SDK's ``containers.create``. Raises InputError for a text that is none."""
    limits: dict[str, int | str] = {}
    if options.cpus is not None:
        if not re.fullmatch(r"\d+(\.\d+)?", options.cpus) or float(options.cpus) == 0:
            raise InputError(BadCpus(options.cpus))
        limits["nano_cpus"] = round(float(options.cpus) * 1e9)
    if options.cpuset_cpus is not None:
        limits["cpuset_cpus"] = options.cpuset_cpus
    if options.memory is not None:
        # swap counts too: a worker that swaps would be measured as a slow one
        limits["mem_limit"] = limits["memswap_limit"] = container.memory_bytes(options.memory)
    return limits


def _connect() -> docker.DockerClient:
    """A client whose daemon answers. Raises InputError: not installed, no daemon, or no permission, and the fix."""
    address = _address()
    if address.startswith("unix://"):
        path = address.removeprefix("unix://")
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
        except PermissionError:
            raise InputError(NoPermission(path)) from None
        except OSError as error:
            if shutil.which("dockerd") is None and shutil.which("docker") is None:
                raise InputError(NotInstalled("Docker", INSTALL["Docker"])) from None
            raise InputError(DaemonNotRunning(path, str(error.strerror))) from None
    try:
        client = docker.from_env(timeout=API_TIMEOUT_S, environment={**os.environ, "DOCKER_HOST": address})
        client.ping()
    except LOST as error:
        raise InputError(DaemonSilent(address, _reason(error))) from None
    return client


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def remove_leftovers() -> None:
    """Remove the containers of runners that are gone, where a daemon answers."""
    try:
        client = _connect()
        # others may end, or be removed, while these are looked at
        for container_of_dead in client.containers.list(all=True, filters={"label": owner.LABEL}, ignore_removed=True):
            if owner.is_gone(container_of_dead.labels[owner.LABEL]):
                with contextlib.suppress(*LOST):
                    container_of_dead.remove(force=True, v=True)
    except (InputError, *LOST):
        return


class _Streams:
    """The stdin of a ``container`` that was made and is not started yet; if it ``waits`` for a turn, the stdout too."""

    def __init__(self, container: Container, waits: bool) -> None:
        self._stdin = _Stream(container, "stdin")
        self._stdout = _Stream(container, "stdout") if waits else None
        self._frames = b""

    def is_ready(self, wait_s: float) -> bool:
        """Return whether the worker waits for its turn. It is waited for ``wait_s`` seconds at most."""
        assert self._stdout is not None, "it was started ahead"
        self._frames += self._stdout.read(wait_s)
        if turn.after_ready(content(self._frames)) is None:
            return False
        self._stdout.close()  # else the daemon has the worker wait once so much has not been read
        return True

    def write(self, text: bytes) -> None:
        """Write to its stdin."""
        with contextlib.suppress(OSError):  # it has ended
            self._stdin.socket.sendall(text)

    def close(self) -> None:
        self._stdin.close()
        if self._stdout is not None:
            self._stdout.close()


class _Stream:
    """One stream of a container: the connection is handed over to it."""

    def __init__(self, container: Container, name: str) -> None:
        # to be kept: the connection ends with it
        self._file = container.client.api.attach_socket(container.id, params={name: 1, "stream": 1})
        # Docker's package wraps the socket, but for an address with encryption
        self.socket: socket.socket = getattr(self._file, "_sock", self._file)

    def read(self, wait_s: float) -> bytes:
        """Return what has come within ``wait_s`` seconds, if anything has."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        received = b""
        if poll.poll(wait_s * 1000):
            with contextlib.suppress(OSError):
                received = self.socket.recv(READ_BYTES)
            if not received:  # the container has ended, and the daemon is about to know
                time.sleep(wait_s)
        return received

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other end may have closed it
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self._file.close()


def content(frames: bytes) -> bytes:
    """Return what was printed, from the frames of the daemon's answer (https://docs.docker.com/reference/api/engine/)."""
    printed = b""
    while len(frames) > HEADER_BYTES:
        end = HEADER_BYTES + int.from_bytes(frames[4:HEADER_BYTES], "big")
        printed += frames[HEADER_BYTES:end]
        frames = frames[end:]
    return printed
