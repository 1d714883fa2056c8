"""A run of the loader's settings: tables, a plot of text, and a picture."""

from __future__ import annotations

import json

import pytest
from envkit.bench.arms import Arm
from envkit.bench.study import Study, WorkloadSpec
from envkit.report import grid, html
from envkit.report.messages.loaders import LoaderRange, NoWorkers, OtherBatchSize, Prefetching, TryLoader
from envkit.report.pictures import png
from envkit.worker.workloads.loader import Settings

from tests.records import conclude
from tests.reports import events_of, markdown_of, of_cells, printed

CELLS = {  # seconds of a sample of two steps, by workers, batch and how many batches are made ahead
    Settings(0, 16, 0): 0.32, Settings(0, 64, 0): 1.28, Settings(2, 16, 2): 0.16, Settings(2, 64, 2): 0.512,
    Settings(4, 16, 2): 0.2, Settings(4, 64, 2): 0.576, Settings(2, 16, 8): 0.15, Settings(2, 64, 8): 0.5,
}  # fmt: skip


def events(cells=CELLS, blocks=3, **options):
    """The run that measured them, with a second and a third sample that take a little more and less."""
    behaviours = {one: {"seconds": [took, 1.1 * took, 0.9 * took], "images_per_step": one.batch}
                  for one, took in cells.items()}  # fmt: skip
    return of_cells(behaviours, WorkloadSpec(1, 2), blocks, **options)


def test_arms_train_the_workload_of_their_setting():
    profiles = events_of(workloads={"baseline": "loader-w2-b32", "mine": "loader-w2-b32"})
    study = Study.from_json(profiles[0]["study"])
    assert study.arms[0] == Arm("baseline", "baseline", "local", "loader-w2-b32")


def test_cells_are_medians_with_what_was_least_and_most():
    (first, *_) = grid.cells(conclude(events()))
    assert (first.settings, first.samples) == (Settings(0, 16, 0), 3)
    assert (first.seconds, first.least, first.most) == pytest.approx((10.0, 9.0, 11.0))


def test_a_table_for_each_number_of_batches_made_ahead():
    few, many = grid.variants(grid.cells(conclude(events())))
    assert (few.title, many.title) == (Prefetching(2, None), Prefetching(8, None))
    assert (few.workers, few.batches, many.workers) == ([0, 2, 4], [16, 64], [2])  # without workers none is made ahead
    assert few.cells[2, 16].seconds == pytest.approx(5.0)


def test_the_fastest_says_how_sure_it_is_and_what_to_try():
    spread, caution, next_step = [row.text for row in grid.rows_on_fastest(conclude(events()))]
    assert spread == LoaderRange(pytest.approx(3.52, abs=0.01), pytest.approx(4.3, abs=0.01), 3)
    assert (caution, next_step) == (OtherBatchSize(), TryLoader(64, 2, 8, None))
    one_batch = {settings: seconds for settings, seconds in CELLS.items() if settings.batch == 16}
    assert OtherBatchSize() not in [row.text for row in grid.rows_on_fastest(conclude(events(one_batch)))]
    alone = {settings: seconds for settings, seconds in CELLS.items() if not settings.workers}
    assert grid.rows_on_fastest(conclude(events(alone)))[-1].text == TryLoader(16, 0, None, None)


def test_the_plot_has_a_marker_for_each_cell():
    few, _ = grid.variants(grid.cells(conclude(events())))
    lines = grid.chart(few)
    plotted = "".join(lines[: grid.HEIGHT])
    assert [plotted.count(marker) for marker in "o+x"] == [2, 2, 2]
    assert "o" in lines[0]  # the slowest is at the top
    assert lines[0].startswith("  10.00 |")
    assert lines[grid.HEIGHT - 1].startswith("   0.00 |")
    assert lines[-2].split() == ["batch", "16", "64"]
    assert lines[-1].split("   ")[-3:] == ["o 0 workers", "+ 2 workers", "x 4 workers"]


def test_a_picture():
    drawn = png(conclude(events()))
    assert drawn.startswith(b"\x89PNG")
    assert drawn == png(conclude(events()))


def test_without_a_sample_nothing_is_drawn():
    assert "WINNER" not in printed(events(blocks=0, ended=None))


def test_scripts_get_all_cells():
    found = json.loads(json.dumps(grid.to_json(conclude(events()))))
    assert len(found) == len(CELLS)
    assert found[2] == {
        "workers": 2, "batch": 16, "prefetch_factor": 2, "pin_memory": False, "samples": 3,
        "seconds_per_1000_images": pytest.approx(5.0), "least": pytest.approx(4.5), "most": pytest.approx(5.5),
    }  # fmt: skip


def test_workers_alone_have_one_table():
    cells = {settings: seconds for settings, seconds in CELLS.items() if not settings.workers}
    (only,) = grid.variants(grid.cells(conclude(events(cells))))
    assert only.title == NoWorkers(None)


def test_other_reports_have_the_grid_too(recorded):
    given = recorded(events())
    text = markdown_of(*given)
    assert "s per 1,000 images, prefetch_factor 2:\n\n| batch | 0 workers | 2 workers | 4 workers |" in text
    assert "| 16 | 10.00 | 5.00 | 6.25 |" in text
    assert text.startswith("**NO CLEAR WINNER  4 of 8 settings may be the fastest; lowest median: 2 workers")
    page = html.page(*given)
    assert "envkit report: 8 loader settings under baseline" in page
    assert "NO CLEAR WINNER  4 of 8 settings may be the fastest; lowest median: 2 workers" in page
    assert page.count("One line for each number of workers") == 1
