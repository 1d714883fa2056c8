"""How libraries come into an image, and captions of the catalogue of variables."""

from __future__ import annotations

from envkit.worker.libraries import LIBRARIES

# What entries of the catalogue, and values in them, must be.
MAPPING = "a mapping"
TEXT = "a text"
URL = "a URL"
QUOTED = "a list of texts (quote what YAML takes for something else)"
WHOLE_NUMBER = "a whole number"
LIMITS = "a mapping of versions, quoted, to whole numbers"
KINDS = {"list": "a list", "dict": "a mapping", "bool": "true or false", "str": "a text"}

# How to get a library, by the source of its package.
DEBIAN_13 = "debian 13"
FROM = {"pypi": "pip install {}", "debian": "apt-get install {}", "conda": "conda install -c conda-forge {}"}
# What it needs beside its package.
NEEDS = "; it needs {file} (Debian: {package})"
# How a library comes into an image that is a part of something else.
PARTS = {
    "kit": "envkit includes it, for x86-64 only",
    "torch": "PyTorch has it built in",
    "torch-x86_64": "PyTorch for x86-64 has it built in",
    "torch-cuda": "install a CUDA build of PyTorch",
    "glibc": "most distributions have it as their C library",
    "system": "every image has it",
}
# What is said of a variable that the registry of libraries names and the catalogue does not describe.
DEFAULT_UNKNOWN = "the library's own"
DESCRIBED_THERE = "A setting of its library, whose documentation describes it."
NOTHING_ASKS = "nothing asks the library for its settings"
# What a kind of file is, in a sentence.
PART = "a part of the catalogue"
# Why a profile exists that has a part of the settings of another.
PART_OF_PROFILE = "A part of another profile, to see how much each of its settings gains."
# The key of a profile's needs: what its number counts.
COUNTED = {"gpus": "those that training on --device cuda could use"}


def way_to_get(name: str) -> str:
    """Return how to get the library of the registry called ``name``."""
    library = LIBRARIES[name]
    if library.comes_with:
        return PARTS[library.comes_with]
    ways = [FROM[source].format(package) for source, package in library.packages.items() if source in FROM]
    newer = library.packages.get(DEBIAN_13)
    way = ", or ".join(ways) + (f" (Debian 13: {newer})" if newer else "")
    return way + "".join(NEEDS.format(file=file, package=package) for file, package in library.loads.items())
