from __future__ import annotations

import ast
import json
import os
import subprocess
import sys

from envkit.profiles import catalogue
from envkit.profiles.formats.python import BEFORE_TORCH, missing, python, read_at_start
from hypothesis import given

from tests.profiles.formats.resolving import VALUES, resolved

# Those that are there when a process starts, or have to be preloaded.
FROM_THE_START = {"glibc", "loader", "python", "jemalloc", "tcmalloc", "mimalloc", "mimalloc-2"}
SHOW = "\nimport json\nprint(json.dumps(dict(os.environ)))\n"


def assigned(text):
    """The variables that the statements set, without running them."""
    tree = ast.parse(text)
    statements = [one for one in tree.body if isinstance(one, ast.Assign)]
    found = {one.targets[0].slice.value: ast.literal_eval(one.value) for one in statements}
    assert found.pop(BEFORE_TORCH, "").split() == [*found]
    return found


def run(code):
    return subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", code], env={"PATH": os.defpath}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


@given(VALUES)
def test_every_value_is_whole(variables):
    assert assigned(python(resolved(variables))) == variables


def test_what_is_not_printable_is_escaped():
    """As it is, such a character would break the line, or show it in another order."""
    variables = {"TURNED": "a\u202eb", "BROKEN": "a\x85\u2028b\u200b", "PLAIN": "grün 'it'"}
    text = python(resolved(variables))
    assert text.replace("\n", "").isprintable()
    assert 'os.environ["PLAIN"] = "grün \'it\'"' in text
    assert assigned(text) == variables


def test_what_runs_has_the_variables():
    lines = "one\n%two\r\n\x85\u2028!ls\x0c"
    variables = {"QUOTES": "'it' \"is\"", "LINES": lines, "OTHER": "C:\\new\\{x} $HOME grün ✓"}
    result = run(python(resolved(variables)) + SHOW)
    assert variables.items() <= json.loads(result.stdout).items(), result


def test_after_torch_it_is_refused():
    result = run('import sys\nsys.modules["torch"] = sys\n' + python(resolved({"OMP_NUM_THREADS": "2"})))
    said = "too late: torch is imported already; restart the kernel, and run this before anything imports torch"
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == f"RuntimeError: {said}"


def test_what_is_read_when_a_process_starts_is_named_and_not_set():
    given = resolved({"LD_PRELOAD": "/x.so", "OMP_NUM_THREADS": "2", "MALLOC_CONF": "a:b"}, prefix=["numactl", "-l"])
    text = python(given)
    assert assigned(text) == {"OMP_NUM_THREADS": "2"}
    (note,) = missing(given)
    how = "start the process with it (--format jupyter, or shell)"
    assert note == f"not set, as it is read when a process starts: LD_PRELOAD, MALLOC_CONF; {how}"
    assert text.splitlines()[1:3] == ["# start your commands with: numactl -l", f"# {note}"]


def test_a_profile_of_which_nothing_can_be_set():
    text = python(resolved({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}))
    assert assigned(text) == {}
    assert "# not set, as it is read when a process starts: GLIBC_TUNABLES;" in text


def test_what_counts_as_read_at_the_start_is_as_the_catalogue_has_it():
    known = {one.name: one.read_by.keys() <= FROM_THE_START for one in catalogue.load().values()}
    assert {name: read_at_start(name) for name in known} == known
