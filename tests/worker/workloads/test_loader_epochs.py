"""The loader in epochs that end: its names, its batches, and how a process is seen to have been started."""

from __future__ import annotations

import itertools
import pickle

import pytest
from envkit.worker import workloads
from envkit.worker.workloads import loader, loader_epochs
from envkit.worker.workloads.loader_epochs import Epochs, Settings, settings_of, started_by

from tests.worker.made_up import write

SPAWNED = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork"
SERVED = "python -c from multiprocessing.forkserver import main; main(13, 14, ['__main__'], **{})"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (Settings(loader.Settings(2, 32, 2), "fork", False), "loader-w2-b32-p2-fork"),
        (Settings(loader.Settings(4, 16, 8), "spawn", True), "loader-w4-b16-p8-spawn-persistent"),
        (Settings(loader.Settings(1, 80, 2, pin=True), "spawn", True), "loader-w1-b80-p2-pin-spawn-persistent"),
    ],
)  # fmt: skip
def test_settings_are_in_the_name_of_a_workload(settings, name):
    assert settings.workload == name
    assert settings_of(name) == settings
    found, steps = workloads.get(name), loader.PICTURES // settings.base.batch
    assert found.prepare.keywords == {"settings": settings}
    assert (found.epoch_steps, found.warmup_steps, found.steps) == (steps, steps, 4 * steps)
    assert (found.pins, found.scales) == (settings.base.pin, False)


@pytest.mark.parametrize(
    "name",
    [
        "loader-fork", "loader-w0-b32-fork", "loader-w2-b32-p2-spwan", "loader-w2-b32-p2-persistent",
        "loader-w2-b81-p2-fork", "loader-w2-b32-p2-spawn-pin", "cnn-fork",
    ],
)  # fmt: skip
def test_names_of_nothing_that_can_be(name):
    assert settings_of(name) is None
    assert workloads.find(name) is None


def test_epochs_have_the_batches_of_the_training_that_has_no_end():
    epochs = Epochs(48, 3)
    found = [*epochs, *epochs, *epochs]
    assert found == list(itertools.islice(loader.Batches(48), 9))
    assert len(list(epochs)) == 3


def test_what_workers_of_another_interpreter_get_can_be_sent_to_them():
    pictures = loader.Pictures([b"a file"], [3])
    assert vars(pickle.loads(pickle.dumps(pictures))) == vars(pictures)


@pytest.mark.parametrize(
    ("line", "method"),
    [("python -m envkit.worker train", "fork"), (SPAWNED, "spawn"), (SERVED, "forkserver"), ("", None), (None, None)],
)
def test_how_a_process_was_started_is_the_kernels_word(tmp_path, line, method):
    write(tmp_path, {"proc/7/cmdline": line and line.replace(" ", "\0")})
    assert started_by(7, tmp_path) == method


def test_start_methods_are_those_of_this_python():
    import multiprocessing

    assert set(loader_epochs.STARTS) <= set(multiprocessing.get_all_start_methods())
