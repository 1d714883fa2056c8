"""The faults: what is wrong, and what the kit must say of it."""

from __future__ import annotations

import os
import shutil
from importlib import metadata

from envkit.worker.host import cpu_facts

from tests.faults import planting
from tests.faults.trial import Fault

USABLE = cpu_facts()["usable_cpus"]
CPU = str(min(os.sched_getaffinity(0)))
NOT_MAPPED = "preload.jemalloc: expected mapped, seen not mapped"
TWO_THREADS = "env:\n  OMP_NUM_THREADS: 2\n"

SETTINGS = (
    Fault(
        "kmp-under-libgomp", "KMP_BLOCKTIME, and GNU's OpenMP runs",
        ("kmp-under-libgomp is NOT IN EFFECT",
         "variable KMP_BLOCKTIME: expected read by intel-openmp or llvm-openmp"), 1,
        "env:\n  KMP_BLOCKTIME: 0\n", plant=planting.needs("intel-openmp"),
    ),
    Fault(
        "gomp-under-libiomp5", "GOMP_SPINCOUNT, and Intel's OpenMP runs",
        ("gomp-under-libiomp5 is NOT IN EFFECT", "openmp.settings.GOMP_SPINCOUNT: expected 0, seen nothing"), 1,
        'preload: [intel-openmp]\nenv:\n  GOMP_SPINCOUNT: 0\nexpect:\n  openmp.settings.GOMP_SPINCOUNT: "0"\n',
        plant=planting.needs("intel-openmp"),
    ),
    Fault(
        "misspelled-variable", "OMP_NUM_TREADS",
        ("OMP_NUM_TREADS: no library is known to read it (did you mean 'OMP_NUM_THREADS'?)",), 2,
        "env:\n  OMP_NUM_TREADS: 1\n",
    ),
    Fault(
        "misspelled-key", "MALLOC_CONF has the key dirty_decay_mss",
        ("MALLOC_CONF: key 'dirty_decay_mss' is not known (did you mean 'dirty_decay_ms'?)",), 2,
        "preload: [jemalloc]\nenv:\n  MALLOC_CONF: dirty_decay_mss:-1\n", plant=planting.needs("jemalloc"),
    ),
    Fault(
        "value-out-of-range", "MALLOC_CONF has narenas:0",
        ("MALLOC_CONF: narenas's value '0' is out of range",), 2,
        "preload: [jemalloc]\nenv:\n  MALLOC_CONF: narenas:0\n", plant=planting.needs("jemalloc"),
    ),
    Fault(
        "conf-without-jemalloc", "MALLOC_CONF, and glibc's malloc runs",
        ("conf-without-jemalloc is NOT IN EFFECT", "variable MALLOC_CONF: expected read by jemalloc"), 1,
        "env:\n  MALLOC_CONF: dirty_decay_ms:-1\n", plant=planting.needs("jemalloc"),
    ),
    Fault(
        "threads-zero", "OMP_NUM_THREADS=0", ("OMP_NUM_THREADS: '0' is out of range",), 2,
        "env:\n  OMP_NUM_THREADS: 0\n",
    ),
    Fault(
        "threads-text", "OMP_NUM_THREADS=all", ("OMP_NUM_THREADS: 'all' is not a whole number",), 2,
        "env:\n  OMP_NUM_THREADS: all\n",
    ),
    Fault(
        "affinity-grammar", "KMP_AFFINITY=granularity=fine,compackt,1,0",
        ("KMP_AFFINITY: 'granularity=fine,compackt,1,0' has 'compackt', which is not a type or a modifier",
         "(did you mean 'compact'?)"), 2,
        "preload: [intel-openmp]\nenv:\n  KMP_AFFINITY: granularity=fine,compackt,1,0\n",
        plant=planting.needs("intel-openmp"),
    ),
    Fault(
        "places-outside", "OMP_PLACES names a CPU that is not there",
        ("places-outside is NOT IN EFFECT", "libgomp: Invalid value for environment variable OMP_PLACES"), 1,
        "env:\n  OMP_NUM_THREADS: 2\n  OMP_PROC_BIND: close\n  OMP_PLACES: '{0},{4095}'\n",
        plant=planting.needs(cpus=2),
    ),
    Fault(
        "wait-policy-overruled", "OMP_WAIT_POLICY=passive, and GOMP_SPINCOUNT wins over it",
        ("wait-policy-overruled is NOT IN EFFECT", "openmp.wait_policy: expected passive, seen neither"), 1,
        "env:\n  OMP_WAIT_POLICY: passive\n  GOMP_SPINCOUNT: 300000\n",
    ),
    Fault(
        "one-core", "GOMP_CPU_AFFINITY binds all threads to one core",
        ("pinned-to-one-core: all", f"threads may run on CPU {CPU} only"), 1,
        f"env:\n  GOMP_CPU_AFFINITY: {CPU}\n", command="doctor", plant=planting.needs(cpus=2),
    ),
    Fault(
        "tunable-misspelled", "GLIBC_TUNABLES has glibc.malloc.hugetbl",
        ("GLIBC_TUNABLES: key 'glibc.malloc.hugetbl' is not known (did you mean 'glibc.malloc.hugetlb'?)",), 2,
        "env:\n  GLIBC_TUNABLES: glibc.malloc.hugetbl=1\n",
    ),
    Fault(
        "tunable-too-new", "GLIBC_TUNABLES has a tunable of glibc 2.39, and an older one runs",
        ("GLIBC_TUNABLES: glibc.mem.decorate_maps needs version 2.39 and the image has 2.",), 2,
        "env:\n  GLIBC_TUNABLES: glibc.mem.decorate_maps=1\n",
        plant=planting.only_if(planting.libc_older_than("2.39"), "glibc is 2.39 or newer"),
    ),
    Fault(
        "isa-above-cpu", "ONEDNN_MAX_CPU_ISA allows AMX, and the CPU has none",
        # it names the first that is missing, which some CPUs' AVX-512 is already
        ("warn isa-above-cpu: ONEDNN_MAX_CPU_ISA=avx512_core_amx, and this CPU has no",
         "oneDNN takes the best that the CPU has"), 0,
        "env:\n  ONEDNN_MAX_CPU_ISA: avx512_core_amx\n", command="doctor",
        plant=planting.only_if(planting.cpu_lacks("amx_bf16"), "the CPU has AMX"),
    ),
    Fault(
        "fpmath-above-cpu", "ONEDNN_DEFAULT_FPMATH_MODE=f16, and the CPU can't compute with it",
        ("ONEDNN_DEFAULT_FPMATH_MODE=f16, and this CPU has no avx512_fp16",), 0,
        "env:\n  ONEDNN_DEFAULT_FPMATH_MODE: f16\nnumerics: may-differ\n", command="doctor",
        plant=planting.only_if(planting.cpu_lacks("avx512_fp16"), "the CPU has FP16"),
    ),
    Fault(
        "nccl-without-gpu", "NCCL_IB_DISABLE, and PyTorch is built without CUDA",
        ("NCCL_IB_DISABLE: nothing in this image reads it, only nccl would",), 2,
        "env:\n  NCCL_IB_DISABLE: 1\n",
        plant=planting.only_if("+cpu" in metadata.version("torch"), "PyTorch is built with CUDA here"),
    ),
)  # fmt: skip

