"""Planted effects: the hook that makes steps longer, runs of the command with simulated workers, verdicts and page."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from envkit.stats.verdict import Verdict

from benchmarks import planted
from benchmarks.errors import ScriptError
from benchmarks.planted import Effect, Planted
from benchmarks.short_runs import Session
from tests import records
from tests.benchmarks.conftest import refusal
from tests.conftest import CODE_PATH
from tests.reports import events_of

SHARES = [0.0, 0.0, 0.1, 0.5]
TIMED_STEPS = """
import json, time
from envkit.worker.measure.train import accelerator, timed
took = []
def step():
    begin = time.perf_counter()
    while time.perf_counter() < begin + 0.005:
        pass
    took.append(time.perf_counter() - begin)
    return 2.5
losses, times = timed(step, 60, accelerator.clock("cpu"))
print(json.dumps([losses, took, [end - begin for begin, end in zip(times, times[1:])]]))
"""


def run_of(blocks: int, noise: float = 0.03, seed: int = 1) -> Planted:
    """A run of so many blocks in which planted shares are as they say, with noise of a sample."""
    generator = random.Random(seed)
    times = [[0.05 * (1 + share) * math.exp(generator.gauss(0, noise)) for share in SHARES] for _ in range(blocks)]
    names = ["baseline", *(f"planted-{round(100 * share)}" for share in SHARES[1:])]
    session = Session(86400.0 * seed, "0123abcd", "CPU A", 2, "6.1", names, 12, times, [[]] * blocks)
    return Planted(session, SHARES, 2.5)


@pytest.fixture
def run(benchmark_script, simulation, instant, in_process, files, tmp_path):
    fixed = (*files, "--records", tmp_path / "records", "--python", simulation.python, "--data", "synthetic")
    return lambda *options: benchmark_script(planted, *fixed, "--steps", 3, "--for", "60s", *options)


@pytest.mark.parametrize("share", [None, 0.0, 0.5])
def test_the_hook_makes_each_step_longer_by_its_share(share):
    variables = {"PYTHONPATH": f"{planted.HOOK}:{CODE_PATH}", **({planted.VARIABLE: str(share)} if share else {})}
    command = [sys.executable, "-c", TIMED_STEPS]
    printed = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    losses, took, measured = json.loads(printed.stdout)
    assert losses == [2.5] * 60
    ratios = [whole / step for whole, step in zip(measured, took, strict=True)]
    assert min(ratios) >= 1 + (share or 0.0)
    assert min(ratios) < 1.05 + (share or 0.0)


def test_a_call_measures_each_share_and_a_second_one_adds_to_the_file(run, results_file, page_file, simulation):
    result = run("--percent", "10,50")
    assert (result.returncode, result.stderr) == (0, "")
    first = results_file.read_bytes()
    (line,) = map(json.loads, first.splitlines())
    assert line["session"]["names"] == ["baseline", "planted-0", "planted-10", "planted-50"]
    assert line["shares"] == SHARES
    assert line["sample_s"] == pytest.approx(1.0, abs=0.02)
    assert {start["environment"].get(planted.VARIABLE) for start in simulation.starts()} == {None, "0.0", "0.1", "0.5"}
    assert "## All that was measured" in page_file.read_text()
    assert run("--percent", "10").returncode == 0
    assert results_file.read_bytes().startswith(first)
    assert run("--add").returncode == 0
    assert len(results_file.read_bytes().splitlines()) == 2


def test_a_run_without_planted_effects_is_refused(run, results_file, tmp_path):
    folder = records.write(tmp_path / "other", events_of(blocks=8))
    assert "does not measure the baseline beside copies" in refusal(run("--add", folder, "--commit", "0123abcd"))
    assert not results_file.exists()


@pytest.mark.parametrize(
    "change", [{"shares": [0.0, 0.0, 0.1]}, {"shares": [0.1, 0.0, 0.1, 0.5]}, {"shares": [0.0, 0.0, 0.1, -0.5]}]
)
def test_shares_that_do_not_fit_are_refused(change, results_file):
    results_file.write_text(json.dumps(replace(run_of(8), **change).to_json()) + "\n")
    with pytest.raises(ScriptError, match="line 1 is not a run of"):
        planted.read(results_file)


@pytest.mark.parametrize(
    ("share", "in_reference", "ratio", "right", "wrong"),
    [
        (0.5, False, 1 / 1.5, {Verdict.SLOWER}, {Verdict.FASTER, Verdict.EQUIVALENT}),
        (0.5, True, 1.5, {Verdict.FASTER}, {Verdict.SLOWER, Verdict.EQUIVALENT}),
        (0.01, True, 1.01, {Verdict.FASTER}, {Verdict.SLOWER}),
        (0.0, False, 1.0, {Verdict.NOT_FOUND, Verdict.EQUIVALENT}, {Verdict.FASTER, Verdict.SLOWER}),
    ],
)
def test_a_verdict_is_right_wrong_or_neither(share, in_reference, ratio, right, wrong):
    effect = Effect(share, in_reference)
    assert effect.ratio == pytest.approx(ratio)
    assert effect.right == right
    known = (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.NOT_FOUND)
    assert {verdict for verdict in known if effect.is_wrong(verdict)} == wrong


def test_large_effects_are_found_in_both_directions_and_soon():
    runs = [run_of(40)]
    for effect in (Effect(0.5, in_reference=False), Effect(0.5, in_reference=True)):
        ends = planted.ends(runs, effect, 40)
        assert (ends.runs, ends.right, ends.wrong, ends.covered) == (1, 1, 0, 1)
        assert ends.blocks[0] < 40
        assert ends.seconds == (2 * 2.5 * ends.blocks[0],)


def test_a_wrong_verdict_is_counted():
    swapped = replace(run_of(8), shares=[0.0, 0.0, 0.5, 0.1])
    tenth = planted.ends([swapped], Effect(0.1, in_reference=False), 8)
    assert (tenth.right, tenth.wrong, tenth.covered) == (1, 0, 0)
    nothing = replace(run_of(8), shares=[0.0, 0.0, 0.5, 0.0])
    session = nothing.session
    nothing = replace(
        nothing, session=replace(session, blocks=[[*block[:1], *block[3:] * 3] for block in session.blocks])
    )
    ends = planted.ends([nothing], Effect(0.0, in_reference=False), 8)
    assert (ends.runs, ends.right, ends.wrong, ends.covered) == (1, 0, 1, 0)


def test_the_page_has_each_effect_by_its_ratio_and_all_blocks():
    text = "\n".join(planted.parts([run_of(20, seed=1), run_of(20, seed=2)]))
    for ratio in ("0.667", "0.909", "1.000", "1.100", "1.500"):
        assert f"| 20 | {ratio} | 2 | " in text
    assert "| 20 | all but 1.000 | 8 | 8 of 8 " in text
    assert "\n| 40 | " not in text
    (pooled,) = [line for line in text.splitlines() if line.startswith("| 1.500 | 40 | ")]
    assert float(pooled.strip("| ").rpartition(" ")[-1]) == pytest.approx(1.0, abs=0.02)
    assert "| 1970-01-02 00:00 | 0123abcd | CPU A, 2 CPUs | 6.1 | 0%, 10%, 50% | 12 | 20 | 0 |" in text
    assert planted.parts([])[0].endswith("Nothing is measured yet.")
