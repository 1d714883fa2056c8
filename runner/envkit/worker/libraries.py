"""The registry of libraries: those that a profile can preload, and those that read variables.

To add a library, add its entry to ``LIBRARIES`` and a profile that preloads it. Where it has settings of its own, add a
function that asks it for them (``settings``). Everything else reads this table: resolving, evidence, doctor, ablation,
tuning, images and reports. It is plain data and needs the standard library alone, as images run it too.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """One library.

    ``reads`` has names of variables, or how they begin and a star; versions that read one stand behind it
    (``MIMALLOC_PURGE_DELAY>=2.1``), and the last that fits a name counts. Names without a star need no description in
    ``profiles/variables/``.
    """

    kind: str  # allocator, openmp, blas: one of each runs; switch: only preloaded; other: of PyTorch and the system
    files: tuple[str, ...] = ()  # names of files to preload, the preferred one first; none if no profile preloads it
    stems: tuple[str, ...] = ()  # how other names of it begin than those of files, up to the first '-', '.' or '_'
    symbol: str = ""  # a function that it exports under whatever file name
    text: bytes = b""  # what its file contains besides, and that of a library of the same symbol does not
    version: bytes = b""  # a pattern for its version in its file
    shows: tuple[str, str] = ("", "")  # the key of the evidence and the value there while it is in effect
    # By source (debian, conda, pypi, fedora, epel, opensuse, arch) the package that brings it, "" for none.
    packages: Mapping[str, str] = field(default_factory=dict)
    loads: Mapping[str, str] = field(default_factory=dict)  # files that it needs besides, with Debian's packages
    comes_with: str = ""  # kit, torch, torch-x86_64, torch-cuda, glibc or system: what it is a part of
    in_images: bool = False  # images/ installs it from its packages
    profile: str = ""  # the shipped profile that preloads it alone
    reads: tuple[str, ...] = ()
    source: str = ""  # where variables without a description are documented
    purposes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # binding, stack, ...: variables that set it
    lists: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # variables: what separates settings, and values
    keeps_freed: Mapping[str, str] = field(default_factory=dict)  # variables: values by which freed memory stays
    huge_pages: Mapping[str, str] = field(default_factory=dict)  # variables: values that ask for huge pages
    settings: str = ""  # module:function in worker/evidence/ that returns the settings in force, by variable or key
    lists_all_settings: bool = False  # a setting that is not among them does not exist in this version
    complaint: str = ""  # a pattern for the beginning of lines in which it refuses a setting
    aborts_beside: tuple[str, ...] = ()  # ends a process that has another file of one of these
    overrides_vendor: bool = False  # it makes another library take code that its vendor does not offer here


_OMP = ("OMP_*", "GOMP_CPU_AFFINITY", "GOMP_STACKSIZE")
_OMP_PURPOSES = {
    "binding": ("GOMP_CPU_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES"),
    "stack": ("OMP_STACKSIZE", "GOMP_STACKSIZE"),
    "waiting": ("OMP_WAIT_POLICY",),
    "limit": ("OMP_THREAD_LIMIT",),
}
_KMP_PURPOSES = {
    "binding": ("KMP_AFFINITY",),
    "stack": ("KMP_STACKSIZE",),
    "waiting": ("KMP_BLOCKTIME", "KMP_LIBRARY"),
    "limit": ("KMP_ALL_THREADS", "KMP_DEVICE_THREAD_LIMIT"),
}
_LISTED = (",", ":")  # a:1,b:2
# Release by release: the options in src/options.c of https://github.com/microsoft/mimalloc
_MIMALLOC_READS = (
    "MIMALLOC_*", "mimalloc_*", "MIMALLOC_DECOMMIT_DELAY<2.1.2", "MIMALLOC_ALLOW_DECOMMIT<2.1.2",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES>=2.1.2", "MIMALLOC_PURGE_DELAY>=2.1.2", "MIMALLOC_PURGE_DECOMMITS>=2.1.2",
    "MIMALLOC_ARENA_RESERVE>=2.1.2", "MIMALLOC_ARENA_PURGE_MULT>=2.1.2", "MIMALLOC_ARENA_EAGER_COMMIT>=2.1.2",
    "MIMALLOC_EAGER_COMMIT<3.2", "MIMALLOC_GENERIC_COLLECT>=2.2.2", "MIMALLOC_ALLOW_THP>=2.2.7",
    "MIMALLOC_PAGE_FULL_RETAIN>=3", "MIMALLOC_PAGE_MAX_CANDIDATES>=3", "MIMALLOC_PAGE_RECLAIM_ON_FREE>=3.0.3",
    "MIMALLOC_MINIMAL_PURGE_SIZE>=3.1.6", "MIMALLOC_ARENA_MAX_OBJECT_SIZE>=3.2.7",
)  # fmt: skip
_KMP_COMPLAINT = r"OMP: (?:Warning|Error) #(?!\d+: Forking)"  # and not of a fork, which concerns no setting

LIBRARIES: dict[str, Library] = {
    "gnu-openmp": Library(
        kind="openmp",
        stems=("libgomp",),
        symbol="GOMP_parallel",
        shows=("openmp.runtime", "gnu"),
        comes_with="torch",
        reads=("OMP_*", "GOMP_*"),
        purposes=_OMP_PURPOSES,
        complaint="libgomp: ",
    ),
    "intel-openmp": Library(
        kind="openmp",
        files=("libiomp5.so",),
        symbol="kmp_get_blocktime",
        text=b"Intel(R) OMP",
        shows=("openmp.runtime", "intel"),
        packages={"pypi": "intel-openmp"},
        in_images=True,
        profile="intel-omp",
        reads=(*_OMP, "KMP_*", "LIBOMP_*"),
        purposes=_KMP_PURPOSES,
        complaint=_KMP_COMPLAINT,
        aborts_beside=("intel-openmp", "llvm-openmp"),
    ),
    "llvm-openmp": Library(
        kind="openmp",
        files=("libomp.so", "libomp.so.5"),
        symbol="kmp_get_blocktime",
        shows=("openmp.runtime", "llvm"),
        packages={"debian": "libomp5", "arch": "openmp"},
        in_images=True,
        profile="llvm-omp",
        reads=(*_OMP, "KMP_*", "LIBOMP_*"),
        purposes=_KMP_PURPOSES,
        complaint=_KMP_COMPLAINT,
        aborts_beside=("intel-openmp", "llvm-openmp"),
    ),
    "glibc": Library(
        kind="allocator",
        stems=("libc",),
        shows=("malloc.allocator", "glibc"),
        comes_with="glibc",
        reads=("GLIBC_TUNABLES>=2.26", "MALLOC_ARENA_*", "MALLOC_MMAP_*", "MALLOC_T*", "MALLOC_PERTURB_"),
        lists={"GLIBC_TUNABLES": (":", "=")},
        lists_all_settings=True,
        keeps_freed={  # from 1 GB on
            "GLIBC_TUNABLES": r"(?:^|:)glibc\.malloc\.trim_threshold=\d{10,}(?::|$)",
            "MALLOC_TRIM_THRESHOLD_": r"^\d{10,}$",
        },
        huge_pages={"GLIBC_TUNABLES": r"malloc\.hugetlb=1\b"},
        settings="malloc:glibc",
    ),
    "jemalloc": Library(
        kind="allocator",
        files=("libjemalloc.so.2",),
        symbol="mallctl",
        version=rb"(\d+\.\d+\.\d+)-0-g[0-9a-f]{40}",
        shows=("malloc.allocator", "jemalloc"),
        packages={
            "debian": "libjemalloc2", "conda": "jemalloc", "fedora": "jemalloc", "epel": "jemalloc",
            "opensuse": "libjemalloc2", "arch": "jemalloc",
        },
        in_images=True,
        profile="jemalloc",
        reads=("MALLOC_CONF", "JEMALLOC_*", "_RJEM_*"),
        lists={"MALLOC_CONF": _LISTED, "_RJEM_MALLOC_CONF": _LISTED},
        keeps_freed={"MALLOC_CONF": r"(?:^|,)dirty_decay_ms:-1(?:,|$)"},
        huge_pages={"MALLOC_CONF": r"\bthp:always"},
        settings="malloc:jemalloc",
        complaint=r"<jemalloc>: \S+ conf ",
    ),
    "tcmalloc": Library(
        kind="allocator",
        files=("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"),
        symbol="MallocExtension_GetNumericProperty",
        shows=("malloc.allocator", "tcmalloc"),
        packages={
            "debian": "libtcmalloc-minimal4", "conda": "gperftools", "fedora": "gperftools-libs",
            "epel": "gperftools-libs", "opensuse": "libtcmalloc4", "arch": "gperftools",
        },
        in_images=True,
        profile="tcmalloc",
        reads=("TCMALLOC_*",),
        keeps_freed={"TCMALLOC_RELEASE_RATE": r"^0(?:\.0*)?$"},
        settings="malloc:tcmalloc",
    ),
    "mimalloc": Library(
        kind="allocator",
        files=("libmimalloc.so.3",),
        symbol="mi_theap_get_default",
        shows=("malloc.allocator", "mimalloc"),
        packages={"pypi": "cmeel-mimalloc", "debian 13": "libmimalloc3"},
        loads={"libatomic.so.1": "libatomic1"},
        in_images=True,
        profile="mimalloc",
        reads=_MIMALLOC_READS,
        keeps_freed={"MIMALLOC_PURGE_DELAY": r"^-1$"},
        settings="malloc:mimalloc",
        lists_all_settings=True,
    ),
    "mimalloc-2": Library(
        kind="allocator",
        files=("libmimalloc.so.2",),
        symbol="mi_version",
        shows=("malloc.allocator", "mimalloc-2"),
        packages={"debian": "libmimalloc2.0", "debian 13": ""},
        in_images=True,
        profile="mimalloc-2",
        reads=_MIMALLOC_READS,
        keeps_freed={"MIMALLOC_ALLOW_DECOMMIT": r"(?i)^(?:0|no|off|false)$", "MIMALLOC_PURGE_DELAY": r"^-1$"},
        settings="malloc:mimalloc",
        lists_all_settings=True,
    ),
    "mkl": Library(
        kind="blas",
        stems=("libmkl",),
        symbol="mkl_serv_get_version",  # of PyTorch's own library too, which has it built in
        shows=("blas.implementation", "mkl"),
        packages={"pypi": "mkl"},
        comes_with="torch-x86_64",
        reads=("MKL_*", "OMP_NUM_THREADS"),
    ),
    "openblas": Library(
        kind="blas",
        files=("libopenblas.so.0", "libopenblas.so"),
        stems=("libopenblasp",),
        symbol="openblas_get_config",
        shows=("blas.implementation", "openblas"),
        packages={"debian": "libopenblas0-openmp"},
        in_images=True,
        profile="openblas",
        reads=("OPENBLAS_*", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS"),
        settings="math_libraries:openblas",
        source="https://www.openmathlib.org/OpenBLAS/docs/runtime_variables/",
    ),
    "blis": Library(
        kind="blas",
        files=("libblis.so.4", "libblis.so"),
        symbol="bli_info_get_version_str",
        shows=("blas.implementation", "blis"),
        packages={"debian": "libblis4-openmp"},
        profile="blis",
        reads=("BLIS_*", "BLIS_NUM_THREADS"),
        settings="math_libraries:blis",
        source="https://github.com/flame/blis/blob/master/docs/Multithreading.md",
    ),
    "onednn": Library(kind="other", comes_with="torch", reads=("ONEDNN_*", "DNNL_*")),
    "pytorch": Library(
        kind="other",
        packages={"pypi": "torch"},
        reads=(
            "ATEN_*", "LRU_CACHE_CAPACITY", "THP_MEM_ALLOC_ENABLE>=2.2", "TORCH_SHOW_CPP_STACKTRACES",
            "TORCH_CPP_LOG_LEVEL", "TORCH_DISTRIBUTED_DEBUG",
        ),
    ),
    # PyTorch's compiler, which reads its variables where something is compiled.
    "inductor": Library(
        kind="other",
        shows=("compiler.backend", "inductor"),
        packages={"pypi": "torch"},
        reads=(
            "TORCHINDUCTOR_*", "TORCHINDUCTOR_REORDER_LOCALITY_TRAINING>=2.14", "TORCHINDUCTOR_NUMERICS>=2.14",
            "TORCHINDUCTOR_AUTOTUNE_CUDAGRAPH_BENCHMARKING>=2.14", "TORCHINDUCTOR_PARTITIONED_SCATTER_FORCE>=2.14",
            "TORCHINDUCTOR_COMBO_KERNEL_COMPILE_TIME_AUTOTUNE>=2.14",
        ),
    ),
    "cuda": Library(
        kind="other",
        comes_with="torch-cuda",
        reads=(
            "CUDA_*", "CUBLAS_*", "CUBLASLT_*", "CUDNN_*", "NVIDIA_TF32_*", "TORCH_NCCL_*", "PYTORCH_ALLOC_CONF",
            "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NVML_BASED_CUDA_CHECK",
            "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        ),
        lists=dict.fromkeys(("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"), _LISTED),
    ),
    "nccl": Library(
        kind="other",
        comes_with="torch-cuda",
        reads=(
            "NCCL_*", "NCCL_NET>=2.10", "NCCL_IB_QPS_PER_CONNECTION>=2.10", "NCCL_NET_PLUGIN>=2.11",
            "NCCL_IB_PCI_RELAXED_ORDERING>=2.12", "NCCL_PXN_DISABLE>=2.12", "NCCL_CGA_CLUSTER_SIZE>=2.16",
            "NCCL_MIN_CTAS>=2.17", "NCCL_MAX_CTAS>=2.17", "NCCL_NVLS_ENABLE>=2.17", "NCCL_CUMEM_ENABLE>=2.18",
            "NCCL_TUNER_PLUGIN>=2.19", "NCCL_RUNTIME_CONNECT>=2.22", "NCCL_CONF_FILE>=2.23",
        ),
    ),
    "loader": Library(kind="other", comes_with="system", reads=("LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW")),
    "python": Library(kind="other", comes_with="system", reads=("PYTHONMALLOC", "PYTHONHASHSEED")),
    # MKL asks this library whether the processor is Intel's, and so takes its fastest code.
    "mkl-dispatch": Library(
        kind="switch",
        files=("libmkl-dispatch.so",),
        shows=("mkl.dispatch", "native"),
        comes_with="kit",
        profile="mkl-native",
        overrides_vendor=True,
    ),
    "flush-to-zero": Library(kind="switch", files=("libflush-to-zero.so",), comes_with="kit"),
}  # fmt: skip

# Of libraries of these kinds a process uses one, whatever is loaded.
ONE_RUNS = ("openmp", "allocator", "blas")
KINDS = tuple(dict.fromkeys(library.kind for library in LIBRARIES.values()))
# Where wheels of native libraries, named cmeel-..., have them in a folder of Python packages.
IN_WHEELS = "cmeel.prefix/lib"
_READS = re.compile(r"^(\w+)(\*?)((?:>=|<)\d+(?:\.\d+)*)?$")
# By library what ``reads`` says: a name or its beginning, the star of the latter, and versions.
_ENTRIES = {name: [_READS.findall(entry)[0] for entry in library.reads] for name, library in LIBRARIES.items()}


def preloadable(kind: str = "") -> dict[str, Library]:
    """Return the libraries that a profile can preload, of one kind or of all."""
    return {name: library for name, library in LIBRARIES.items() if library.files and kind in ("", library.kind)}


def of_kind(kind: str) -> dict[str, Library]:
    """Return the libraries of a kind, of which a process uses one."""
    return {name: library for name, library in LIBRARIES.items() if library.kind == kind}


def packages(source: str) -> list[str]:
    """Return the packages of a source (debian, conda, pypi) that bring libraries."""
    return [library.packages[source] for library in LIBRARIES.values() if source in library.packages]


def showing(key: str, value: object) -> str | None:
    """Return the name of the library that is in effect if the evidence has ``value`` at ``key``."""
    return next((name for name, library in LIBRARIES.items() if library.shows == (key, value)), None)


def readers(variable: str) -> dict[str, str]:
    """Return who reads a variable, and in which versions: ``any``, ``>=2.1`` or ``<2.1``."""
    readers_found: dict[str, str] = {}
    for name, entries in _ENTRIES.items():
        for start, is_prefix, versions in entries:
            if variable.startswith(start) if is_prefix else variable == start:
                readers_found[name] = versions or "any"
    return readers_found


def variables() -> dict[str, Library]:
    """Return the variables that the registry has by their names, each with its first reader."""
    named = [(start, name) for name, entries in _ENTRIES.items() for start, is_prefix, _ in entries if not is_prefix]
    return {variable: LIBRARIES[name] for variable, name in reversed(named)}


def prefixes(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return how the names begin of the variables that libraries of these ``kinds`` read."""
    return shortest(
        start for name, entries in _ENTRIES.items() if LIBRARIES[name].kind in kinds for start, _, _ in entries
    )


