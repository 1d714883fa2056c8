"""What README, CONTRIBUTING and docs/ say is there: links lead somewhere, and commands, targets and paths exist."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from envkit import __version__
from envkit.cli import COMMANDS, parser_of
from envkit.profiles import needs, profile

from tests.docs.shell_blocks import commands

PROJECT = Path(__file__).resolve().parent.parent
GUIDES = sorted(PROJECT.glob("docs/*.md"))
RESULTS = sorted(page for page in PROJECT.glob("docs/results/*.md") if page.name != "README.md")
INDEX = PROJECT / "docs/results/README.md"
CHANGELOG = PROJECT / "CHANGELOG.md"
PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", CHANGELOG, INDEX, *GUIDES, *RESULTS]
LINK = re.compile(r"\]\(([^)\s]+)\)|\bsrc(?:set)?=\"([^\"]+)\"")
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
INLINE = re.compile(r"`((?:[^`\n]|\n(?!\n))+)`")
COMMAND = re.compile(r"(?<![\w./-])(?<!from )(?:envkit|(runner)) ([a-z][a-z-]*)")
WITH_OPTIONS = re.compile(r"(?<![\w./-])(?<!from )envkit ([a-z][a-z-]*)((?: (?!--? )[^\s|;>]+)*)")
OPTION = re.compile(r"--[a-z][a-z-]*")
MAKE = re.compile(r"(?<![\w./-])make ([a-z-]+(?: [a-z-]+)*)")
TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)
PATH = re.compile(r"(?:runner|tests|benchmarks|images|docs|\.ci)/[\w./*-]*")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$")
DATE = re.compile(r"^- (?:measured|printed): (.+)$|wrote this page on ([0-9-]+)", re.MULTILINE)
NO_DATE = "the page does not say"


def _code(text: str) -> Iterator[str]:
    """Everything that is set as code."""
    yield from FENCED.findall(text)
    rest = FENCED.sub("", text)
    for line in INDENTED.findall(rest):
        yield line.partition("  #")[0]
    yield from (" ".join(found.split()) for found in INLINE.findall(INDENTED.sub("", rest)))


def _wrong(pages: Iterable[Path], check: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """Return what ``check`` finds wrong on each of the pages where it finds something."""
    return {str(page.relative_to(PROJECT)): wrong for page in pages if (wrong := sorted(check(page)))}


def _measured(page: Path) -> str:
    found = DATE.search(page.read_text())
    return (found[1] or found[2]) if found else NO_DATE


def test_links_lead_to_files():
    def missing(page: Path) -> list[str]:
        text = "".join(FENCED.split(page.read_text()))
        links = [(page.parent / (link or source).partition("#")[0]).resolve() for link, source in LINK.findall(text)
                 if not (link or source).startswith(("http://", "https://", "#"))]  # fmt: skip
        return [str(path) for path in links if not path.exists()]

    assert _wrong(PAGES, missing) == {}


def test_commands_are_there():
    def missing(page: Path) -> set[str]:
        named = {" ".join(words).strip() for code in _code(page.read_text()) for words in COMMAND.findall(code)}
        return named - {*COMMANDS, "help"}

    assert _wrong(PAGES, missing) == {}


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command and of its subcommands."""
    groups = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    below = (option for group in groups for one in group.values() for option in _options(one))
    return {*(option for action in parser._actions for option in action.option_strings), *below}


def options_that_are_missing(text: str) -> set[str]:
    """``COMMAND --option`` for each option that a page gives to a command that lacks it.

    What follows ``--`` is a user's own command; so is what follows a pipe.
    """
    shown = {
        (name, option)
        for code in _code(re.sub(r"\\\n\s*", "", text))
        for name, rest in WITH_OPTIONS.findall(code)
        for option in OPTION.findall(rest)
    }
    known = {name: _options(parser_of(name)[0]) for name in {name for name, _ in shown} & COMMANDS.keys()}
    return {f"{name} {option}" for name, option in shown if option not in known.get(name, ())}


