"""Run one trial: a fresh worker under one environment. Check everything that its time needs to count."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from msgspec import structs

from envkit.bench import private_values, requests, writes
from envkit.bench.arms import Arm, own_ranks
from envkit.bench.job import Job
from envkit.bench.losses import loss_difference, loss_tolerance
from envkit.bench.memory_limit import GPU, PROCESS, is_over
from envkit.bench.parse_sample import other_loader, other_ranks, parse_sample
from envkit.bench.study import REFERENCE_PROFILE
from envkit.checks.sample_effect import check_sample
from envkit.common import codec
from envkit.engines.base import Outcome
from envkit.engines.measurement import TrainingDocument, present_losses
from envkit.engines.messages import TimedOut
from envkit.messages import Message, MessageError, from_json
from envkit.profiles.environment import Environment
from envkit.tuning import events
from envkit.tuning.events import COLD, FAILURE, TRIAL, WARM_UP, Append, Event, Failure, Peaks, Trial, WarmUp
from envkit.tuning.messages import BaselineWorkerFailed, FarSlower, NotInEffect, OtherLosses, OverMemory
from envkit.tuning.trial_store import BASELINE

# Stop a worker that takes this many times as long as the baseline's: it has lost, and would use up the others' time.
SLOWEST_TRIAL = 4.0
SHORTEST_TIMEOUT_S = 20.0


class BaselineFailed(MessageError):
    """A worker of the baseline failed, without which nothing can be compared."""


@dataclass
class Trials:
    """Run and record trials. ``job`` has the study of one trial; its environments are not used. ``events`` is what was
    recorded, and grows.

    ``numerics``: with ``same``, a candidate whose losses differ from the baseline's by more than rounding fails.
    """

    job: Job
    numerics: str
    append: Append
    events: list[Event]
    before: Callable[[str], None]  # is told what is about to run

    def warm(self) -> list[Event]:
        """Run two trials of the baseline before any round. The first brings files into the page cache, and its cost
        says nothing; the second tells what a trial costs.

        All later trials are compared with the losses and digests of the second. Return the events, none where this
        was done before. Raises BaselineFailed.
        """
        return [self._warm(COLD), self._warm(WARM_UP)] if self._reference is None else []

    def _warm(self, kind: str) -> Event:
        self.before("warming up")
        outcome, document, problem = self._run(BASELINE, self.job.environments[REFERENCE_PROFILE], 0)
        spent = {"worker_seconds": round(outcome.seconds, 3)}
        if document is None:
            raise self._of_baseline(problem, outcome, candidate=BASELINE, **spent)
        sample: Mapping[str, object] = document if kind == WARM_UP else {}
        return self._record(kind, **spent, **sample)

    def __call__(self, in_round: int, number: int, environment: Environment) -> Event:
        """Run a trial of a candidate and record it. Raises BaselineFailed."""
        self.before(environment.title if number != BASELINE else REFERENCE_PROFILE)
        outcome, document, problem = self._run(number, environment, in_round)
        where = {"round": in_round, "candidate": number, "worker_seconds": round(outcome.seconds, 3)}
        if document is not None:
            problem = self._wrong(number, environment, document, outcome)
            problem = problem or self._over_memory(number, environment, document)
        if problem is None and document is not None:
            return self._record(TRIAL, **where, **document, stderr=outcome.stderr_tail)
        evidence = {} if document is None else {"evidence": document["evidence"]}
        if number == BASELINE:
            raise self._of_baseline(problem, outcome, **where, **evidence)
        return self._failure(problem, outcome, **where, **evidence)

    @property
    def _reference(self) -> WarmUp | None:
        return next((event for event in self.events if isinstance(event, WarmUp)), None)

    def _record(self, event: str, **fields: object) -> Event:
        hidden = private_values.hidden(fields, self.job.context.kept, self.job.context.inherited)
        recorded = events.parse(self.append(event, **hidden))
        self.events.append(recorded)
        return recorded

    def _failure(self, problem: Message | None, outcome: Outcome, **where: object) -> Failure:
        """Record a worker that failed, or whose sample does not count."""
        assert problem is not None, "only what has a problem fails"
        failure = self._record(FAILURE, **where, problem=problem.to_json(), stderr=outcome.stderr_tail)
        assert isinstance(failure, Failure), "its name says so"
        return failure

    def _of_baseline(self, problem: Message | None, outcome: Outcome, **where: object) -> BaselineFailed:
        """Record a failure of the baseline. Return the error to raise, which has no private values either."""
        failure = self._failure(problem, outcome, **where)
        lines = failure.stderr.strip().splitlines()
        return BaselineFailed(BaselineWorkerFailed(from_json(failure.problem), lines[-1] if lines else None))

    def _run(
        self, number: int, environment: Environment, in_round: int
    ) -> tuple[Outcome, TrainingDocument | None, Message | None]:
        """Start the worker; return its outcome, with the document that it printed or with what was wrong."""
        study = self.job.study
        name = REFERENCE_PROFILE if number == BASELINE else f"candidate {number}"
        ranks = own_ranks(environment.ranks)
        arm = Arm(name, environment.profile, study.reference.engine, ranks=ranks)
        job = replace(self.job, environments={name: environment})
        # a baseline that is slow once has not lost, and stopping it would end the search
        timeout_s = study.stopping.timeout_s if number == BASELINE else self._timeout_s
        launch = replace(
            job.launch(arm, requests.of_sample(study, arm), study.padding(in_round, arm)), timeout_s=timeout_s
        )
        outcome = job.context.engines[arm.engine].run(launch)
        if outcome.failure == TimedOut(launch.timeout_s) and launch.timeout_s < study.stopping.timeout_s:
            outcome = replace(outcome, failure=FarSlower(launch.timeout_s, SLOWEST_TRIAL))
        reference = self._reference
        earlier = [] if reference is None else [cast(TrainingDocument, structs.asdict(reference))]
        document, problem = parse_sample(outcome, earlier, study.options)
        if document is not None:
            refused: Message | None = other_loader(document, study.workload_of(arm))
            refused = refused or (writes.outside(study, document) if reference is None else None)
            refused = refused or other_ranks(document, study.ranks_of(arm), study.options)
            return (outcome, document, None) if refused is None else (outcome, None, refused)
        return outcome, None, problem

    @property
    def _timeout_s(self) -> float:
        took = [
            event.worker_seconds
            for event in self.events
            if isinstance(event, WarmUp) or (isinstance(event, Trial) and event.candidate == BASELINE)
        ]
        longest = max(SHORTEST_TIMEOUT_S, SLOWEST_TRIAL * median(took)) if took else self.job.study.stopping.timeout_s
        return min(longest, self.job.study.stopping.timeout_s)

    def _wrong(
        self, number: int, environment: Environment, document: TrainingDocument, outcome: Outcome
    ) -> Message | None:
        """Return why a sample does not count; None if it does."""
        for check in check_sample(environment, {**document, "stderr": outcome.stderr_tail}, self.job.context.kept):
            if not check.holds:
                return NotInEffect(check.key, str(check.expected), str(check.seen))
        reference, study = self._reference, self.job.study
        losses = present_losses(document["losses"])
        # those of a user's command may differ among samples of the baseline too: it takes several to tell
        if number == BASELINE or reference is None or not losses or study.user_command:
            return None
        difference = loss_difference(losses, reference.known_losses)
        if self.numerics != "same" and math.isfinite(difference):
            return None
        workload, precision = study.workload_of(study.reference), study.options.precision
        if difference > loss_tolerance(workload, precision, environment.ranks > 1):
            return OtherLosses(difference)
        return None

    def _over_memory(self, number: int, environment: Environment, document: TrainingDocument) -> Message | None:
        """Return that a candidate's peak memory is above the limit, by the medians of its trials and the baseline's.

        Return None if it is within the limit, if there is no limit, on several ranks, and if a peak is unknown.
        """
        study = self.job.study
        limit, ranks = study.stopping.max_memory, own_ranks(environment.ranks) or study.ranks
        if limit is None or number == BASELINE or ranks > 1:
            return None
        this = codec.parse(document, Peaks)
        trials = [event for event in self.events if isinstance(event, Trial)]
        candidates: list[Trial | WarmUp | Peaks] = [this, *(trial for trial in trials if trial.candidate == number)]
        baselines = [event for event in self.events if isinstance(event, WarmUp)]
        of_baseline: list[Trial | WarmUp | Peaks] = [
            *baselines,
            *(trial for trial in trials if trial.candidate == BASELINE),
        ]
        for memory in (PROCESS, GPU):
            sides = [[peak for event in side if (peak := _peak(event, memory))] for side in (candidates, of_baseline)]
            if not all(sides):
                continue
            peak, reference = map(median, sides)
            if is_over(peak, reference, limit):
                share = peak / reference - 1
                return OverMemory(peak, reference, share, limit, GPU if memory == GPU else None)
        return None


def _peak(event: Trial | WarmUp | Peaks, memory: str) -> float | None:
    """Return the peak of the process, or of tensors on the GPU, in bytes; None or 0 if unknown."""
    if memory == PROCESS:
        return event.peak_memory_bytes
    return event.gpu.allocated_bytes if event.gpu else None
