"""What every test gets: a cache, a temporary folder and variables of its own, and the command line as a function."""

from __future__ import annotations

import gc
import io
import itertools
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
from _pytest.runner import runtestprotocol
from envkit.bench import neighbours, record
from envkit.cli import main, measuring
from envkit.report import pictures
from envkit.worker.performance_variables import is_performance_variable
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from tests import records
from tests.instant_engine import InstantEngine, answer_inspections, replace_engine
from tests.processes import Ended
from tests.simulation import Simulation

PROJECT = Path(__file__).resolve().parent.parent
# What a Python must have in PYTHONPATH to import the kit and its tests.
CODE_PATH = f"{PROJECT}/runner:{PROJECT}"
# Before PATH's other folders: what is here is not to be taken from the machine.
STAND_INS = PROJECT / "tests/stand_ins"
CLI_TIMEOUT_S = 480
# A file system in memory, and the room that quick tests are to find there: they leave little at a time.
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 2**31

# The same examples in every run, whatever the machine's speed, and nothing left behind. Hypothesis would also take
# constants of imported modules into its examples. So these would depend on which tests a process ran before, and each
# process would parse all of the kit.
settings.register_profile("project", derandomize=True, deadline=None, database=None)
settings.register_profile("quick", settings.get_profile("project"), max_examples=40)
settings.load_profile("project")
providers._get_local_constants = lambda: providers._local_constants
# Under nohup, or in the background of a script, these are ignored, and would be by all processes that tests start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
# Where it is set, each of the many processes that tests start would compile all of the runner anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

Cli = Callable[..., Ended]
Start = Callable[..., "subprocess.Popen[str]"]


COUNTER = itertools.count()
# Tests that take the one cluster for themselves.
CLUSTER = ("tests/engines/slurm/", "tests/engines/test_env_formats.py::test_a_batch_script_")
# Whose tests share what takes long to make, or look for what others of their file would start.
FILES = ("tests/browser/", "tests/engines/", "tests/images/", "tests/training/",
         "tests/worker/evidence_hook/test_compiled_steps.py")  # fmt: skip
# What begins first, in this order: what takes longest in one process (all of the cluster comes with the first of its
# tests), what makes the images that other tests would wait for, and what needs no image meanwhile.
FIRST = ("tests/engines/slurm/test_jobs.py", "tests/engines/test_image_build.py", "tests/engines/test_local.py")
# What starts engines, builds images or trains for real.
REAL = ("tests/cases/", "tests/engines/", "tests/images/", "tests/training/", "tests/faults/", "tests/reliability/")
# Of these and of SLOW, what starts no engine and is quick.
QUICK = ("tests/cli/commands/tune/test_session.py", "tests/engines/test_enroot.py", "tests/engines/test_interpreter.py",
         "tests/engines/test_owner.py")  # fmt: skip
# What else takes long: it starts many processes, simulates many runs, or draws.
SLOW = (
    "tests/benchmarks/", "tests/browser/", "tests/cli/commands/exec/", "tests/cli/commands/test_ablate.py",
    "tests/cli/commands/test_lost_hook.py", "tests/cli/commands/test_matrix.py", "tests/cli/commands/test_report.py",
    "tests/cli/commands/test_resume.py",
    "tests/cli/commands/tune/",
    "tests/cluster/fleet/test_slow.py",
    "tests/cluster/slurm/test_tuning_goes_on.py", "tests/cluster/test_without_slurm.py",
    "tests/docs/test_commands.py", "tests/fuzz/",
    "tests/profiles/test_catalogue_libraries.py", "tests/report/test_epoch_ends.py", "tests/report/test_grid.py",
    "tests/report/test_html.py",
    "tests/report/test_multi_workload.py", "tests/stats/test_drift.py",
    "tests/stats/test_outlying.py::test_in_values_that_are_alike", "tests/stats/test_outlying.py::test_one_that_lies",
    "tests/tuning/test_importance.py", "tests/tuning/test_search.py", "tests/worker/evidence/test_gpu.py",
    "tests/worker/evidence/test_compiler.py::test_settings_",
    "tests/worker/evidence/test_malloc.py::test_this_pytorch_",
    "tests/worker/evidence_hook/test_compiled_steps.py",
    "tests/worker/evidence/test_math_libraries.py", "tests/worker/evidence/test_torch_build.py",
    "tests/worker/measure/test_reference_kernel.py",
    "tests/worker/user_command/test_lost_hook.py", "tests/worker/user_command/test_optimizer_steps_run.py",
)  # fmt: skip