def setting(purpose: str) -> tuple[str, ...]:
    """Return the variables that set one thing, such as ``binding``. The first that a runtime knows wins."""
    by_files = sorted(LIBRARIES.values(), key=lambda library: not library.files)
    return tuple(dict.fromkeys(name for library in by_files for name in library.purposes.get(purpose, ())))


def shortest(starts: Iterable[str]) -> tuple[str, ...]:
    """Return the ``starts`` without those that begin with another of them."""
    unique = dict.fromkeys(starts)
    return tuple(start for start in unique if not any(start != other and start.startswith(other) for other in unique))


def named_as(path: str, kind: str) -> str | None:
    """Return the library of this kind that a file is called like, or None.

    Wheels append a hash to the stem (``libgomp-a34b3233.so.1``), systems a variant (``libtcmalloc_minimal.so.4``).
    """
    stem, version = _stem(path), _version(path)
    alike = {
        name: library for name, library in of_kind(kind).items() if stem in {*library.stems, *map(_stem, library.files)}
    }
    if len(alike) > 1:  # releases of one library that differ in what they read
        alike = {name: library for name, library in alike.items() if version in map(_version, library.files)}
    return next(iter(alike), None)


def _stem(path: str) -> str:
    return re.split(r"[-._]", Path(path).name)[0]


