"""Which workloads there are, by name, and the settings that a name can have."""

from __future__ import annotations

import hashlib

import pytest
from envkit.worker import workloads
from envkit.worker.modes import Options
from envkit.worker.workloads import ALL, WORKLOADS, loader
from envkit.worker.workloads.loader import Batches, Settings, settings_of


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_name_leads_to_its_workload(name):
    assert workloads.find(name) is workloads.get(name) is WORKLOADS[name]


def test_all_are_workloads_of_several_kinds():
    assert set(ALL) <= set(WORKLOADS)
    assert [WORKLOADS[name].generated for name in ALL] == [False, True, True, True]
    assert [WORKLOADS[name].images for name in ALL] == [True, True, False, True]


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(0, 16, 0), Settings(4, 128, 4, pin=True), Settings(0, 1, 0, pin=True), Settings(12, 999, 99)],
)
def test_settings_are_in_the_name_of_a_workload(settings):
    assert settings_of(settings.workload) == settings
    found = workloads.get(settings.workload)
    assert found.prepare.keywords == {"settings": settings}
    assert (found.steps, found.pins, found.scales) == (max(1, 1536 // settings.batch), settings.pin, False)


def test_what_a_name_leaves_out():
    assert settings_of("loader-w4-b64") == Settings(4, 64, 2)
    assert settings_of("loader-w0-b64") == Settings(0, 64, 0)


@pytest.mark.parametrize(
    "name", ["loader", "loader-w2", "loader-b2-w2", "loader-w2-b0", "loader-w0-b4-p2", "loader-w2-b4-p0", "cnn-w2-b4"]
)
def test_names_without_settings_that_can_be(name):
    assert settings_of(name) is None


def test_no_workload_by_another_name():
    assert workloads.find("loader-w2-b0") is None
    with pytest.raises(KeyError, match="bert"):
        workloads.get("bert")


def test_batches_have_every_picture_once_before_any_comes_again():
    batches = iter(Batches(48))
    keys = [key for _ in range(16) for key in next(batches)]
    assert [place for _, place in keys] == list(range(16 * 48))
    for first in range(0, 3 * loader.PICTURES, loader.PICTURES):
        assert sorted(number for number, _ in keys[first : first + loader.PICTURES]) == list(range(loader.PICTURES))
    assert [next(iter(Batches(48))) for _ in range(2)] == [keys[:48]] * 2


@pytest.mark.parametrize(
    ("options", "arguments", "text"),
    [
        (Options(), (), ""),
        (Options("bf16-autocast"), ("--precision", "bf16-autocast"), "bf16-autocast"),
        (Options(compile=True, scale=4), ("--compile", "--scale", "4"), "compiled, scale 4"),
        (Options(channels_last=True), ("--channels-last",), "channels-last"),
        (
            Options("bf16-autocast", device="cuda"),
            ("--device", "cuda", "--precision", "bf16-autocast"),
            "cuda, bf16-autocast",
        ),
        (Options(device="cuda", backend="gloo"), ("--device", "cuda", "--backend", "gloo"), "cuda, gloo"),
    ],
)
def test_options_as_arguments_and_in_words(options, arguments, text):
    assert (options.arguments(), options.text()) == (arguments, text)


def test_the_loaders_pictures_are_the_same_everywhere():
    digest = hashlib.sha256()
    files, labels = loader._drawn(8, 1, digest)
    assert (len(files), labels) == (8, list(range(8)))
    assert digest.hexdigest() == "687068268d47b6e656e950bad28e18379962fd6624984c79f618742a9a04d819"


def test_what_ranks_exchange_by():
    assert [Options(device=device).exchange for device in ("cpu", "cuda")] == ["gloo", "nccl"]
    assert Options(device="cuda", backend="gloo").exchange == "gloo"