class ByGroup(LoadScopeScheduling):
    """Hand the tests of the cluster, those of each file in FILES, and those of each quick file to one process.

    Those of one group never run beside each other, and what a quick file reads or makes once is made once.
    Any process gets any other test. pytest-xdist's own loadgroup writes groups into names of tests,
    which pytest 9 does not let it change.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(CLUSTER):
            return "cluster"
        file = nodeid.partition("::")[0]
        return file if file.startswith(FILES) or not is_slow(file) else nodeid


def pytest_configure(config: pytest.Config) -> None:
    """Under ``-m 'not slow'`` draw fewer examples, and make temporary folders in memory.

    Memory must have room for them and run programs from there. A disk takes milliseconds to remove each folder, and an
    eighth more processor time. Containers have a /dev/shm of their own, so tests with real engines stay on the disk.
    """
    if config.getoption("markexpr") != "not slow":
        return
    settings.load_profile("quick")
    if os.access(MEMORY, os.W_OK):
        status = os.statvfs(MEMORY)
        if status.f_bavail * status.f_frsize >= MEMORY_BYTES and not status.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under ``-m 'not slow'`` import no file that has slow tests only: some take seconds, as they import torch."""
    if config.getoption("markexpr") != "not slow" or collection_path.is_dir():
        return None
    return is_slow(collection_path.relative_to(PROJECT).as_posix()) or None


def is_slow(test: str) -> bool:
    """Return whether a file, or a test by its node id, is left out under ``-m 'not slow'``."""
    return test.startswith((*REAL, *SLOW)) and not test.startswith(QUICK)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Collect with Python's cyclic garbage collection off, and leave thousands of tests out of later ones.

    These are rare: by default Python collects all after every few tests, which took a tenth of their processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Under ``-m 'not slow'`` report a test once to the process that counts them, with what failed around it.

    pytest-xdist also sends how each test was set up and torn down: to write, send and read that takes as long as a
    short test. With ``--durations`` it is sent.
    """
    options = item.config.option
    if options.markexpr != "not slow" or options.durations is not None or not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``pytest --dist loadgroup`` goes by group."""
    return ByGroup(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, for ``-m 'not slow'``.

    Groups begin in the order of their first tests, with ``--no-loadscope-reorder``: those that can't be divided, then
    single tests, and at last quick files, so that all processes end together. Those of engines come behind
    others, and of the cluster's those that need an image come last: a process has built it by then.
    """
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker("slow")

    def place(item: pytest.Item) -> tuple[int, ...]:
        path = item.nodeid.partition("::")[0]
        waits = item.nodeid.startswith(CLUSTER) and "engine_options" in item.fixturenames
        if path in FIRST and not waits:
            return (FIRST.index(path),)
        quick, single = item.get_closest_marker("slow") is None, not path.startswith(FILES)
        return len(FIRST), quick, single, path.startswith("tests/engines/"), waits

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def own_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's key out of fixtures of whole modules, which come before ``own_surroundings``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep what is the user's out of every test: cache, configuration, results, variables and temporary folder.

    With the latter goes the machine's lock.
    """
    # texts and not paths, as every test does this: pytest's mktemp alone takes a tenth of a short one's time
    place = f"{tmp_path_factory.getbasetemp()}/surroundings{next(COUNTER)}"
    os.mkdir(place, 0o700)  # noqa: PTH102
    os.mkdir(f"{place}/tmp")  # noqa: PTH102 - the others are made by what needs them
    for name, inner in (("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config"), ("TMPDIR", "tmp")):
        monkeypatch.setenv(name, f"{place}/{inner}")
    monkeypatch.setattr(tempfile, "tempdir", None)  # tempfile remembers the folder it was first asked for
    for name in [name for name in os.environ if is_performance_variable(name)]:
        monkeypatch.delenv(name)
    folder = Path(place)
    monkeypatch.setattr(measuring, "RESULTS", folder / "results")
    # tests/engines use the real ones
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place}/no-daemon")
    # last comes a folder that has a `python`, which not every machine has
    monkeypatch.setenv("PATH", f"{STAND_INS}:{os.environ['PATH']}:{os.path.dirname(sys.executable)}")  # noqa: PTH120
    # no test pulls the plug: what is written need not have reached a disk, which takes milliseconds for each line
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    yield folder
    if os.path.exists(f"{place}/cache"):  # noqa: PTH110
        shutil.rmtree(f"{place}/cache", ignore_errors=True)  # which may have a data set in it
    with suppress(OSError):  # a test that left something has the folder removed at the end
        os.rmdir(f"{place}/tmp")  # noqa: PTH106
        os.rmdir(place)  # noqa: PTH106


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty pictures, for tests of what else is reported: to draw those of a page takes a second."""
    monkeypatch.setattr(pictures, "svg", lambda *_: "<svg/>")
    monkeypatch.setattr(pictures, "png", lambda _: b"PNG")


@pytest.fixture
def shared_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder that all users share, as /tmp is: sticky, and all of the way to it can be entered."""
    folder = Path(tempfile.mkdtemp(prefix="envkit-shared-", dir="/var/tmp"))
    folder.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def cache(own_surroundings: Path) -> Path:
    """Where the runner keeps the data set in this test; not there yet."""
    return own_surroundings / "cache/envkit/fashion-mnist"


