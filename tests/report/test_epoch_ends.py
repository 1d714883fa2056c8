"""A run of DataLoader's start methods and of workers that stay or don't: table, sentences, and a picture."""

from __future__ import annotations

import pytest
from envkit.bench.study import WorkloadSpec
from envkit.report import epoch_ends, html
from envkit.report.messages.loaders import EpochsOf
from envkit.report.messages.verdicts import NothingMeasured
from envkit.report.pictures import png
from envkit.report.verdict import headline
from envkit.worker.workloads import loader
from envkit.worker.workloads.loader_epochs import Settings

from tests.records import conclude
from tests.reports import markdown_of, of_cells, printed, said

DATA_LOADER = loader.Settings(2, 32, 2)
CELLS = {  # seconds more of the steps that begin an epoch; all others take 0.1 s
    Settings(DATA_LOADER, "fork", False): 0.3, Settings(DATA_LOADER, "fork", True): 0.1,
    Settings(DATA_LOADER, "spawn", False): 4.0, Settings(DATA_LOADER, "spawn", True): 0.2,
}  # fmt: skip
STEPS = 10  # two epochs


def events(cells=CELLS, blocks=3, **options):
    """The run that measured them."""
    behaviours = {
        one: {"seconds": [0.1 * STEPS], "begin_s": more, "images_per_step": one.base.batch}
        for one, more in cells.items()
    }
    return of_cells(behaviours, WorkloadSpec(5, STEPS), blocks, **options)


def test_what_an_epoch_takes_is_taken_apart():
    found = {one.settings: one for one in epoch_ends.cells(conclude(events()))}
    for settings, more in CELLS.items():
        one = found[settings]
        assert (one.samples, one.begin_s, one.step_s) == (3, pytest.approx(0.1 + more), pytest.approx(0.1))
        assert one.epoch_s == pytest.approx(0.5 + more)


def test_what_is_printed():
    lines = printed(events()).splitlines()
    begin = lines.index("epochs of 5 batches of 32, 2 workers, prefetch_factor 2")
    assert [line.split() for line in lines[begin + 2 : begin + 6]] == [
        ["fork", "no", "0.400", "0.400", "to", "0.400", "100.0", "0.80"],
        ["fork", "yes", "0.200", "0.200", "to", "0.200", "100.0", "0.60"],
        ["spawn", "no", "4.100", "4.100", "to", "4.100", "100.0", "4.50"],
        ["spawn", "yes", "0.300", "0.300", "to", "0.300", "100.0", "0.70"],
    ]
    text = said(events())
    assert "persistent workers save at the end of each epoch: fork 0.20 s, spawn 3.80 s" in text
    assert text.startswith(
        "FASTEST fork, persistent workers: 0.60 s per epoch, 0.20 s of it to begin (slowest of 4 settings, spawn, new "
        "workers: 4.50 s, 4.10 s to begin)"
    )
    assert max(map(len, lines)) <= 80


def test_of_several_loaders_each_has_a_table_and_the_least_is_named_in_full():
    """An epoch of batches of 80 has two of them: it takes 0.2 s and 0.1 s more, and the images are as many."""
    more = {Settings(loader.Settings(1, 80, 4), "fork", persistent): 0.1 for persistent in (False, True)}
    first, second = epoch_ends.groups(epoch_ends.cells(conclude(events(CELLS | more))))
    assert [len(first.cells), len(second.cells)] == [4, 2]
    assert second.title == EpochsOf(steps=2, batch=80, workers=1, prefetch=4, memory=None)
    found = headline(conclude(events(CELLS | more))).text
    assert (found.of, found.setting, found.epoch_s) == (6, "fork, new workers", pytest.approx(0.3))


def test_without_a_sample_nothing_is_said():
    assert headline(conclude(events(blocks=0, ended=None))).text == NothingMeasured()


def test_pages_have_it_too(recorded):
    given = recorded(events())
    row = "| spawn | no | 4.100 | 4.100 to 4.100 | 100.0 | 4.50 |"
    assert row in markdown_of(*given)
    page = html.page(*given)
    assert "envkit report: 4 loader settings under baseline" in page
    assert page.count("The time until the first step of an epoch is done") == 1
    assert page.count("<svg viewBox") == 2 * page.count("<figure")


def test_a_picture():
    drawn = png(conclude(events()))
    assert drawn.startswith(b"\x89PNG")
    assert drawn != png(conclude(events(dict(reversed(CELLS.items())))))
