"""Modes are held against fp32, profiles against the same mode with nothing set, and a profile against a mode."""

from __future__ import annotations

from dataclasses import replace

import pytest
from envkit.worker.modes import USUAL, Options
from envkit.worker.request import Train

from benchmarks import interleaved, modes
from benchmarks.modes import MODES
from tests.benchmarks.conftest import refusal
from tests.instant_engine import InstantEngine
from tests.simulation import times

COMPILERS = {"g++": "/usr/bin/g++", "openssl": "/usr/bin/openssl"}


class ByMode(InstantEngine):
    """Its workers do what the simulation says of their profile and mode: ``mine, bf16``.

    ``timeouts`` are, by mode, those that its workers had.
    """

    def __init__(self, simulation):
        super().__init__(simulation)
        self.timeouts = {}

    def run(self, launch):
        if isinstance(launch.work, Train):
            mode = next(name for name, how in MODES.items() if how == launch.work.options)
            self.timeouts.setdefault(mode, set()).add(launch.timeout_s)
            profile = launch.variables.get("SIMULATED", "baseline")
            launch = replace(launch, variables={**launch.variables, "SIMULATED": f"{profile}, {mode}"})
        return super().run(launch)


@pytest.fixture
def worker(simulation):
    """Have the workers of a profile in a mode take so many times as long as others, and see that mode."""

    def tell(name, mode, factor=1.0, **behaviour):
        told = {"modes": MODES[mode].modes, **behaviour}
        simulation.worker(f"{name}, {mode}", seconds=times(factor), **told)

    for mode in MODES:
        for name in ("baseline", "one", "two"):
            tell(name, mode)
    return tell


@pytest.fixture
def engine(simulation, monkeypatch):
    made = ByMode(simulation)
    monkeypatch.setattr(interleaved, "LocalEngine", made)
    return made


@pytest.fixture
def run(simulation, engine, worker, benchmark_script, files, write_profile, monkeypatch):
    """Measure the profiles ``one`` and ``two`` in 12 blocks."""
    profiles = [str(write_profile(name, f"env: {{SIMULATED: {name}}}\n")) for name in ("one", "two")]
    simulation.inspection(commands=COMPILERS)
    monkeypatch.setattr(modes, "PROFILES", profiles)
    fixed = ["--data", "synthetic", "--steps", 3, "--blocks", 12, *files]
    return lambda *options: benchmark_script(modes, *fixed, *options)


