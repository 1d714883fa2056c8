"""The comparison of designs: what its page says of pairs whose noise is planted."""

from __future__ import annotations

import math
import random
import re

import pytest

from benchmarks import designs, page
from benchmarks.results import Results

STEP_S = 0.05


def process(factor, steps=12):
    return {"step_s": [STEP_S * factor] * steps, "faults": 4000 * factor}


@pytest.fixture
def results(results_file):
    """Pairs that differ by as much as their processes do; children of one parent don't differ."""
    chance = random.Random(1)
    found = Results(results_file, {"machine": page.machine(), "seed": 1})
    for where in ("alone", "neighbour"):
        for number in range(20):
            for name, seconds in (("long", 40.0), ("short", 8.0), ("together", 5.0), ("slices", 12.0)):
                both = [process(chance.choice([0.9, 1.1]), 100) for _ in range(2)]
                found.append("measured", where=where, design=name, seconds=seconds, processes=both)
            found.append("round", where=where, number=number)
    for _ in range(3):
        four = [process(0.9), process(0.9), process(1.1), process(1.1)]
        eight = [process(1.0)] + [process(0.1)] * 7
        for name, processes in (("forked", four), ("again", eight)):
            found.append("measured", where="alone", design=name, seconds=9.0, processes=processes)
    return found


def test_the_page_compares_the_designs_and_says_what_was_not_taken(results, benchmark_script, files, page_file):
    result = benchmark_script(designs, *files, "--data", "synthetic", "--rounds", 20, "--beside", 20)
    assert (result.returncode, result.stdout) == (0, f"written: {page_file}\n")  # nothing was left to measure
    text = page_file.read_text()
    rows = {line.split(" | ")[0]: line.split(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert [rows[f"| {name}"][3] for name in ("long", "together")] == ["40.0", "5.0"]
    # of one noise, eight times as many pairs are about three times as sharp
    widths = [float(rows[f"| {name}"][6].strip("±%")) for name in ("long", "together")]
    assert 2 < widths[0] / widths[1] < 5
    # 6 pairs of 40 s, and about as many of 5 s
    assert [int(share) for share in re.findall(r"(\d+)% of the time", text)] == pytest.approx([12, 12], abs=3)
    assert "forked**: 6 of 6 pairs of siblings" in text
    assert "again**: 4,000 faults in a step of a process' first training, 400 in those after it" in text
    assert "The two correlate by 1.00" in text
    # page faults explain all of what is planted: 10% for a process, so 14% for a pair
    draw, pair, width = [float(share) for share in re.findall(r"([\d.]+)%", text.partition("Were nothing")[2])[:3]]
    assert draw == pytest.approx(100 * math.log(1.1 / 0.9) / 2, abs=0.3)
    assert pair == pytest.approx(draw * math.sqrt(2), abs=0.2)
    assert width == pytest.approx(2 * pair * math.sqrt(5 / 240), abs=0.1)  # 5 s a pair, 240 s