def _version(path: str) -> str:
    """Return the first number of the version in the name of a shared library: 3 of ``libmimalloc.so.3.4``."""
    return Path(path).name.partition(".so.")[2].partition(".")[0]


def is_alone(path: str) -> bool:
    """Return whether a file is called like a runtime that ends a process in which there is another."""
    return any(library.aborts_beside and named_as(path, library.kind) == name for name, library in LIBRARIES.items())


def search_folders() -> list[Path]:
    """Return the folders in the order in which they are searched.

    The interpreter's environment is first, then what ``pip --user`` installs, then the environment that a virtual one
    was made of. The system's folders and the kit's are last: libraries in wheels beside the kit serve any Python.
    """
    machine = platform.machine()
    packages_folder = Path(sysconfig.get_path("purelib"))
    users = [Path(site.getuserbase()) / "lib", Path(site.getusersitepackages()) / IN_WHEELS]
    made_of = [] if sys.base_prefix in (sys.prefix, "/usr", "/usr/local") else [Path(sys.base_prefix) / "lib"]
    return [
        Path(sys.prefix) / "lib",
        packages_folder / IN_WHEELS,
        Path(sys.prefix) / "conda/lib",
        *(users if site.ENABLE_USER_SITE else []),
        *made_of,
        Path("/usr/local/lib"),
        Path(f"/usr/lib/{machine}-linux-gnu"),
        Path("/usr/lib64"),
        Path("/usr/lib"),
        *sorted(Path("/usr/lib").glob("llvm-*/lib")),
        Path(__file__).resolve().parents[2] / IN_WHEELS,
        Path(__file__).resolve().parent / "preloads" / machine,
    ]


