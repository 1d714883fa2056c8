"""The cases: what people ran into, and what envkit must say of it."""

from __future__ import annotations

from tests.cases.case import FEW, Case, Launch

SHORT = " ".join(FEW)
MS = r"--metric 'time ([0-9.]+) ms' --unit ms"

TORCHRUN = "@PYTHON@ -m torch.distributed.run --standalone --nproc-per-node 2"
IN_GROUP = f"@PYTHON@ in_memory_group.py {900 << 20}"
KILLED = (
    "the kernel killed 1 child process of python",
    "because memory ran out; control group /envkit-case-",
    "reached its limit of 900 MiB (peak 900 MiB, with page cache and children)",
)
SMALL_SHM = """unshare --mount sh -c 'mount -t tmpfs -o size=4m none /dev/shm && exec "$0" "$@"'"""
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
)  # fmt: skip
