"""Some steps of a program that is not the kit's own under torch's profiler (``optimizer_steps``)."""

TYPE_CHECKING = False  # as typing has it, which need not be imported for that
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROFILED, PROFILED_S = 3, 5.0  # so many steps under the profiler, or fewer where these take longer (seconds)
ENDED_FIRST = "ended-first"


class Profile:
    """Some steps under torch's profiler: ``operators``, or why they are ``missing``."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._begin_s = 0.0
        self._step_s: list[float] = []
        self.operators: dict[str, Any] | None = None
        self.missing: str | None = ENDED_FIRST

    def begin(self) -> None:
        try:
            import time

            import torch
            from torch.profiler import ProfilerActivity, profile

            activities = [ProfilerActivity.CPU]
            cuda: Any = torch.cuda
            if cuda.is_available() and cuda.is_initialized():
                activities.append(ProfilerActivity.CUDA)
            with profile(activities=activities):  # its first use takes longer
                pass
            profiler: Any = profile(activities=activities)
            profiler.__enter__()
            self._profiler = profiler
            self._clock: Callable[[], float] = time.perf_counter
            self._begin_s = self._clock()
        except Exception as error:  # as where the program itself is under the profiler
            self._fail(error)

    def step(self) -> bool:
        """Count one; whether it was the last."""
        self._step_s.append(self._clock() - self._begin_s)
        return len(self._step_s) >= PROFILED or self._step_s[-1] >= PROFILED_S

    def end(self) -> None:
        if self._profiler is None or not self._step_s:
            return
        profiler, self._profiler = self._profiler, None
        try:
            profiler.__exit__(None, None, None)
            # of the thread that trains, without those that help it, as ``envkit.worker.measure.operators`` has it
            averages = [one for one in profiler.key_averages() if one.self_cpu_time_total > 0]
            self.operators = {
                "steps": len(self._step_s),
                "seconds": self._step_s[-1],
                "self_s": {one.key: one.self_cpu_time_total / 1e6 for one in averages},
                "calls": {one.key: one.count for one in averages},
            }
            self.missing = None
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.missing = f"{type(error).__name__}: {error}"