def command_line(*arguments: object, program: Sequence[str] = ("-m", "envkit")) -> list[str]:
    """Return what starts envkit; ``program`` says to Python what that is."""
    return [sys.executable, *program, *map(str, arguments)]


@pytest.fixture
def cli_in_process(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run ``runner ARGUMENTS`` in this process, which is several times as fast as starting one for each.

    ``variables`` are set besides those that there are. Both streams go to ``stream`` if it is given. An exception that
    gets out is a traceback, and fails the test.
    """

    def run(*arguments: object, cwd: Path | None = None, stream: TextIO | None = None, **variables: str) -> Ended:
        argv = ["envkit", *map(str, arguments)]
        printed = io.StringIO(), io.StringIO()
        stdout, stderr = printed if stream is None else (stream, stream)
        handler = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(tempfile, "tempdir", None)
            patch.setattr(sys, "argv", argv)
            if cwd is not None:
                patch.chdir(cwd)
            try:
                status = main(argv[1:])
            except SystemExit as end:  # argparse
                status = int(end.code or 0)
            finally:
                signal.signal(signal.SIGTERM, handler)
        return Ended(argv, status, *(one.getvalue() for one in printed))

    return run


@pytest.fixture
def cli(cli_in_process: Cli) -> Cli:
    return cli_in_process


@pytest.fixture
def cli_process(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run ``python -m envkit ARGUMENTS`` as a user would. Whatever happens, a traceback is never an answer."""
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)

    def run(
        *arguments: object,
        cwd: Path | None = None,
        timeout_s: float = CLI_TIMEOUT_S,
        program: Sequence[str] = ("-m", "envkit"),
        **variables: str,
    ) -> Ended:
        result = subprocess.run(
            command_line(*arguments, program=program), cwd=cwd, env={**os.environ, **variables}, capture_output=True,
            text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert "Traceback" not in result.stderr, result.stderr
        return Ended(result.args, result.returncode, result.stdout, result.stderr)

    return run


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start ``runner ARGUMENTS`` and return while it runs. What still runs after the test is killed."""
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)
    processes = []

    def run(*arguments: object, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command_line(*arguments), env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def refused(cli: Cli) -> Callable[..., str]:
    """Run the command line, see that it ends as bad input does, and return its one line."""

    def run(*arguments: object, **options: object) -> str:
        result = cli(*arguments, **options)
        lines = result.stderr.splitlines()
        assert (result.returncode, result.stdout, len(lines)) == (2, "", 1), result
        return lines[0]

    return run


@pytest.fixture
def write_profile(tmp_path: Path) -> Callable[..., Path]:
    """Make ``NAME.yaml`` of the obligatory keys and the lines given, which may override them."""

    def write(name: str, text: str = "", folder: Path = tmp_path) -> Path:
        path = folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ntitle: A test\nwhy:\n  reason: A test.\n  source: here\n{text}")
        return path

    return write


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Where the runs of ``bench_arguments`` are recorded."""
    return tmp_path / "run"


@pytest.fixture
def samples(run_folder: Path) -> Callable[..., list[tuple[int, str]]]:
    """The (block, arm) of each recorded sample, in order."""
    return lambda folder=run_folder: [(one["block"], one["arm"]) for one in records.samples(record.read(folder))]


@pytest.fixture
def events(run_folder: Path) -> Callable[..., list[record.Event]]:
    """What is recorded, of some kinds only if they are named."""

    def read(*kinds: str) -> list[record.Event]:
        return [event for event in record.read(run_folder) if not kinds or event["event"] in kinds]

    return read


@pytest.fixture
def bench_arguments(
    simulation: Simulation, write_profile: Callable[..., Path], run_folder: Path
) -> Callable[..., list]:
    """The arguments that measure a profile, written as needed, whose workers behave as ``simulation`` has it."""

    def arguments(profile: str, *options: object, text: str = "") -> list[object]:
        path = write_profile(profile, f"{text}env:\n  SIMULATED: {profile}\n") if profile != "baseline" else profile
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7]
        fixed += [] if "--full" in options else ["--steps", 3]
        # as few blocks as give an interval: by default there are as many as fit into four minutes
        fixed += [] if {"--full", "--budget", "--blocks"} & set(options) else ["--blocks", 6]
        return ["bench", path, *fixed, "--output", run_folder, *options]

    return arguments


