"""Which environment variables can change how fast or how exactly training runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from envkit.worker import libraries
from envkit.worker.libraries import LIBRARIES

# What libraries of the registry read, and all of glibc's malloc and of frameworks. PYTHONHASHSEED is among it: a fixed
# seed would give all samples one layout of dictionaries: lucky or unlucky, it looks like an effect.
FRAMEWORKS = ("MALLOC_", "THP_MEM_ALLOC", "TORCH_", "TORCHDYNAMO_", "PYTORCH_")
PREFIXES = libraries.shortest([*libraries.prefixes(libraries.KINDS), *FRAMEWORKS])
PRELOAD = "LD_PRELOAD"
# Those of them that say where things are or which version is installed, and not how work is done: a batch job can't do
# without. These and the patterns below are written as the shell's and fnmatch's.
WHERE = (
    "CUDA_DEVICE_ORDER", "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_PIPE_DIRECTORY", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME",
    "TORCH_CUDA_ARCH_LIST", "TORCHINDUCTOR_CACHE_DIR",
    *(f"{prefix}_{suffix}" for prefix in ("CUDA", "CUDNN", "NCCL", "TORCH", "PYTORCH")
      for suffix in ("*_DIR", "*_PATH", "*HOME", "*PATH", "*ROOT", "*VERSION", "*VISIBLE_DEVICES")),
)  # fmt: skip
# Frameworks and collective libraries have a switch for everything. Most decide whether and with what a program runs
# (TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, NCCL_IB_DISABLE), so a user's command gets them, but for these settings of speed.
SWITCHED = ("TORCH_", "TORCHDYNAMO_", "PYTORCH_", "NCCL_", "CUDA_", "CUBLAS_", "CUDNN_")
SPEED = (
    "CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
    "CUDA_SCALE_LAUNCH_QUEUES", "CUDNN_LOG*", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCH_ALLOW_TF32*",
    "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT", "TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_ENABLE_TIMING", "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_CGA_CLUSTER_SIZE", "NCCL_CROSS_NIC",
    "NCCL_DEBUG*", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_*CTAS", "NCCL_*NCHANNELS",
    "NCCL_NSOCKS_PERTHREAD", "NCCL_NTHREADS", "NCCL_PROTO", "NCCL_SOCKET_NTHREADS",
)  # fmt: skip
# Of the others, which set how OpenMP, math libraries and allocators work, a program can't run without these.
NEEDED = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "MKL_INTERFACE_LAYER", "MKL_SERVICE_FORCE_INTEL",
          "MKL_THREADING_LAYER")  # fmt: skip
# Those with a list of settings: what separates them, and a key from its value. A user's own and a profile's are joined.
LISTS = {name: signs for library in LIBRARIES.values() for name, signs in library.lists.items()}


def is_performance_variable(name: str) -> bool:
    """Return whether the worker must not inherit this variable from its caller."""
    return name.startswith(PREFIXES)


def says_where(name: str) -> bool:
    """Return whether the variable ``name`` says where things are: a user's command has it without a word."""
    return any(fnmatchcase(name, pattern) for pattern in WHERE)


def is_needed(name: str) -> bool:
    """Return whether a user's command may not run without the variable ``name``, so that it is passed on and told."""
    if says_where(name):
        return False
    if name.startswith(SWITCHED):
        return not any(fnmatchcase(name, pattern) for pattern in SPEED)
    return name in NEEDED or name in LISTS


def is_withheld(name: str) -> bool:
    """Return whether a user's command does not get the variable ``name`` unless that is asked for."""
    return is_performance_variable(name) and not says_where(name) and not is_needed(name)


def settings(name: str, value: str) -> dict[str, str]:
    """Return the settings of a list, one of LISTS, by their keys. Malformed ones are left out."""
    separator, assign = LISTS[name]
    # not between the brackets of PyTorch's roundup_power2_divisions:[256:1,512:2]
    fields = re.split(rf"{separator}(?![^\[]*\])", value) if assign == ":" else value.split(separator)
    pairs = (part.strip() for part in fields)
    return {pair.partition(assign)[0]: pair for pair in pairs if re.fullmatch(rf"[^{assign}]+{assign}[^=]*", pair)}


