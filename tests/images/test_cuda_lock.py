"""The lock of the image with CUDA: that it is complete, and that every file has a hash. Building it takes GB."""

from __future__ import annotations

import re
import sys

import pytest
from envkit.engines.base import PROJECT
from packaging.requirements import Requirement

CUDA = PROJECT / "images/cuda"
LOCKS = (CUDA / "requirements.lock", CUDA / "torch.lock")
sys.path.insert(0, str(PROJECT / "images"))
import wheels  # noqa: E402 - a script's module, which is in no package

# What the metadata of the wheels of torch 2.13.0 and cuda-toolkit 13.0.3.0 require on Linux and x86-64, as read in an
# image that was built: of the latter only for the parts of CUDA that the former asks it for, which pip itself does not
# look at once they are installed.
REQUIRED = {
    "torch": (
        "filelock", "typing-extensions>=4.10.0", "setuptools>=77.0.3", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2",
        "fsspec>=0.8.5", "cuda-toolkit==13.0.3", "cuda-bindings<14,>=13.0.3", "nvidia-cudnn-cu13==9.20.0.48",
        "nvidia-cusparselt-cu13==0.8.1", "nvidia-nccl-cu13==2.29.7", "nvidia-nvshmem-cu13==3.4.5", "triton==3.7.1",
    ),
    "cuda-toolkit": (
        "nvidia-cublas==13.1.1.3.*", "nvidia-cuda-cupti==13.0.85.*", "nvidia-cuda-nvrtc==13.0.88.*",
        "nvidia-cuda-runtime==13.0.96.*", "nvidia-cufft==12.0.0.61.*", "nvidia-cufile==1.15.1.6.*",
        "nvidia-curand==10.4.0.35.*", "nvidia-cusolver==12.0.4.66.*", "nvidia-cusparse==12.6.3.3.*",
        "nvidia-nvjitlink<14,>=13.0.88", "nvidia-nvtx==13.0.85.*",
    ),
    "cuda-bindings": ("cuda-pathfinder>=1.4.2",),
}  # fmt: skip
VERSIONS = {"torch": "2.13.0", "cuda-toolkit": "13.0.3.0", "cuda-bindings": "13.5.0"}


@pytest.fixture(scope="module")
def locked():
    """The packages that the image's Python would install, by name."""
    return {package.name: package for lock in LOCKS for package in wheels.read_lock(lock)}


def test_every_package_has_a_version_and_hashes(locked):
    for package in locked.values():
        assert re.match(r"\d", package.version), package
        assert package.hashes, package
    # none is for another Python or platform, and so left out
    assert len(locked) == sum(len(re.findall(r"^[a-z]\S*==", lock.read_text(), re.MULTILINE)) for lock in LOCKS)


@pytest.mark.parametrize("name", REQUIRED)
def test_all_is_there_that_a_package_requires(locked, name):
    assert locked[name].version == VERSIONS[name], "what the new version requires is to be written here"
    for text in REQUIRED[name]:
        required = Requirement(text)
        assert required.name in locked
        assert required.specifier.contains(locked[required.name].version), text


def test_it_is_the_torch_of_the_other_images_built_with_cuda(locked):
    (cpu,) = {one.version for one in wheels.read_lock(PROJECT / "images/cpu/torch.lock")}
    assert locked["torch"].version == cpu.removesuffix("+cpu")


def test_what_every_image_has_is_the_same_there(locked):
    for package in wheels.read_lock(PROJECT / "images/cpu/requirements.lock"):
        assert locked[package.name].version == package.version