def paths(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the files of a library in ``folders``, the preferred one first."""
    library = LIBRARIES[name]
    candidates = [folder / file for file in library.files for folder in folders]
    present = [path for path in candidates if path.is_file()]
    # LLVM's runtime calls itself Intel's too, by a link, for programs that were built for that
    return [path for path in present if named_as(str(path.resolve()), library.kind) in (None, name)]


def _is_there(file: str) -> bool:
    """Return whether the loader finds a shared library by its name alone."""
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def _version_in(name: str, path: Path) -> str | None:
    pattern = LIBRARIES[name].version
    match = re.search(pattern, path.read_bytes()) if pattern else None
    return match.group(1).decode() if match else None


def locate(folders: Sequence[Path]) -> dict[str, dict[str, object]]:
    """Logical name -> ``{"path", "sha256", "others", "version"}`` of each library that was found.

    ``version`` is None where the file does not tell it.
    ``others`` are files that are called the same, further down the search, and have another content. A library that
    needs a file which is missing is left out: no process that preloads it would start.
    """
    located: dict[str, dict[str, object]] = {}
    for name in preloadable():
        here = paths(name, folders)
        if here and all(map(_is_there, LIBRARIES[name].loads)):
            digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in here}
            mine = digests[here[0]]
            others = [str(path) for path in here if digests[path] != mine and path.name == here[0].name]
            located[name] = {
                "path": str(here[0]),
                "sha256": mine,
                "others": others,
                "version": _version_in(name, here[0]),
            }
    return located


# --- what libraries print when they ignore a setting, or can't do what they were told to ---

LOADER, NUMA = r"ERROR: ld\.so: ", r"libnuma: Warning: "
# The dynamic loader, libnuma and libraries of the registry. Other commands print such lines too:
# runner/envkit/checks/complaints.py says which of them concern a profile.
_STARTS = dict.fromkeys([LOADER, NUMA, *(library.complaint for library in LIBRARIES.values() if library.complaint)])
COMPLAINT = re.compile(rf"^(?:{'|'.join(_STARTS)}).*$", re.MULTILINE)