def own_settings(name: str, value: str, profiles: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return those settings of a user's list whose keys none of the ``profiles``' variables set, by key."""
    taken = {key for variables in profiles if name in variables for key in settings(name, variables[name])}
    return {key: pair for key, pair in settings(name, value).items() if key not in taken}


def shared(kept: Mapping[str, str], profiles: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the caller's ``kept`` variables as they are under each of these ``profiles``' variables.

    A list has only settings that no profile has a key of. So a profile differs from the others by its own settings.
    """
    profiles = [*profiles]
    merged = dict(kept)
    for name in LISTS.keys() & kept.keys():
        if any(name in variables for variables in profiles):
            merged[name] = LISTS[name][0].join(own_settings(name, kept[name], profiles).values())
    return {name: value for name, value in merged.items() if value or not kept[name]}


def joined(variables: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return a profile's ``variables``, with the caller's that are ``kept`` in those that are lists.

    The caller's libraries (a site's tracer) come after the profile's in LD_PRELOAD. Settings of the caller's come
    first, and only those that the profile does not make.
    """
    merged = preloading(variables, kept)
    for name in LISTS.keys() & variables.keys() & kept.keys():
        others = own_settings(name, kept[name], [variables])
        merged[name] = LISTS[name][0].join([*others.values(), variables[name]])
    return merged


def without(variables: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return ``variables`` as they were before ``joined`` added the caller's ``kept`` settings to them."""
    originals = dict(variables)
    for name in LISTS.keys() & variables.keys() & kept.keys():
        others = {*settings(name, kept[name]).values()}
        of_profile = [pair for pair in settings(name, variables[name]).values() if pair not in others]
        originals[name] = LISTS[name][0].join(of_profile) or variables[name]
    return originals


def keeps_freed_memory(variables: Mapping[str, str]) -> str | None:
    """Return the name of a variable that has an allocator keep freed memory, or None."""
    return next(
        (
            name
            for library in LIBRARIES.values()
            for name, kept in library.keeps_freed.items()
            if re.search(kept, variables.get(name, ""))
        ),
        None,
    )


def preloading(variables: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """A profile's ``variables``; where they preload libraries, those of the caller's that are ``kept`` come after them.

    These (a site's tracer, for example) are then in the profile's processes as they are in the baseline's.
    """
    both = [each[PRELOAD] for each in (variables, kept) if each.get(PRELOAD)]
    return {**variables, PRELOAD: ":".join(both)} if len(both) > 1 else {**variables}


def adds_to(value: str, wanted: str) -> bool:
    """Return whether what is preloaded is what was wanted, and then more: stdbuf and tracers add themselves so.

    What comes before it would take its place.
    """
    wanted_first = preloaded(wanted)
    return value != wanted and preloaded(value)[: len(wanted_first)] == wanted_first


def extends(name: str, value: str, wanted: str) -> bool:
    """Return whether the list ``value`` has all of ``wanted``, and more: a command may add to the variable ``name``."""
    if name == PRELOAD:
        return adds_to(value, wanted)
    return name in LISTS and value != wanted and settings(name, wanted).items() <= settings(name, value).items()


def preloaded(value: str) -> list[str]:
    """The libraries that LD_PRELOAD names (ld.so(8))."""
    return [entry for entry in value.replace(" ", ":").split(":") if entry]


def asked_for(names: Iterable[str]) -> dict[str, str]:
    """The variable by which the evidence hook in a user's command is asked for the values of ``names``, a profile's.

    It tells those of sensitive ones anyway, and PYTHONPATH is its own.
    """
    others = " ".join(name for name in names if not is_performance_variable(name) and name != "PYTHONPATH")
    return {"ENVKIT_NAMES": others} if others else {}


def noted(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that has the hook note loaded libraries, if a second runtime would abort the program."""
    return {"ENVKIT_LIBRARIES": "1"} if any(map(libraries.is_alone, preloaded(variables.get(PRELOAD, "")))) else {}
