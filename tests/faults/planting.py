"""How each fault is planted, and taken away again."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from envkit.bench import record
from envkit.profiles.values import numbers
from envkit.worker.host import fingerprint
from envkit.worker.libraries import LIBRARIES, locate, search_folders

from tests.faults.trial import SHORT, TIMEOUT_S, CantPlant, Planted, copy_of_project, image, open_folder
from tests.processes import BRIEF_ENVKIT

Plant = Callable[[Path], AbstractContextManager[Planted]]
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PIDS = Path("/sys/fs/cgroup/pids")
# ELF's header (elf(5)): the byte of the class and its value for 32 bits, the place of the machine and AArch64's number.
ELF_CLASS, ELF_32_BIT = 4, b"\x01"
ELF_MACHINE, AARCH64 = 18, b"\xb7\x00"
# Above what the worker and the kit need together, below what doctor calls enough.
FEW_PROCESSES = 60
FREE_MEMORY_SHARE = 0.05
QUIET_SAMPLES = 2
HIDDEN = "tcmalloc"


def _library(name: str) -> Path:
    found = locate(search_folders()).get(name)
    if found is None:
        raise CantPlant(f"{name} is not installed")
    return Path(found["path"])


def needs(*libraries: str, cpus: int = 1) -> Plant:
    """Nothing to plant, but the profile preloads these, or has that many threads."""

    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        for name in libraries:
            _library(name)
        _require_cpus(cpus)
        yield Planted()

    return plant


def for_two_threads(planted: Plant) -> Plant:
    """``planted`` on a machine that has a CPU for each; on others the kit refuses the profile before it is launched."""

    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        _require_cpus(2)
        with planted(folder) as one:
            yield one

    return plant


def _require_cpus(least: int) -> None:
    if len(os.sched_getaffinity(0)) < least:
        raise CantPlant(f"there are fewer than {least} CPUs")


def only_if(holds: bool, reason: str) -> Plant:
    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        if not holds:
            raise CantPlant(reason)
        yield Planted()

    return plant


def shell(**variables: str) -> Plant:
    """Variables of the shell that both launches are typed in."""

    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        yield Planted(variables=variables)

    return plant


def under(*command: str) -> Plant:
    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        if shutil.which(command[0]) is None:
            raise CantPlant(f"{command[0]} is not installed")
        yield Planted(under=command)

    return plant


@contextlib.contextmanager
def inherited_preload(folder: Path) -> Iterator[Planted]:
    yield Planted(variables={"LD_PRELOAD": str(_library("jemalloc"))})


def jemalloc_is(damage: Callable[[Path], None]) -> Plant:
    """An environment like this one, whose jemalloc is a copy of its own that ``damage`` has worked on."""

    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        if sys.prefix == sys.base_prefix:
            raise CantPlant("the tests do not run in a virtual environment")
        library = _library("jemalloc")
        prefix = folder / "environment"
        shutil.rmtree(prefix, ignore_errors=True)
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib").mkdir()
        (prefix / "bin/python").symlink_to(Path(sys.executable).resolve())
        shutil.copy(Path(sys.prefix) / "pyvenv.cfg", prefix)
        packages = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (prefix / "lib" / packages).symlink_to(Path(sys.prefix) / "lib" / packages)
        copy = prefix / "lib" / LIBRARIES["jemalloc"].files[0]
        shutil.copy(library, copy)
        damage(copy)
        path = os.pathsep.join((str(prefix / "commands"), os.environ["PATH"]))
        yield Planted(options=("--python", str(prefix / "bin/python")), variables={"PATH": path})

    return plant


def _overwrite(path: Path, place: int, value: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + len(value)] = value
    path.write_bytes(content)


def other_architecture(path: Path) -> None:
    _overwrite(path, ELF_MACHINE, AARCH64)


def other_word_size(path: Path) -> None:
    _overwrite(path, ELF_CLASS, ELF_32_BIT)


def no_library(path: Path) -> None:
    path.write_text("This is a text.\n" * 100)


def removed_at_start(path: Path) -> None:
    """It is there when the profile is resolved, and a command of the profile's prefix takes it away."""
    script = path.parents[1] / "commands/nice"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nrm -f {path}\nexec "$@"\n')
    script.chmod(0o755)


def _script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@contextlib.contextmanager
def wrapper_that_drops_variables(folder: Path) -> Iterator[Planted]:
    yield Planted(
        options=("--python", _script(folder, f'#!/bin/sh\nunset OMP_NUM_THREADS\nexec {sys.executable} "$@"\n'))
    )