PRELOADS = (
    Fault(
        "preload-not-installed", "The profile preloads a library that this machine has not",
        (f"preloads {planting.HIDDEN}, which is not installed",), 2,
        f"preload: [{planting.HIDDEN}]\n", plant=planting.not_installed,
    ),
    Fault(
        "preload-disappears", "The library is removed after it was found, before training starts",
        ("preload-disappears is NOT IN EFFECT", f"{NOT_MAPPED}: cannot open shared object file"), 1,
        "preload: [jemalloc]\nprefix: [nice]\n", plant=planting.jemalloc_is(planting.removed_at_start),
    ),
    Fault(
        "preload-kept-is-missing", "The caller's LD_PRELOAD, kept with --keep-env, names a file that is not there",
        ("is NOT IN EFFECT", "object '/nowhere/libjemalloc.so.2' from LD_PRELOAD cannot be preloaded"), 1,
        options=("--keep-env", "LD_PRELOAD"), plant=planting.shell(LD_PRELOAD="/nowhere/libjemalloc.so.2"),
    ),
    Fault(
        "preload-other-architecture", "The library is one for AArch64",
        ("preload-other-architecture is NOT IN EFFECT", NOT_MAPPED), 1,
        "preload: [jemalloc]\n", plant=planting.jemalloc_is(planting.other_architecture),
    ),
    Fault(
        "preload-32-bit", "The library is one of 32 bits",
        ("preload-32-bit is NOT IN EFFECT", f"{NOT_MAPPED}: wrong ELF class: ELFCLASS32"), 1,
        "preload: [jemalloc]\n", plant=planting.jemalloc_is(planting.other_word_size),
    ),
    Fault(
        "preload-text", "The library is a text file",
        ("preload-text is NOT IN EFFECT", f"{NOT_MAPPED}: invalid ELF header"), 1,
        "preload: [jemalloc]\n", plant=planting.jemalloc_is(planting.no_library),
    ),
    Fault(
        "two-allocators", "jemalloc and tcmalloc are preloaded, and tcmalloc is wanted",
        ("'preload' has tcmalloc and jemalloc, of which only jemalloc would be in effect: remove one",), 2,
        "preload: [jemalloc, tcmalloc]\nexpect:\n  malloc.allocator: tcmalloc\n",
        plant=planting.needs("jemalloc", "tcmalloc"),
    ),
    *(
        Fault(
            f"jemalloc-{order}-libiomp5", f"No fault: jemalloc is preloaded {order} libiomp5",
            (" verified in every process",), 0,
            f"preload: [{preload}]\nexpect:\n  openmp.runtime: intel\n  malloc.allocator: jemalloc\n",
            plant=planting.needs("jemalloc", "intel-openmp"),
        )
        for order, preload in (("before", "jemalloc, intel-openmp"), ("after", "intel-openmp, jemalloc"))
    ),
    Fault(
        "two-openmp-runtimes", "Another module loads Intel's OpenMP beside GNU's",
        ("two-openmp-runtimes: several OpenMP runtimes are loaded", "libiomp5.so"), 0,
        command="doctor", plant=planting.second_runtime,
    ),
)  # fmt: skip

