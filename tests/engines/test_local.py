"""Real workers with torch, in the project's own environment."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.checks.effect import check as check_effect
from envkit.engines.base import PROJECT
from envkit.messages import from_json
from envkit.profiles import profile
from envkit.profiles.environment import clean
from envkit.profiles.resolve import resolve
from envkit.worker.image import inspect
from envkit.worker.libraries import locate, search_folders
from envkit.worker.request import HostFolder, Train, WorkerRequest

from tests.conftest import CODE_PATH, command_line
from tests.processes import gone, until

INSPECTION = inspect(())
# So few steps that what was learnt is not tested: it takes as long as they do, and nothing here looks at it.
ONE_BLOCK = ("--steps", "2", "--warmup-steps", "1", "--blocks", "1")


def start_worker(data, variables=None, before=""):
    """Run one worker to its end, after the Python statements ``before``."""
    code = f"{before}\nimport runpy; runpy.run_module('envkit.worker', run_name='__main__', alter_sys=True)"
    inherited, _ = clean(os.environ, ())
    training = Train("cnn", HostFolder(data) if "/" in data else data, warmup_steps=1, steps=3)
    return subprocess.run(
        [sys.executable, "-c", code, "-"], env={**inherited, **(variables or {})}, cwd=PROJECT,
        input=WorkerRequest(training).line(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def document_of(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def train(data_folder):
    """The document of one worker; with ``check=False`` how it ended."""

    def run(variables=None, before="", data=data_folder, check=True):
        result = start_worker(data, variables, before)
        return document_of(result) if check else result

    return run


@pytest.fixture(scope="module")
def plain(data_folder):
    """The document of a worker of which nothing is changed, for all tests that only look at it."""
    return document_of(start_worker(data_folder))


@pytest.fixture(scope="module")
def changed():
    """The document of a worker on synthetic data, which bound itself to one CPU first, and set a variable."""
    cpu = min(os.sched_getaffinity(0))
    before = f"import os; os.sched_setaffinity(0, {{{cpu}}}); os.environ['OMP_NUM_THREADS'] = '1'"
    return document_of(start_worker("synthetic", before=before))


@pytest.fixture(scope="module")
def benched(data_folder, tmp_path_factory):
    """One run for several tests: its result and its folder. With jemalloc where that is installed."""
    place = tmp_path_factory.mktemp("benched")
    head = "name: mine\ntitle: A test\nwhy:\n  reason: A test.\n  source: here\nextends: gnu-omp\n"
    jemalloc = "preload: [jemalloc]\nexpect:\n  malloc.allocator: jemalloc\n"
    (place / "mine.yaml").write_text(head + (jemalloc if "jemalloc" in INSPECTION["libraries"] else ""))
    inherited, _ = clean(os.environ, ())
    result = subprocess.run(
        command_line("bench", "mine.yaml", *ONE_BLOCK, "--data", data_folder, "--output", place / "run"), cwd=place,
        env={**inherited, "PYTHONPATH": CODE_PATH, "TMPDIR": str(place)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result, place / "run"


def samples(folder):
    """By arm, of a run of one block."""
    return {event["arm"]: event for event in record.read(folder) if event["event"] == "sample"}


def needs(library):
    """Skip where a profile's library is not installed."""
    return pytest.mark.skipif(library not in INSPECTION["libraries"], reason=f"{library} is not installed here")


def unmet(environment, document):
    return [one.key for one in check_effect(environment, document["evidence"], {}) if not one.holds]


# --- the workload ---


def test_the_seed_fixes_the_losses_and_the_digests(plain, train):
    one, two = plain, train()
    assert one["losses"] == two["losses"]
    assert len(one["losses"]) == len(one["step_s"]) == 3
    assert one["digests"] == two["digests"]
    assert one["digests"].keys() == {"code", "data", "initial_weights"}


def test_times_and_counters_are_plausible(plain):
    assert sum(plain["step_s"]) == pytest.approx(plain["seconds"], rel=1e-3)
    assert all(second > 0 for second in plain["step_s"])
    assert len(plain["warmup_step_s"]) == 1
    assert plain["warmup_step_s"][0] > 0
    assert plain["usage"]["user_s"] > 0
    assert plain["usage"]["worker_cpus"] == len(os.sched_getaffinity(0))
    assert plain["usage"]["worker_cpus_busy_s"] >= 0
    assert plain["peak_memory_bytes"] > 100 * 2**20
    assert plain["quality"] is None
    assert plain["modes"] == {"precision": "fp32", "compile": False, "channels_last": False, "device": "cpu"}
    assert all(0 < loss < 10 for loss in plain["losses"])


def test_the_network_must_have_the_known_number_of_parameters(train):
    result = train(before="from envkit.worker.workloads import cnn; cnn.PARAMETERS += 1", check=False)
    assert result.returncode != 0
    assert "the network has 1,630,090 parameters, not 1,630,091" in result.stderr
    assert result.stdout == ""


