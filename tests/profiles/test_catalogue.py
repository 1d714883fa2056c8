from __future__ import annotations

import re
from collections import Counter

import pytest
from envkit.common import messages as said
from envkit.common import schema, yamlfile
from envkit.common.errors import InputError
from envkit.common.messages import InFile
from envkit.profiles import catalogue, profile
from envkit.profiles.catalogue import check, load, readers, require, versions
from envkit.profiles.catalogue_messages import way_to_get
from envkit.profiles.environment import Environment
from envkit.profiles.messages import CantBeUsed, SetsInVain
from envkit.profiles.resolve import resolve
from envkit.profiles.setting_messages import (
    BadValue,
    BadValueOfKey,
    Correct,
    GetReader,
    InVain,
    MoreThanTaken,
    NeedsVersion,
    NobodyReads,
    NoLongerRead,
    RemovedInVersion,
    RemoveKey,
    RemoveOrGet,
    RemoveOrUpdate,
    UnknownKey,
    UnknownName,
    UseProfileInstead,
    VersionDoesNotRead,
    Write,
    WriteAtMost,
)
from envkit.profiles.value_messages import (
    SEVERAL,
    TYPE_OR_MODIFIER,
    WHOLE_NUMBER,
    AtLeast,
    FromTo,
    IsNot,
    NotAWord,
    OutOfRange,
    WholeNumbers,
    WrongPart,
)
from envkit.profiles.values import TYPES
from envkit.rendering import text
from envkit.worker import libraries
from envkit.worker.evidence import PROBES
from envkit.worker.libraries import LIBRARIES, preloadable
from envkit.worker.performance_variables import is_performance_variable

from tests.refusals import refusal

FILES = sorted(catalogue.FOLDER.glob("*.yaml"))
SCHEMA = catalogue.FOLDER.parent / "schemas/variables.schema.json"
INSPECTION = {
    "facts": {"physical_cores": 4, "usable_cpus": 8, "numa_nodes": 2, "cpu_vendor": "AuthenticAMD"},
    "fingerprint": {"libc": "glibc 2.36", "architecture": "x86_64"},
    "packages": {"torch": "2.13.0+cpu", "intel-openmp": "2026.2.0"},
    "python": {"version": "3.11.7"},
    "libraries": {name: {"path": f"/lib/{name}.so", "sha256": "0"} for name in preloadable()},
    "library_folders": ["/lib"],
    "commands": {"numactl": "/usr/bin/numactl"},
}
# The same machine with eight GPUs, and a torch that can use them.
WITH_GPUS = {
    **INSPECTION,
    "facts": {"physical_cores": 4, "usable_cpus": 8, "numa_nodes": 2, "gpus": 8},
    "packages": {"torch": "2.13.0+cu130", "intel-openmp": "2026.2.0"},
}
EVERYTHING = frozenset(LIBRARIES)


def problem(name: str, value: str, present=EVERYTHING, known=None) -> InVain | None:
    """What the check says of one variable."""
    found = check({name: value}, present, known or {})
    assert len(found) <= 1
    return found[0].message if found else None


# What is in the catalogue


def test_it_loads_and_every_entry_has_a_source_and_a_verification_or_a_reason():
    for variable in load().values():
        assert variable.source.startswith("https://"), variable
        assert (variable.verified_by is None) != (variable.not_observable is None), variable
        assert variable.default, variable
        assert variable.does.endswith("."), variable


def test_what_verifies_a_variable_is_something_that_the_worker_collects():
    for variable in load().values():
        if variable.verified_by is not None:
            assert variable.verified_by.partition(".")[0] in PROBES, variable.name


def test_each_type_is_used_and_each_default_that_is_a_bare_number_or_word_is_allowed():
    used = {variable.kind.type for variable in load().values()}
    used |= {kind.type for variable in load().values() for kind in variable.kind.keys.values()}
    assert used == TYPES.keys()
    for variable in load().values():
        for name, kind in (("", variable.kind), *variable.kind.keys.items()):
            default = kind.default if name else variable.default
            if re.fullmatch(r"-?\d+", default):
                assert TYPES[kind.type][0](kind, default) is None, f"{variable.name} {name}"


