"""Messages on GPUs that can't be used, and on drivers that don't answer."""

from __future__ import annotations

from envkit.messages import Message


class NoDriverSeen(Message):
    """The driver's library for management can't be loaded."""

    template = "no NVIDIA driver is seen ({library} can't be loaded)"

    library: str


class DriverNotPermitted(Message):
    """The driver's library may not ask the kernel module."""

    template = "NVIDIA's driver does not answer: its library may not ask the driver (NVML_ERROR_NO_PERMISSION)"


class DriverNotLoaded(Message):
    """The driver's kernel module is not loaded."""

    template = "NVIDIA's driver does not answer: its kernel module is not loaded (NVML_ERROR_DRIVER_NOT_LOADED)"


class DriverVersionsDiffer(Message):
    """The driver's library and kernel module have different versions."""

    template = (
        "NVIDIA's driver does not answer: its library and its kernel module have different versions "
        "(NVML_ERROR_LIB_RM_VERSION_MISMATCH)"
    )


class DriverSilent(Message):
    """The driver can't be initialized, for another reason. ``status`` is nvmlReturn_t."""

    template = "NVIDIA's driver does not answer: nvmlInit_v2 gave {status:d}"

    status: int


class DriverUnusable(Message):
    """Torch can use no GPU, because the driver does not answer."""

    template = "{problem}; install or fix the driver, or leave --device cuda out"

    problem: Message


class BuiltWithoutCuda(Message):
    """Torch is a build for CPUs."""

    template = "its torch is a build without CUDA; name a Python with another (--python), or an image of one"


class DriverTooOld(Message):
    """The driver is for an older major version of CUDA than torch was built for."""

    template = (
        "NVIDIA's driver {driver} is for CUDA {cuda}, and its torch was built for {built_for}; "
        "install a newer driver, or a torch that is built for CUDA {cuda}"
    )

    driver: str | None
    cuda: str | None
    built_for: str


class NoGpu(Message):
    """The driver shows no GPU."""

    template = "NVIDIA's driver {driver} has no GPU to show; see nvidia-smi: a batch job may have been given none"

    driver: str | None


class HiddenBySetting(Message):
    """Torch can use no GPU, because of a variable."""

    template = "{problem}; correct {variable}, or unset it"

    problem: Message
    variable: str


class AllHidden(Message):
    """A variable hides all GPUs."""

    template = "{variable}='{value}' hides all GPUs"

    variable: str
    value: str


class NoneLeft(Message):
    """A variable leaves no GPU. A record has this for the messages that quote the caller's value."""

    template = "{variable} leaves no GPU that is there; correct {variable}, or unset it"

    variable: str


class NamesMissingGpu(Message):
    """A variable names a GPU that the machine does not have."""

    template = "{variable}='{value}' names GPU {gpu}, and the machine has {count:count GPU}, numbered from 0"

    variable: str
    value: str
    gpu: str
    count: int


class NamesGpuTwice(Message):
    """A variable names a GPU twice."""

    template = "{variable}='{value}' names GPU {gpu} twice, which hides all"

    variable: str
    value: str
    gpu: str
