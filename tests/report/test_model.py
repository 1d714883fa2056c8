"""One model, three layouts: what reports say is decided in one place."""

from __future__ import annotations

import ast
import html as escapes
from pathlib import Path

import pytest
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import html, markdown, model, terminal, verdict
from envkit.report.parts import Rows

from tests.records import conclude
from tests.report import test_grid, test_multi_workload
from tests.report.kinds import KINDS
from tests.report.planted import OTHER_LOSSES, busy
from tests.reports import events_of, markdown_of, printed, said

RENDERERS = (terminal, html, markdown)
# What a renderer may import of the package: pictures are drawn when they are laid out.
ALLOWED = {"envkit.report.model", "envkit.report.parts", "envkit.report.pictures", "envkit.report.tables"}
RUNS = {
    "one": events_of(),
    "many": events_of(12, others={name: {} for name in ("a", "b", "c")}),
    "workloads": test_multi_workload.events(),
    "grid": test_grid.events(),
    "unfinished": events_of(3, ended=None),
    "full": events_of(1, study={"epochs": 10}),
}


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda module: module.__name__)
def test_renderers_know_nothing_of_the_contents(renderer):
    names = set()
    for node in ast.walk(ast.parse(Path(renderer.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "envkit.report":
            names |= {f"envkit.report.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("envkit.report."):
            names.add(node.module)
    assert names <= ALLOWED


@pytest.mark.parametrize("name", RUNS)
def test_the_verdict_is_the_first_line_of_every_report(name, recorded, undrawn):
    given = folder, events, result = recorded(RUNS[name])
    verdict = text(model.report_of(result, str(folder)).headline.text)
    assert said(events).startswith(" ".join(verdict.split()))
    assert markdown_of(*given).startswith(f"**{markdown.escaped(verdict)}**\n")
    body = escapes.unescape(html.page(*given).partition("<main>")[2])
    assert body.partition(">")[2].startswith(f"{verdict}</h1>")


def test_figures_then_limits_then_what_to_do():
    names = [section.name for section in model.report_of(conclude(events_of()), "run").sections]
    assert names == ["speedups", "summary"]
    full = model.report_of(conclude(events_of()), "run", full=True).sections
    later = ["certainty", "findings", "evidence", "differences", "reproduce"]
    assert [section.name for section in full if section.full] == later


def test_details_begin_with_the_short_report():
    events = events_of()
    assert printed(events, full=True).startswith(printed(events))


def test_json_has_the_verdict_and_each_line_as_a_code_with_its_fields():
    document = model.to_json(conclude(events_of()), "some/folder")
    headline = document["headline"]
    assert (headline["code"], headline["subject"]) == ("report.faster", "mine")
    assert headline == {**document["verdicts"]["mine"], "text": text(verdict.headline(conclude(events_of())).text)}
    assert {one["label"]: one["code"] for one in document["messages"]} == {
        "Settings": "report.all-verified", "Losses": "report.losses-identical", "Noise": "report.undisturbed",
        "Why": "report.cause-unknown", "": "report.run-for",
        "Use": "report.use", "System": "report.system", "Details": "report.details",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("events", "code"),
    [
        (busy(events_of()), "report.faster-under-load"),
        (events_of(mine=OTHER_LOSSES), "report.faster-losses-differ"),
    ],
)
def test_scripts_can_tell_a_faster_result_that_the_first_line_qualifies(events, code):
    document = model.to_json(conclude(events), "some/folder")
    assert [one["verdict"] for one in document["comparisons"]] == ["faster"]
    assert document["headline"]["code"] == code
    assert document["headline"]["text"].startswith("FASTER")


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_of_a_short_report_is_a_message(kind):
    report = model.report_of(conclude(KINDS[kind]()), "some/folder")
    rows = [row for section in report.sections for part in section.parts if isinstance(part, Rows) for row in part.rows]
    assert isinstance(report.headline.text, Message)
    assert [row.text for row in rows if not isinstance(row.text, Message) and row.label != "Failed"] == []
