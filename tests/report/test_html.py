"""The page: complete, in order, escaped, and without need of anything else."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser

import pytest
from envkit import __version__
from envkit.bench import record
from envkit.checks.doctor.finding import Finding
from envkit.checks.finding_messages import StoreBypassOff
from envkit.checks.messages import Reason, Remedy
from envkit.engines.messages import ExitStatus
from envkit.report import html, pictures
from envkit.report.parts import Drawing, Note, Report, Row, Rows, Section, Table

from tests import records
from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, disturbed, failed
from tests.reports import events_of

SECTIONS = [
    "picture", "summary", "speedups", "certainty", "findings", "step-times", "course", "evidence", "differences",
    "reproduce",
]  # fmt: skip
VOID = {"meta", "link", "br", "img", "input", "hr"}
BLOCKS = {"p", "h2", "h3", "dt", "dd", "td", "th", "text", "summary", "pre", "div"}
FETCHING = {"script", "link", "iframe", "img", "object", "embed", "base"}
# What a browser would fetch, wherever it stands; a link (a) is for people to follow.
LOADING = {"src", "srcset", "data", "poster", "background", "href", "xlink:href"}


class Page(HTMLParser):
    """Elements with their attributes and words, section by section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str | None, str] = {}
        self._section: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self._section = dict(attrs)["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"
        self.handle_data(" " if tag in BLOCKS else "")
        if tag == "section":
            self._section = None

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words[self._section] = self.words.get(self._section, "") + data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def section(self, name):
        """Its words, with single spaces."""
        return " ".join(self.words.get(name, "").split())


def complete(content):
    """The page, of which a browser needs nothing else to show it."""
    found = Page(content)
    assert found.open == []
    assert {tag for tag, _ in found.elements} & FETCHING == set()
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in LOADING & attributes.keys():
            assert attributes[name].startswith("#"), (tag, name, attributes[name])
    assert "@import" not in content
    assert not [target for target in re.findall(r"url\(([^)]*)\)", content) if not target.startswith("#")]
    # pictures refer to parts of themselves
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = [value for attributes in found.all("use") for name, value in attributes.items() if name.endswith("href")]
    used += re.findall(r"url\((#[^)]*)\)", str(found.elements))
    assert used
    assert {one.removeprefix("#") for one in used} <= set(ids)
    return found


@pytest.fixture
def page(recorded, undrawn):
    """The page of these events, parsed."""
    return lambda events: Page(html.page(*recorded(events)))


@pytest.mark.parametrize(
    ("events", "sections"),
    [(events_of(), SECTIONS), (events_of(study={"data": "synthetic"}), ["picture", "cautions", *SECTIONS[1:]])],
)
def test_sections_in_the_order_in_which_they_are_asked_for(page, events, sections):
    found = page(events)
    assert [section["id"] for section in found.all("section")] == sections
    assert found.open == []
    assert "Disturbed samples" not in found.section("course")


def test_the_first_picture_leads_and_tables_follow_the_lines():
    picture, more = (Drawing(name, name, "", None, "") for name in ("speedup", "course"))
    table, lines, warning = Table(("a",), [["1"]]), Rows([Row("label", "text")]), Note("beware", "bad")
    sections = [Section("first", "First", [table, lines, picture, warning]), Section("second", "", [more, table]),
                Section("third", "", [lines, more], full=True)]  # fmt: skip
    found = html.layout(sections)
    assert (found.warnings, found.lead) == ([warning], picture)
    assert found.lines == [Section("first", "First", [lines])]
    assert found.tables == [Section("first-tables", "First", [table]), sections[1], sections[2]]


def test_a_picture_that_is_missing_does_not_lead():
    missing = Drawing("speedup", "Speedup", "", "nothing was compared", "")
    found = html.layout([Section("speedups", "Speedups", [missing])])
    assert (found.lead, found.tables) == (None, [Section("speedups", "Speedups", [missing])])


def test_what_may_be_wider_than_the_page_scrolls_by_keyboard_and_has_a_name(page):
    boxes = [one for one in page(events_of(others={"other": {}})).all("div") if one.get("class") == "scroll"]
    assert {(one["role"], one["tabindex"]) for one in boxes} == {("region", "0")}
    names = [one["aria-label"] for one in boxes]
    assert "Speedups: table" in names
    assert "mine beside baseline: table" in names
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("number", "folded"), [(3, 0), (4, 4)])
def test_of_many_findings_each_has_one_line(number, folded):
    rows = [row for name in "abcd"[:number] for row in (Row(name, "found"), Row("", "the reason"))]
    report = Report(Row("", "verdict"), [Section("findings", "Findings", [Rows(rows, bold=True)])])
    found = Page(html.render("title", report, lambda drawing, narrow: ""))
    cards = [one for one in found.all("details") if "card" in (one.get("class") or "")]
    assert len(cards) == folded
    assert all("open" not in one for one in cards)


def test_a_browser_needs_nothing_else_and_the_same_record_gives_the_same_page(recorded):
    events = events_of(others={"other": {}})
    content = html.page(*recorded(events))
    assert len(complete(content).all("svg")) == 2 * len(pictures.PICTURES)
    assert html.page(*recorded(events)) == content