def test_other_data_has_another_digest(plain, changed, data_folder):
    if data_folder == "synthetic":
        pytest.skip("there is only synthetic data here")
    assert changed["digests"]["data"] != plain["digests"]["data"]
    assert changed["digests"]["initial_weights"] == plain["digests"]["initial_weights"]


def test_only_the_document_is_printed_on_stdout(train):
    prints = "train.collect = lambda: (print('chatter'), look())[1]"
    chatty = f"from envkit.worker.measure import train; look = train.collect; {prints}"
    document = train(before=f"{chatty}; print('chatter')", check=False)
    lines = document.stdout.splitlines()
    # what is printed before the worker begins is not its own; what comes later goes to stderr
    assert json.loads(lines[1])["losses"]
    assert len(lines) == 2
    assert "chatter" in document.stderr


def test_a_damaged_file_is_named(train, tmp_path, data_folder):
    if data_folder == "synthetic":
        pytest.skip("there is only synthetic data here")
    folder = shutil.copytree(data_folder, tmp_path / "data")
    labels = Path(folder) / "t10k-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1])
    result = train(data=str(folder), check=False)
    assert result.returncode != 0
    problem = from_json(json.loads(result.stdout)["problem"])
    assert (problem.code, problem.file, problem.problem.code) == (
        "worker.unusable-file", str(labels), "worker.not-published",
    )  # fmt: skip


# --- profiles in effect ---


@pytest.mark.parametrize(
    "name",
    [
        "baseline",
        # the combinations stand for what they are made of
        "gnu-omp-glibc-retain",
        "torch-thp",
        "onednn-bf16",
        pytest.param("intel-omp-throughput", marks=needs("intel-openmp")),
        pytest.param("intel-omp-jemalloc-retain", marks=[needs("intel-openmp"), needs("jemalloc")]),
        pytest.param("llvm-omp", marks=needs("llvm-openmp")),
        pytest.param("jemalloc-launcher", marks=needs("jemalloc")),
        pytest.param("tcmalloc-retain", marks=needs("tcmalloc")),
        pytest.param("mimalloc-retain-passive", marks=needs("mimalloc")),
        pytest.param("mimalloc-2-retain", marks=needs("mimalloc-2")),
    ],
)
def test_shipped_profiles_are_in_effect(plain, train, name):
    environment = resolve(profile.load(name), INSPECTION)
    document = train(environment.variables) if environment.variables else plain
    assert unmet(environment, document) == []
    evidence = document["evidence"]
    assert "error" not in json.dumps(evidence)
    assert evidence["variables"]["sensitive"] == environment.variables
    assert evidence["variables"]["preloaded"] == dict.fromkeys(environment.preload.values(), "mapped")
    if "intel-openmp" in environment.preload:
        assert evidence["openmp"]["library"] == environment.preload["intel-openmp"]


def test_evidence_of_the_baseline(plain):
    evidence = plain["evidence"]
    assert evidence["openmp"]["runtime"] == "gnu"
    assert evidence["openmp"]["blocktime_ms"] is None
    assert evidence["malloc"]["allocator"] == "glibc"
    assert evidence["torch"]["huge_page_tensors"] is False
    assert evidence["variables"] == {"sensitive": {}, "preloaded": {}}


