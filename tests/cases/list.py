"""The cases: what people ran into, and what envkit must say of it."""

from __future__ import annotations

import os

from envkit.worker.host import cpu_facts

from tests.cases.case import ADVISED, FEW, Case, Launch

SHORT = " ".join(FEW)
CORES, CPUS, CPU = cpu_facts()["physical_cores"], cpu_facts()["online_cpus"], min(os.sched_getaffinity(0))
MS = r"--metric 'time ([0-9.]+) ms' --unit ms"

RETAINED, ON_CORES = (f"{name} was in effect in 1 process" for name in ("glibc-retain", "physical-cores"))
LIMITS = "sh -c 'ulimit -v 10485760; exec \"$@\"' -"
LIMITED = "address space is limited to 10 GiB, and each thread takes its stack from it; raise the limit (ulimit -v"
WEIGHTS = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
TLS = "glibc.rtld.optional_static_tls=8192"
SECOND = (
    "OMP: Error #15: the profile preloads /usr/lib/x86_64-linux-gnu/libomp.so.5, and ",
    "second_openmp.py:",
    "libomp-0.so.5: two OpenMP runtimes",
    "take a profile that preloads none",
)
TORCHRUN = "@PYTHON@ -m torch.distributed.run --standalone --nproc-per-node 2"
IN_GROUP = f"@PYTHON@ in_memory_group.py {900 << 20}"
KILLED = (
    "the kernel killed 1 child process of python",
    "because memory ran out; control group /envkit-case-",
    "reached its limit of 900 MiB (peak 900 MiB, with page cache and children)",
)
SMALL_SHM = """unshare --mount sh -c 'mount -t tmpfs -o size=4m none /dev/shm && exec "$0" "$@"'"""