def test_options_are_there():
    # a changelog names options that are gone
    pages = [page for page in PAGES if page != CHANGELOG]
    assert _wrong(pages, lambda page: options_that_are_missing(page.read_text())) == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("    envkit bench intel-omp --budget 60s -- python train.py --epochs 3\n", set()),
        ("    envkit bench intel-omp --budjet 60s\n", {"bench --budjet"}),
        ("Run `envkit fleet report --hosts a,b`.\n", {"fleet --hosts"}),
        ("    envkit bench intel-omp \\\n      --hosts a,b\n", {"bench --hosts"}),
        ("Run `envkit bonch --budget 60s`.\n", {"bonch --budget"}),
        ("    envkit show x --json | jq --raw-output .name\n", set()),
    ],
)
def test_an_option_that_no_command_has_is_named(text, missing):
    assert options_that_are_missing(text) == missing


def test_targets_are_there():
    targets = set(TARGET.findall((PROJECT / "Makefile").read_text()))

    def missing(page: Path) -> set[str]:
        named = {word for code in _code(page.read_text()) for words in MAKE.findall(code) for word in words.split()}
        return named - targets

    assert _wrong(PAGES, missing) == {}


def test_files_of_the_project_are_there():
    def missing(page: Path) -> set[str]:
        named = {code for code in _code(page.read_text()) if PATH.fullmatch(code)}
        return {path for path in named if not any(PROJECT.glob(path.rstrip("/")))}

    assert _wrong([page for page in PAGES if page not in RESULTS], missing) == {}


def test_every_command_has_an_example():
    text = (PROJECT / "docs/commands.md").read_text()
    shown = {word for typed in commands(PROJECT / "docs/commands.md") for _, word in COMMAND.findall(typed.text)}
    assert {name for name in COMMANDS if f"**`{name}`**" not in text} == set()
    assert COMMANDS.keys() - shown == set()


def test_the_readme_begins_with_the_first_command_and_stays_short():
    text = (PROJECT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert "make bench PROFILE=intel-omp" in text
    assert "make test" in text


def latest_version(text: str) -> str | None:
    """The version in the heading of a changelog's latest release; None where nothing was released.

    What is not released stands before that, and is nothing else's place.
    """
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    releases = headings[1:] if headings[:1] == ["## [Unreleased]"] else headings
    found = [RELEASE.match(heading) for heading in releases]
    assert headings
    assert None not in found, releases
    return found[0][1] if found and found[0] else None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("## [Unreleased]\n", None),
        ("## [Unreleased]\n## [0.2.0] - 2026-12-01\n## [0.1.0] - 2026-11-01\n", "0.2.0"),
        ("## [0.2.0] - 2026-12-01\n", "0.2.0"),
    ],
)
def test_the_latest_version_of_a_changelog(text, version):
    assert latest_version(text) == version


@pytest.mark.parametrize("text", ["", "## 0.2.0\n", "## [0.1.0] - 2026-11-01\n## [Unreleased]\n", "## Unreleased\n"])
def test_a_changelog_in_another_form(text):
    with pytest.raises(AssertionError):
        latest_version(text)


def test_the_changelog_s_latest_release_is_this_version():
    assert latest_version(CHANGELOG.read_text()) in (None, __version__)


@pytest.mark.parametrize("page", ["README.md", "docs/commands.md"])
def test_commands_to_type_name_profiles_that_apply_to_every_kind_of_processor(page):
    """Commands with output on one page ran on one machine."""
    typed = [one.text for one in commands(PROJECT / page) if one.text.startswith("envkit ") and one.output is None]
    named = {word for line in typed for word in line.split()} & {*profile.names()}
    assert len(typed) > 3
    assert named
    assert [name for name in sorted(named) if needs.of_kind(profile.load(name).needs)] == []


def test_every_guide_is_in_the_readme_s_index():
    text = (PROJECT / "README.md").read_text().partition("## Documentation\n")[2]
    assert [page.name for page in GUIDES if f"(docs/{page.name})" not in text] == []


def test_no_two_pages_have_one_name():
    count = Counter(page.name for page in (*GUIDES, *RESULTS))
    assert [name for name, number in count.items() if number > 1] == []


def _row(page: Path) -> str:
    """Return how the row of a page of measurements begins in their index."""
    return f"| [{page.name}]({page.name}) |"


def test_a_page_of_measurements_is_in_the_index_with_its_day():
    lines = INDEX.read_text().splitlines()
    days = {
        page.name: [line.strip("| ").split(" | ")[-1] for line in lines if line.startswith(_row(page))]
        for page in RESULTS
    }
    assert days == {page.name: [_measured(page)] for page in RESULTS}