def test_every_variable_of_a_shipped_profile_is_known_and_right():
    for name in profile.names():
        loaded = profile.load(name)
        assert loaded.env.keys() <= load().keys(), name
        inspection = WITH_GPUS if "gpus" in loaded.needs else INSPECTION
        require(resolve(loaded, inspection), inspection)


def test_a_shipped_profile_for_gpus_needs_some():
    names = [name for name in profile.names() if name.startswith(("gpu-", "nccl-"))]
    assert names
    for name in names:
        loaded = profile.load(name)
        assert loaded.needs == {"gpus": 2 if name.startswith("nccl-") else 1}, name
        assert refusal(resolve, loaded, INSPECTION).reason.fact == "gpus", name


def test_the_catalogue_is_as_its_schema_says():
    files = [yamlfile.read(path) for path in FILES]
    for file in files:
        schema.validate(file, SCHEMA)
        assert [name for name in file.data if not libraries.readers(name)] == [], "no library of the registry reads it"
        for name in file.data:
            re.compile(load()[name].kind.pattern)
    count = Counter(name for file in files for name in file.data)
    assert [name for name, number in count.items() if number > 1] == [], "in more than one file"


@pytest.mark.parametrize(
    ("text", "message", "key"),
    [
        ("type: word", said.MissingKey, "words"),
        ("type: word\n  words: [true]", said.WrongType, "'TCMALLOC_SOME.words.0'"),
        ("min: '1'", said.WrongType, "'TCMALLOC_SOME.min'"),
        ("pattern: x", said.DependentKey, "shape"),
        ("source: the manual", said.BadValue, "'TCMALLOC_SOME.source'"),
        ("does: ''", said.BadValue, "'TCMALLOC_SOME.does'"),
        ("not_observable: it hides", said.BadForm, "'TCMALLOC_SOME'"),
        ("sorce: x", said.BadValue, "TCMALLOC_SOME"),
        ("type: settings\n  keys: {a: {type: integer, defalt: '1'}}", said.BadValue, "'TCMALLOC_SOME.keys.a'"),
    ],
)
def test_wrong_catalogue_data_is_an_error_that_names_file_and_line(tmp_path, text, message, key):
    entry = {"type": "integer", "default": "'1'", "does": "Something.",
             "source": "https://example.org", "verified_by": "openmp.places"}  # fmt: skip
    kept = [f"  {key}: {value}\n" for key, value in entry.items() if f"{key}:" not in f"\n{text}".split()]
    path = tmp_path / "some.yaml"
    path.write_text(f"TCMALLOC_SOME:\n{''.join(kept)}  {text}\n")
    found = refusal(schema.validate, yamlfile.read(path), SCHEMA)
    assert isinstance(found, InFile)
    assert found.file == str(path)
    assert isinstance(found.problem, message), found.problem
    assert key in str(found.problem), found.problem


# What the check finds


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("OMP_NUM_TREADS", "OMP_NUM_THREADS"),
        ("KMP_BLOCK_TIME", "KMP_BLOCKTIME"),
        ("MALLOC_MMAP_THRESHOLD", "MALLOC_MMAP_THRESHOLD_"),
        ("OPM_NUM_THREADS", "OMP_NUM_THREADS"),  # not sensitive by its prefix, and yet a slip of the pen
        ("omp_num_threads", "OMP_NUM_THREADS"),
    ],
)
def test_an_unknown_variable_comes_with_the_nearest_name(name, near):
    assert problem(name, "1") == InVain(name, UnknownName(near), Correct("name"))


def test_a_variable_that_is_no_longer_read_has_a_profile_in_its_place():
    found = problem("MKL_DEBUG_CPU_TYPE", "5")
    assert found == InVain("MKL_DEBUG_CPU_TYPE", NoLongerRead("MKL", "2020.1"), UseProfileInstead("mkl-native"))


