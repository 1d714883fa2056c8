"""Times the steps of a torch optimizer in a Python program that is not the kit's own.

``sitecustomize`` imports this where ENVKIT_STEPS is set. It waits until the program imports ``torch.optim.optimizer``
and has torch call it after each step of an optimizer. A step is one of the optimizer that stepped first (a GAN has two)
or, where that one is gone, of the next; it lasts from the end of the one before, so that the first only starts the
clock. With ``steps:W:N`` the program ends at the step that follows W to warm up and N that count. With ``steps:W:N:S``
it goes on until S seconds of steps have passed, or until 60 seconds and 5 steps have. With ``seconds:W:S``
it is watched for S seconds after W steps, and for 4 steps at least, leaves its evidence, takes a few more steps under
torch's profiler, and goes on: who started it ends it. With ``look:W:0`` it leaves a little evidence after W steps, and
goes on.

Ranks wait for each other in each step, so that all must end at the same one. Without a fixed number the first process
that has enough writes it into ``steps.agreed``, one step ahead of the others if there are any.

In the folder of evidence each process that took steps leaves ``PID.steps``. ``PID.torch`` says that it has imported
torch, ``PID.stepped`` that it took a step, ``PID.begin`` and ``PID.end`` that the steps that count begin, and have
ended. While they are counted a step costs two system calls (getpid, getrusage) and a few microseconds. All of this must
be harmless to any Python 3.

torch.compile traces what torch calls after a step, where the step itself is compiled: a clock that is read there breaks
the graph, and a number that changes compiles it anew at each step. So all that torch calls is one assignment
(``_Last``), which becomes a part of the compiled code and adds no guard of a value; the rest runs when the assignment
is made, outside of any graph (``_Sentinel``).
"""

import os
import sys

import profiled_steps  # type: ignore[import-not-found]  # which is in this folder

del sys.modules["profiled_steps"]  # the program may have a module of that name

TYPE_CHECKING = False  # as typing has it, which need not be imported for that
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from resource import struct_rusage
    from types import FrameType, ModuleType

    AfterStep = Callable[[object, object, object], None]

OPTIMIZER = "torch.optim.optimizer"
LEAST = 4  # steps that count, where the program is watched for some seconds
# With a least time so many steps are enough after LONGEST_S (seconds).
LEAST_BY_PACE, LONGEST_S = 5, 60.0
# So much longer are other ranks than the first watched: what they do afterwards would hold up that one's steps.
LATER_S = 10.0
TOO_OLD = {"code": "worker.torch-too-old"}  # a message as JSON: to import its class would import the kit
USAGE = {
    "user_s": "ru_utime",
    "system_s": "ru_stime",
    "minor_faults": "ru_minflt",
    "major_faults": "ru_majflt",
    "voluntary_switches": "ru_nvcsw",
    "involuntary_switches": "ru_nivcsw",
}


class Finder:
    """Finds ``torch.optim.optimizer`` as the others do, and has its steps counted when it has been executed."""

    def __init__(self, steps: "Steps") -> None:
        self._steps = steps

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name != OPTIMIZER:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: "Loader") -> None:
        execute = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            del loader.exec_module  # which was set for this one import
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            self._steps.register(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]


class _Last:
    """Hold the ``optimizer`` that has just stepped, or a sentinel.

    It has slots: torch.compile keeps an instance's ``__dict__`` with all that is in it, and a sentinel would live on.
    """

    __slots__ = ("optimizer",)

    def __init__(self) -> None:
        self.optimizer: object = None


class _Sentinel:
    """Call ``dropped`` when the last reference to this object goes, which CPython does at once.

    An exception can't leave ``dropped``: Python prints it, and the program goes on.
    """

    __slots__ = ("_dropped",)

    def __init__(self, dropped: "Callable[[], None]") -> None:
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped()


def _after_step(last: "_Last") -> "AfterStep":
    """Return the function that torch calls after each step. It may be traced, and so reads nothing, and no global."""

    def after_step(optimizer: object, args: object, kwargs: object) -> None:
        last.optimizer = optimizer

    return after_step


