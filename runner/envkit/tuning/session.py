"""One tuning from its record: search, choose, confirm, write. Whatever is recorded already is not done again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from envkit.analysis.result import Result, conclude
from envkit.bench import batch_split, decide, measure, record, resuming
from envkit.bench.arms import own_ranks
from envkit.bench.job import Job
from envkit.bench.record import Event as RecordEvent
from envkit.bench.record import Record
from envkit.bench.run import Run
from envkit.bench.study import REFERENCE_PROFILE, Study
from envkit.common import yamlfile
from envkit.common.errors import InputError
from envkit.common.progress import Progress
from envkit.messages import from_json
from envkit.profiles import profile
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.profile import Profile
from envkit.tuning import conclusion, confirm, events, live, profile_file, space_file
from envkit.tuning import conclusion_messages as messages
from envkit.tuning.confirm import Decision
from envkit.tuning.events import ORDER, Beginning, Event, Order, WarmUp
from envkit.tuning.live import View
from envkit.tuning.narrow import LeftOut, identity, narrow, require
from envkit.tuning.progress_messages import LongConfirmation
from envkit.tuning.search import ROUND, Candidate, Search
from envkit.tuning.shared_trials import Alone, Peers
from envkit.tuning.shipped import by_gain, gains
from envkit.tuning.space import Space
from envkit.tuning.space_messages import OtherSpace
from envkit.tuning.study import SearchSettings
from envkit.tuning.trial_store import BASELINE, TrialStore
from envkit.tuning.trials import BaselineFailed, Trials

SPACE_FILE = "space.yaml"  # in the record's folder: the space as it was searched
CHOSEN_FILE = "chosen.yaml"  # there too: what the search found, before it is confirmed


def require_space(path: Path, sha256: str | None) -> str:
    """Return the SHA-256 of the space in a file. Raise InputError if ``sha256`` is given and differs."""
    actual = hashlib.sha256(yamlfile.content(path)).hexdigest()
    if sha256 is not None and actual != sha256:
        raise InputError(OtherSpace(str(path)))
    return actual


@dataclass
class Session:
    """``job`` has the confirmation's study, with the baseline as its only arm and environment.

    ``begin`` writes the first event of the confirmation's record, given that record and its job.
    """

    settings: SearchSettings
    trial_steps: int  # the timed steps of one trial; the confirmation's samples have those of the study
    job: Job
    inspection: Inspection
    record: Record
    events: list[Event]
    begin: Callable[[Record, Job], RecordEvent]
    quiet: bool
    peers: Peers | None = None  # other nodes that search the same space
    turn: int = 0  # of this node among them: which shipped profiles it begins with

    def __post_init__(self) -> None:
        first = self.beginning
        self.folder = self.record.path.parent
        require_space(self.folder / SPACE_FILE, first.space_sha256)
        full_space = space_file.read(self.folder / SPACE_FILE)
        study, numerics = self.job.study, self.settings.numerics
        trained = None if study.user_command else study.workload
        gpus = self.inspection["facts"].get("gpus", 0)
        not_tried = partial(batch_split.not_tried, trained, study.options, numerics, study.ranks, gpus)
        self.space, self.left_out = narrow(full_space, self.inspection, numerics, not_tried)
        self.left_out += [LeftOut(profile.what, from_json(profile.why)) for profile in first.left_out_profiles]
        self.store = TrialStore.of(self.events)
        self.search = Search(
            space=self.space,
            baseline=Candidate(profile.load(REFERENCE_PROFILE), self.job.environments[REFERENCE_PROFILE]),
            shipped=[
                Candidate(profile_file.from_json(candidate.profile), Environment.from_json(candidate.environment))
                for candidate in first.shipped
            ],
            resolve=lambda made: require(made, self.inspection),
            store=self.store,
            append=self.record.append,
            budget_s=self.settings.budget_s,
            seed=study.seed or 0 if self.turn == 0 else f"{study.seed or 0}:{self.turn}",
            blocks=self.settings.blocks,
            peers=self.peers or Alone(),
        )

    @property
    def beginning(self) -> Beginning:
        """Return the first event of the record."""
        first = self.events[0]
        assert isinstance(first, Beginning), "a tuning's record begins with it"
        return first

    @property
    def confirmation(self) -> Path:
        return self.folder / record.CONFIRMATION

    def run_search(self) -> None:
        """Search, or go on searching. Raises BaselineFailed."""
        with View(self.store, 0.0, self.quiet) as view:
            trials = self._trials(view.before)
            warm_up = self._warm(trials)
            ordered = self._in_order(warm_up)
            first = self.turn * ROUND % max(1, len(ordered))
            self.search.shipped = ordered[first:] + ordered[:first]
            arms = confirm.MOST_ARMS if self.search.shipped else 2
            self.search.reserve = partial(confirm.reserve_s, warm_up, arms, nodes=self.search.peers.nodes)
            for number in self.search.peers.rejoin(self.store, self.space):
                self.search.candidate(number)  # the record lacks those of a round that a kill kept from beginning
            view.search_s = 0.0 if self.settings.blocks else self.search.share_s
            try:
                self.search.run(trials, view.after_round)
            except BaselineFailed:  # candidates that failed shortly before it need not be at fault: others may try them
                self.search.peers.tell(TrialStore.of(events.read(self.folder)))
                raise

    def warm(self) -> None:
        """Begin a search that others have ended: only what a trial takes here is to be known. Raises BaselineFailed."""
        with View(self.store, 0.0, self.quiet) as view:
            self._warm(self._trials(view.before))

    def _trials(self, before: Callable[[str], None]) -> Trials:
        job = replace(self.job, study=self.job.study.with_steps(self.trial_steps))
        return Trials(job, self.settings.numerics, self.record.append, self.events, before)

    def _warm(self, trials: Trials) -> WarmUp:
        for event in trials.warm():
            self.store.add(event)
        return next(event for event in self.events if isinstance(event, WarmUp))

    def _in_order(self, warm_up: WarmUp) -> list[Candidate]:
        """The shipped profiles in the order in which they are tried, which is recorded before the first round.

        A record that goes on keeps its order: what is expected may be known better by now.
        """
        shipped = list(self.search.shipped)
        recorded = next((event for event in self.events if isinstance(event, Order)), None)
        if recorded is None and (self.store.rounds or self.settings.blocks or not shipped):
            return shipped
        expected = gains(warm_up, shipped) if recorded is None else recorded.expected
        ordered = by_gain(shipped, expected)
        if recorded is None:
            names = [candidate.profile.name for candidate in ordered]
            self.events.append(events.parse(self.record.append(ORDER, expected=expected, shipped=names)))
        return ordered

    def chosen(self) -> Candidate | None:
        """Return what the search found, or None if every candidate failed. It is kept in the record's folder."""
        number = self.search.best()
        if number is None:
            return None
        candidate = self.search.candidates[number]
        source, path = messages.FromSearch(str(self.record.path)), self.folder / CHOSEN_FILE
        profile_file.write(
            profile_file.explained(candidate.profile, messages.Unconfirmed(), source), path, private=True
        )
        return candidate

    def confirm(self, chosen: Candidate) -> tuple[str, Result, Decision]:
        """Measure it beside the baseline and the best shipped profile; why that ended, and what came out."""
        number = self.search.best(shipped=True)
        shipped = None if number is None else self.search.candidates[number]
        reason, run = self.confirmed(chosen, shipped, (self.search.best(), number))
        result = conclude(run)
        shipped_name = shipped.profile.name if shipped else None
        return reason, result, confirm.decide(result, run, shipped_name, self.settings.numerics == "same")

    def confirmed(
        self, chosen: Candidate, shipped: Candidate | None, numbers: tuple[int | None, int | None]
    ) -> tuple[str, Run]:
        """Measure ``chosen``, which may be ``shipped``. Return why that ended, and the run. ``numbers`` are theirs."""
        is_shipped = shipped is not None and identity(shipped.environment) == identity(chosen.environment)
        name = Path(self.settings.profile).stem
        best, number = numbers
        study = self.job.study
        shipped_name = shipped.profile.name if shipped else None
        arms = confirm.arms(study.reference.engine, None if is_shipped else name, shipped_name)
        left_s = max(0.0, self.settings.budget_s - self.store.spent_s)
        measured = [tried for tried in (BASELINE, number, None if is_shipped else best) if tried is not None]
        nodes = self.search.peers.nodes
        size = confirm.size(self.events, measured, left_s, self.trial_steps, study.training.steps, nodes)
        if size.takes_s > left_s and not self.quiet:
            minutes = round(size.takes_s / 60)
            live.note(LongConfirmation(minutes, size.blocks, conclusion.busy(self.events)))
        environments = dict(self.job.environments)
        if shipped is not None:
            environments[shipped.profile.name] = shipped.environment
        if not is_shipped:
            environments[confirm.TUNED] = replace(chosen.environment, profile=name)
        arms = tuple(replace(arm, ranks=own_ranks(environments[arm.name].ranks)) for arm in arms)
        study = replace(
            study.with_steps(size.steps),
            arms=arms,
            stopping=replace(study.stopping, blocks=size.blocks, budget_s=left_s),
            contrasts=confirm.contrasts(arms),
        )
        return self._measured(replace(self.job, study=study, environments=environments))

    def _measured(self, job: Job) -> tuple[str, Run]:
        """Measure the confirmation, or what an interrupted one lacks. Return why it ended, and its run."""
        begun = record.is_begun(self.confirmation)
        with Record.reopen(self.confirmation) if begun else Record.create(self.confirmation) as opened:
            recorded = record.read(self.confirmation) if begun else [self.begin(opened, job)]
            if begun:
                with record.reading(self.confirmation):
                    earlier = Run.parse(recorded)
                job = replace(job, study=self._sized_as_before(job.study, earlier, recorded))
                if earlier.ended in decide.ENDED:
                    return earlier.ended, earlier
                recorded.append(opened.append("resume", command=earlier.beginning.command))
            try:
                with Progress(job.study.stopping.budget_s, quiet=self.quiet) as progress:
                    reason = measure.measure(job, opened, recorded, progress)
            except KeyboardInterrupt:
                reason = decide.INTERRUPTED
            recorded.append(opened.append("end", reason=reason))
        return reason, Run.parse(recorded)

    def _sized_as_before(self, study: Study, earlier: Run, recorded: Sequence[RecordEvent]) -> Study:
        """Return ``study`` with the lengths of the confirmation that was begun.

        Raise InputError if its record is of another study: the study comes from the search, and never from that record.
        """
        began = earlier.beginning.study
        with record.reading(self.confirmation):
            steps, blocks, budget_s = resuming.lengths_of(began)
        resuming.require_numbers(self.confirmation, recorded)
        study = replace(study.with_steps(steps), stopping=replace(study.stopping, blocks=blocks, budget_s=budget_s))
        # the tuned arm is called as its file, which may be another now
        files = {arm.name: arm.profile for arm in earlier.study.arms if arm.name == confirm.TUNED}
        arms = tuple(replace(arm, profile=files.get(arm.name, arm.profile)) for arm in study.arms)
        now = replace(study, arms=arms).to_json()
        resuming.require_same(self.confirmation, recorded[0], resuming.differences(began, now))
        return study


def prefix_commands(space: Space, profiles: list[Profile]) -> list[str]:
    """The commands that a prefix may begin with: what to look for in an image."""
    prefixes = [fragment.prefix for parameter in space.parameters for fragment in parameter.levels.values()]
    prefixes += [profile.prefix for profile in profiles]
    return list(dict.fromkeys(prefix[0] for prefix in prefixes if prefix))
