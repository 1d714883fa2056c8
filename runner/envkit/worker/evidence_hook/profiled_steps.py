"""Some steps of a program that is not the kit's own under torch's profiler (``optimizer_steps``)."""

TYPE_CHECKING = False  # as typing has it, which need not be imported for that
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from torch.profiler import profile

PROFILED, PROFILED_S = 3, 5.0  # so many steps under the profiler, or fewer where these take longer (seconds)
ENDED_FIRST = "ended-first"


class Profile:
    """Some steps under torch's profiler: ``operators``, or why they are ``missing``."""

    def __init__(self) -> None:
        self._profiler: profile | None = None
        self._begin_s = 0.0
        self._step_s: list[float] = []
        self.operators: dict[str, object] | None = None
        self.missing: str | None = ENDED_FIRST

    def begin(self) -> None:
        try:
            import time
            from contextlib import ExitStack

            import torch
            from torch.profiler import ProfilerActivity, profile

            activities = [ProfilerActivity.CPU]
            cuda: ModuleType = torch.cuda
            if cuda.is_available() and cuda.is_initialized():
                activities.append(ProfilerActivity.CUDA)
            with profile(activities=activities):  # its first use takes longer
                pass
            profiler = profile(activities=activities)
            self._running = ExitStack()
            self._running.enter_context(profiler)
            self._profiler = profiler
            self._clock: Callable[[], float] = time.perf_counter
            self._begin_s = self._clock()
        except Exception as error:  # as where the program itself is under the profiler
            self._fail(error)

    def step(self) -> bool:
        """Count a step, and return whether it was the last."""
        self._step_s.append(self._clock() - self._begin_s)
        return len(self._step_s) >= PROFILED or self._step_s[-1] >= PROFILED_S

    def end(self) -> None:
        """End the profiler if it runs, as a program that exits under it dies by a signal; read it if it saw steps."""
        if self._profiler is None:
            return
        profiler, self._profiler = self._profiler, None
        try:
            self._running.close()
            if not self._step_s:
                return
            # of the thread that trains, without those that help it, as ``envkit.worker.measure.operators`` has it
            averages = [operator for operator in profiler.key_averages() if operator.self_cpu_time_total > 0]
            self.operators = {
                "steps": len(self._step_s),
                "seconds": self._step_s[-1],
                "self_s": {operator.key: operator.self_cpu_time_total / 1e6 for operator in averages},
                "calls": {operator.key: operator.count for operator in averages},
            }
            self.missing = None
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.missing = f"{type(error).__name__}: {error}"
