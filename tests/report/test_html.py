"""The page: complete, in order, escaped, and without need of anything else."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser

import pytest

from runner.analysis.summary import summarise
from runner.bench import record
from runner.bench.measure import FAILED
from runner.report import html, pictures
from tests import records
from tests.reports import events_of
from tests.simulation import times

STARTED = {"command": ["/somewhere/__main__.py", "bench", "mine", "--budget", "60s"], "runner_version": "0.1.0"}
SECTIONS = ["found", "speedups", "how-to-read", "certainty", "findings", "next", "place", "step-times", "course",
            "evidence", "differences", "reproduce"]  # fmt: skip
VOID = {"meta", "link", "br", "img", "input", "hr"}
BLOCKS = {"p", "h2", "h3", "dt", "dd", "td", "th", "text", "summary", "pre", "div"}
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


@pytest.fixture
def text(tmp_path):
    """The page of these events."""

    def make(events):
        folder = records.write(tmp_path / "run", [{**events[0], **STARTED}, *events[1:]])
        read = record.read(folder)
        return html.page(folder, read, summarise(read))

    return make


@pytest.fixture
def page(text, monkeypatch):
    """The same parsed, without what is in the pictures, which takes a second to draw."""
    monkeypatch.setattr(pictures, "svg", lambda picture, *_: f'<svg role="img"><text>{picture.name}</text></svg>')
    return lambda events: Page(text(events))


def test_sections_in_the_order_in_which_they_are_asked_for(page):
    found = page(events_of())
    assert [section["id"] for section in found.all("section")] == SECTIONS
    assert found.open == []


def test_a_browser_needs_nothing_else(text):
    content = text(events_of(others={"other": {}}))
    found = Page(content)
    assert {tag for tag, _ in found.elements} & {"script", "link", "iframe", "img", "object", "embed", "base"} == set()
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in LOADING & attributes.keys():
            assert attributes[name].startswith("#"), (tag, name, attributes[name])
    assert "@import" not in content
    assert not [target for target in re.findall(r"url\(([^)]*)\)", content) if not target.startswith("#")]
    # pictures refer to parts of themselves
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(found.all("svg")) == 2 * len(pictures.PICTURES)
    used = [value for attributes in found.all("use") for name, value in attributes.items() if name.endswith("href")]
    used += re.findall(r"url\((#[^)]*)\)", str(found.elements))
    assert used
    assert {one.removeprefix("#") for one in used} <= set(ids)


def test_what_was_found_comes_first(page):
    found = page(events_of(mine={"seconds": times(0.5)}, others={"same": {}}))
    assert "best of 2 profiles: mine is 100% faster than the baseline here" in found.section(None)
    text = found.section("found")
    assert re.search(r"mine: 2\.000 \(95% interval [\d.]+ to [\d.]+\): FASTER mine takes 50\.0% less time", text)
    assert re.search(r"same: 1\.000 \(95% interval [\d.]+ to [\d.]+\): NO DIFFERENCE LARGER THAN 2%", text)
    assert "7 blocks (complete)" in found.section("certainty")
    assert "use mine: envkit exec mine.yaml -- your command" in found.section("next")


def test_every_arm_is_in_the_table(page):
    events = events_of(others={"never-ran": {}})
    events = [event for event in events if event.get("arm") != "never-ran"]
    text = page(events).section("speedups")
    assert "baseline 7 333.33 192 20.0% 100 512 MiB" in text
    assert "never-ran 0 - - - - -" in text


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (events_of(blocks=0), {"found": "an interval needs", "step-times": "No picture: no sample was measured"}),
        (events_of(blocks=3), {"speedups": "No picture: no profile has an interval", "step-times": "distributions"}),
        (events_of(blocks=1, plan={"epochs": 1}),
         {"found": "from one run each", "speedups": "No picture: one run each", "course": "No picture: one sample",
          "next": "without --full"}),
        (events_of(mine={"evidence": {"openmp": {"runtime": "intel"}}}),
         {"found": "NOT IN EFFECT", "evidence": "mine: NOT IN EFFECT", "next": "envkit doctor mine"}),
        (events_of(mine={"evidence": {"openmp": {"runtime": None, "not_verified": {"runtime": "two answer for it"}}}}),
         {"found": "FASTER", "evidence": "mine: not verified"}),
        (records.read_events(), {"found": "FASTER", "speedups": "forest"}),
        (records.read_events(records.arm("baseline")),
         {None: "nothing to compare", "speedups": "No picture: nothing was compared",
          "differences": "only one environment"}),
    ],
    ids=["nothing measured", "too few", "full", "not in effect", "not verified", "first version", "one profile"],
)  # fmt: skip
def test_there_is_a_page_of_every_run_and_what_is_missing_is_said(page, events, words):
    found = page(events)
    for section, word in words.items():
        assert word in found.section(section), found.section(section)


def test_a_worker_that_failed(page):
    said = {"block": 6, "arm": "mine", "problem": "ended with exit status 3", "stderr": "Oh <no> & so on\n"}
    events = events_of(ended=None)
    events += [{"event": "failure", "time": events[-1]["time"], **said}, {"event": "end", "time": 0, "reason": FAILED}]
    found = page(events)
    assert "FAILED: block 7, mine: the worker ended with exit status 3 Oh <no> & so on" in found.section("found")
    assert "envkit bench --resume" in found.section("next")


def test_names_and_values_can_not_become_markup(page):
    events = events_of(others={"<script>alert(1)</script>": {}})
    events[0]["environments"]["mine"]["variables"] = {"A": '"><img src=x onerror=alert(1)>'}
    events[0]["findings"] = [{"code": "x", "severity": "warn", "seen": "<i>", "why": "<b>", "fix": "<u>"}]
    found = page(events)
    assert {tag for tag, _ in found.elements} & {"script", "img", "i", "b", "u"} == set()
    assert "<script>alert(1)</script>: 1.000" in found.section("found")
    for section in ("evidence", "differences"):
        assert '"><img src=x onerror=alert(1)>' in found.section(section)


def test_disturbed_samples_are_listed_with_the_reason(page):
    events = events_of()
    for event in events:
        if event["event"] == "sample" and (event["block"], event["arm"]) == (2, "mine"):
            event["usage"]["machine_swapped_bytes"] = 2**23
    text = page(events).section("course")
    assert "3 mine: 8 MiB swapped" in text
    assert "What was disturbed" not in page(events_of()).section("course")


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
    events = records.read_events(*arms)
    events[0]["engines"]["docker"]["inspection"]["python"]["version"] = "3.12.1"
    assert "Python 3.11.7 3.12.1" in page(events).section("differences")


def test_how_to_reproduce_it(page, tmp_path):
    text = page(events_of()).section("reproduce")
    digest = hashlib.sha256((tmp_path / "run" / record.FILE_NAME).read_bytes()).hexdigest()
    for words in (
        "command envkit bench mine --budget 60s", "--seed 1", "runner 0.1.0 (record schema 3)", "torch 2.13.0",
        "ended complete",
        f"code SHA-256 {'c' * 64}", f"SHA-256 {digest}", f"envkit report {tmp_path}/run --details", "env -i mine",
    ):  # fmt: skip
        assert words in text


def test_synthetic_data_is_named_before_anything_else(page):
    found = page(events_of(plan={"data": "synthetic"}))
    assert found.section("warnings").startswith("SYNTHETIC DATA: ")
    assert found.all("section")[0]["id"] == "warnings"
    assert page(events_of()).section("warnings") == ""


def test_packages_that_were_not_verified_are_named_before_anything_else(page):
    events = events_of()
    events[0]["engines"]["local"]["inspection"]["unverified_packages"] = (
        "torch.whl was installed without being verified"
    )
    assert "UNVERIFIED package: torch.whl was installed" in page(events).section("warnings")


def test_the_same_record_gives_the_same_page(text):
    assert text(events_of()) == text(events_of())