@pytest.mark.parametrize(
    "name", ["APP_MODE", "SIMULATED", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "MY_OMP_NUM_THREADS"]
)
def test_a_variable_that_can_not_change_the_outcome_is_of_no_concern(name):
    assert problem(name, "whatever") is None


def test_a_variable_that_nothing_in_the_image_reads():
    present = readers(INSPECTION)
    assert problem("NCCL_DEBUG", "INFO", present).wrong == NobodyReads(("nccl",))
    without = readers({**INSPECTION, "libraries": {}})
    assert problem("MALLOC_CONF", "thp:always", without).fix == RemoveOrGet(
        (GetReader("jemalloc", way_to_get("jemalloc")),)
    )
    # installed is enough here: whether it is preloaded and runs is seen in the worker
    assert problem("KMP_BLOCKTIME", "0", present) is None


def test_who_is_in_an_image():
    assert readers(INSPECTION) == EVERYTHING - {"cuda", "nccl"}
    assert versions(INSPECTION) == {
        "glibc": "2.36", "pytorch": "2.13.0+cpu", "inductor": "2.13.0+cpu", "intel-openmp": "2026.2.0",
        "python": "3.11.7",
    }  # fmt: skip
    cuda = {**INSPECTION, "packages": {"torch": "2.13.0+cu130", "intel-openmp": None}}
    assert readers(cuda) >= {"cuda", "nccl"}
    musl = {"libc": None, "architecture": "aarch64"}
    bare = {**INSPECTION, "fingerprint": musl, "packages": {"torch": None}, "libraries": {}}
    assert readers(bare) == {"loader", "python"}


def test_versions_that_do_not_read_it():
    debian = EVERYTHING - {"mimalloc"}
    old = problem("MIMALLOC_PURGE_DELAY", "0", debian, known={"mimalloc-2": "2.0.9"})
    fix = RemoveOrUpdate(("mimalloc-2 >=2.1.2",))
    assert old == InVain("MIMALLOC_PURGE_DELAY", VersionDoesNotRead(("mimalloc-2 2.0.9",)), fix)
    assert problem("MIMALLOC_PURGE_DELAY", "0", debian, known={"mimalloc-2": "2.1.7"}) is None
    assert problem("MIMALLOC_DECOMMIT_DELAY", "0", debian, known={"mimalloc-2": "2.1.7"}) is not None
    assert problem("MIMALLOC_PURGE_DELAY", "0") is None  # it may be new enough
    hugetlb = "glibc.malloc.hugetlb=1"
    key = "glibc.malloc.hugetlb"
    assert problem("GLIBC_TUNABLES", hugetlb, known={"glibc": "2.31"}).wrong == NeedsVersion(key, "2.35", "2.31")
    assert problem("GLIBC_TUNABLES", hugetlb, known={"glibc": "2.36"}) is None


@pytest.mark.parametrize(
    ("name", "library", "value", "since"),
    [
        ("MALLOC_CONF", "jemalloc", "tcache_max:65536", "5.3"),
        ("MALLOC_CONF", "jemalloc", "disable_large_size_classes:false", "5.3.1"),
        ("MALLOC_CONF", "jemalloc", "tcache_ncached_max:256-1024:8|4096-8192:2", "5.3.1"),
        ("MALLOC_CONF", "jemalloc", "hpa_hugify_style:eager", "5.3.1"),
        ("MALLOC_CONF", "jemalloc", "process_madvise_max_batch:32", "5.3.1"),
        ("GLIBC_TUNABLES", "glibc", "glibc.pthread.stack_hugetlb=0", "2.38"),
        ("GLIBC_TUNABLES", "glibc", "glibc.cpu.plt_rewrite=1", "2.39"),
        ("GLIBC_TUNABLES", "glibc", "glibc.cpu.x86_memset_non_temporal_threshold=0x100000", "2.40"),
        ("GLIBC_TUNABLES", "glibc", "glibc.rtld.execstack=0", "2.41"),
    ],
)
def test_keys_that_came_later(name, library, value, since):
    older = {"5.3": "5.2.1", "5.3.1": "5.3.0"}.get(since, "2.36")
    key = value.partition(":" if library == "jemalloc" else "=")[0]
    assert problem(name, value, known={library: older}).wrong == NeedsVersion(key, since, older)
    assert problem(name, value, known={library: since}) is None
    assert problem(name, value) is None  # it may be new enough


