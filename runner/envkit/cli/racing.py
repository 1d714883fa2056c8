"""The second half of ``envkit advise``: the best candidates race, and the winner is compared with the baseline."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.analysis.result import Result, conclude
from envkit.bench import early_checks, race, record, room, seal
from envkit.bench.events import Advised
from envkit.bench.messages import BudgetTooShort
from envkit.bench.race import Plan
from envkit.bench.room import TooShort
from envkit.bench.run import read
from envkit.bench.study import Study
from envkit.cli import measuring
from envkit.cli.arguments import is_quiet
from envkit.cli.commands import messages
from envkit.cli.measuring import Invocation
from envkit.common.errors import MEASURED, InputError, InterruptedWith
from envkit.common.folders import short
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import advice, model, terminal, verdict
from envkit.report.messages.advised import Keep
from envkit.report.parts import Row, Rows
from envkit.report.tables import race as race_table
from envkit.stats.sequential import fewest_blocks

# What watching, the race and the confirmation take together (seconds), unless a sample takes long.
BUDGET_S = 180.0
# The name of a script that can be a baseline's.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Racing:
    """How a race and its confirmation were asked for. ``document`` is what --json prints of the advice before it."""

    folder: Path  # of the confirmation's record; the race's is in it
    json: bool
    quiet: bool
    document: Mapping[str, object]

    @staticmethod
    def of(arguments: argparse.Namespace, document: Mapping[str, object]) -> Racing:
        """Return what the options say, for a race that begins."""
        folder = arguments.output or measuring.new_folder("advise")
        return Racing(folder, arguments.json, is_quiet(arguments), document)

    def say(self, message: Message) -> None:
        """Print a message on stderr."""
        if not self.quiet:
            print(f"envkit: {text(message)}", file=sys.stderr, flush=True)


def planned(candidates: int, sample_s: float, watched_s: float, budget_s: float | None) -> Plan:
    """Return the plan of a race: ``budget_s`` is for the watching too, which took ``watched_s``; None is BUDGET_S.

    A sample takes ``sample_s``. Raise TooShort where that takes far longer than the budget that was given.
    """
    plan = race.plan(candidates, sample_s, max(0.0, (budget_s or BUDGET_S) - watched_s))
    total_s = watched_s + plan.least_s
    if budget_s is not None and total_s > room.LONGEST * budget_s:
        blocks = fewest_blocks(1)
        raise TooShort(BudgetTooShort("--budget", budget_s, blocks, room.length(total_s), room.budget(total_s)))
    return plan


def run(study: Study, candidates: Sequence[str], plan: Plan, watched_s: float, racing: Racing) -> int:
    """Have the ``candidates`` race by the command of ``study``, compare the winner with the baseline, and report.

    The caller holds the machine. Return the exit status.
    """
    racers = candidates[: plan.arms]
    takes = room.length(watched_s + plan.total_s)
    if len(racers) == 1:
        racing.say(messages.ConfirmingOne(racers[0], takes))
        alone = replace(racing, document={**racing.document, "race": []})
        with beside(alone.document):
            return _confirm(race.confirmation(race.race_of(study, racers, plan), racers[0], plan.total_s), alone)
    racing.say(messages.Race(len(racers), plan.halvings, takes))
    invocation = Invocation(
        racing.folder / race.FOLDER, racing.json, racing.quiet, "advise",
        cut_short=lambda result, folder: {**racing.document, **_race_document(result)},
    )  # fmt: skip
    with beside(racing.document):
        return measuring.run_locked(
            race.race_of(study, racers, plan), invocation, lambda folder: _after(folder, racing), advice=racing.document
        )


@contextlib.contextmanager
def beside(document: Mapping[str, object]) -> Iterator[None]:
    """Have --json print ``document`` too, where the command is refused or interrupted."""
    try:
        yield
    except InputError as error:
        error.document = {**document, **(error.document or {})}
        raise
    except KeyboardInterrupt as interrupted:
        later = interrupted.document if isinstance(interrupted, InterruptedWith) else {}
        raise InterruptedWith({**document, **later}) from None


def resume(folder: Path, arguments: argparse.Namespace) -> int:
    """Go on with the race in ``folder`` by its record, and confirm its winner. Return the exit status.

    Raise InputError if it holds no race, or none of this user's.
    """
    first = record.first(folder)
    with record.reading(folder):
        is_race = Study.from_json(first["study"]).is_race
    if not is_race:
        raise InputError(messages.NoRaceThere(str(folder), measuring.go_on_with("bench", folder)))
    if not seal.is_good(first):
        raise InputError(messages.RaceOfAnother(str(folder)))
    into = arguments.output or (folder.parent if folder.name == race.FOLDER else measuring.new_folder("advise"))
    early_checks.require_folder(into)
    advised = read(folder).first(Advised)
    racing = Racing(into, arguments.json, is_quiet(arguments), advised.document if advised else {})
    invocation = Invocation(
        None, racing.json, racing.quiet, "advise",
        cut_short=lambda result, folder: {**racing.document, **_race_document(result)},
    )  # fmt: skip
    with beside(racing.document):
        return measuring.resume(folder, invocation, lambda ended: _after(ended, racing))


def _race_document(result: Result) -> dict[str, object]:
    """Return what --json has of a race."""
    return {"race": result.to_json()["race"]}


def _after(folder: Path, racing: Racing) -> int:
    """Report the race in ``folder``, and confirm its winner."""
    run = read(folder)
    result = conclude(run)
    if not racing.json:
        out = terminal.console()
        out.print()
        terminal.headline(verdict.headline(result), out)
        out.print()
        terminal.show_parts([race_table(result.race)], out)
    document = {**racing.document, **_race_document(result), "record": str(folder)}
    with beside(document):
        study = race.confirmation(run.study, result.race[0].arm, race.left_to_confirm_s(run))
        return _confirm(study, replace(racing, document=document))


def _confirm(study: Study, racing: Racing) -> int:
    """Compare a profile with the baseline on fresh samples, and report that and how to keep it."""

    def confirmed(result: Result, folder: Path) -> dict[str, object]:
        return {**racing.document, "confirmation": result.to_json(), "record": str(folder)}

    def report(folder: Path) -> int:
        result = conclude(read(folder))
        if racing.json:
            print(json.dumps(confirmed(result, folder)))
            return MEASURED
        out = terminal.console()
        terminal.show(model.report_of(result, str(short(folder))), out)
        if advice.is_worth_it(result.comparisons[0]):
            terminal.show_parts([Rows([_keep(result, folder)])], out)
        return MEASURED

    invocation = Invocation(racing.folder, racing.json, racing.quiet, cut_short=confirmed)
    return measuring.run_locked(study, invocation, report)


def _keep(result: Result, folder: Path) -> Row:
    """Return how to keep the result as a file, against which later runs are checked."""
    command = result.study.user_command
    assert command is not None, "a command of the user's was measured"
    scripts = (Path(word).stem for word in command.argv if word.endswith(".py"))
    name = next((stem for stem in scripts if NAME.fullmatch(stem)), "training")
    save = shlex.join(["envkit", "baseline", "save", name, "--from", str(short(folder))])
    return Row("Keep", Keep(f"baselines/{name}.json", save), whole=True)
