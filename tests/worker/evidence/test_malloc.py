"""What real allocators have, in a process that has taken out of its environment what it was started with."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from envkit.worker.evidence import malloc

from tests.conftest import CODE_PATH
from tests.worker_runs import installed

PROBE = """
import json, os, sys
for name in set(os.environ) - {"PATH"}:
    del os.environ[name]
from envkit.worker.evidence import malloc
alone = malloc.probe()
os.environ.update(json.loads(sys.argv[1]))
print(json.dumps([alone, malloc.probe()]))
"""


def test_tensors_come_from_malloc_unless_pytorch_has_an_allocator_built_in(monkeypatch, tmp_path):
    """The second library names the function as libc10.so of PyTorch's ARM wheels does, which have mimalloc built in."""
    library = tmp_path / "libc10.so"
    monkeypatch.setattr(malloc, "torchs_base", lambda: str(library))
    for content, tensors in ((b"\0posix_memalign\0", "glibc"), (b"\0mi_posix_memalign\0", "built-in")):
        library.write_bytes(content)
        assert malloc.probe()["tensors"] == tensors
    monkeypatch.setattr(malloc, "torchs_base", lambda: None)
    assert malloc.probe()["tensors"] is None


@pytest.mark.parametrize("allocator", ["glibc", "jemalloc", "mimalloc", "tcmalloc"])
def test_this_pytorch_takes_tensors_from_the_process_s_allocator(allocator):
    """The wheels for x86-64 have none built in."""
    if allocator != "glibc" and allocator not in installed():
        pytest.skip(f"{allocator} is not installed")
    preload = {} if allocator == "glibc" else {"LD_PRELOAD": installed()[allocator]["path"]}
    script = "import json, torch; from envkit.worker.evidence import malloc; print(json.dumps(malloc.probe()))"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": CODE_PATH, **preload},
        capture_output=True, text=True, check=True, cwd="/",
    )  # fmt: skip
    assert json.loads(result.stdout)["tensors"] == allocator


@pytest.fixture
def probed():
    """What the probe finds under an ``allocator``, in a process that was started with some variables.

    First when it has taken these away, then when it has set others.
    """

    def run(allocator, started, later):
        if allocator != "glibc":
            if allocator not in installed():
                pytest.skip(f"{allocator} is not installed")
            started = {**started, "LD_PRELOAD": installed()[allocator]["path"]}
        result = subprocess.run(
            [sys.executable, "-S", "-c", PROBE, json.dumps(later)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": CODE_PATH, **started},
            capture_output=True, text=True, check=True, cwd="/",
        )  # fmt: skip
        return json.loads(result.stdout)

    return run


@pytest.mark.parametrize(
    ("allocator", "started", "later", "settings"),
    [
        ("glibc", {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.hugetlb=1"},
         {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"},
         {"glibc.malloc.mmap_threshold": 1073741824, "glibc.malloc.hugetlb": 1}),
        ("glibc", {"MALLOC_TRIM_THRESHOLD_": "4294967296"}, {"MALLOC_TRIM_THRESHOLD_": "65536"},
         {"glibc.malloc.trim_threshold": 4294967296}),
        ("glibc", {}, {"MALLOC_ARENA_MAX": "1"}, {"glibc.malloc.arena_max": 0}),
        ("jemalloc", {"MALLOC_CONF": "dirty_decay_ms:-1,narenas:3"}, {"MALLOC_CONF": "dirty_decay_ms:7"},
         {"dirty_decay_ms": -1, "narenas": 3}),
        ("mimalloc", {"MIMALLOC_PURGE_DELAY": "-1"}, {"MIMALLOC_PURGE_DELAY": "4"}, {"MIMALLOC_PURGE_DELAY": -1}),
        ("mimalloc-2", {"MIMALLOC_EAGER_COMMIT_DELAY": "3"}, {"MIMALLOC_EAGER_COMMIT_DELAY": "4"},
         {"MIMALLOC_EAGER_COMMIT_DELAY": 3}),
        ("tcmalloc", {"TCMALLOC_RELEASE_RATE": "0"}, {"TCMALLOC_RELEASE_RATE": "5"}, {"TCMALLOC_RELEASE_RATE": 0}),
    ],
)  # fmt: skip
def test_settings_are_those_of_the_start(probed, allocator, started, later, settings):
    """A program takes them away for the sake of its children, or sets others too late."""
    for found in probed(allocator, started, later):
        assert found["allocator"] == allocator
        assert {name: found["settings"].get(name) for name in settings} == settings
