"""Long processes beside short samples: the command with simulated workers, the order by both windows, and the page."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict

import pytest

from benchmarks import long_steps, long_steps_page
from benchmarks.errors import ScriptError
from benchmarks.long_steps_page import PARTS, Block, LongProcess, Session
from benchmarks.results import append_line
from tests import records
from tests.benchmarks.conftest import refusal
from tests.reports import events_of

NAMES = ["baseline", "fast", "faster"]
MINE = "env: {SIMULATED: mine}\n"


def blocks_of(short: list[float], long: list[float], blocks: int = 6, noise: float = 0.01) -> list[Block]:
    """Blocks in which arms are faster by these logarithms in short samples, and in long processes."""
    generator = random.Random(1)

    def seconds(log_speed: float) -> float:
        return 0.05 * math.exp(-log_speed + generator.gauss(0, noise))

    return [
        Block(
            [[seconds(speed), seconds(speed)] for speed in short],
            [LongProcess(seconds(before), [seconds(speed)] * PARTS) for before, speed in zip(short, long, strict=True)],
        )
        for _ in range(blocks)
    ]


def session_of(blocks: list[Block], began: float = 1.0, training: str = "cnn") -> Session:
    return Session(began, "0123abcd", "CPU A", 2, "6.1", training, NAMES, 5, 12, 1000, blocks)


@pytest.fixture
def run(benchmark_script, simulation, instant_bench, files, write_profile):
    simulation.worker("mine")
    fixed = (*files, "--python", simulation.python, "--data", "synthetic", "--profiles", write_profile("mine", MINE))
    return lambda *options: benchmark_script(long_steps, *fixed, "--for", "0.01s", "--steps", 100, *options)


def test_a_block_has_a_long_process_and_short_samples_of_each_arm(run, simulation, results_file, page_file):
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    (session,) = long_steps_page.read(results_file)
    assert (session.names, session.long_steps, session.training) == (["baseline", "mine"], 100, "cnn")
    for block in session.blocks:
        assert [len(samples) for samples in block.short_s] == [2, 2]
        assert len(block.long) == 2
    starts = [(start["name"], start["training"]["steps"]) for start in simulation.starts()]
    once = [("baseline", 12), ("baseline", 12), ("baseline", 100), ("mine", 12), ("mine", 12), ("mine", 100)]
    assert sorted(starts) == sorted(once * len(session.blocks))
    assert {start["training"]["warmup_steps"] for start in simulation.starts()} == {5}
    assert "## cnn: 100 steps" in page_file.read_text()


def test_a_second_call_adds_to_the_file(run, results_file):
    run()
    first = results_file.read_bytes()
    assert run("--short-samples", 1).returncode == 0
    assert results_file.read_bytes().startswith(first)
    assert len(long_steps_page.read(results_file)) == 2


def test_complete_blocks_of_a_call_that_fails_are_kept(run, simulation, results_file):
    simulation.worker("mine", does="exit", status=3, **{"from": 3})  # the first start is not among these
    assert "mine: the worker" in refusal(run("--for", "60s"))
    (session,) = long_steps_page.read(results_file)
    assert len(session.blocks) == 1


def test_a_length_that_cannot_be_cut_into_equal_parts_is_refused(run):
    assert "--steps 105: is no multiple of 10" in refusal(run("--steps", 105))
    assert "--steps 10: is no multiple of 10 with room" in refusal(run("--steps", 10))


def test_a_process_keeps_its_first_steps_and_equal_parts():
    seconds = [0.1] * 12 + [0.05] * 88 + [9.0] * 5
    process = long_steps_page.process_of(seconds, 12)
    assert process.first_s == 0.1
    assert process.parts_s == [0.1, 0.06, *[0.05] * 8]
    assert process.all_s == pytest.approx(0.056)
    assert process.second_half_s == pytest.approx(0.05)


def test_a_record_of_long_samples_is_added_once(run, results_file, tmp_path):
    folder = records.write(tmp_path / "long", events_of(blocks=8, study={"steps": 45}))
    for _ in range(2):
        assert run("--add", folder, "--commit", "0123abcd").returncode == 0
    (session,) = long_steps_page.read(results_file)
    assert (session.names, session.long_steps, len(session.blocks)) == (["baseline", "mine"], 40, 8)
    assert all(block.short_s == [] for block in session.blocks)
    assert session.warmup_steps == 1
    assert "--add: needs --commit HASH" in refusal(run("--add", folder))


def test_a_record_of_short_samples_is_refused(run, results_file, tmp_path):
    folder = records.write(tmp_path / "short", events_of(blocks=8))
    refused = refusal(run("--add", folder, "--commit", "0123abcd"))
    assert "has no complete block of processes with 12 steps or more" in refused
    assert not results_file.exists()


def test_the_interval_is_students():
    interval = long_steps_page.ratio([0.1, 0.2, 0.3])
    assert interval is not None
    assert interval.value == pytest.approx(math.exp(0.2))
    assert math.log(interval.high) == pytest.approx(0.2 + 4.302653 * 0.1 / math.sqrt(3))
    assert interval.low * interval.high == pytest.approx(interval.value**2)
    assert long_steps_page.ratio([0.1]) is None


def test_equal_orders_agree_in_all_pairs():
    ranks = long_steps_page.order(NAMES, blocks_of([0, 0.2, 0.4], [0, 0.2, 0.4]))
    assert ranks is not None
    assert (ranks.tau, ranks.pairs, ranks.agreeing, ranks.opposite, ranks.swapped) == (1, 3, 3, 0, ())


def test_a_pair_in_opposite_orders_is_named():
    ranks = long_steps_page.order(NAMES, blocks_of([0, 0.2, 0.4], [0, 0.4, 0.2]))
    assert ranks is not None
    assert (ranks.agreeing, ranks.opposite, ranks.swapped) == (2, 1, (("fast", "faster"),))
    assert ranks.tau == pytest.approx(1 / 3)


def test_a_pair_that_nothing_tells_apart_is_not_swapped():
    ranks = long_steps_page.order(NAMES, blocks_of([0, 0.3, 0.301], [0, 0.301, 0.3], noise=0.05))
    assert ranks is not None
    assert ranks.swapped == ()


def test_the_page_groups_by_training_and_shows_a_speedup_that_changes():
    changing = [session_of(blocks_of([0, 0.2, 0.4], [0, 0.2, 0.3]), began) for began in (1.0, 2.0)]
    other = session_of([Block([], block.long) for block in changing[0].blocks], 3.0, "python train.py")
    text = "\n".join(long_steps_page.parts([*changing, other]))
    assert "## cnn: 1,000 steps, 12 blocks" in text
    assert "## python train.py: 1,000 steps, 6 blocks" in text
    (row,) = [line for line in text.split("## python")[0].splitlines() if line.startswith("| faster ")]
    short, first, whole, half, change = (float(cell.split()[0]) for cell in row.strip("| ").split(" | ")[1:])
    assert short == pytest.approx(math.exp(0.4), rel=0.02)
    assert first == pytest.approx(math.exp(0.4), rel=0.02)
    assert whole == half == pytest.approx(math.exp(0.3), rel=0.02)
    assert change == pytest.approx(math.exp(-0.1), rel=0.02)
    assert "| faster | - | 1.4" in text.split("## python")[1]
    assert long_steps_page.parts([])[0].endswith("Nothing is measured yet.")


@pytest.mark.parametrize(
    "damage",
    [{"blocks": []}, {"blocks": [{"short_s": [[0.1]], "long": []}]}, {"blocks": [{"short_s": [], "long": [[1]] * 3}]}],
)
def test_a_damaged_line_is_refused(results_file, damage):
    append_line(results_file, asdict(session_of(blocks_of([0, 0.2, 0.4], [0, 0.2, 0.4]))))
    line = json.loads(results_file.read_text())
    results_file.write_text(json.dumps({**line, **damage}) + "\n")
    with pytest.raises(ScriptError, match="line 1 is not a run of"):
        long_steps_page.read(results_file)


def test_short_samples_are_the_first_steps_where_there_are_none():
    (block,) = blocks_of([0, 0.2, 0.4], [0, 0.2, 0.4], blocks=1)
    without = Block([], block.long)
    assert long_steps_page.short(without, 1) == block.long[1].first_s
    assert long_steps_page.short(block, 1) != block.long[1].first_s