class Steps:
    """The steps of this process; a forked child has a copy, which counts nothing.

    ``how`` is ENVKIT_STEPS; ``testify`` leaves the process's evidence, or with True a short one.
    """

    def __init__(self, how: str, folder: str, testify: "Callable[[bool], None]") -> None:
        kind, warmup, amount = how.split(":")[:3]
        self._ends_program = kind == "steps"
        self._only_looks = kind == "look"
        self._warmup, self._amount = int(warmup), float(amount)
        self._least_s = float(how.split(":")[3]) if how.count(":") > 2 else 0.0
        self._folder, self._testify, self._process = folder, testify, os.getpid()
        self._optimizer: Callable[[], object] | None = None  # a weak reference
        self._name = ""
        self._taken, self._since_s, self._begin_s = 0, 0.0, 0.0
        self._warmup_step_s: list[float] = []
        self._step_s: list[float] = []
        self._clock: Callable[[], float]
        self._usage: Callable[[], struct_rusage]
        # usage before the steps that count, and after the last of them
        self._begin: struct_rusage | None = None
        self._end: struct_rusage | None = None
        self._delayed_s: float | None = None  # before them
        self._waited_s: float | None = None
        self._profile = profiled_steps.Profile()
        self._has_left = False
        self._next: Callable[[float], None] = self._count  # what a step is for
        self._last = _Last()
        self._is_over = False

    def register(self, module: "ModuleType") -> None:
        """Be called after each step; ``module`` is torch's."""
        import time
        from resource import RUSAGE_SELF, getrusage

        self._clock, self._usage = time.perf_counter, lambda: getrusage(RUSAGE_SELF)
        self._mark("torch")
        if hasattr(module, "register_optimizer_step_post_hook"):
            self._last.optimizer = _Sentinel(self._dropped)
            module.register_optimizer_step_post_hook(_after_step(self._last))
        else:
            self._leave({"pid": os.getpid(), "rank": _number("RANK"), "complete": True, "problem": TOO_OLD})

    def at_exit(self) -> None:
        """Leave what there is, where the program ends by itself."""
        self._is_over = True
        if self._taken and os.getpid() == self._process and not (self._has_left or self._only_looks):
            self._profile.end()
            self._leave(self._document(self._next == self._end_program))

    def _dropped(self) -> None:
        """Count the step of the optimizer that took the sentinel's place, and put another one there."""
        if self._is_over or os.getpid() != self._process:
            return
        now = self._clock()
        optimizer = self._last.optimizer
        compiling = _compile_nothing()
        try:
            self._stepped(optimizer, now)
        finally:
            self._last.optimizer = _Sentinel(self._dropped)
            compiling()

    def _stepped(self, optimizer: object, now: float) -> None:
        if self._optimizer is None or self._optimizer() is None:
            import weakref  # not to keep its state for longer than the program does

            self._optimizer, self._name = weakref.ref(optimizer), type(optimizer).__name__
        if self._optimizer() is optimizer:
            self._next(now)

    def _count(self, now: float) -> None:
        self._taken += 1
        if self._taken > 1:
            (self._warmup_step_s if self._begin is None else self._step_s).append(now - self._since_s)
        else:
            self._mark("stepped")
        self._since_s = now
        if self._begin is not None:
            self._end = self._usage()
            if self._has_enough(now):
                self._stop_counting()
        elif self._taken >= self._warmup and self._only_looks:
            self._next = lambda now: None
            self._testify(True)
        elif self._taken >= self._warmup:
            if not self._ends_program and _number("LOCAL_RANK", _number("RANK")) > 0:
                self._amount += LATER_S
            self._mark("begin")
            self._delayed_s = _delay_s()
            self._begin = self._end = self._usage()
            self._since_s = self._begin_s = self._clock()

    def _has_enough(self, now: float) -> bool:
        if self._ends_program:
            if self._least_s:
                self._agree(now - self._begin_s)
            return not self._least_s and len(self._step_s) >= self._amount
        return len(self._step_s) >= LEAST and now - self._begin_s >= self._amount

    def _agree(self, passed_s: float) -> None:
        """Fix how many steps count, once enough of them were taken here or in another process."""
        taken = len(self._step_s)
        path = f"{self._folder}/steps.agreed"
        try:
            if not os.path.exists(path):  # noqa: PTH110
                is_long = taken >= LEAST_BY_PACE and passed_s >= LONGEST_S
                if not is_long and (taken < self._amount or passed_s < self._least_s):
                    return
                with open(path, "x") as file:  # noqa: PTH123
                    file.write(f"{taken + 2 * _has_peers()}\n")
            with open(path) as file:  # noqa: PTH123
                text = file.read()
        except FileExistsError:
            return  # another process was first: its number is there at the next step
        except OSError:
            text = f"{taken}\n"  # the command has ended, and was judged
        if text.endswith("\n"):
            try:
                self._amount, self._least_s = int(text), 0.0
            except ValueError:
                self._amount, self._least_s = taken, 0.0  # another program wrote there

    def _stop_counting(self) -> None:
        delay_s = _delay_s()
        if delay_s is not None and self._delayed_s is not None:
            self._waited_s = delay_s - self._delayed_s
        self._mark("end")
        if self._ends_program:
            self._next = self._end_program
            return
        # who started the program may end it before the profiler has, and does when the steps are complete
        self._testify(False)
        self._leave(self._document(False))
        self._next = self._look_closer
        self._profile.begin()
        if self._profile.missing != profiled_steps.ENDED_FIRST:
            self._end_watching()

    def _end_program(self, now: float) -> None:
        """At the step after the last one, when the program has printed what it prints of that."""
        if not self._has_left:
            self._has_left = True
            self._leave(self._document(True))
        sys.setprofile(_exit)  # once more where the program has caught it

    def _look_closer(self, now: float) -> None:
        if self._profile.step():
            self._profile.end()
            self._end_watching()

    def _end_watching(self) -> None:
        self._next = lambda now: None
        self._has_left = True
        self._leave(self._document(True))

    def _document(self, complete: bool) -> "dict[str, object]":
        import torch

        usage = {name: getattr(self._end, key, 0) - getattr(self._begin, key, 0) for name, key in USAGE.items()}
        return {
            "pid": os.getpid(),
            "rank": _number("RANK"),
            "complete": complete,
            "optimizer": self._name,
            "threads": torch.get_num_threads(),
            "warmup_step_s": self._warmup_step_s,
            "step_s": self._step_s,
            "usage": usage,
            "waited_s": self._waited_s,
            "operators": self._profile.operators,
            "operators_missing": None if self._ends_program else self._profile.missing,
        }

    def _mark(self, event: str) -> None:
        try:
            with open(f"{self._folder}/{os.getpid()}.{event}", "w"):  # noqa: PTH123
                pass
        except OSError:
            pass  # the command has ended, and was judged

    def _leave(self, document: "dict[str, object]") -> None:
        import json

        name = f"{os.getpid()}.steps"
        try:
            with open(f"{self._folder}/.{name}", "w") as file:  # noqa: PTH123
                json.dump(document, file)
            os.replace(f"{self._folder}/.{name}", f"{self._folder}/{name}")  # noqa: PTH105
        except OSError:
            pass  # the command has ended, and was judged


