"""The cases: what people ran into, and what envkit must say of it."""

from __future__ import annotations

from tests.cases.case import FEW, Case, Launch

SHORT = " ".join(FEW)
MS = r"--metric 'time ([0-9.]+) ms' --unit ms"

WEIGHTS = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
TLS = "glibc.rtld.optional_static_tls=8192"
SECOND = (
    "OMP: Error #15: the profile preloads /usr/lib/x86_64-linux-gnu/libomp.so.5, and ",
    "second_openmp.py:",
    "libomp-0.so.5: two OpenMP runtimes",
    "take a profile that preloads none",
)
RETAINED = "glibc-retain was in effect in 1 process"

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
        "compiled-step", "torch.compile wraps the optimizer's step",
        (Launch(f"bench glibc-retain {SHORT} --optimizer-steps 60 --warmup-lines 30 -- @PYTHON@ compiled_step.py",
                ("all 5 verified in every process",)),),
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
            Launch("advise -- @PYTHON@ second_openmp.py 1", (
                "libomp-0.so.5", "which the profile preloads, would abort it (OMP: Error #15)",
            ), never=("Try intel-omp",), env={"TRAIN_S": "15"}),
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
)  # fmt: skip
