"""What a worker tells of a command that it watched, for tests of advice."""

from __future__ import annotations

from typing import Any

from envkit.advice.symptoms import Symptoms, of_sample
from envkit.common import codec
from envkit.engines.measurement import Measurement


def observed(
    steps: int = 10, step_s: float = 0.1, system_share: float = 0.3, matrix: float = 0.4, dispatch: str = "generic"
) -> dict[str, Any]:
    """A sample: two CPUs are busy, ``system_share`` of that in the kernel; ``matrix`` of a step is matrix products."""
    seconds = steps * step_s
    return {
        "seconds": seconds + 5,
        "step_s": [step_s] * steps,
        "usage": {"user_s": 99.0, "system_s": 0.0, "minor_faults": 1},  # of all of it
        "evidence": {"mkl": {"dispatch": dispatch}},
        "observed": {
            "usage": {
                "user_s": 2 * seconds * (1 - system_share),
                "system_s": 2 * seconds * system_share,
                "minor_faults": 5_000 * steps,
            },
            "waited_s": 0.02 * seconds,
            "threads": 2,
            "operators": {
                "steps": 3,
                "seconds": 0.3,
                "self_s": {"aten::addmm": matrix * 0.3, "aten::copy_": 0.03, "aten::mul": 0.03},
                "calls": {"aten::addmm": 30, "aten::copy_": 30, "aten::mul": 240},
            },
        },
    }


def symptoms(**training: Any) -> Symptoms:
    """The symptoms of such a sample."""
    return of_sample(codec.parse(observed(**training), Measurement))