@pytest.fixture
def bench(cli: Cli, bench_arguments: Callable[..., list]) -> Cli:
    """Measure a profile with simulated workers."""

    def run(profile: str, *options: object, text: str = "", **variables: str) -> Ended:
        return cli(*bench_arguments(profile, *options, text=text), **variables)

    return run


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """An interpreter for ``--python`` that answers like a worker, at once, as the test has set.

    The kit would read the CPU time of every process of this machine after each block. It does so only in tests of that.
    Inspections of the interpreter are answered without a start of it.
    """
    monkeypatch.setattr(neighbours, "processes", dict)
    folder = tmp_path / "simulation"
    folder.mkdir()
    simulated = Simulation(folder)
    answer_inspections(monkeypatch, simulated)
    return simulated


@pytest.fixture
def instant(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> InstantEngine:
    """Have the simulation's workers answer in this process, each after exactly one second as far as is recorded."""
    engine = InstantEngine(simulation)
    replace_engine(monkeypatch, "local", engine)
    return engine


@pytest.fixture
def on_terminal(cli_in_process: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, bytes]]:
    """Run the command line in this process as on a terminal, whose bytes are returned with the exit status.

    What is written to either stream arrives unchanged, as UTF-8 or in the ``encoding`` given.
    """
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*arguments: object, encoding: str = "utf-8", **options: Any) -> tuple[int, bytes]:
        ours, theirs = pty.openpty()
        modes = termios.tcgetattr(theirs)
        modes[1] &= ~termios.OPOST  # or it would write \r\n for \n
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        printed: list[bytes] = []
        reader = threading.Thread(target=lambda: printed.append(read_all(ours)))
        reader.start()
        with os.fdopen(theirs, "w", encoding=encoding) as stream:
            status = cli_in_process(*arguments, stream=stream, **options).returncode
        reader.join()
        os.close(ours)
        return status, printed[0]

    return run


def read_all(terminal: int) -> bytes:
    """Return what is printed on a terminal until its other end is closed."""
    printed = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            return printed
        if not read:
            return printed
        printed += read