@pytest.fixture
def tables(page_file):
    """The rows of each table of the page, by its heading."""

    def read():
        parts = page_file.read_text().split("\n## ")[1:]
        return {
            part.partition("\n")[0]: [
                [cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| ")
            ][2:]
            for part in parts
        }

    return read


def ratios(rows):
    """The ratio of each pair of names, with one digit, of rows that have it before the interval."""
    place = 4 if len(rows[0]) == 7 else 2
    return {tuple(row[:2]): row[place][:3] for row in rows}


def test_profiles_within_a_mode_and_modes_with_the_same_profile(run, worker, tables):
    worker("two", "fp32", 0.5)
    worker("baseline", "compiled", 0.8)
    worker("two", "compiled", 0.4, losses=[2.3, 2.2, 2.1])
    assert run().returncode == 0
    found = tables()
    within = found["What profiles give in each mode"]
    assert len(within) == 12
    assert ratios(within)["fp32", "two"] == ratios(within)["compiled", "two"] == "2.0"
    assert ratios(within)["bf16", "two"] == "1.0"
    assert ratios(within)["fp32", "baseline"] == ""
    losses = {tuple(row[:2]): row[6] for row in within}
    assert (losses["fp32", "two"], losses["compiled", "two"], losses["bf16", "baseline"]) == ("0", "0.086", "")
    across = ratios(found["What a mode gives against fp32 with the same profile"])
    assert len(across) == 9
    assert (across["one", "compiled"], across["two", "compiled"], across["baseline", "bf16"]) == ("1.0", "1.2", "1.0")
    instead = ratios(found["What a profile gives in fp32, against a mode with nothing set"])
    assert len(instead) == 6
    assert (instead["compiled", "two"], instead["bf16", "two"]) == ("1.6", "2.0")


def test_in_short(run, worker, page_file):
    worker("two", "fp32", 0.5)
    worker("baseline", "compiled", 0.8)
    worker("one", "compiled", 0.4)
    run()
    page = page_file.read_text()
    assert "All 23 intervals hold together at 95%." in page
    short = page.partition("## In short\n\n")[2].partition("\n")[0]
    assert short.startswith("Beside compiled a profile still pays; beside bf16 and channels-last that was not found. ")
    assert "fp32 2.00 times as fast (" in short
    assert ": faster) with two, " in short
    assert "compiled 2.00 times as fast (" in short
    assert ": faster) with one and " in short
    assert "compiled is 1.25 times as fast (" in short
    assert "The profile is worth more here: fp32 with two is 1.60 times as fast (" in short
    assert short.endswith("as compiled with nothing set, the fastest of the other modes.")


def test_a_profile_that_pays_beside_all_modes(run, worker, page_file):
    for mode in MODES:
        worker("one", mode, 0.8)
    run()
    assert "\n\nBeside bf16, compiled and channels-last a profile still pays. Against " in page_file.read_text()


@pytest.mark.parametrize(
    ("factor", "said"),
    [(0.5, "The mode is worth more here: fp32 with"), (1.0, "That one of the two is worth more was not found: fp32")],
)
def test_a_mode_that_is_worth_as_much_or_more(run, worker, page_file, factor, said):
    worker("baseline", "bf16", factor)
    run()
    page = page_file.read_text()
    assert said in page
    assert "That a profile still pays was not found beside bf16, compiled and channels-last." in page


def test_what_compiling_costs_is_from_the_first_process_and_from_those_after_it(run, simulation, tables):
    simulation.worker("baseline, compiled warming", seconds=[58.0])
    simulation.worker("one, compiled warming", seconds=[4.0])
    run()
    rows = tables()["What compiling costs before the first step is done"]
    assert rows[0] == ["fp32", "1.00", "0.33"]
    assert rows[2] == ["compiled", "58.00", "0.33"]


def test_workers_are_given_their_mode_and_an_empty_folder_for_what_is_compiled(run, simulation):
    run()
    starts = simulation.starts()
    given = {start["environment"]["SIMULATED"]: Options(**start["training"]["options"]) for start in starts}
    assert given["one, compiled"] == Options(compile=True)
    assert given["baseline, bf16"] == Options("bf16-autocast")
    assert given["two, channels-last"] == Options(channels_last=True)
    assert given["two, fp32"] == Options()
    assert [start["training"]["options"]["compile"] for start in starts].count(True) == 3 * 12
    (folder,) = {start["environment"]["TMPDIR"] for start in starts}
    assert "envkit-modes-" in folder


def test_a_worker_that_compiles_has_more_time(run, engine):
    run()
    usual = {interleaved.TIMEOUT_S}
    assert engine.timeouts == {**dict.fromkeys(MODES, usual), "compiled": {interleaved.COMPILING_TIMEOUT_S}}


def test_a_worker_that_trained_in_another_mode_is_a_failure(run, worker, page_file):
    worker("baseline", "compiled", modes=USUAL.modes)
    result = run()
    assert result.returncode == 1, result
    page = page_file.read_text()
    assert "- baseline, compiled: its compile is False, not True (after 0 blocks)" in page
    assert "| compiled | baseline | 0 | - |" in page
    assert "compiled as fast as is not known with one" in page


def test_a_mode_without_any_sample_is_told_as_that(run, simulation, page_file):
    for name in ("baseline", "one", "two"):
        simulation.worker(f"{name}, bf16 warming", does="exit", status=1, stderr="no bfloat16")
    assert run().returncode == 1
    page = page_file.read_text()
    assert "- two, bf16: the worker ended with exit status 1: no bfloat16 (after 0 blocks)" in page
    assert "| bf16 | - | - |" in page


def test_one_profile_of_one_s_own(run, write_profile, tables):
    path = write_profile("mine", "env: {SIMULATED: one}\n")
    assert run("--profile", path).returncode == 0
    assert [row[1] for row in tables()["What profiles give in each mode"]] == ["baseline", "mine"] * 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--profile", "nowhere"), "no profile 'nowhere'"),
        (("--profile", "baseline"), "--profile baseline: is measured anyway"),
        (("--profile", "glibc-retain", "--profile", "glibc-retain"), "--profile glibc-retain: was given twice"),
        (("--blocks", 9), "--blocks 9: is too few, as intervals of 23 comparisons take 10 blocks; give --blocks 10 or"),
    ],
)
def test_what_can_not_be_compared(run, options, said):
    assert said in refusal(run(*options))


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ({"commands": {"g++": None, "openssl": None}}, "torch.compile needs g++ and openssl, and /sim/bin/python has"),
        ({"python_headers": False}, "torch.compile needs Python's headers (Python.h), and"),
    ],
)
def test_without_a_compiler_nothing_is_measured(run, simulation, results_file, lacking, said):
    simulation.inspection(**{"commands": COMPILERS, **lacking})
    assert said in refusal(run())
    assert not results_file.exists()
    assert simulation.starts(all=True)[-1]["name"] == "inspect"
