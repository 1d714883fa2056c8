"""A real browser: Debian's chromium, driven by playwright. Where one of them is missing, its tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.faults import faults_of

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start one browser for all tests of a module.

    Its driver runs an event loop in this thread, beside which no other test could run one.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: make dev")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found)
        yield started
        started.close()


@pytest.fixture
def faults(browser: Any) -> Iterator[Callable[[Path], list[str]]]:
    """Open a page as a reader would, at each width and in the dark, and return what is wrong with it."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    yield lambda path: faults_of(context.new_page(), path)
    context.close()
