"""Collects evidence in a Python program that is not the kit's own, when that program ends.

Python imports ``sitecustomize`` when it starts. With this folder first in PYTHONPATH and ENVKIT_EVIDENCE naming a
folder, each Python process leaves ``PID.started`` there at once, as do those that it forks; ``bound`` is in it where
one has a single CPU by the thread that forked it. One that has imported torch leaves ``PID.json`` when it ends, also by
``os._exit`` in its main thread: its command line, its evidence, and how many seconds all of this took. One that is
killed leaves no more than the first, nor does a DataLoader's worker, which has
one thread by design. With ENVKIT_STEPS set one leaves the times of its optimizer's steps besides
(``optimizer_steps``), and its evidence may come before its end. With ENVKIT_LIBRARIES set one notes which libraries it
loads. Nothing but the standard library's cheapest modules is
imported before that, and the program's own ``sitecustomize`` still runs. It must harm no Python 3.
"""

import io
import os
import sys

TYPE_CHECKING = False  # as typing has it, which would be imported at each start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be imported at each start


def _watch(folder: str) -> None:
    import atexit

    cpus = os.sched_getaffinity(0)  # before an OpenMP runtime binds this thread to fewer

    def mark() -> None:
        try:
            with open(f"{folder}/{os.getpid()}.started", "w") as file:  # noqa: PTH123
                if len(os.sched_getaffinity(0)) == 1 < len(cpus):
                    file.write("bound")  # forked by a thread that was
        except OSError:
            pass  # the command has ended, and was judged

    mark()
    if hasattr(os, "register_at_fork"):  # Python 3.6 has none
        os.register_at_fork(after_in_child=mark)
    process = os.getpid()  # a forked child has this hook too, and is not the program
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            block = file.read()  # before the program can write over it, as one does that gives itself a title
    except OSError:
        block = None

    if os.environ.get("ENVKIT_LIBRARIES"):
        _note_libraries(folder)
    at_torch = _AtTorch()
    sys.meta_path.insert(0, at_torch)
    done: list[bool] = []  # of this process: it may testify before its end

    def testify(is_short: bool = False) -> None:
        if os.getpid() == process and "torch" in sys.modules and not done:
            done.append(True)
            _testify(folder, cpus, block, at_torch, is_short)

    # Registered first, so called last: what the program itself does at its end has then been done.
    atexit.register(testify)
    at_exit: list[Callable[[], None]] = [testify]
    if os.environ.get("ENVKIT_STEPS"):
        at_exit.insert(0, _time_steps(folder, testify))
    _before_leaving(at_exit)


def _before_leaving(at_exit: "list[Callable[[], None]]") -> None:
    """Have ``os._exit`` call ``at_exit`` first: it ends a program without Python's own exit functions.

    Only in the main thread. Another one that ends the program may do so because the main thread hangs, perhaps with
    a lock that evidence needs.
    """
    from _thread import get_ident

    main, leave = get_ident(), os._exit

    def _exit(status: int) -> None:
        try:
            if get_ident() == main:
                for function in at_exit:
                    function()
        finally:
            leave(status)

    os._exit = _exit  # type: ignore[assignment]


def _note_libraries(folder: str) -> None:
    """Keep a list of the libraries that the program loads, and where, in a file: it may abort in the next one."""
    import json

    if not hasattr(sys, "addaudithook"):  # Python 3.8 brought it
        return
    loaded: list[tuple[str, str]] = []

    def note(event: str, arguments: "tuple[object, ...]") -> None:
        if event not in ("ctypes.dlopen", "import"):
            return
        path = arguments[0] if event == "ctypes.dlopen" else arguments[1]
        if not isinstance(path, str) or "/lib-dynload/" in path:
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_pythons(frame.f_code.co_filename):
            frame = frame.f_back
        loaded.append((path, f"{frame.f_code.co_filename}:{frame.f_lineno}"))
        try:
            with open(f"{folder}/libraries.{os.getpid()}", "w") as file:  # noqa: PTH123
                json.dump({"pid": os.getpid(), "libraries": loaded}, file)
        except Exception:
            pass  # the command has ended, and was judged

    sys.addaudithook(note)


def _is_pythons(file: str) -> bool:
    return file.startswith("<") or "/ctypes/" in file


def _time_steps(folder: str, testify: "Callable[[bool], None]") -> "Callable[[], None]":
    import atexit

    import optimizer_steps  # type: ignore[import-not-found]  # which is in this folder

    del sys.modules["optimizer_steps"]  # the program may have a module of that name
    steps = optimizer_steps.Steps(os.environ["ENVKIT_STEPS"], folder, testify)
    sys.meta_path.insert(0, optimizer_steps.Finder(steps))
    atexit.register(steps.at_exit)  # and called before testify
    at_exit: Callable[[], None] = steps.at_exit
    return at_exit


