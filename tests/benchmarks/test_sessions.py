"""Repeats of one matrix: the deviation between sessions, its page, and what is refused."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks import sessions
from benchmarks.results import append_line
from benchmarks.short_runs import Session
from tests import records
from tests.benchmarks.conftest import refusal
from tests.reports import events_of

NAMES = ["baseline", *sessions.PROFILES]


def session(number: int, effect: float, deviation: float = 0.05) -> Session:
    """A session of 20 blocks in which each profile is faster by ``effect`` (a logarithm), with noise within it."""
    noise = random.Random(number)
    blocks = [[0.05, *[0.05 * math.exp(-effect + noise.gauss(0, deviation)) for _ in range(4)]] for _ in range(20)]
    return Session(86400.0 * number, "0123abcd", "CPU A", 2, "6.1", NAMES, 12, blocks, [[]] * 20)


def rows(text: str, heading: str) -> list[list[str]]:
    table = text.split(f"## {heading}\n\n")[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in table]


def test_a_prediction_needs_five_sessions():
    text = "\n\n".join(sessions.parts([session(number, 0.4) for number in range(3)]))
    assert "needs 5 sessions: 2 more." in text
    assert [row[-1] for row in rows(text, "Between sessions")] == ["-"] * 4
    assert len(rows(text, "Each session")) == 3
    assert "Nothing is measured yet." in sessions.parts([])


def test_sessions_that_differ_have_a_wide_prediction_and_most_of_the_variance():
    def predicted(*effects):
        text = "\n\n".join(sessions.parts([session(number, effect) for number, effect in enumerate(effects)]))
        assert "more." not in text
        row = rows(text, "Between sessions")[0]
        low, high = map(float, row[-1].split(" to "))
        return high / low, int(row[-2].rstrip("%"))

    equal_width, equal_share = predicted(*[0.4] * 6)
    wide_width, wide_share = predicted(0.2, 0.3, 0.4, 0.5, 0.6, 0.4)
    assert wide_width > 1.4 > equal_width
    assert wide_share > 90 > equal_share


def test_the_page_is_written_from_the_file_alone(benchmark_script, files, results_file, page_file):
    append_line(results_file, session(1, 0.4).to_json())
    result = benchmark_script(sessions, *files, "--add")
    assert (result.returncode, result.stdout) == (0, f"written: {page_file}\n")
    assert "CPU A, 2 CPUs" in page_file.read_text()


def test_a_run_of_other_profiles_is_refused(benchmark_script, files, tmp_path):
    folder = records.write(tmp_path / "other", events_of(blocks=8))
    refused = refusal(benchmark_script(sessions, *files, "--add", folder, "--commit", "0123abcd"))
    assert "measures other profiles than glibc-retain" in refused
    assert "--add: needs --commit HASH" in refusal(benchmark_script(sessions, *files, "--add", folder))


@pytest.mark.parametrize("profile", sessions.PROFILES)
def test_ratios_are_the_baselines_time_over_the_profiles(profile):
    assert sessions.ratios(session(1, 0.4, deviation=0.0), profile) == pytest.approx([0.4] * 20)