OF_SEVERAL_CPUS = (
    Case(
        "one-thread", "A library or a launcher has the training compute with one thread",
        (
            Launch("advise -- @PYTHON@ -m torch.distributed.run --standalone --nproc-per-node 1 one_thread.py",
                   (f"Fix this first: it computes with 1 of {CORES} possible threads, because the program itself set "
                    "OMP_NUM_THREADS=1 after its start", f"start it with {CORES} in OMP_NUM_THREADS"),
                   never=("no profile changes that", "Try ", "race now")),
            Launch("doctor --watch 5s -- @PYTHON@ starts_one_thread.py train.py",
                   (f"too-few-threads: it computes with 1 of {CORES} possible threads, because python "
                    "starts_one_thread.py (process", "remove OMP_NUM_THREADS in python starts_one_thread.py"),
                   env={"TRAIN_S": "20"}),
            Launch("exec glibc-retain -- @PYTHON@ one_thread.py",
                   (RETAINED, f"it computes with 1 of {CORES} possible threads, because the program itself set")),
            Launch(f"bench glibc-retain {SHORT} {MS} -- @PYTHON@ starts_one_thread.py train.py",
                   (f"Caution it computes with 1 of {CORES} possible threads, because python starts_one_thread.py",)),
        ),
    ),
    Case(
        "one-cpu", "A launcher binds the training to one CPU, as srun does without --cpus-per-task",
        (
            Launch("advise -- @PYTHON@ train.py",
                   (f"Fix this first: 1 of this machine's {CPUS} CPUs may be used, because ",  # who started taskset
                    f"taskset -c 0-{CPUS - 1}"), never=("no profile changes that",),
                   env=ADVISED, under=f"taskset -c {CPU}"),
            # it trains until it was watched, also where PyTorch takes seconds to start
            Launch(f"doctor --watch 8s -- taskset -c {CPU} @PYTHON@ train.py",
                   (f"few-cpus: 1 of this machine's {CPUS} CPUs may be used, because taskset binds it",),
                   env={"TRAIN_S": "20"}),
            Launch("exec bound.yaml -- @PYTHON@ bound_loader.py",
                   ("2 processes that it started may run on one CPU only",
                    "give them back their CPUs in worker_init_fn")),
        ),
        {"bound.yaml": "name: bound\ntitle: Bound\nwhy:\n  reason: Threads stay.\n"
                       f"env:\n  GOMP_CPU_AFFINITY: 0-{CPUS - 1}\n"},
    ),
)  # fmt: skip
CASES = (
    Case(
        "pythonpath", "A run.sh sets PYTHONPATH, which replaces the path of envkit's hook",
        (Launch("exec glibc-retain -- sh run.sh", (
            "runs without envkit's hook: PYTHONPATH=. replaces the hook's folder",
            "write PYTHONPATH=.:$PYTHONPATH where 'sh run.sh' sets it",
        )),),
        {"run.sh": "PYTHONPATH=. exec @PYTHON@ train.py\n"},
    ),
    Case(
        "own-environment", "A program changes allocator variables in its own environment, which libraries have read",
        (
            Launch("exec glibc-retain -- @PYTHON@ tidies_environment.py removes", (
                RETAINED, "removed GLIBC_TUNABLES from its environment: it keeps the profile's",
            )),
            Launch("exec kept.yaml -- @PYTHON@ tidies_environment.py sets", (
                "kept was in effect in 1 process", "set MALLOC_TRIM_THRESHOLD_=65536: it keeps the profile's",
            )),
        ),
        {"kept.yaml": "name: kept\ntitle: Kept\nwhy:\n  reason: Memory stays.\n"
                      "env:\n  MALLOC_TRIM_THRESHOLD_: 4294967296\n  MALLOC_MMAP_THRESHOLD_: 1073741824\n"},
    ),
    Case(
        "rate", "A program prints a rate, or the time since its start, and the metric takes it for a step's time",
        (
            Launch(f"bench physical-cores {SHORT} --metric 'SPS: ([0-9]+)' -- @PYTHON@ prints_rate.py",
                   ("looks like a rate, and would be taken for seconds; give the unit per-second",), 2),
            Launch(f"bench physical-cores {SHORT} --metric 'elapsed ([0-9.]+)s' -- @PYTHON@ prints_rate.py",
                   ("the worker read the time since the start as a step's time",), 1),
        ),
    ),
    Case(
        "unit-flips", "The unit of a step's time changes at one second, that of a rate at 1,000 a second",
        (
            Launch(f"bench glibc-retain {SHORT} --metric '([0-9.]+) ms/it' --unit ms -- @PYTHON@ unit_flips.py time",
                   (" 1046.67 ",)),
            Launch(f"bench glibc-retain {SHORT} --metric '([0-9.]+)it/s' --unit per-second"
                   " -- @PYTHON@ unit_flips.py rate", (" 1.05 ",)),
        ),
    ),
    Case(
        "unrelated-complaint", "The loader complains about a preload that a run.sh sets for another command",
        (
            Launch(f"bench glibc-retain {SHORT} {MS} -- sh run.sh", ("all 5 verified in every process",)),
            Launch("exec glibc-retain -- sh run.sh", (RETAINED,)),
        ),
        {"run.sh": "LD_PRELOAD=/opt/site/lib64/libxalt_init.so date\nexec @PYTHON@ train.py\n"},
    ),
    Case(
        "os-exit", "A program leaves through os._exit, without Python's own exit functions",
        (
            Launch("exec physical-cores -- @PYTHON@ leaves_at_once.py 0", (ON_CORES,)),
            Launch("exec physical-cores -- @PYTHON@ leaves_at_once.py 7", (ON_CORES,), 7),
            Launch(f"bench physical-cores {SHORT} {MS} -- @PYTHON@ leaves_at_once.py 0",
                   ("verified in every process",), never=("NOT IN EFFECT",)),
        ),
    ),
    Case(
        "address-space", "A grid engine limits address space (ulimit -v), and large stacks of threads do not fit",
        (
            Launch("bench stacks.yaml --data synthetic --warmup-steps 1 --steps 5 --blocks 1", (LIMITED,), 1,
                   under=LIMITS),
            Launch("exec stacks.yaml -- @PYTHON@ train.py", (LIMITED,), 1, under=LIMITS),
            Launch("doctor stacks.yaml", (LIMITED,), 1, under=LIMITS),
        ),
        {"stacks.yaml": "name: stacks\ntitle: Stacks\nwhy:\n  reason: Deep recursion.\n"
                        "env:\n  OMP_NUM_THREADS: 2\n  OMP_STACKSIZE: 12G\n"},
    ),
    Case(
        "compiled-step", "torch.compile wraps the optimizer's step",
        (Launch(f"bench glibc-retain {SHORT} --optimizer-steps 60 --warmup-lines 30 -- @PYTHON@ compiled_step.py",
                ("all 5 verified in every process",)),),
    ),
    Case(
        "odd-values", "OMP_NUM_THREADS has a value that no runtime reads, in an image, a pod or a run.sh",
        (
            Launch("doctor --watch 4s -- @PYTHON@ train.py", (
                "ignored-value: OMP_NUM_THREADS: '1.0' is not a whole number", "take their default then: one thread",
            ), env={"OMP_NUM_THREADS": "1.0", "TRAIN_S": "10"}, never=("too-few-threads",)),
            Launch("doctor --watch 4s -- @PYTHON@ train.py", ("ignored-value: OMP_NUM_THREADS: '' is not a whole",),
                   env={"OMP_NUM_THREADS": "", "TRAIN_S": "10"}),
            Launch("exec glibc-retain -- sh run.sh", (RETAINED, "OMP_NUM_THREADS: 'all' is not a whole number")),
            Launch(f"bench glibc-retain {SHORT} {MS} -- sh run.sh", ("OMP_NUM_THREADS: 'all' is not a whole number",)),
        ),
        {"run.sh": "OMP_NUM_THREADS=all exec @PYTHON@ train.py\n"},
    ),
    Case(
        "needed-variable", "A program does not run without a variable that its user has set",
        (
            Launch("exec glibc-retain -- @PYTHON@ resumes_checkpoint.py", (
                "passed on TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, which the command may need", RETAINED,
            ), env=WEIGHTS),
            Launch(f"bench glibc-retain {SHORT} {MS} -- @PYTHON@ resumes_checkpoint.py", (
                "passed on to baseline and profiles alike: TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD",
            ), env=WEIGHTS),
            Launch("exec glibc-retain -- @PYTHON@ reads_threads.py", (
                "ended with exit status 1; not passed on: OMP_NUM_THREADS; if it needs one: --keep-env OMP_NUM_THREADS",
            ), 1, env={"OMP_NUM_THREADS": "2"}),
            Launch(f"bench glibc-retain {SHORT} {MS} -- @PYTHON@ reads_threads.py", (
                "not passed on: OMP_NUM_THREADS; if it needs one, add --keep-env OMP_NUM_THREADS",
            ), 1, env={"OMP_NUM_THREADS": "2"}),
            Launch("advise -- @PYTHON@ reads_threads.py", (
                "not passed on: OMP_NUM_THREADS; if it needs one, add --keep-env OMP_NUM_THREADS",
            ), 2, env={"OMP_NUM_THREADS": "2"}),
        ),
        {"reads_threads.py": "import os, torch\ntorch.set_num_threads(int(os.environ['OMP_NUM_THREADS']))\n"},
    ),
    Case(
        "second-openmp", "A program loads an OpenMP runtime of LLVM's, and the profile preloads another",
        (
            Launch("exec llvm-omp -- @PYTHON@ second_openmp.py 1", SECOND, 134),
            Launch(f"bench llvm-omp {SHORT} {MS} -- @PYTHON@ second_openmp.py 1", SECOND, 1),
            Launch("advise --watch-only -- @PYTHON@ second_openmp.py 1", (
                "libomp-0.so.5", "which the profile preloads, would abort it (OMP: Error #15)",
            ), never=("Try intel-omp",), env=ADVISED),
            Launch("exec glibc-retain -- @PYTHON@ second_openmp.py 2", (
                "passed on KMP_DUPLICATE_LIB_OK, which the command may need", RETAINED,
            ), env={"KMP_DUPLICATE_LIB_OK": "TRUE"}),
        ),
    ),
    Case(
        "joined-list", "A user's GLIBC_TUNABLES and those of the profile",
        (
            Launch("exec glibc-retain -- @PYTHON@ late_library.py", (
                "passed on GLIBC_TUNABLES, which the command may need; left out glibc.malloc.hugetlb", RETAINED,
            ), env={"GLIBC_TUNABLES": f"{TLS}:glibc.malloc.hugetlb=2"}),
            Launch(f"bench glibc-retain {SHORT} {MS} -- @PYTHON@ late_library.py", (
                "all 5 verified in every process", "passed on to baseline and profiles alike: GLIBC_TUNABLES",
            ), env={"GLIBC_TUNABLES": TLS}),
            Launch("env glibc-retain", (
                f"export GLIBC_TUNABLES={TLS}:glibc.malloc.mmap_threshold=", "joined with the profile's: glibc.rtld.",
            ), env={"GLIBC_TUNABLES": TLS}),
        ),
    ),
    Case(
        "memory-limit", "Children and page cache count to a group's memory limit, and the kernel kills one of them",
        (
            Launch("exec glibc-retain -- @PYTHON@ fills_memory.py", (
                *KILLED, "GLIBC_TUNABLES keeps freed memory, which makes that likelier",
            ), 1, under=IN_GROUP),
            Launch(f"bench glibc-retain {SHORT} {MS} -- @PYTHON@ fills_memory.py", (
                "FAILED baseline", "saw the command end with exit status 1", *KILLED,
                "use fewer loader workers or smaller batches, or raise the limit of /envkit-case-",
            ), 1, under=IN_GROUP),
            Launch("doctor --watch 60s -- @PYTHON@ fills_memory.py", ("stop memory-ran-out:", *KILLED), 1,
                   under=IN_GROUP),
        ),
        needs_root=True,
    ),
    Case(
        "ranks-lines", "torchrun --tee marks the lines of all ranks, and passes them on ten times a second",
        (
            Launch(f"bench baseline {SHORT} --metric '^step' -- {TORCHRUN} --tee 3 prints_by_rank.py", (
                "torchrun --tee, which writes '[default0]:', passes lines on ten times a second; leave --tee out",
            ), 1, never=("stdbuf", "matches none")),
            Launch(f"bench baseline {SHORT} --metric '^step .* time ([0-9.]+) ms' --unit ms"
                   f" -- {TORCHRUN} --tee 3 prints_by_rank.py", (" 5.00 ",), never=(" 7.00 ", " 9.00 ")),
        ),
    ),
    Case(
        "quoted-command", "A command line in quotes, as other tools take it",
        (
            Launch("exec glibc-retain -- 'sh run.sh'", ("leave the quotes out: sh run.sh",), 127),
            Launch(f"bench glibc-retain {SHORT} -- 'sh run.sh'", ("leave the quotes out: sh run.sh",), 2),
        ),
    ),
    Case(
        "no-huge-pages", "A service or container runtime switches huge pages off for all that it starts",
        (Launch("doctor glibc-retain", (
            "stop not-in-effect: memory.huge_pages: expected most, seen none", "stop huge-pages-off:",
            "a program that started this one has switched them off (prctl PR_SET_THP_DISABLE)",
        ), 1, under="@PYTHON@ without_huge_pages.py"),),
    ),
    Case(
        "small-shm", "A container's /dev/shm is too small for the batches of DataLoader workers",
        (Launch("doctor --watch 60s -- @PYTHON@ loads_batches.py", (
            "it ended with status 1", "DataLoader workers pass batches through /dev/shm, which has only 4.0 MiB",
        ), 2, under=SMALL_SHM),),
        needs_root=True,
    ),
    *(OF_SEVERAL_CPUS if CORES > 1 else ()),
)  # fmt: skip