def test_every_arm_is_in_the_table(page):
    events = events_of(others={"never-ran": {}})
    events = [event for event in events if event.get("arm") != "never-ran"]
    text = page(events).section("speedups")
    assert "baseline 7 333.33 192 20.0% 100 512 MiB" in text
    assert "never-ran 0 - - - - -" in text


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (events_of(others={"same": {}}),
         {None: "FASTER 1 of 2 profiles, best mine: 2.00x baseline speed", "speedups": "same 7 333.33",
          "certainty": "7 (complete)", "summary": "envkit exec mine.yaml -- python train.py"}),
        (events_of(study={"data": "synthetic"}), {"cautions": "SYNTHETIC DATA: "}),
        (disturbed(events_of(), 2, machine_swapped_bytes=2**23), {"course": "3 mine: 8.0 MiB swapped"}),
        (failed(events_of(), problem=ExitStatus(3), stderr="Oh <no> & so on\n"),
         {"speedups": "Failed: block 7, mine: the worker ended with exit status 3 Oh <no> & so on",
          "summary": "envkit bench --resume"}),
        (events_of(blocks=0), {None: "a verdict needs 6", "step-times": "No picture: no sample was measured"}),
        (events_of(blocks=3),
         {"speedups": "No picture: no profile has a confidence interval", "step-times": "distributions"}),
        (events_of(blocks=1, study={"epochs": 1}),
         {None: "no confidence interval", "speedups": "No picture: one run each", "course": "No picture: one sample",
          "summary": "--blocks 8"}),
        (events_of(mine=NOT_IN_EFFECT),
         {None: "NOT IN EFFECT", "speedups": "openmp.runtime gnu intel", "evidence": "mine: NOT IN EFFECT",
          "summary": "envkit doctor mine"}),
        (events_of(mine=NOT_VERIFIED), {"speedups": "faster", "evidence": "mine: not verified"}),
        (records.run_events(), {None: "FASTER", "picture": "forest"}),
        (records.run_events(records.arm("baseline")),
         {None: "nothing was compared", "speedups": "No picture: nothing was compared",
          "differences": "only one environment"}),
    ],
    ids=["usual", "synthetic", "disturbed", "failed", "nothing measured", "too few", "full", "not in effect",
         "not verified", "no looks", "one profile"],
)  # fmt: skip
def test_there_is_a_page_of_every_run_and_what_is_missing_is_said(page, events, words):
    found = page(events)
    for section, word in words.items():
        assert word in found.section(section), found.section(section)


def test_names_and_values_can_not_become_markup(page):
    events = events_of(others={"<script>alert(1)</script>": {}})
    events[0]["environments"]["mine"]["variables"] = {"A": '"><img src=x onerror=alert(1)>'}
    events[0]["findings"] = [Finding("x", "warn", StoreBypassOff("<i>"), Reason("<b>"), Remedy("<u>")).to_json()]
    found = page(events)
    assert {tag for tag, _ in found.elements} & {"script", "img", "i", "b", "u"} == set()
    assert "<script>alert(1)</script> 7 " in found.section("speedups")
    for section in ("evidence", "differences"):
        assert '"><img src=x onerror=alert(1)>' in found.section(section)


def test_differences_between_the_environments(page):
    events = events_of()
    environments = events[0]["environments"]
    environments["mine"] |= {
        "variables": {"OMP_NUM_THREADS": "2", "LD_PRELOAD": "/usr/lib/libjemalloc.so.2"},
        "preload": {"jemalloc": "/usr/lib/libjemalloc.so.2"},
        "prefix": ["numactl", "--interleave=all"],
    }
    environments["baseline"]["variables"] = {"OMP_NUM_THREADS": "4"}
    text = page(events).section("differences")
    for words in (
        "mine beside baseline setting baseline mine", "profile baseline mine", "OMP_NUM_THREADS 4 2",
        "prefix - numactl --interleave=all", f"preload jemalloc - /usr/lib/libjemalloc.so.2 (SHA-256 {'0' * 64})",
    ):  # fmt: skip
        assert words in text


def test_differences_between_images(page):
    arms = (records.arm("local", "baseline", "local"), records.arm("docker", "baseline", "docker"))
    events = records.run_events(*arms)
    events[0]["engines"]["docker"]["inspection"]["python"]["version"] = "3.12.1"
    assert "Python 3.11.7 3.12.1" in page(events).section("differences")


def test_how_to_reproduce_it(page, tmp_path):
    text = page(events_of()).section("reproduce")
    digest = hashlib.sha256((tmp_path / "run" / record.FILE_NAME).read_bytes()).hexdigest()
    for words in (
        "command envkit bench mine --budget 60s", "--seed 1", "torch 2.13.0", "ended complete",
        f"kit version {__version__} (record schema {record.SCHEMA})",
        f"code SHA-256 {'c' * 64}", f"SHA-256 {digest}", f"envkit report {tmp_path}/run --details", "env -i mine",
    ):  # fmt: skip
        assert words in text


def test_packages_that_were_not_verified_are_named_before_anything_else(page):
    events = events_of()
    events[0]["engines"]["local"]["inspection"]["unverified_packages"] = "torch.whl was not verified"
    assert "UNVERIFIED package: torch.whl was not verified" in page(events).section("cautions")
