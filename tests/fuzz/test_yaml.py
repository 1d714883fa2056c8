"""Whatever stands in a YAML file, it is read or refused in one line, and within a second."""

from __future__ import annotations

import time

import pytest
from envkit.cli import workload_file
from envkit.common.errors import InputError
from envkit.profiles import catalogue, profile
from envkit.profiles.environment import Environment
from envkit.profiles.resolve import resolve
from envkit.rendering import text
from envkit.tuning import space_file
from hypothesis import HealthCheck, given, settings

from tests.fuzz.test_records import refused
from tests.mutations import yamls
from tests.simulated_worker import inspection

PROFILE = """name: mine
title: Threads bound
why: {reason: fast, source: "https://x.org/a", helps: x, hurts: y}
needs: {physical_cores: 1}
env:
  OMP_NUM_THREADS: ${physical_cores}
  OMP_PROC_BIND: "true"
  GOMP_SPINCOUNT: 1000
  OMP_STACKSIZE: 16M
prefix: [numactl, --localalloc]
expect: {openmp.max_threads: "${min(2, physical_cores - 1) * 2}"}
numerics: same
"""
WORKLOAD = """name: mine
command: python train.py --lr 0.1
folder: .
metric: "step=([0-9.]+)"
unit: ms
warmup_lines: 3
loss_metric: "loss=([0-9.]+)"
link: [data]
in_place: false
"""
READERS = {"gnu-openmp", "intel-openmp", "glibc", "jemalloc", "cublas", "pytorch"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("yaml")


def resolved(path):
    """Read a profile, and resolve it for a simulated machine."""
    found = profile.load(str(path))
    environment = resolve(found, inspection([], {}))
    catalogue.check(environment.variables, READERS, {})
    assert Environment.from_json(environment.to_json()) == environment


@settings(max_examples=250)
@given(content=yamls(PROFILE))
def test_a_profile(folder, content):
    (folder / "mine.yaml").write_bytes(content)
    line = refused(resolved, folder / "mine.yaml")
    assert line is None or len(line.splitlines()) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=yamls(PROFILE))
def test_the_commands_that_print_a_profile(cli, folder, content):
    (folder / "mine.yaml").write_bytes(content)
    for command in ("show", "env"):
        result = cli(command, folder / "mine.yaml")
        if result.returncode == 2:
            assert len(result.stderr.splitlines()) == 1


@settings(max_examples=40)
@given(content=yamls((space_file.FOLDER / "default.yaml").read_text()))
def test_a_space(folder, content):
    (folder / "space.yaml").write_bytes(content)
    line = refused(space_file.read, folder / "space.yaml")
    assert line is None or len(line.splitlines()) == 1


@settings(max_examples=250)
@given(content=yamls(WORKLOAD))
def test_a_workload_file(folder, content):
    (folder / "work.yaml").write_bytes(content)
    line = refused(workload_file.load, folder / "work.yaml")
    assert line is None or len(line.splitlines()) == 1


@pytest.mark.parametrize(
    "setting",
    [
        "A: ${" + "9*" * 20_000 + "9}",
        "A: ${" + "1+" * 20_000 + "1}",
        "A: ${" + "-" * 50_000 + "1}",
        'A: "' + "${" * 50_000 + '"',
        'OMP_STACKSIZE: "1' + " " * 60_000 + 'x"',
        'OMP_NUM_THREADS: "' + "9" * 5_000 + '"',
        'OMP_NUM_THREADS: "' + "," * 100_000 + '"',
        'KMP_AFFINITY: "' + "," * 100_000 + '"',
        'GOMP_CPU_AFFINITY: "' + "9" * 5_000 + '"',
        'OMP_PLACES: "{0' + " " * 60_000 + 'x"',
        'OMP_PLACES: "' + "{0}," * 4_000 + 'x"',
        'GLIBC_TUNABLES: "' + ":" * 100_000 + 'x"',
        'MALLOC_CONF: "' + "," * 100_000 + 'x"',
        'MALLOC_CONF: "' + "dirty_decay_ms:0," * 900 + 'x"',
        'CUBLAS_WORKSPACE_CONFIG: "' + ":9999999999:99999999999" * 2_000 + '"',
    ],
    ids=lambda setting: setting[:24],
)
def test_a_value_that_took_long(folder, setting):
    """They took up to 19 seconds, or ended in a RecursionError."""
    written = f"name: mine\ntitle: x\nwhy: {{reason: x}}\nenv:\n  {setting}\nexpect: {{openmp.runtime: gnu}}\n"
    (folder / "mine.yaml").write_text(written)
    begin = time.process_time()
    try:
        found = profile.load(str(folder / "mine.yaml"))
        (problem,) = catalogue.check(found.env, READERS, {})
        said = text(problem.message)
    except InputError as error:
        said = text(error.message)
    assert len(said.splitlines()) == 1
    assert time.process_time() - begin < 5.0


def test_long_lists_of_large_machines_are_taken():
    """Each of 1,000 CPUs by its number."""
    places = ",".join(f"{{{cpu}}}" for cpu in range(1000))
    cpus = ",".join(map(str, range(1000)))
    env = {"OMP_PLACES": places, "GOMP_CPU_AFFINITY": cpus, "KMP_AFFINITY": f"explicit,proclist=[{cpus}]"}
    assert catalogue.check(env, READERS, {}) == []
