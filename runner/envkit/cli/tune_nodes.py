"""``envkit tune --nodes``: what is submitted, and what is said of it when its nodes have ended."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.analysis.engine_facts import machine_kind
from envkit.analysis.result import Comparison
from envkit.bench import record, requirements
from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli import node_tuning, rank_options, submission, submitted, tune_options
from envkit.cli.arguments import no_effect
from envkit.cli.commands.tune_messages import NODES, TunedTitle
from envkit.cli.ending import end_with
from envkit.cli.node_messages import ChoiceNotInSpace, ChoiceNotShipped, NothingConfirmed, RecordsIn
from envkit.cluster import type_verdict, type_wording
from envkit.cluster.messages import OverMemoryOn
from envkit.cluster.slurm.collect import NodeResult
from envkit.cluster.slurm.settings import Settings
from envkit.cluster.type_verdict import TypeVerdict
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.folders import short
from envkit.profiles import places, profile
from envkit.profiles.profile import Profile
from envkit.rendering import text
from envkit.report import terminal
from envkit.report.commands import digest
from envkit.report.parts import Row
from envkit.stats.verdict import Verdict
from envkit.tuning import conclusion, confirm, destination, profile_file, space, space_file
from envkit.tuning import conclusion_messages as labels
from envkit.tuning.confirm import Decision
from envkit.tuning.destination import Written
from envkit.tuning.events import Beginning
from envkit.tuning.session import SPACE_FILE, require_space
from envkit.tuning.trial_store import merged

# Seconds of each node, where others help.
BUDGET_S = 300.0


def settings(arguments: argparse.Namespace) -> Settings:
    """Return what is submitted. Raises InputError for what no node could search."""
    if arguments.exhaustive:
        raise InputError(no_effect("--nodes" if arguments.nodes else "--nodelist", "--exhaustive"))
    engine = submitted.engine_on_nodes(arguments)
    named = submitted.partition(arguments)
    name = named or ("PARTITION" if arguments.dry_run else submitted.default_partition())
    default = places.local_folder() / f"{name}-{profile.TUNED}.yaml"
    tuning = tune_options.tuning(arguments, default)
    destination.require(Path(tuning.settings.profile))
    trained = submitted.anywhere(arguments, replace(tuning.study, nodes=1))
    requirements.require(trained)
    workload = None if trained.user_command else trained.workload
    rank_options.require_searched(space_file.read(Path(tuning.space)), workload, trained.options, trained.ranks)
    budget_s = arguments.budget or BUDGET_S
    trained = trained.with_arms([replace(trained.arms[0], engine=engine)]).with_stopping(budget_s=budget_s)
    nodelist = submitted.named_nodes(arguments)
    job = submitted.job(arguments, trained, submitted.of_job(arguments.nodes, nodelist), nodelist)
    sha256 = require_space(Path(tuning.space), None)
    search = replace(tuning.settings, budget_s=budget_s)
    return replace(job, tuning=replace(tuning, study=trained, settings=search, space_sha256=sha256))


def run(arguments: argparse.Namespace) -> int:
    """Submit, or go on with a submission; returns the exit status."""

    def show(settings: Settings, folder: Path, results: Sequence[NodeResult], document: dict[str, object]) -> int:
        return _show(settings, folder, results, document, arguments.json)

    return submission.run(arguments, show, settings=settings)


@dataclass(frozen=True)
class _Outcome:
    """The profile that the nodes recommend. ``shipped`` is the best shipped profile, if one competed."""

    decision: Decision
    shipped: str | None
    verdict: TypeVerdict
    profile: Profile  # what is written


def _show(
    settings: Settings, folder: Path, results: Sequence[NodeResult], document: dict[str, object], as_json: bool
) -> int:
    """Judge what the nodes have confirmed so far, write the profile, and say so."""
    assert settings.tuning is not None, "only a tuning is shown so"
    outcome = _outcome(settings, folder, results)
    if outcome is None:
        return end_with(NothingConfirmed(), FAILED, as_json, {"submission": document})
    path, best = Path(settings.tuning.settings.profile), outcome.decision.recommended
    of_nodes = node_tuning.records(folder)
    store = merged(of_nodes)
    tried = {entry.shipped for entry in store.entries.values()}
    first = of_nodes[0][0]
    assert isinstance(first, Beginning), "a tuning's record begins with it"
    untried = [name for shipped in first.shipped if (name := str(shipped.profile["name"])) not in tried]
    written = _write(outcome, untried, folder, path)
    if as_json:
        print(json.dumps({
            "submission": document, "best": best, "best_shipped": outcome.shipped, "verdict": outcome.verdict.to_json(),
            "written": None if written.stays else str(path), "candidates": len(store.entries),
            "earlier": str(written.earlier) if written.earlier else None, "search_s": round(store.spent_s, 3),
            "shipped_not_tried": untried,
        }))  # fmt: skip
        return MEASURED
    out = terminal.console()
    rows = type_wording.rows(outcome.verdict)
    terminal.items(out, rows, width=max(conclusion.LABEL, *(len(row.label) + 2 for row in rows)))
    conclusion.show_search(store, [], [], out, untried, details=True)
    shown = [Row(labels.WRITTEN, conclusion.advice(outcome.decision, outcome.shipped, path, written), whole=True)]
    if outcome.decision.is_better and not written.stays:
        default = path.parent == places.local_folder()
        shown += conclusion.usage(outcome.verdict.result.study, profile.TUNED if default else str(path))
    records = labels.RecordsOfNodes(str(short(folder)))
    terminal.items(out, [*shown, Row(labels.RECORD, records, whole=True)])
    return MEASURED


def _outcome(settings: Settings, folder: Path, results: Sequence[NodeResult]) -> _Outcome | None:
    assert settings.tuning is not None, "only a tuning finds a profile"
    chosen = node_tuning.chosen(folder)
    places = {node.name: settings.run_in(folder / node.name) for node in results if node.result}
    if chosen is None or not places:
        return None
    entries = {entry.number: entry for entry in chosen.candidates}
    shipped = None if chosen.shipped is None else str(entries[chosen.shipped].shipped)
    verdict = type_verdict.find(places, settings.study.stopping.margin, (confirm.TUNED, shipped or ""))
    if verdict is None:
        return None
    tuned_one, shipped_one = (_comparison(verdict, arm) for arm in (confirm.TUNED, shipped or ""))
    versus = verdict.versus.speedup if verdict.versus else None
    faster = [
        comparison.arm
        for comparison in (tuned_one, shipped_one)
        if comparison is not None and comparison.verdict == Verdict.FASTER
    ]
    over = tuple(arm for arm in faster if isinstance(verdict.cautions.get(arm), OverMemoryOn))
    refused = tuple(arm for arm in faster if arm in verdict.cautions and arm not in over)
    won = {*faster} - {*refused, *over}
    best = confirm.winner(confirm.TUNED in won, shipped in won, versus)
    if best == confirm.TUNED:
        require_space(folder / SPACE_FILE, settings.tuning.space_sha256)
        made = space.profile(space_file.read(folder / SPACE_FILE), entries[chosen.best].choice or {}, confirm.TUNED)
        if made is None:
            raise InputError(ChoiceNotInSpace(str(folder), SPACE_FILE))
    elif best == confirm.SHIPPED and shipped not in profile.names():  # the file that nodes share may name any file
        raise InputError(ChoiceNotShipped(str(folder), str(shipped)))
    else:
        made = profile.load(shipped if best == confirm.SHIPPED and shipped else REFERENCE_PROFILE)
    decision = Decision(best, tuned_one, shipped_one, versus, refused=refused, over_memory=over)
    return _Outcome(decision, shipped, verdict, made)


def _comparison(verdict: TypeVerdict, arm: str) -> Comparison | None:
    """The figures of an arm on the type of nodes, in the shape of one machine's."""
    comparison = verdict.across.get(arm)
    if comparison is None:
        return None
    return Comparison(arm, comparison.speedup.verdict, comparison.speedup, load=verdict.load)