SHELL = (
    Fault(
        "preload-inherited", "The caller's shell has LD_PRELOAD set",
        ("variables not passed on from your environment: LD_PRELOAD",), 0,
        plant=planting.inherited_preload,
    ),
    Fault(
        "wrapper-drops-variables", "The interpreter is a script that takes OMP_NUM_THREADS away",
        ("wrapper-drops-variables is NOT IN EFFECT", "variable OMP_NUM_THREADS: expected 2, seen not set"), 1,
        TWO_THREADS, plant=planting.for_two_threads(planting.wrapper_that_drops_variables),
    ),
    Fault(
        "set-by-sitecustomize", "A sitecustomize.py sets OMP_NUM_THREADS=1 once Python has started",
        ("set-by-sitecustomize is NOT IN EFFECT", "openmp.max_threads: expected 2, seen 1"), 1,
        TWO_THREADS,
        plant=planting.for_two_threads(planting.sitecustomize("import os; os.environ['OMP_NUM_THREADS'] = '1'")),
    ),
    Fault(
        "set-by-the-workload", "The training code calls torch.set_num_threads(1)",
        ("set-by-the-workload is NOT IN EFFECT", "openmp.max_threads: expected 2, seen 1"), 1,
        TWO_THREADS, plant=planting.for_two_threads(planting.sitecustomize("import torch; torch.set_num_threads(1)")),
    ),
)  # fmt: skip

MACHINE = (
    Fault(
        "threads-above-cpus", "OMP_NUM_THREADS is 8 times the CPUs",
        (f"OMP_NUM_THREADS={8 * USABLE} for {USABLE} usable CPUs",), 2,
        "env:\n  OMP_NUM_THREADS: ${usable_cpus * 8}\n",
    ),
    Fault(
        "threads-above-quota", "OMP_NUM_THREADS=2 in a container with --cpus 1",
        ("OMP_NUM_THREADS=2 for 1 usable CPU",), 2,
        TWO_THREADS, engine="docker", options=("--cpus", "1"),
    ),
    Fault(
        "half-a-cpu", "A container with --cpus 0.5 on more CPUs",
        ("OpenMP threads for 1 usable CPU (a mask of ", "and a quota of 0.5)"), 0,
        engine="docker", options=("--cpus", "0.5"), plant=planting.needs(cpus=2),
    ),
    Fault(
        "cpuset-of-one", "OMP_NUM_THREADS=2 in a container with --cpuset-cpus of one CPU",
        ("OMP_NUM_THREADS=2 for 1 usable CPU",), 2,
        TWO_THREADS, engine="docker", options=("--cpuset-cpus", CPU),
    ),
    Fault(
        "taskset-narrower", "The caller is bound to one CPU, and the profile wants 2 threads",
        ("OMP_NUM_THREADS=2 for 1 usable CPU",), 2,
        TWO_THREADS, plant=planting.under("taskset", "--cpu-list", CPU),
    ),
    Fault(
        "huge-pages-never", "The system's transparent huge pages are off, and the profile wants them",
        ("the profile wants transparent huge pages, and the system's mode is never",), 2,
        "extends: glibc-retain\n", plant=planting.huge_pages_never,
    ),
    Fault(
        "numactl-missing", "The profile starts training with numactl, which is not on the PATH",
        ("starts workers with 'numactl', which is not installed",), 2,
        "prefix: [numactl, --interleave=all]\n", plant=planting.path_without_commands,
    ),
    Fault(
        "numa-node-missing", "numactl --cpunodebind=4095 on a machine without that node",
        ("numactl --cpunodebind=4095: this machine has no NUMA node 4095",), 2,
        'prefix: [numactl, "--cpunodebind=4095"]\n', engine="local" if shutil.which("numactl") else "docker",
    ),
    Fault(
        "noisy-neighbour", "Another program begins to compute in the middle of the measurement",
        ("blocks disturbed (e.g.", "others used"), 0,
        options=("--steps", "8", "--blocks", "2"), plant=planting.neighbour,
    ),
    Fault(
        "fixed-addresses", "The caller's setarch -R turns address space randomisation off",
        ("fixed-addresses: address space randomisation is off",), 0,
        command="doctor", plant=planting.under("setarch", "-R"),
    ),
    Fault(
        "process-limit", "A control group allows few processes",
        ("process-limit: only", "more processes or threads may be started"), 0,
        command="doctor", plant=planting.few_processes,
    ),
    Fault(
        "memory-limit-near", "A container's memory limit is 5% above what training takes",
        ("the training took", "that it may have"), 0,
        engine="docker", plant=planting.memory_just_enough,
    ),
)  # fmt: skip

FAULTS = (*SETTINGS, *PRELOADS, *SHELL, *MACHINE)
