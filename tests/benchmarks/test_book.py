"""The book's table: runs of simulated workers, and what is said of them."""

from __future__ import annotations

import json

import pytest
from envkit.bench.record import FILE_NAME

from benchmarks import book
from tests.benchmarks.conftest import refusal


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "book"


@pytest.fixture
def table(benchmark_script, simulation, instant, folder, page_file, monkeypatch):
    """Run the script; a training takes a second. Intel's OpenMP can't be simulated: its line is a baseline too."""
    simulation.worker("baseline", seconds=[1.0])
    published = [book.Published(one.what, book.Arm(one.arm.name, "baseline", "", one.arm.workload), one.seconds,
                                one.accuracy) for one in book.BOOK]  # fmt: skip
    monkeypatch.setattr(book, "BOOK", tuple(published))

    def run(*options, epochs=1, data="synthetic"):
        fixed = ("--python", simulation.python, "--data", data, "--record", folder, "--page", page_file)
        return benchmark_script(book, *fixed, "--epochs", epochs, *options)

    return run


def events(folder):
    return [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]


def rows(text):
    """The cells of the page's table, by what changes."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {line[0]: line[1:] for line in lines[2:]}


def test_every_line_of_the_book_is_one_training_in_one_record(table, folder, simulation, page_file):
    result = table()
    assert (result.returncode, result.stdout.splitlines()[-1][:8]) == (0, "written:")
    trained = {start["training"]["workload"]: start["training"] for start in simulation.starts()}
    assert sorted(trained) == ["cnn", "cnn-batch128", "cnn-batch256", "cnn-nobias"]
    assert all(training["full"]["epochs"] > 0 for training in trained.values())
    samples = [event for event in events(folder) if event["event"] == "sample"]
    assert sorted(event["arm"] for event in samples) == [
        "baseline", "cnn-batch128", "cnn-batch256", "cnn-nobias", "intel-omp",
    ]  # fmt: skip
    found = rows(page_file.read_text())
    # as published, and the ratios that follow; what the simulated workers take, and one pair has no interval
    assert found["nothing: the baseline"] == [
        "148 s", "1.00", "83.99%", "1.0 s", "1.000", "-", "84.00%", "333.3 to 333.3", "-",
    ]  # fmt: skip
    assert found["code: no bias"][:3] == ["125 s", "1.18", "83.76%"]
    assert found["code: batches of 128"][:3] == ["96 s", "1.54", "82.14%"]
    assert found["code: batches of 256"][:3] == ["76 s", "1.95", "80.01%"]
    assert found["environment: Intel OpenMP"][:3] == ["106 s", "1.40", "83.25%"]
    # of the same network on the same batches only
    assert found["environment: Intel OpenMP"][-1] == "equal"
    assert [found[name][-1] for name in found if name.startswith("code")] == ["-"] * 3
    text = page_file.read_text()
    assert "SYNTHETIC DATA" in text
    assert "a single pair has no interval" in text
    assert "neither times nor accuracies compare" in text


def test_blocks_give_intervals(table, page_file):
    assert table("--blocks", 8, epochs=10).returncode == 0
    page = page_file.read_text()
    assert all(" to " in cells[5] for name, cells in rows(page).items() if name != "nothing: the baseline")
    assert "the 4 intervals hold together in 95% of such runs" in page
    assert "neither times nor accuracies" not in page


def test_too_few_blocks_are_said(table, page_file):
    assert table("--blocks", 2).returncode == 0
    assert "too few blocks for intervals" in page_file.read_text()
    assert rows(page_file.read_text())["code: no bias"][4:6] == ["-", "-"]


def test_another_profile_is_measured_too(table, write_profile, simulation, page_file):
    simulation.worker("mine", seconds=[0.5])
    assert table("--also", write_profile("mine", "env:\n  SIMULATED: mine\n")).returncode == 0
    cells = rows(page_file.read_text())["environment: mine"]
    assert cells[:5] == ["-", "-", "-", "0.5 s", "2.000"]
    assert "order: here, by one training each, mine, baseline" in page_file.read_text()


def test_a_profile_that_is_measured_already_is_refused(table):
    result = table("--also", "some/intel-omp.yaml")
    said = "book: --also some/intel-omp.yaml: 'intel-omp' is measured already; leave it out, or rename it"
    assert (refusal(result), result.stdout) == (said, "")


def test_an_interrupted_run_is_gone_on_with(table, folder, simulation, page_file):
    simulation.worker("baseline", does="interrupt", **{"from": 2})
    first = table()
    assert first.returncode == 130
    assert "continue with: envkit bench --resume" in first.stderr
    simulation.worker("baseline", seconds=[1.0])
    assert table().returncode == 0
    kinds = [event["event"] for event in events(folder)]
    assert (kinds.count("run"), kinds.count("resume"), kinds.count("sample"), kinds[-1]) == (1, 1, 5, "end")
    assert len(rows(page_file.read_text())) == 5


def test_a_run_that_ended_is_only_told_again(table, folder, simulation, page_file):
    table()
    text, before = page_file.read_text(), events(folder)
    assert table().returncode == 0
    assert (page_file.read_text(), events(folder)) == (text, before)
    assert len(simulation.starts()) == 5


def test_a_run_of_other_settings_is_refused(table):
    table()
    said = refusal(table(epochs=2))
    assert "was measured with epochs 1, and now it is 2; move it away, or give another with --record" in said


def test_a_worker_that_fails_ends_it_without_a_page(table, simulation, page_file):
    simulation.worker("baseline", does="exit", status=3)
    result = table()
    assert result.returncode == 1
    assert "Failed    block 1" in result.stdout
    assert not page_file.exists()


def test_the_report_names_the_script_that_began_the_run(table, folder, cli):
    table()
    shown = cli("report", folder, "--markdown").stdout
    assert "`python -m benchmarks.book --python" in shown
    assert "; whole trainings are compared" in shown