def _compile_nothing() -> "Callable[[], object]":
    """Keep torch.compile from looking at what this thread calls from here on; return what undoes that.

    A step may be compiled, and what is called meanwhile with it.
    """
    try:
        from torch._C._dynamo.eval_frame import set_eval_frame
    except ImportError:
        return lambda: None
    earlier = set_eval_frame(None)
    return lambda: set_eval_frame(earlier)


def _exit(frame: "FrameType", event: str, argument: object) -> None:
    """Raise SystemExit in the first call or return that is the program's own, as a profiling function.

    Nothing can be raised where a sentinel is dropped. Python takes a profiling function away that has raised.
    """
    if frame.f_globals is not _GLOBALS:
        sys.setprofile(None)
        raise SystemExit(0)


_GLOBALS = globals()


def _has_peers() -> bool:
    """Return whether other processes train with this one, according to torch or a launcher."""
    if _number("WORLD_SIZE", 1) > 1:
        return True
    distributed = sys.modules.get("torch.distributed")
    try:
        return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1
    except Exception:  # a torch that was built without it
        return False


def _number(name: str, otherwise: int = 0) -> int:
    """Return the number in a variable, as torchrun's of a rank have one."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else otherwise


def _delay_s() -> "float | None":
    """Return how long this process's threads have waited for a CPU so far; None where the kernel does not say it.

    The second number of a thread's schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst).
    """
    waited = 0
    try:
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
            with open(f"/proc/self/task/{thread}/schedstat") as file:  # noqa: PTH123
                waited += int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return waited / 1e9