@pytest.mark.parametrize(
    ("library", "variables", "seen"),
    [
        pytest.param("jemalloc", {"MALLOC_CONF": "junk:alloc"}, {"junk": "alloc"}, marks=needs("jemalloc")),
        pytest.param("tcmalloc", {"TCMALLOC_RELEASE_RATE": "2.5", "TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
                     {"TCMALLOC_RELEASE_RATE": 2.5, "TCMALLOC_AGGRESSIVE_DECOMMIT": True}, marks=needs("tcmalloc")),
        pytest.param("mimalloc", {"MIMALLOC_PURGE_DELAY": "77", "MIMALLOC_ALLOW_THP": "2"},
                     {"MIMALLOC_PURGE_DELAY": 77, "MIMALLOC_ALLOW_THP": 2}, marks=needs("mimalloc")),
        pytest.param("mimalloc-2", {"MIMALLOC_ALLOW_DECOMMIT": "0", "MIMALLOC_DECOMMIT_DELAY": "77"},
                     {"MIMALLOC_ALLOW_DECOMMIT": 0, "MIMALLOC_DECOMMIT_DELAY": 77}, marks=needs("mimalloc-2")),
    ],
)  # fmt: skip
def test_an_allocator_says_what_it_was_set_to(library, variables, seen):
    probe = "import json; from envkit.worker.evidence import malloc; print(json.dumps(malloc.probe()['settings']))"
    preload = {"LD_PRELOAD": INSPECTION["libraries"][library]["path"]}
    printed = subprocess.check_output([sys.executable, "-c", probe], env={**os.environ, **preload, **variables})
    settings = json.loads(printed)
    assert {name: settings[name] for name in seen} == seen


@needs("jemalloc")
def test_a_misspelled_jemalloc_key_is_seen_to_be_unknown(train, write_profile):
    path = write_profile(
        "mine",
        "preload: [jemalloc]\nenv:\n  MALLOC_CONF: dirty_decay_mss:5,muzzy_decay_ms:7\n"
        "expect:\n  malloc.settings.dirty_decay_mss: 5\n  malloc.settings.muzzy_decay_ms: 7\n",
    )
    environment = resolve(profile.load(str(path)), INSPECTION)
    assert unmet(environment, train(environment.variables)) == ["malloc.settings.dirty_decay_mss"]


def test_thread_masks_show_what_the_process_is_bound_to(changed):
    threads = changed["evidence"]["threads"]
    assert threads["masks"] == {str(min(os.sched_getaffinity(0))): threads["count"]}
    assert threads["pinned_cpus"] == 0  # it began so: it has bound no thread itself


# --- the command line ---


def test_bench_measures_with_real_workers(benched):
    result, folder = benched
    measured = samples(folder)
    assert measured.keys() == {"baseline", "mine"}
    assert measured["baseline"]["digests"] == measured["mine"]["digests"]
    assert " verified in every process" in result.stdout


def test_a_variable_that_torch_or_python_sets_itself_does_not_count(changed):
    assert changed["evidence"]["variables"]["sensitive"] == {}


def test_a_library_that_is_not_installed(cli, tmp_path):
    """jemalloc where it is missing: the search is told to find nothing by an interpreter of its own."""
    python = tmp_path / "python"
    hide = (
        "import sys, dataclasses; from envkit.worker.libraries import LIBRARIES as known; "
        "known['jemalloc'] = dataclasses.replace(known['jemalloc'], files=('not-there.so',)); "
        "import runpy; runpy.run_module('envkit.worker', run_name='__main__', alter_sys=True)"
    )
    python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{hide}" "$@"\n')
    python.chmod(0o755)
    result = cli("bench", "jemalloc", "--python", python, "--data", "synthetic", "--output", tmp_path / "run")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        f"envkit: profile 'jemalloc' preloads jemalloc, which is not installed (looked in {sys.prefix}/lib, "
    )
    assert line.endswith("; get it with: apt-get install libjemalloc2, or conda install -c conda-forge jemalloc")
    assert not (tmp_path / "run").exists()


@needs("jemalloc")
def test_jemalloc_in_effect_by_the_command_line(benched):
    result, folder = benched
    assert samples(folder)["mine"]["evidence"]["malloc"]["allocator"] == "jemalloc"
    assert " verified in every process" in result.stdout


def test_the_command_by_hand_runs_in_a_shell(benched, cli, monkeypatch):
    _, folder = benched
    measured = samples(folder)
    details = cli("report", folder, "--details").stdout
    commands = details.split("by hand  (one sample each)\n")[1].split("\n\n")[0].splitlines()
    assert len(commands) == len(measured)
    (command,) = [line for line in commands if "GOMP_SPINCOUNT" in line]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the shell's own variables must not matter
    by_hand = subprocess.run(["/bin/sh", "-c", command], cwd="/", capture_output=True, text=True, check=False)
    assert by_hand.returncode == 0, by_hand.stderr
    document = json.loads(by_hand.stdout)
    assert document["losses"] == measured["mine"]["losses"]
    assert document["evidence"]["variables"] == measured["mine"]["evidence"]["variables"]


def test_the_worker_dies_with_the_runner(start, tmp_path, data_folder):
    """kill -9 of the runner must not leave a worker that spoils the next run."""
    runner = start(
        "bench",
        "baseline",
        "--steps",
        "100000",
        "--data",
        data_folder,
        "--output",
        tmp_path / "run",
        "--timeout",
        "120s",
    )
    workers = until(lambda: training_children(runner.pid))
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    until(lambda: all(gone(pid) for pid in workers))


def training_children(parent):
    """The workers of ``parent`` that have torch mapped, and so have set what ends them with it."""
    found = []
    for pid in map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if "libtorch" in Path(f"/proc/{pid}/maps").read_text():
                found.append(pid)
    return found


@pytest.mark.parametrize("name", ["intel-omp", "jemalloc-retain", "glibc-retain"])
def test_show_resolves_for_this_machine(cli, name):
    if any(library not in locate(search_folders()) for library in profile.load(name).preload):
        pytest.skip("its library is not installed here")
    result = cli("show", name, "--json")
    assert result.returncode == 0
    environment = resolve(profile.load(name), INSPECTION)
    assert json.loads(result.stdout)["variables"] == environment.variables


def test_an_interpreter_without_torch_is_refused(cli, tmp_path):
    """The system's Python, or any other that has no torch, is told apart before anything is measured."""
    python = shutil.which("python3", path="/usr/bin:/bin")
    if (
        python is None
        or subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    ):
        pytest.skip("there is no Python without torch on this machine")
    result = cli("bench", "baseline", "--python", python, "--output", tmp_path / "run")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"envkit: {python}: has no torch")
    assert "--python" in line
    assert not (tmp_path / "run").exists()