class _AtTorch:
    """Finds nothing, but keeps the variables of the moment in which torch is looked for: it reads some when imported.

    A program may look for it several times; the last time is when it is imported.
    """

    def __init__(self) -> None:
        self.variables: dict[str, str] | None = None
        self.mapped = ""

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None) -> None:
        if name == "torch":
            self.variables = dict(os.environ)
            try:
                with open("/proc/self/maps", errors="replace") as file:  # noqa: PTH123
                    self.mapped = file.read()
            except OSError:
                pass


def _testify(folder: str, cpus: "set[int]", block: "bytes | None", at_torch: "_AtTorch", is_short: bool) -> None:
    import json
    import time
    from pathlib import Path

    begin = time.perf_counter()
    modules = _take_out_kit()  # the program may have a package of that name, and go on
    try:
        if _loads_data() or not Path(folder).is_dir():  # where that is gone, the command has ended and was judged
            return
        _import_kit(Path(_HERE).parents[1])
        from envkit.worker import initial_environment
        from envkit.worker.evidence import PROBES, SHORT_LOOK, collect, cpu_use, openmp

        cpu_use.HOOKS_FOLDER = folder
        openmp.STARTED_ON, initial_environment.AT_START = cpus, block
        initial_environment.AT_TORCH, initial_environment.MAPPED_BEFORE_TORCH = at_torch.variables, at_torch.mapped
        if not is_short:
            _work_in_parallel()
        unfinished = Path(folder, f".{os.getpid()}")
        argv = getattr(sys, "orig_argv", [sys.executable, *sys.argv])  # Python 3.10 brought it
        document = {"pid": os.getpid(), "argv": argv, "evidence": collect(SHORT_LOOK if is_short else PROBES)}
        unfinished.write_text(json.dumps({**document, "seconds": time.perf_counter() - begin}))
        unfinished.replace(Path(folder, f"{os.getpid()}.json"))
    except Exception as error:  # a program must not end worse for being watched
        if Path(folder).is_dir():
            print(_no_evidence(error), file=sys.stderr)
    finally:
        _take_out_kit()
        sys.modules.update(modules)


def _no_evidence(error: Exception) -> str:
    from pathlib import Path
    from runpy import run_path  # the program may have changed sys.path, or have a module of the same name

    messages = run_path(f"{_HERE}/hook_messages.py")
    harmless = run_path(f"{Path(_HERE).parents[1]}/common/printable.py")["harmless"]  # it may be a terminal
    line = messages["NO_EVIDENCE"].format(error=type(error).__name__, reason=error)
    return str(harmless(" ".join(line.splitlines())))


def _import_kit(folder: "Path") -> None:
    """Import the package ``envkit`` from ``folder``, but no package beside it, which pip may have installed."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("envkit", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["envkit"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _take_out_kit() -> "dict[str, ModuleType]":
    """Have a package called envkit imported anew, and return its modules that were there."""
    names = [name for name in sys.modules if name == "envkit" or name.startswith("envkit.")]
    return {name: sys.modules.pop(name) for name in names}


def _loads_data() -> bool:
    """Return whether this is a worker of a DataLoader: one that was spawned, and not forked, ends as a program does."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _work_in_parallel() -> None:
    """Add two numbers in each of torch's threads: a runtime starts and binds its threads when they are first needed.

    A program that only starts others has needed none. torch gives a thread 32,768 elements at least (its GRAIN_SIZE,
    aten/src/ATen/TensorIterator.h).
    """
    import torch

    torch.zeros(32768 * torch.get_num_threads(), device="cpu").add_(1)


def _import_the_programs_own() -> None:
    """Run the ``sitecustomize`` that this one stands before, if there is one."""
    import importlib.machinery
    import importlib.util

    others = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _print_whole_lines() -> None:
    """Write whole lines: with PYTHONUNBUFFERED alone other ranks may write between the parts of a print.

    Not to stderr, where a program's last words may have no line feed. Python 3.6 has none of this.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and getattr(sys.stdout, "write_through", False):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


if os.environ.get("ENVKIT_WHOLE_LINES"):
    _print_whole_lines()
if os.environ.get("ENVKIT_EVIDENCE"):
    _watch(os.environ["ENVKIT_EVIDENCE"])
_import_the_programs_own()
