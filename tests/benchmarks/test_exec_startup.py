"""What is added to a start is taken within each round, and a command that fails is no time."""

from __future__ import annotations

import json

import pytest

from benchmarks import exec_startup
from tests.benchmarks.conftest import refusal

COMMANDS = {"/bin/true": 1.0, "python -c pass": 20.0, "python -c 'import torch'": 900.0}
WAYS = {"bare": 0.0, "exec baseline": 30.0, "exec --no-check baseline": 450.0, "exec jemalloc-retain-mkl": 40.0}


@pytest.fixture
def options(files, monkeypatch):
    """Starts that take what they would on a quiet machine, with a little noise."""
    noise = iter(range(10**6))

    def took(way, argv, variables):
        command = next(name for name, parts in exec_startup.COMMANDS.items() if parts == argv)
        return COMMANDS[command] + WAYS[way] + next(noise) % 7 / 10

    monkeypatch.setattr(exec_startup, "_ms", took)
    return files


def test_what_is_added_has_an_interval_and_is_held_against_the_limit(options, benchmark_script, page_file):
    result = benchmark_script(exec_startup, *options, "--starts", 12)
    assert (result.returncode, result.stderr) == (0, "")
    rows = [line.split(" | ") for line in page_file.read_text().splitlines() if line.startswith("| `")]
    assert [(row[0].strip("| `"), row[1]) for row in rows] == [(command, way) for command in COMMANDS for way in WAYS]
    for _, way, _, added, interval, within in rows:
        if way != "bare":
            low, high = map(float, interval.split(" to "))
            assert low <= float(added) <= high
            assert abs(float(added) - WAYS[way]) < 1
            assert within.strip(" |") == ("no" if "--no-check" in way else "yes")


def test_few_starts_give_no_interval(options, benchmark_script, page_file):
    benchmark_script(exec_startup, *options, "--starts", 2)
    assert "too few starts" in page_file.read_text()


def test_it_goes_on_with_what_it_has(options, benchmark_script, results_file):
    benchmark_script(exec_startup, *options, "--starts", 2)
    first = results_file.read_text()
    benchmark_script(exec_startup, *options, "--starts", 3)
    lines = results_file.read_text()
    assert lines.startswith(first)
    rounds = [json.loads(line)["round"] for line in lines.splitlines()[1:]]
    assert [rounds.count(number) for number in range(3)] == [12, 12, 12]


def test_a_command_that_fails_is_no_time(benchmark_script, files, monkeypatch):
    monkeypatch.setitem(exec_startup.COMMANDS, "/bin/true", ("/bin/false",))
    said = refusal(benchmark_script(exec_startup, *files))
    assert "/bin/false: ended with status 1: nothing" in said


def test_an_interval_of_the_median():
    """Ranks of the sign test (Hollander, Wolfe, Chicken, table of the binomial distribution): 2 of 10, 18 of 50."""
    assert exec_startup.median_interval(range(1, 11)) == (2, 9)
    assert exec_startup.median_interval(range(1, 51)) == (18, 33)
    assert exec_startup.median_interval(range(1, 6)) is None
