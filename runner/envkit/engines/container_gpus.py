"""Check what a container needs for a GPU: the driver, a device, and the container engine's way to them."""

from __future__ import annotations

import re

from envkit.common.errors import InputError
from envkit.engines.messages import NoContainerToolkit
from envkit.engines.setup_messages import NoDevice, NoDriver
from envkit.messages import Message
from envkit.worker import nvml

TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
# Words of the engines' messages where their way to NVIDIA's GPUs is missing.
NO_WAY = re.compile(
    "could not select device driver|"  # Docker, without the toolkit's runtime
    "failed to discover GPU vendor from CDI|"  # Docker 29 and later, without the toolkit's description of devices
    "unresolvable CDI devices|"  # Podman, without that description
    r"stat nvidia\.com/gpu"  # Podman before 4.1, which knows no such descriptions
)


def require(library: nvml.Nvml | None = None) -> None:
    """Raise InputError where the machine has no driver, or no device, to give to a container.

    ``library`` is the driver's, which is looked for where it is not given.
    """
    try:
        found = library or nvml.start()
    except nvml.Unavailable as error:
        raise InputError(NoDriver(error.message)) from None
    if not found.devices():
        raise InputError(NoDevice(found.driver()))


def explained(failure: Message | None, printed: str) -> Message | None:
    """Return ``failure``, or NoContainerToolkit if the engine ``printed`` that it could give the worker no GPU."""
    return NoContainerToolkit(TOOLKIT) if failure and NO_WAY.search(printed) else failure