@pytest.mark.parametrize(
    ("name", "library", "value", "before", "last"),
    [
        ("MALLOC_CONF", "jemalloc", "hpa_sec_bytes_after_flush:65536", "5.3.1", "5.3.0"),
        ("GLIBC_TUNABLES", "glibc", "glibc.elision.enable=1", "2.43", "2.42"),
        ("GLIBC_TUNABLES", "glibc", "glibc.cpu.hwcap_mask=0x6", "2.40", "2.39"),
    ],
)
def test_keys_that_went(name, library, value, before, last):
    key = value.partition(":" if library == "jemalloc" else "=")[0]
    said = problem(name, value, known={library: before})
    assert said == InVain(name, RemovedInVersion(key, before, before), RemoveKey(key))
    assert problem(name, value, known={library: last}) is None


def test_the_version_that_a_library_s_file_tells_counts():
    of_file = {**INSPECTION["libraries"], "jemalloc": {"path": "/lib/j.so", "sha256": "0", "version": "5.3.0"}}
    inspection = {**INSPECTION, "libraries": of_file}
    assert versions(inspection)["jemalloc"] == "5.3.0"
    environment = Environment("mine", "", {"MALLOC_CONF": "huge_arena_pac_thp:true"}, {}, (), {}, "same")
    found = refusal(require, environment, inspection)
    assert found.reason.wrong == NeedsVersion("huge_arena_pac_thp", "5.3.1", "5.3.0")
    require(environment, INSPECTION)


@pytest.mark.parametrize(
    ("name", "value", "version", "newer"),
    [
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1073741824", "2.34", "2.35"),
        ("GLIBC_TUNABLES", "glibc.rtld.execstack=2", "2.41", "2.42"),
        ("MALLOC_MMAP_THRESHOLD_", "1073741824", "2.34", "2.35"),
        ("GLIBC_TUNABLES", "glibc.malloc.tcache_max=0x10000", "2.41", "2.42"),
    ],
)
def test_what_malloc_drops_although_the_loader_takes_it(name, value, version, newer):
    """glibc's loader lists it as if it were in force."""
    said = problem(name, value, known={"glibc": version})
    assert isinstance(said.wrong, MoreThanTaken)
    assert (said.wrong.newer, said.wrong.version) == (newer, version)
    assert said.fix == WriteAtMost(said.wrong.most)
    assert problem(name, value, known={"glibc": newer}) is None
    assert problem(name, value) is None  # it may be new enough


def test_what_is_wrong_is_refused_with_the_first_problem_and_the_number_of_the_others():
    def environment(**variables):
        return Environment("mine", "", variables, {}, (), {}, "same")

    fix = Write(WholeNumbers(FromTo(1, 2147483647), (SEVERAL,)))
    found = refusal(require, environment(OMP_NUM_THREADS="0", OMP_NUM_TREADS="2"), INSPECTION)
    assert found == CantBeUsed("mine", SetsInVain("OMP_NUM_THREADS", BadValue("0", OutOfRange()), fix, more=1))
    unknown = environment(OMP_NUM_TREADS="2", MALLOC_CONF="new_key:1", GLIBC_TUNABLES="glibc.malloc.new=1")
    with pytest.raises(InputError):
        require(unknown, INSPECTION)
    require(unknown, INSPECTION, allow_unknown=True)
    with pytest.raises(InputError):
        require(environment(OMP_NUM_THREADS="0"), INSPECTION, allow_unknown=True)


