"""Watch a command of the user's own, as it is, while it takes its steps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from envkit.bench import private_values
from envkit.bench.job import Job
from envkit.bench.parse_sample import parse_sample
from envkit.cli.workload_file import WARMUP_STEPS
from envkit.cli.workload_messages import NotWatched
from envkit.common.errors import InputError
from envkit.common.progress import Progress
from envkit.engines.measurement import TrainingDocument
from envkit.worker.request import RunCommand

# How long steps are watched, and how long may pass until enough of them were seen; in seconds.
WATCH_S, LIMIT_S = 10.0, 45.0


def watch(job: Job, argv: Sequence[str], quiet: bool) -> TrainingDocument:
    """Return the sample that a worker of the job's only arm makes of it. Raise InputError if it can't be watched."""
    (arm,), own = job.study.arms, job.study.user_command
    assert own is not None, "a command of the user's is watched"
    work = RunCommand(replace(own, metric=None, loss_metric=None), WARMUP_STEPS, watch_s=WATCH_S, watch_limit_s=LIMIT_S)
    with Progress(0.0, quiet=quiet) as progress:
        progress.start("watching", shlex.join(argv), 0.0)
        outcome = job.engines[arm.target].run(job.launch(arm, work))
    sample, problem = parse_sample(outcome, (), job.study.options)
    if problem is not None:
        raise InputError(
            private_values.of_message(NotWatched(argv[0], job.explained(problem)), job.kept, job.inherited)
        )
    assert sample is not None, "there is a sample or a problem"
    return sample
