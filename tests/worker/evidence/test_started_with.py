"""The variables a process was started with, from the memory that the kernel shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from envkit.worker import evidence
from envkit.worker.initial_environment import started_with


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("A=1\0B=x=y\0", {"A": "1", "B": "x=y"}),
        ("EMPTY=\0no variable\0\0", {"EMPTY": ""}),
        ("", {}),
        # loaders of glibc before 2.39 cut this variable at its colons
        (
            "A=1\0GLIBC_TUNABLES=glibc.malloc.a=1\0glibc.malloc.b=2\0glibc.malloc.c=3\0B=2\0",
            {"A": "1", "GLIBC_TUNABLES": "glibc.malloc.a=1:glibc.malloc.b=2:glibc.malloc.c=3", "B": "2"},
        ),
        ("GLIBC_TUNABLES=glibc.malloc.a=1:glibc.malloc.b=2\0", {"GLIBC_TUNABLES": "glibc.malloc.a=1:glibc.malloc.b=2"}),
        # somebody's own variable of such a name, without the tunables
        ("glibc.malloc.a=1\0", {"glibc.malloc.a": "1"}),
    ],
)
def test_started_with(block, expected):
    assert started_with(block) == expected


def test_no_probe_takes_what_the_program_made_of_its_environment_for_what_it_runs_with():
    """NCCL alone reads its variables so late that both may count."""
    probes = {path.stem: path.read_text() for path in Path(evidence.__file__).parent.glob("*.py")}
    assert {name for name, text in probes.items() if "os.environ" in text.replace("``os.environ``", "")} == {"nccl"}
    assert not [name for name, text in probes.items() if "getenv" in text]
