"""The page of ``envkit ablate`` runs, from their records: what each setting of a profile is worth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.record import Event
from envkit.rendering import text
from envkit.report import ablation, advice, certainty, commands, lines, pictures, tables, verdict

from benchmarks import page, recorded, script
from benchmarks.errors import ScriptError

PICTURE = "Speedups of {} and of its parts, with their 95% intervals"


def main() -> int:
    parser = recorded.parser("ablation", __doc__)
    parser.add_argument("others", metavar="DIR", type=Path, nargs="*", help="more runs for the same page")
    arguments = parser.parse_args()
    folder = arguments.folder or recorded.latest("ablated", "a profile that is taken apart", "ablate")
    runs = {run_folder: recorded.ended(run_folder, pictures.FOREST) for run_folder in (folder, *arguments.others)}
    page_parts, drawn = [], dict[str, Result]()
    for run_folder, (events, result) in runs.items():
        if not result.study.ablated:
            raise ScriptError(f"{run_folder}: takes no profile apart; runs of make ablate do")
        if result.study.whole.name in drawn:
            raise ScriptError(
                f"{run_folder}: takes {result.study.whole.name} apart, as another of these runs does; name one"
            )
        drawn[result.study.whole.name] = result
        with record.reading(run_folder):
            page_parts += _of_run(events, result, arguments.page.stem)
    every = [event for events, _ in runs.values() for event in events]
    where = lines.machine(runs[folder][1])
    page.write(
        arguments.page, [page.heading("What of a profile makes it faster?", QUESTION, every, where), *page_parts]
    )
    recorded.write_samples(arguments.page.with_suffix(".jsonl"), *runs)
    for name, result in drawn.items():
        picture = arguments.page.with_name(f"{arguments.page.stem}-{name}")
        recorded.draw(picture, pictures.FOREST, result, PICTURE.format(name))
    return 0


def _of_run(events: Sequence[Event], result: Result, stem: str) -> list[str]:
    name = result.study.whole.name
    settings, took = ablation.table(result), tables.all_arms(result)
    notes = [*ablation.notes(result.study.ablated), *lines.rows(result), *certainty.rows(result), *advice.rows(result)]
    return [
        f"## {name}",
        f"**{text(verdict.headline(result).text)}**",
        f"The run: `{commands.started_with(events)}`",
        page.table(settings.header, settings.rows),
        text(settings.note) if settings.note else "",
        recorded.shown(f"{stem}-{name}", PICTURE.format(name)),
        page.table(tables.header(tables.columns(result, wide=True)), took, numbers_from=1),
        recorded.items(notes),
    ]


QUESTION = """A profile, each of its settings alone, and the profile without each, in one interleaved run: fresh
processes, blocks in random order, one error rate for all comparisons of a run together. A speedup is the time of what
is on its other side divided by its own. What the verdicts mean: [profiles.md](../profiles.md#take-a-profile-apart)."""


if __name__ == "__main__":
    sys.exit(script.run("ablation", main))