# A worker reads from a pipe that it is to train, and imports this module before torch.
AT_TRAINING = """import sys
begun = []
def begin():
    {statements}
def hook(event, arguments):
    if event == "import" and arguments[0] == "envkit.worker.measure.train" and not begun:
        begun.append(True)
        begin()
sys.addaudithook(hook)
"""


def sitecustomize(statements: str) -> Plant:
    """Python runs these statements when a worker is about to train."""

    @contextlib.contextmanager
    def plant(folder: Path) -> Iterator[Planted]:
        site = folder / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(AT_TRAINING.format(statements=statements))
        yield Planted(variables={"PYTHONPATH": str(site)})

    return plant


@contextlib.contextmanager
def second_runtime(folder: Path) -> Iterator[Planted]:
    library = _library("intel-openmp")
    with sitecustomize(f"import ctypes; ctypes.CDLL({str(library)!r})")(folder) as planted:
        yield planted


@contextlib.contextmanager
def huge_pages_never(folder: Path) -> Iterator[Planted]:
    """As a kernel says it whose huge pages are off; the launched processes alone read it so."""
    if not THP.exists():
        raise CantPlant("this kernel has no transparent huge pages")
    told = folder / "transparent-hugepage-enabled"
    told.write_text("always madvise [never]\n")
    yield Planted(under=_seeing(f"mount --bind {told} {THP}"))


@contextlib.contextmanager
def path_without_commands(folder: Path) -> Iterator[Planted]:
    (folder / "bin").mkdir(exist_ok=True)
    yield Planted(variables={"PATH": str(folder / "bin")})


@contextlib.contextmanager
def few_processes(folder: Path) -> Iterator[Planted]:
    group = PIDS / f"envkit-fault-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(FEW_PROCESSES))
    except OSError as error:
        raise CantPlant(f"a control group can't be made: {error.strerror}") from None
    enter = ("/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group))
    try:
        yield Planted(under=enter)
    finally:
        group.rmdir()


@contextlib.contextmanager
def memory_just_enough(folder: Path) -> Iterator[Planted]:
    peak = _peak_in_docker()
    yield Planted(options=("--memory", f"{int(peak * (1 + FREE_MEMORY_SHARE))}"))


@functools.cache
def _peak_in_docker() -> int:
    """What training takes where there is no limit, in bytes."""
    with open_folder() as folder:
        project = copy_of_project(folder)
        result = subprocess.run(
            [sys.executable, "-c", BRIEF_ENVKIT, "bench", "baseline", *SHORT, "--engine", "docker", "--image", image(),
             "--output", str(folder / "unlimited"), "--json"],
            cwd=project, env={**os.environ, "PYTHONPATH": str(project / "runner"), "TMPDIR": str(folder)},
            capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
        )  # fmt: skip
    return int(json.loads(result.stdout)["measured"][0]["peak_memory_bytes"])


@contextlib.contextmanager
def neighbour(folder: Path) -> Iterator[Planted]:
    """Another program computes: all the time beside a plain launch, and beside the kit from its second block on."""
    marker, over = folder / "launched", threading.Event()
    waits = marker.exists()
    marker.touch()
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        while waits and not over.is_set() and _samples(folder / "run") < QUIET_SAMPLES:
            time.sleep(0.05)
        if not over.is_set():
            started.append(subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]))

    watcher = threading.Thread(target=start)
    watcher.start()
    try:
        yield Planted()
    finally:
        over.set()
        watcher.join()
        for process in started:
            process.kill()
            process.wait()


def _samples(folder: Path) -> int:
    try:
        return (folder / record.FILE_NAME).read_text().count('"event": "sample"')
    except OSError:
        return 0


def cpu_lacks(*flags: str) -> bool:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    has = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    return not set(flags) & set(has)


def libc_older_than(version: str) -> bool:
    name, _, found = str(fingerprint()["libc"]).partition(" ")
    return name == "glibc" and numbers(found) < numbers(version)


@contextlib.contextmanager
def not_installed(folder: Path) -> Iterator[Planted]:
    """Hide all files of HIDDEN behind /dev/null, for the launched processes alone."""
    found = [place / name for place in search_folders() for name in LIBRARIES[HIDDEN].files]
    hide = " && ".join(f"mount --bind /dev/null {path}" for path in found if path.is_file()) or "true"
    yield Planted(under=_seeing(hide))


def _seeing(mounts: str) -> tuple[str, ...]:
    """What starts a command in which alone these shell commands have mounted something."""
    enter = ("unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        raise CantPlant("no user and mount namespaces")
    return enter