GOOD = {
    "OMP_NUM_THREADS": ["1", "4,2", " 2 "],
    "OMP_DYNAMIC": ["true", "FALSE"],
    "OMP_PROC_BIND": ["close", "TRUE", "close,spread", "master"],
    "OMP_PLACES": ["cores", "threads(4)", "{0,1},{2,3}", "{0:2}:4:2", "{0},!{1}", "0,1", "NUMA_DOMAINS"],
    "OMP_SCHEDULE": ["dynamic,4", "monotonic:static", "auto"],
    "OMP_STACKSIZE": ["4M", "4096", "512k", "8 M"],
    "OMP_MAX_ACTIVE_LEVELS": ["0", "1"],
    "GOMP_SPINCOUNT": ["0", "30k", "infinity", "INFINITE"],
    "GOMP_CPU_AFFINITY": ["0", "0 1", "0-3", "0,3 4-15:2"],
    "KMP_AFFINITY": [
        "granularity=fine,compact,1,0", "granularity=l3_cache,compact",
        "compact", "none", "disabled", "SCATTER", " compact , 1",
        "proclist=[0,{1,2}],explicit", "norespect,verbose,balanced", "granularity=fine", "physical,1",
    ],
    "KMP_BLOCKTIME": ["0", "200", "5ms", "200us", "infinite"],
    "KMP_HW_SUBSET": ["1c", "1s,4c,2t", "4c@2", "1Sockets,2Cores", "*c,1t"],
    "KMP_WARNINGS": ["0", "on", ".F.", "True"],
    "KMP_FORKJOIN_BARRIER_PATTERN": ["dist,dist", "hyper", "hyper,hyper", "tree,linear"],
    "KMP_REDUCTION_BARRIER": ["2,2", "31", "0,5"],
    "MALLOC_CONF": ["", "thp:always,dirty_decay_ms:-1", "narenas:default", "oversize_threshold:0", "junk:alloc"],
    "GLIBC_TUNABLES": ["", "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2", "glibc.malloc.mmap_threshold=0x100000"],
    "MALLOC_ARENA_MAX": ["1"],
    "TCMALLOC_RELEASE_RATE": ["0", "2.5"],
    "TCMALLOC_AGGRESSIVE_DECOMMIT": ["t", "1"],
    "MIMALLOC_RESERVE_OS_MEMORY": ["4GiB", "1024"],
    "MIMALLOC_PURGE_DELAY": ["-1", "10"],
    "ONEDNN_MAX_CPU_ISA": ["AVX2", "avx512_core_bf16"],
    "ONEDNN_VERBOSE": ["1", "profile_exec,dispatch"],
    "DNNL_DEFAULT_FPMATH_MODE": ["BF16"],
    "MKL_CBWR": ["AVX2,STRICT", "BRANCH=AUTO"],
    "PYTORCH_CUDA_ALLOC_CONF": [
        "expandable_segments:True", "max_split_size_mb:128, garbage_collection_threshold:0.8",
        "roundup_power2_divisions:[256:1,512:2,>:4],backend:native",
    ],
    "CUDA_VISIBLE_DEVICES": ["", "0,1", "-1", "GPU-8932f937"],
    "CUBLAS_WORKSPACE_CONFIG": [":4096:8", ":16:8:4096:2"],
    "CUDA_DEVICE_ORDER": ["PCI_BUS_ID"],
    "CUDA_SCALE_LAUNCH_QUEUES": ["4x", "0.5x"],
    "NCCL_ALGO": [
        "Ring", "^Tree,Ring", "allreduce:tree;broadcast:ring", "allreduce:^tree",
        "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring",
    ],
    "NCCL_PROTO": ["Simple", "ll,LL128", "^LL128"],
    "NCCL_DEBUG_SUBSYS": ["INIT,ENV", "^PROXY,ALLOC", "all"],
    "NCCL_DEBUG_FILE": ["/tmp/nccl.%h.%p.log"],
    "NCCL_P2P_LEVEL": ["NVL", "SYS", "3"],
    "NCCL_P2P_DISABLE": ["0", "1"],
    "NCCL_SOCKET_IFNAME": ["eth", "=eth0", "^docker,lo", "^=docker0", "=eth0,eth1"],
    "NCCL_MAX_CTAS": ["1", "64"],
    "TORCH_NCCL_BLOCKING_WAIT": ["1", "True", "n"],
    "PYTHONHASHSEED": ["0", "random"],
    "LD_PRELOAD": ["/lib/a.so:/lib/b.so"],
    "LRU_CACHE_CAPACITY": ["1", "1024"],
    "TORCHINDUCTOR_MAX_AUTOTUNE": ["0", "1"],
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": ["ATEN", "aten,cpp"],
    "TORCHINDUCTOR_MULTI_KERNEL": ["3"],
    "TORCHINDUCTOR_CPP_GEMM_CACHE_BLOCKING": ["4,1,10"],
    "TORCHINDUCTOR_CPP_ENABLE_FLOATING_POINT_CONTRACT_FLAG": ["fast"],
}  # fmt: skip
BAD = {
    "OMP_NUM_THREADS": ["0", "abc", "2,x", "-3", "99999999999", "", "0x4", "²"],
    "OMP_DYNAMIC": ["yes", "1"],
    "OMP_PROC_BIND": ["clos", "close,sprad"],
    "OMP_PLACES": ["core", "cores(0)", "{0,1", "{a}"],
    "OMP_WAIT_POLICY": ["aktive"],
    "LRU_CACHE_CAPACITY": ["0", "1k"],
    "TORCHINDUCTOR_MAX_AUTOTUNE": ["true", "2", ""],
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": ["ATEN;CPP", "CUBLAS"],
    "TORCHINDUCTOR_COMPILE_THREADS": ["0", "all"],
    "TORCHINDUCTOR_WORKER_START": ["forkserver"],
    "TORCHINDUCTOR_CPP_GEMM_THREAD_FACTORS": ["2,2"],
    "TORCHINDUCTOR_CPP_ENABLE_FLOATING_POINT_CONTRACT_FLAG": ["off -fplugin=x"],
    "KMP_PLAIN_BARRIER_PATTERN": ["dist,dist,dist", "spread", "dist, dist", " hyper", ""],
    "KMP_LOCK_KIND": ["fast"],
    "KMP_SCHEDULE": ["dynamic,greedy", "static"],
    "KMP_ATOMIC_MODE": ["3"],
    "KMP_FORKJOIN_BARRIER": ["32", "2,2,2", "a"],
    "OMP_SCHEDULE": ["foo", "static,0", "dynamic,x"],
    "OMP_STACKSIZE": ["4MB", "x", "-1"],
    "OMP_THREAD_LIMIT": ["0"],
    "GOMP_SPINCOUNT": ["x", "1.5"],
    "GOMP_CPU_AFFINITY": ["x", "5-2", "0-3:0", "0-1x"],
    "KMP_AFFINITY": [
        "kompact", "granularity=foo,compact", "compact,1,0,7", "none,1", "compact,scatter", "explicit",
        "proclist=0,explicit", "compact;1", "compact,-1", ",", "proclist=[x],explicit",
    ],
    "KMP_BLOCKTIME": ["x", "-1", "5s", "1.5"],
    "KMP_HW_SUBSET": ["x", "1q", "4"],
    "KMP_LIBRARY": ["fast"],
    "KMP_TPAUSE": ["x", "5"],
    "KMP_WARNINGS": ["maybe"],
    "MALLOC_CONF": [
        "thp:foo", "thp=always", "thp:always,", "thp: always", " thp:always", "dirty_decay_ms:-2", "narenas:0",
        "background_thread:yes", "background_thread:TRUE", "oversize_threshold:8M", "lg_chunk:21", "THP:always",
    ],
    "GLIBC_TUNABLES": [
        "glibc.malloc.hugetlb", "glibc.malloc.hugetlb=x", "glibc.malloc.hugtlb=1", "glibc.malloc.arena_max=0",
        "glibc.malloc.mmap_threshold=1M", "glibc.malloc.perturb=300",
        "glibc.malloc.mxfast=512", "glibc.pthread.mutex_spin_count=40000",
    ],
    "MALLOC_ARENA_MAX": ["0", "x"],
    "TCMALLOC_RELEASE_RATE": ["fast", "-1"],
    "MIMALLOC_LARGE_OS_PAGES": ["foo"],
    "ONEDNN_MAX_CPU_ISA": ["AVX3", "avx-512"],
    "ONEDNN_VERBOSE": ["3", "loud"],
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": ["-1", "many"],
    "MKL_CBWR": ["FOO"],
    "ATEN_CPU_CAPABILITY": ["AVX2", "sse"],
    "PYTORCH_CUDA_ALLOC_CONF": [
        "expandable_segments:true", "pinned_num_register_threads:3",
        "max_split_size_mb:10", "garbage_collection_threshold:1.5", "split:1",
    ],
    "CUDA_DEVICE_MAX_CONNECTIONS": ["0", "33"],
    "CUDA_MODULE_LOADING": ["LAZZY"],
    "CUDA_DEVICE_ORDER": ["pci_bus_id", "BUS"],
    "CUDA_SCALE_LAUNCH_QUEUES": ["3x", "4"],
    "CUDA_VISIBLE_DEVICES": ["first", "0;1"],
    "CUBLAS_WORKSPACE_CONFIG": ["4096:8"],
    "NCCL_DEBUG": ["LOUD"],
    "NCCL_DEBUG_SUBSYS": ["INIT;ENV", "INIT,LOUD"],
    "NCCL_DEBUG_FILE": ["~/nccl.log"],
    "NCCL_ALGO": ["Rings", "allgahter:ring", "ring;tree", "ring,"],
    "NCCL_PROTO": ["LL256", "fast"],
    "NCCL_P2P_LEVEL": ["nvl", "NVLINK", "9"],
    "NCCL_P2P_DISABLE": ["yes", "2"],
    "NCCL_NET_GDR_LEVEL": ["NVL"],
    "NCCL_SOCKET_IFNAME": ["eth0, eth1", "^"],
    "NCCL_SOCKET_FAMILY": ["IPv4", "af_inet"],
    "NCCL_MAX_CTAS": ["0", "65"],
    "NCCL_NTHREADS": ["100"],
    "TORCH_NCCL_BLOCKING_WAIT": ["on", "2"],
    "NCCL_MIN_NCHANNELS": ["0"],
    "PYTHONMALLOC": ["jemalloc"],
    "PYTHONHASHSEED": ["x", "-1"],
}  # fmt: skip


