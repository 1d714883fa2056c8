"""``envkit fleet PROFILE...`` measures the same on every node of a cluster, and ``envkit fleet report DIR`` reports."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.bench import record
from envkit.bench.study import MARGIN, REFERENCE_PROFILE
from envkit.cli import submission
from envkit.cli.arguments import add_redact_option, refuse_others
from envkit.cli.commands import results_messages as messages
from envkit.cli.commands.help_messages import FLEET
from envkit.cli.ending import end_with
from envkit.cli.parser import Parser
from envkit.cluster.fleet import kept
from envkit.cluster.slurm.collect import NodeResult
from envkit.cluster.slurm.settings import Settings
from envkit.common import atomic, extras
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.printable import encoded
from envkit.rendering import text
from envkit.report import terminal
from envkit.report.redaction import Redaction

# The word that stands where a profile to measure would.
REPORT, DIFF = "report", "diff"
# What `envkit fleet report` takes besides the folder.
OF_REPORT = ("judged", "margin", "json", "quiet", "html", "prometheus", "redact")
OF_DIFF = ("judged", "margin", "json", "quiet", "prometheus", "redact")


def add_arguments(parser: Parser) -> None:
    parser.epilog = FLEET["statuses"]
    parser.add_argument("profile", metavar="PROFILE", nargs="*",
                        help="measure these profiles on every node, each in a Slurm job of its own; or "
                        f"'{REPORT} DIR': report on a folder that holds a record per node; or "
                        f"'{DIFF} A B': name the nodes that became slower between two reports or folders")  # fmt: skip
    group = parser.add_argument_group("report")
    group.add_argument("--profile", dest="judged", metavar="NAME", advanced=True,
                       help="judge nodes by this profile, if they measured several")  # fmt: skip
    group.add_argument("--html", metavar="FILE", type=Path, help="write one page with pictures, for a browser")
    group.add_argument("--prometheus", metavar="FILE", type=Path, advanced=True,
                       help="write metrics for the textfile collector of Prometheus")  # fmt: skip
    add_redact_option(group, advanced=True)
    submission.add_arguments(parser, nodelist=FLEET["nodelist"], together=FLEET["together"])


def run(arguments: argparse.Namespace) -> int:
    if arguments.html:
        extras.require("--html", *extras.PAGE)
    if arguments.profile[:1] == [REPORT]:
        return _report(arguments)
    if arguments.profile[:1] == [DIFF]:
        return _diff(arguments)

    compared = [name for name in arguments.profile if name != REFERENCE_PROFILE]
    if len(compared) > 1 and arguments.judged is None:
        raise InputError(messages.SeveralJudges(tuple(compared)))
    measured = [Path(name).stem for name in compared] or [REFERENCE_PROFILE]
    if arguments.profile and arguments.judged not in (None, *measured):
        raise InputError(messages.JudgeNotMeasured(arguments.judged, tuple(measured)))
    for written in filter(None, (arguments.html, arguments.prometheus)):
        if written.parent != arguments.output:  # which is made
            atomic.require(written)

    def show(settings: Settings, folder: Path, results: Sequence[NodeResult], document: dict[str, object]) -> int:
        try:
            margin = settings.study.stopping.margin
            return _show(folder, arguments, settings.nodelist, margin, {"submission": document})
        except InputError as error:
            failed = messages.NoFleetReport(error.message)
            return end_with(failed, FAILED, arguments.json, {"submission": document})

    return submission.run(arguments, show, with_resume=("judged", "html", "prometheus", "redact"))


def _report(arguments: argparse.Namespace) -> int:
    folders = arguments.profile[1:]
    if len(folders) != 1:
        raise InputError(messages.FleetTakes(REPORT, messages.ONE_FOLDER, "DIR"))
    refuse_others(arguments, ("command", "profile", *OF_REPORT), f"fleet {REPORT}")
    place = Path(folders[0])
    nodelist, margin = _submitted(place)
    return _show(place, arguments, nodelist, margin or MARGIN, {})


def _diff(arguments: argparse.Namespace) -> int:
    from envkit.cluster.fleet import diff_screen, prometheus
    from envkit.cluster.fleet.diff import ChangeVerdict, diff

    folders = arguments.profile[1:]
    if len(folders) != 2:
        raise InputError(messages.FleetTakes(DIFF, messages.TWO_FOLDERS, "THEN NOW"))
    refuse_others(arguments, ("command", "profile", *OF_DIFF), f"fleet {DIFF}")
    then, now = map(Path, folders)
    submitted = [_submitted(place if place.is_dir() else place.parent) for place in (then, now)]
    before, after = (
        kept.read(place, arguments.judged, nodelist)
        for place, (nodelist, _) in zip((then, now), submitted, strict=True)
    )
    if before == after:
        raise InputError(messages.SameMeasurements(str(then), str(now)))
    margins = [margin for _, margin in reversed(submitted) if margin is not None]
    differences = diff(before, after, arguments.margin or next(iter(margins), MARGIN))
    if differences.back_in_time:
        print(f"envkit: {text(messages.BackInTime(str(then), str(now)))}", file=sys.stderr)
    if arguments.redact:
        changes = [change.node for kind in differences.kinds for change in kind.changes]
        names = [*changes, *differences.gone, *differences.new, *(node.name for node in differences.left_out)]
        differences = Redaction(*names).value(differences)
    if arguments.prometheus:
        atomic.write(arguments.prometheus, prometheus.render_changes(differences))
        print(f"envkit: written: {arguments.prometheus}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(differences.to_json(), allow_nan=False))
    elif not arguments.prometheus:
        diff_screen.show(differences, terminal.console())
    return FAILED if differences.of(ChangeVerdict.SLOWER) else MEASURED


def _submitted(place: Path) -> tuple[Sequence[str], float | None]:
    """Return the nodes and the smallest relevant difference of the submission in ``place``.

    No nodes and None if the folder is no submission's, and only holds records.
    """
    if not record.is_submission(place):
        return (), None
    first = record.first(place, "submit")
    with record.reading(place):
        settings = Settings.from_json(first["settings"])
        return settings.nodelist, settings.study.stopping.margin


def _show(
    folder: Path, arguments: argparse.Namespace, nodelist: Sequence[str], margin: float, more: dict[str, object]
) -> int:
    """Print or write the report; returns the exit status. ``more`` goes into the document for scripts."""
    from envkit.cluster.fleet import findings

    fleet = findings.find(folder, arguments.judged, arguments.margin or margin, nodelist)
    try:
        kept.write(folder, [result.node for result in fleet.results], fleet.left_out)
    except InputError as error:  # somebody else's folder may only be read
        print(f"envkit: {text(messages.ReportNotKept(error.message))}", file=sys.stderr)
    if arguments.redact:
        names = [
            *nodelist,
            *(result.node.name for result in fleet.results),
            *(result.name for result in fleet.left_out),
        ]
        fleet = Redaction(*names).value(fleet)
    written = {}
    if arguments.html:
        from envkit.cluster.fleet import page  # drawing takes a second to load

        written[arguments.html] = encoded(page.page(fleet))
    if arguments.prometheus:
        from envkit.cluster.fleet import prometheus

        written[arguments.prometheus] = prometheus.render(fleet)
    for path, content in written.items():
        atomic.write(path, content)
        print(f"envkit: written: {path}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({**fleet.to_json(), **more}, allow_nan=False))
    elif not written or more:
        from envkit.cluster.fleet.screen import show

        show(fleet, terminal.console())
    return FAILED if fleet.of(findings.NodeVerdict.SLOW) or fleet.left_out else MEASURED
