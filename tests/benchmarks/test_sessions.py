"""Repeats of one matrix: the deviation between sessions, its page, and what is refused."""

from __future__ import annotations

import json
import math
import random

import numpy
import pytest
from envkit.bench.record import FILE_NAME

from benchmarks import random_effects, script, sessions
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
    assert "need 5 sessions: 2 more." in text
    assert [row[-1] for row in rows(text, "Between sessions")] == ["-"] * 4
    assert len(rows(text, "Each session")) == 3
    assert sessions.parts([])[0].endswith("Nothing is measured yet.")


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


def test_blocks_of_an_interrupted_session_are_kept(
    benchmark_script, files, simulation, instant, in_process, results_file, tmp_path, write_profile, monkeypatch
):
    def interrupted(*words, **options):
        measure(*words, **options)
        (path,) = tmp_path.glob(f"records/*-session-*/{FILE_NAME}")
        events = path.read_text().splitlines(keepends=True)
        samples = [number for number, line in enumerate(events) if '"sample"' in line]
        path.write_text("".join(events[: samples[4] + 1]))  # the second block has two of three samples
        raise KeyboardInterrupt

    measure = script.runner
    monkeypatch.setattr(script, "runner", interrupted)
    (of_user := tmp_path / "envkit" / "profiles").mkdir(parents=True)
    for name in (profiles := ("mine", "other")):  # which need no library
        write_profile(name, folder=of_user)
    monkeypatch.setattr(sessions, "PROFILES", profiles)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fixed = (*files, "--records", tmp_path / "records", "--python", simulation.python, "--data", "synthetic")
    result = benchmark_script(sessions, *fixed, "--steps", 3, "--for", "40s")
    assert (result.returncode, result.stderr) == (130, "sessions: interrupted; the same command goes on\n")
    (line,) = map(json.loads, results_file.read_text().splitlines())
    assert (line["names"], len(line["blocks"])) == (["baseline", *profiles], 1)
    kept = results_file.read_bytes()
    assert benchmark_script(sessions, *fixed, "--add").returncode == 0
    assert results_file.read_bytes() == kept


# The BCG vaccine trials of G. A. Colditz et al., JAMA 271 (1994): cases and others among vaccinated and among controls.
BCG = [
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232), (17, 1699, 65, 1600),
    (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
]  # fmt: skip


def test_the_variance_between_sessions_is_that_published_of_known_data():
    """Of these log odds ratios metafor's limits are 0.1302 and 1.1812 (its page on van Houwelingen et al. 2002)."""
    estimates = [math.log(a * d / (b * c)) for a, b, c, d in BCG]
    within = [1 / a + 1 / b + 1 / c + 1 / d for a, b, c, d in BCG]
    variances = random_effects.variances_between(numpy.array(estimates), numpy.array(within))
    assert numpy.quantile(variances, (0.025, 0.975)) == pytest.approx([0.1302, 1.1812], rel=0.03)
    fitted = random_effects.fit(estimates, within)
    assert fitted.deviation**2 == pytest.approx(numpy.median(variances))
    assert fitted.low < -0.745 < fitted.high  # the mean by restricted maximum likelihood


@pytest.mark.parametrize("between", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("number", [5, 12])
def test_intervals_of_the_model_are_as_sure_as_they_say(number, between):
    """The mean's interval holds it in 95% of simulated files or more, but for chance; sessions differ in errors.

    That of the next session is as sure as the model's text says: 93%.
    """
    generator, files = numpy.random.default_rng(number), 600
    within = generator.uniform(0.02, 0.08, (files, number)) ** 2
    truths = generator.normal(0.4, between, (files, number + 1))
    mean_held = next_held = 0
    for variances, truth in zip(within, truths, strict=True):
        fitted = random_effects.fit(generator.normal(truth[:-1], numpy.sqrt(variances)), variances)
        mean_held += fitted.low <= 0.4 <= fitted.high
        next_held += fitted.next_low <= truth[-1] <= fitted.next_high
    chance = 2 * math.sqrt(0.05 * 0.95 / files)
    assert mean_held / files >= 0.95 - chance
    assert next_held / files >= 0.93 - chance


def test_one_session_has_no_model_and_equal_ones_hardly_a_share():
    assert random_effects.fit([0.4], [0.01]) is None
    two = random_effects.fit([0.4, 0.41], [0.01, 0.01])
    assert two.share == 0.0
    assert two.low < 0.4
    assert two.high > 0.41
    assert two.next_high - two.next_low > two.high - two.low  # of two sessions little is known