def test_values_that_are_taken():
    pairs = [(name, value) for name, values in GOOD.items() for value in values]
    assert [(pair, refused) for pair in pairs if (refused := problem(*pair)) is not None] == []


def test_values_that_are_not_taken_and_what_would_be():
    for name, values in BAD.items():
        for value in values:
            said = problem(name, value)
            assert said is not None, (name, value)
            assert said.variable == name, (name, value)
            assert isinstance(said.fix, Write | Correct), (name, value)


def test_a_wrong_key_or_word_comes_with_the_nearest_one():
    assert problem("MALLOC_CONF", "thpp:always").wrong == UnknownKey("thpp", "thp")
    assert problem("GLIBC_TUNABLES", "glibc.malloc.hugtlb=1").wrong.suggestion == "glibc.malloc.hugetlb"
    assert problem("KMP_AFFINITY", "granularity=fine,kompact").wrong.refused == WrongPart(
        "kompact", TYPE_OR_MODIFIER, "compact"
    )
    assert problem("OMP_PROC_BIND", "CLOS").wrong.refused == NotAWord("close")
    number = problem("MALLOC_CONF", "dirty_decay_ms:x")
    wrong = BadValueOfKey("dirty_decay_ms", "x", IsNot(WHOLE_NUMBER))
    assert number == InVain("MALLOC_CONF", wrong, Write(WholeNumbers(AtLeast(-1))))
    assert text(number) == (
        "MALLOC_CONF: dirty_decay_ms's value 'x' is not a whole number; write a whole number from -1 on"
    )


def test_what_is_known_to_be_read_is_not_inherited():
    """Else a caller's value would reach all arms, and that of a profile would not be checked."""
    assert [name for name in catalogue.load() if not is_performance_variable(name)] == []
