"""The Podman engine, through its command line."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import replace

from envkit.common.errors import InputError
from envkit.engines import container, owner
from envkit.engines.base import SOURCES, EngineOptions, Launch, Outcome, ended
from envkit.engines.process import Process, Started
from envkit.engines.setup_messages import (
    INSTALL,
    EngineSilent,
    EngineUnusable,
    ImageMissing,
    NotInstalled,
)
from envkit.messages import Message, Printed
from envkit.worker.messages.user_command import NoOutput
from envkit.worker.request import WorkerRequest

TIMEOUT_S = 60
TIMED_OUT = 124  # as timeout(1) has it
# GPUs as the toolkit names them (Container Device Interface)
CONTAINER = replace(container.DOCKER, gpus=("--device", "nvidia.com/gpu=all"))


class PodmanEngine:
    """One container per worker, removed when the worker has ended."""

    name = "podman"
    options = frozenset({"image"}) | container.LIMITS

    def __init__(self, options: EngineOptions) -> None:
        if shutil.which("podman") is None:
            raise InputError(NotInstalled("Podman", INSTALL["Podman"]))
        self.given = options
        version = _podman("version", "--format", "{{.Client.Version}}")
        if version.returncode == TIMED_OUT:
            raise InputError(EngineSilent("Podman", TIMEOUT_S))
        if version.returncode != 0:
            raise InputError(EngineUnusable("Podman", _last_line(version.stderr)))
        image = options.image or container.IMAGE
        inspected = _podman("image", "inspect", "--format", "{{.Id}}", image)
        if inspected.returncode != 0:
            raise InputError(ImageMissing("Podman", image, f"{container.made_by(image)} ENGINE=podman"))
        digest = f"sha256:{inspected.stdout.strip()}"
        self._described = {"name": self.name, "version": version.stdout.strip(), "image": image, "digest": digest}

    def describe(self) -> dict[str, str]:
        return self._described

    def command(self, launch: Launch) -> list[str]:
        return self._argv(launch, self._described["image"], "--rm")

    def request(self, launch: Launch) -> WorkerRequest | None:
        return container.request(launch)

    def start(self, launch: Launch) -> Started:
        if launch.gpus:
            container.require_gpus()
        name = f"envkit-{secrets.token_hex(6)}"
        image = self._described["digest"].removeprefix("sha256:")
        # A worker is process 1 of its container and ignores SIGTERM. Podman would wait for it, so it is killed at once.
        # A user's command gets the signal, and the time that engines allow.
        proxy = () if launch.folder else ("--sig-proxy=false",)
        argv = self._argv(launch, image, *proxy, "--name", name, "--label", f"{owner.LABEL}={owner.me()}")
        caller = {**(launch.inherited or os.environ), **launch.passed_on}
        try:
            process = Process(argv, caller, SOURCES, self.request(launch), launch.ahead)
        except BaseException:
            _remove(name)
            raise
        return Started(
            process,
            launch.timeout_s,
            finish=lambda outcome: self._explained(outcome, name),
            clean=lambda: _remove(name),
        )

    def _argv(self, launch: Launch, image: str, *first: str) -> list[str]:
        options = container.run_options(launch, self.given, os.geteuid() != 0, CONTAINER.gpus)
        return ["podman", "run", *first, *options, image, *container.argv(launch)]

    def run(self, launch: Launch) -> Outcome:
        return ended(self.start(launch))

    def _explained(self, outcome: Outcome, name: str) -> Outcome:
        """With what Podman knows of its end."""
        if outcome.failure and _podman("inspect", "--format", "{{.State.OOMKilled}}", name).stdout.strip() == "true":
            outcome = replace(outcome, failure=container.out_of_memory(self.given))
        outcome = replace(outcome, failure=container.without_gpus(outcome.failure, outcome.stderr_tail))
        return container.explained(outcome, self.given)


def _podman(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, TIMED_OUT, "", "")


def _remove(name: str) -> None:
    """Remove a container, whether it still runs or not. (Only from version 4.0 on can ``rm`` be told not to wait.)"""
    _podman("kill", name)
    _podman("rm", "--force", "--ignore", "--volumes", name)


def _last_line(printed: str) -> Message:
    lines = printed.strip().splitlines()
    return Printed(lines[-1]) if lines else NoOutput()


def remove_leftovers() -> None:
    """Remove the containers of runners that are gone."""
    if shutil.which("podman") is None:
        return
    form = f'{{{{.ID}}}} {{{{index .Labels "{owner.LABEL}"}}}}'
    for line in _podman("ps", "--all", "--filter", f"label={owner.LABEL}", "--format", form).stdout.splitlines():
        container_id, _, label = line.partition(" ")
        if owner.is_gone(label):
            _remove(container_id)