def _write(outcome: _Outcome, untried: Sequence[str], folder: Path, path: Path) -> Written:
    """Put the profile into place, with what proves it. Raise InputError if it can't be written."""
    verdict = outcome.verdict
    first = record.first(folder / verdict.nodes[0] / record.CONFIRMATION, "run")
    inspection = next(iter(first["engines"].values()))["inspection"]
    title = text(TunedTitle(NODES, outcome.profile.title))
    made = replace(outcome.profile, title=title, cpu=inspection["fingerprint"]["cpu_model"])
    if verdict.result.study.ranks > 1:  # it is worth that in so many ranks, and was resolved for one of them
        made = replace(made, ranks=verdict.result.study.ranks)
    machine = f"{type_wording.counted(verdict.nodes)} of {verdict.kind}"
    why = conclusion.reason(outcome.decision, first["time"], machine, outcome.shipped, untried)
    places = [folder / name / part for name in verdict.nodes for part in ("", record.CONFIRMATION)]
    evidence = {
        "profile": path.stem, "best": outcome.decision.recommended, "best_shipped": outcome.shipped,
        **verdict.to_json(),
        "records": {str(place / record.FILE_NAME): digest(place) for place in places},
        profile_file.MACHINE: machine_kind(inspection),
    }  # fmt: skip
    made = profile_file.explained(made, why, RecordsIn(str(folder.resolve())))
    content = profile_file.content(made, path)
    return destination.write(path, content, evidence, replaces=outcome.decision.is_better)
