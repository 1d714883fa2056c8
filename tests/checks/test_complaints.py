"""Which complaints of libraries concern a profile, and which are those of other commands."""

from __future__ import annotations

import pytest
from envkit.checks.complaints import complaints, concerns
from envkit.profiles.environment import Environment

SITE = "ERROR: ld.so: object '/opt/site/lib64/libxalt_init.so' from LD_PRELOAD cannot be preloaded (why): ignored."
OURS = "ERROR: ld.so: object '/lib/j.so' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored."
AUDIT = "ERROR: ld.so: object '/lib/a.so' cannot be loaded as audit interface: cannot open shared object file; ignored."
PLACES = "libgomp: Invalid value for environment variable OMP_PLACES"
AFFINITY = 'OMP: Warning #58: KMP_AFFINITY: parameter invalid, ignoring "compackt".'
IGNORED = "OMP: Warning #181: OMP_PROC_BIND: ignored because KMP_AFFINITY has been defined"
TEAM = "OMP: Warning #96: Cannot form a team with 8 threads, using 2 instead."
PAIR = "<jemalloc>: Invalid conf pair: dirty_decay_mss:-1"
NODE = "libnuma: Warning: node argument 7 is out of range"


def concerned(line, *prefix, preload=(), running=(), proved=(), **variables):
    environment = Environment("p", "", variables, dict(preload), prefix, {}, "same")
    assert complaints(f"before\n{line}\nafter\n{line}") == [line]
    return concerns(line, environment, running, proved)


@pytest.mark.parametrize("line", [SITE, OURS, AUDIT, PLACES, AFFINITY, IGNORED, TEAM, PAIR, NODE])
def test_nothing_concerns_a_profile_that_sets_nothing(line):
    assert not concerned(line)


def test_an_object_that_the_profile_preloads():
    preload = {"jemalloc": "/lib/j.so"}
    # the profile's comes first, and then what the caller keeps
    given = {"LD_PRELOAD": "/lib/j.so:/opt/site/lib64/libxalt_init.so"}
    assert concerned(OURS, preload=preload, **given)
    assert not concerned(SITE, preload=preload, **given)
    assert not concerned(OURS, preload={"jemalloc": "/usr/lib/j.so"})
    assert concerned(AUDIT, LD_AUDIT="/lib/a.so")
    assert not concerned(AUDIT, LD_AUDIT="/lib/b.so")


@pytest.mark.parametrize(
    ("line", "name", "concerns_it"),
    [
        (PLACES, "OMP_PLACES", True),
        (PLACES, "OMP_NUM_THREADS", False),
        (PLACES, "GREETING", False),
        (AFFINITY, "KMP_AFFINITY", True),
        (AFFINITY, "KMP_BLOCKTIME", False),
        # an OpenMP runtime may call what OMP_PLACES sets by the name of its own variable
        (AFFINITY, "OMP_PLACES", True),
        (IGNORED, "OMP_PROC_BIND", True),
        ("OMP: Warning #64: KMP_STACKSIZE: value is out of range", "OMP_STACKSIZE", True),
    ],
)
def test_a_variable_that_the_profile_sets(line, name, concerns_it):
    """Also where everything of it is proved: another process of the command may have refused it."""
    assert concerned(line, **{name: "x"}) is concerns_it
    assert concerned(line, **{name: "x"}, running={"gnu-openmp", "glibc"}, proved={name}) is concerns_it


@pytest.mark.parametrize(("threads", "concerns_it"), [("8", True), ("8,2", True), ("2", False), ("80", False)])
def test_a_team_as_large_as_the_profile_says(threads, concerns_it):
    """A program may ask for another one itself."""
    assert concerned(TEAM, OMP_NUM_THREADS=threads, proved={"OMP_NUM_THREADS"}) is concerns_it


@pytest.mark.parametrize(
    ("conf", "concerns_it"),
    [("dirty_decay_mss:-1", True), ("thp:always,dirty_decay_mss:-1", True), ("dirty_decay_ms:-1", False)],
)
def test_a_pair_of_jemalloc_s_settings(conf, concerns_it):
    assert concerned(PAIR, MALLOC_CONF=conf) is concerns_it


@pytest.mark.parametrize(
    ("running", "proved", "concerns_it"),
    [
        ((), (), True),  # nothing is known
        (("intel-openmp", "glibc"), (), False),  # the one that complained does not run in the training
        (("gnu-openmp", "glibc"), (), True),
        (("gnu-openmp", "glibc"), ("OMP_DYNAMIC",), True),
        (("gnu-openmp", "glibc"), ("OMP_DYNAMIC", "OMP_PLACES"), False),
        (("glibc",), (), True),
    ],
)
def test_a_complaint_that_names_nothing(running, proved, concerns_it):
    line = "libgomp: Affinity not supported on this configuration"
    given = {"OMP_DYNAMIC": "true", "OMP_PLACES": "cores", "MALLOC_CONF": "thp:always"}
    assert concerned(line, running=running, proved=proved, **given) is concerns_it
    assert not concerned(line, running=running, proved=proved, MALLOC_CONF="thp:always")


@pytest.mark.parametrize(("allocator", "concerns_it"), [("jemalloc", True), ("glibc", False)])
def test_a_text_that_jemalloc_can_not_read(allocator, concerns_it):
    line = "<jemalloc>: Malformed conf string"
    assert concerned(line, running={"gnu-openmp", allocator}, MALLOC_CONF="thp") is concerns_it


@pytest.mark.parametrize(
    ("prefix", "concerns_it"),
    [
        (("numactl", "--membind=7"), True),
        (("/usr/bin/numactl", "--cpunodebind=0", "--interleave=0-3,6-8"), True),
        (("numactl", "--interleave=all"), False),
        (("numactl", "--membind=17"), False),
        (("taskset", "-c", "7"), False),
    ],
)
def test_numactl_with_an_argument_of_the_profile_s(prefix, concerns_it):
    assert concerned(NODE, *prefix) is concerns_it


def test_numactl_without_an_argument():
    line = "libnuma: Warning: /sys not mounted or invalid. Assuming one node: No such file or directory"
    assert concerned(line, "numactl", "--interleave=all")
    assert not concerned(line, "env", "A=b")
